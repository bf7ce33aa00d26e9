//! Takes queued events to their receivers, for as long as this worker owns the scheduler. Forwarders do not wait for each
//! other; within one, rooms do not, but for those that are in the same round.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::{after, age};
use tokio::time::Instant;

use crate::ports::store::{EventQueue, Guard, QueueId, StoreError};
use crate::worker::Tenure;
use crate::{Engine, with_sources};

use super::round::{Receiver, Round};

/// After the store did not answer.
const STORE_RETRY: Duration = Duration::from_secs(1);
/// While something waits, it is looked at this often whatever the clock says: clocks jump.
const LOOK_MOST: Duration = Duration::from_secs(60);
/// Something that is due just now is not looked at in a loop.
const LOOK_LEAST: Duration = Duration::from_millis(5);

pub(crate) struct Deliverer {
    engine: Arc<Engine>,
    guard: Guard,
    tenure: Tenure,
}

/// What a look at the queues found.
#[derive(Default)]
struct Look {
    due: Vec<(EventQueue, Receiver)>,
    /// When something else is.
    next: Option<Instant>,
}

impl Deliverer {
    pub(crate) fn new(engine: Arc<Engine>, guard: Guard, tenure: Tenure) -> Self {
        Self { engine, guard, tenure }
    }

    fn scheduler(&self) -> &SchedulerName {
        &self.guard.scheduler
    }

    /// Until it is dropped. What is under way then is delivered again by whoever comes next.
    pub(crate) async fn run(&self) {
        let bell = self.engine.events.bell(self.scheduler());
        let _forget = Forget(&self.engine, self.scheduler());
        let mut rounds = FuturesUnordered::new();
        let mut busy: BTreeSet<QueueId> = BTreeSet::new();
        loop {
            let next = match self.look(&busy).await {
                Ok(Look { due, next }) => {
                    for (queue, receiver) in due {
                        busy.insert(queue.id);
                        rounds.push(self.round(queue, receiver));
                    }
                    next
                }
                Err(error) => Some(self.not_now(&error)),
            };
            tokio::select! {
                biased;
                Some(queue) = rounds.next() => drop(busy.remove(&queue)),
                () = bell.notified() => {}
                () = wait_until(next) => {}
            }
        }
    }

    async fn look(&self, busy: &BTreeSet<QueueId>) -> Result<Look, StoreError> {
        let store = &self.engine.ports.store;
        let mut look = Look::default();
        let mut queues = store.event_queues(self.scheduler()).await?;
        queues.retain(|queue| queue.waiting > 0 && !busy.contains(&queue.id));
        if queues.is_empty() {
            return Ok(look);
        }
        let Some(record) = store.scheduler(self.scheduler()).await? else { return Ok(look) };
        let now = self.engine.now();
        for queue in queues {
            let receiver = Receiver::of(&record.recipe.forwarders, &queue.forwarder);
            let due_at = match receiver {
                Receiver::At { .. } => queue.next_at,
                Receiver::Disabled => {
                    queue.oldest_at.map(|oldest| after(oldest, self.engine.settings.events_kept))
                }
                Receiver::Removed => Some(now),
            };
            match due_at {
                Some(at) if at <= now => look.due.push((queue, receiver)),
                Some(at) => {
                    let wait = age(at, now).as_duration().clamp(LOOK_LEAST, LOOK_MOST);
                    let at = Instant::now() + wait;
                    look.next = Some(look.next.map_or(at, |next| next.min(at)));
                }
                None => {}
            }
        }
        Ok(look)
    }

    async fn round(&self, queue: EventQueue, receiver: Receiver) -> QueueId {
        let round = Round {
            engine: &self.engine,
            scheduler: self.scheduler(),
            forwarder: &queue.forwarder,
            queue: queue.id,
            owned: Some((&self.guard, &self.tenure)),
        };
        if let Err(error) = round.run(&receiver).await {
            tokio::time::sleep_until(self.not_now(&error)).await;
        }
        queue.id
    }

    /// When to try again.
    fn not_now(&self, error: &StoreError) -> Instant {
        let scheduler_name = self.scheduler().as_str();
        tracing::warn!(scheduler_name, error = with_sources(error), "events not delivered, trying again");
        Instant::now() + STORE_RETRY
    }
}

async fn wait_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Nobody rings for a deliverer that is gone.
struct Forget<'a>(&'a Engine, &'a SchedulerName);

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.0.events.forget_bell(self.1);
    }
}
