//! Delivers the queued events of one scheduler, for as long as this worker owns it. Forwarders do not wait for each other.
//! The rooms of one forwarder take part in rounds, in which they do not wait for each other either.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::{after, age};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::ports::store::{EventQueue, Guard, QueueId, StoreError};
use crate::worker::Tenure;
use crate::{Engine, with_sources};

use super::round::{Destination, Round};

/// How long to wait when the store did not answer.
const STORE_RETRY: Duration = Duration::from_secs(1);
/// While events wait, queues are checked at least this often, whatever the clock says: clocks jump.
const CHECK_INTERVAL_MAX: Duration = Duration::from_secs(60);
/// And no more often than this.
const CHECK_INTERVAL_MIN: Duration = Duration::from_millis(5);

pub(crate) struct Deliverer {
    engine: Arc<Engine>,
    guard: Guard,
    tenure: Tenure,
}

/// The queues in which events are due.
#[derive(Default)]
struct DueQueues {
    due: Vec<(EventQueue, Destination)>,
    /// When events are due in another one.
    next: Option<Instant>,
}

impl Deliverer {
    pub(crate) fn new(engine: Arc<Engine>, guard: Guard, tenure: Tenure) -> Self {
        Self { engine, guard, tenure }
    }

    fn scheduler(&self) -> &SchedulerName {
        &self.guard.scheduler
    }

    /// Runs until it is dropped. Deliveries in flight are then repeated by the next owner.
    pub(crate) async fn run(&self) {
        let bell = self.engine.events.bell(self.scheduler());
        let _forget = Forget(&self.engine, self.scheduler(), &bell);
        let mut rounds = FuturesUnordered::new();
        let mut busy: BTreeSet<QueueId> = BTreeSet::new();
        loop {
            let next = match self.due_queues(&busy).await {
                Ok(DueQueues { due, next }) => {
                    for (queue, to) in due {
                        busy.insert(queue.id);
                        rounds.push(self.round(queue, to));
                    }
                    next
                }
                Err(error) => Some(self.retry_at(&error)),
            };
            tokio::select! {
                biased;
                Some(queue) = rounds.next() => drop(busy.remove(&queue)),
                () = bell.notified() => {}
                () = wait_until(next) => {}
            }
        }
    }

    async fn due_queues(&self, busy: &BTreeSet<QueueId>) -> Result<DueQueues, StoreError> {
        let store = &self.engine.ports.store;
        let mut found = DueQueues::default();
        let mut queues = store.event_queues(self.scheduler()).await?;
        queues.retain(|queue| queue.waiting > 0 && !busy.contains(&queue.id));
        if queues.is_empty() {
            return Ok(found);
        }
        let Some(record) = store.scheduler(self.scheduler()).await? else { return Ok(found) };
        let now = self.engine.now();
        for queue in queues {
            let to = Destination::of(&record.recipe.forwarders, &queue.forwarder);
            let due_at = match to {
                Destination::At { .. } => queue.next_at,
                Destination::Disabled => {
                    queue.oldest_at.map(|oldest| after(oldest, self.engine.settings.events_kept))
                }
                Destination::Removed => Some(now),
            };
            match due_at {
                Some(at) if at <= now => found.due.push((queue, to)),
                Some(at) => {
                    let wait = age(at, now).as_duration().clamp(CHECK_INTERVAL_MIN, CHECK_INTERVAL_MAX);
                    let at = Instant::now() + wait;
                    found.next = Some(found.next.map_or(at, |next| next.min(at)));
                }
                None => {}
            }
        }
        Ok(found)
    }

    async fn round(&self, queue: EventQueue, to: Destination) -> QueueId {
        let round = Round {
            engine: &self.engine,
            scheduler: self.scheduler(),
            forwarder: &queue.forwarder,
            queue: queue.id,
            owned: Some((&self.guard, &self.tenure)),
        };
        if let Err(error) = round.run(&to).await {
            tokio::time::sleep_until(self.retry_at(&error)).await;
        }
        queue.id
    }

    /// Logs the error, and says when to try again.
    fn retry_at(&self, error: &StoreError) -> Instant {
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

struct Forget<'a>(&'a Engine, &'a SchedulerName, &'a Arc<Notify>);

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.0.events.forget_bell(self.1, self.2);
    }
}
