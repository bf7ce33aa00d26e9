//! One round of delivery from one queue: the events that are due, of a number of rooms. Those of one room go one after the
//! other, in order; rooms do not wait for each other.

use std::time::Duration;

use futures_util::future::join_all;
use maestro_core::event::{DeliveryVerdict, RpcCode, retry_in, verdict};
use maestro_core::scheduler::{Forwarder, SchedulerName};
use maestro_core::time::{Millis, Timestamp, after, age};
use tokio::time::Instant;

use crate::Engine;
use crate::ports::store::{Change, Guard, QueueId, QueuedEvent, StoreError, Transaction};
use crate::worker::Tenure;

use super::timeout_of;

/// Rooms whose events are delivered side by side.
const ROOMS_AT_ONCE: usize = 64;
/// Events of one room that are delivered before it is written down: killed in between, they are delivered again.
const EVENTS_PER_ROOM: usize = 16;
/// Events a second that one receiver gets at most: after an hour in which it was down, it must not go down again.
const EVENTS_PER_SECOND_MAX: u32 = 1000;
/// How long a round takes that changes nothing. What is due may not be possible: an event cannot be read, or it has expired
/// behind others that have not. It is not tried in a loop.
const FRUITLESS_MIN: Duration = Duration::from_millis(500);
/// Dead letters that are kept of one forwarder.
const DEAD_MAX: u32 = 100_000;
/// How much of an error is kept.
const ERROR_CHARS_MAX: usize = 500;

/// Where the events of a queue go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Destination {
    At {
        address: String,
        timeout: Duration,
    },
    /// Nothing is delivered for now.
    Disabled,
    /// There is no such forwarder any more.
    Removed,
}

impl Destination {
    pub(super) fn of(forwarders: &[Forwarder], name: &str) -> Self {
        let mut same = forwarders.iter().filter(|forwarder| forwarder.name == name).peekable();
        if same.peek().is_none() {
            return Self::Removed;
        }
        match same.find(|forwarder| forwarder.enabled) {
            Some(Forwarder { address, timeout_ms, .. }) => {
                Self::At { address: address.clone(), timeout: timeout_of(*timeout_ms) }
            }
            None => Self::Disabled,
        }
    }
}

pub(super) struct Round<'a> {
    pub(super) engine: &'a Engine,
    pub(super) scheduler: &'a SchedulerName,
    pub(super) forwarder: &'a str,
    pub(super) queue: QueueId,
    /// With what writes are guarded, and how long the guard is believed to hold. `None`: the scheduler is deleted.
    pub(super) owned: Option<(&'a Guard, &'a Tenure)>,
}

impl Round<'_> {
    /// How many events have left the queue. Takes as long as the rate of one receiver asks for, and a while if there was
    /// nothing to do after all.
    pub(super) async fn run(&self, to: &Destination) -> Result<usize, StoreError> {
        let began = Instant::now();
        let left = match to {
            Destination::At { address, timeout } => self.deliver(address, *timeout).await?,
            Destination::Disabled => self.expire().await?,
            Destination::Removed => self.dead_letter_all().await?,
        };
        let count = left.map(|left| u32::try_from(left).unwrap_or(u32::MAX));
        let least =
            count.map_or(FRUITLESS_MIN, |count| Duration::from_secs(1) * count / EVENTS_PER_SECOND_MAX);
        tokio::time::sleep_until(began + least).await;
        Ok(left.unwrap_or(0))
    }

    /// How many events have left; `None`: nothing of the queue has changed.
    async fn deliver(&self, address: &str, timeout: Duration) -> Result<Option<usize>, StoreError> {
        let due = self.due(self.engine.now()).await?;
        let rooms = due.chunk_by(|one, other| one.room == other.room);
        let rooms = rooms.map(|events| self.deliver_room(events, address, timeout));
        let mut left = None;
        for outcome in join_all(rooms).await {
            left = outcome?.map(|more| left.unwrap_or(0) + more).or(left);
        }
        Ok(left)
    }

    async fn due(&self, now: Timestamp) -> Result<Vec<QueuedEvent>, StoreError> {
        self.engine.ports.store.due_events(self.queue, now, ROOMS_AT_ONCE, EVENTS_PER_ROOM).await
    }

    /// Events of one room, up to the first that fails.
    async fn deliver_room(
        &self,
        events: &[QueuedEvent],
        address: &str,
        timeout: Duration,
    ) -> Result<Option<usize>, StoreError> {
        let (mut delivered, mut others) = (Vec::new(), Vec::new());
        for event in events {
            // Another worker may have taken over.
            if self.owned.is_some_and(|(_, tenure)| tenure.is_over()) {
                break;
            }
            if event.message.is_last() {
                self.engine.events.resyncs.close(self.scheduler, self.forwarder, &event.room, timeout).await;
            }
            let attempt = self.engine.attempt(address, timeout, event.id, &event.message).await;
            let error = attempt.err();
            let code = error.as_ref().map_or(RpcCode::Ok, |error| error.code);
            let why = error.map(|error| error.to_string()).unwrap_or_default();
            match verdict(code, self.waited(event), self.engine.settings.events_kept) {
                DeliveryVerdict::Delivered => {
                    self.engine.metrics.event_delivered(self.scheduler, self.forwarder, self.waited(event));
                    delivered.push(event.id);
                }
                DeliveryVerdict::Dead => others.push(self.dead(event, &why)),
                DeliveryVerdict::Retry => {
                    others.push(self.failed(event, &why));
                    break;
                }
            }
        }
        let left = delivered.len() + others.iter().filter(|change| is_dead_letter(change)).count();
        let mut changes = Vec::new();
        if !delivered.is_empty() {
            let (scheduler, queue, at) = (self.scheduler.clone(), self.queue, self.engine.now());
            changes.push(Change::EventsDelivered { scheduler, queue, events: delivered, at });
        }
        changes.extend(others);
        let changed = self.write("events delivered", changes).await?;
        Ok(changed.then_some(left))
    }

    /// Events expire even while nothing is delivered, also those that were to be tried again later.
    async fn expire(&self) -> Result<Option<usize>, StoreError> {
        let due = self.due(Timestamp::MAX).await?;
        let is_expired = |event: &&QueuedEvent| self.waited(event) >= self.engine.settings.events_kept;
        let changes: Vec<_> = due
            .iter()
            .filter(is_expired)
            .map(|event| self.dead(event, &format!("forwarder {} is not enabled", self.forwarder)))
            .collect();
        let left = changes.len();
        let changed = self.write("events expired", changes).await?;
        Ok(changed.then_some(left))
    }

    async fn dead_letter_all(&self) -> Result<Option<usize>, StoreError> {
        let events = self.due(Timestamp::MAX).await?;
        let error = format!("forwarder {} was removed from the recipe", self.forwarder);
        let changes: Vec<_> = events.iter().map(|event| self.dead(event, &error)).collect();
        let left = changes.len();
        let changed = self.write("forwarder removed", changes).await?;
        Ok(changed.then_some(left))
    }

    fn waited(&self, event: &QueuedEvent) -> Millis {
        age(self.engine.now(), event.queued_at)
    }

    fn failed(&self, event: &QueuedEvent, error: &str) -> Change {
        let wait = retry_in(event.attempts.saturating_add(1), self.engine.ports.random.draw());
        tracing::debug!(
            scheduler_name = %self.scheduler, forwarder = self.forwarder, room_id = %event.room, error, retry_in = %wait,
            "event not delivered"
        );
        Change::EventFailed {
            scheduler: self.scheduler.clone(),
            queue: self.queue,
            event: event.id,
            error: cut(error),
            next_at: after(self.engine.now(), wait),
        }
    }

    fn dead(&self, event: &QueuedEvent, error: &str) -> Change {
        tracing::warn!(
            scheduler_name = %self.scheduler, forwarder = self.forwarder, room_id = %event.room, event_id = %event.id,
            error, "event is a dead letter now"
        );
        self.engine.metrics.event_dead(self.scheduler, self.forwarder);
        Change::EventsDead {
            scheduler: self.scheduler.clone(),
            queue: self.queue,
            events: vec![event.id],
            error: cut(error),
            dead_max: DEAD_MAX,
            at: self.engine.now(),
        }
    }

    /// False: there is nothing to write.
    async fn write(&self, label: &'static str, changes: Vec<Change>) -> Result<bool, StoreError> {
        if changes.is_empty() {
            return Ok(false);
        }
        let transaction = match self.owned {
            Some((guard, _)) => Transaction::guarded(label, guard.clone(), changes),
            None => Transaction::of_no_scheduler(label, changes),
        };
        self.engine.commit(transaction).await?;
        Ok(true)
    }
}

fn is_dead_letter(change: &Change) -> bool {
    matches!(change, Change::EventsDead { .. })
}

fn cut(error: &str) -> String {
    error.chars().take(ERROR_CHARS_MAX).collect()
}
