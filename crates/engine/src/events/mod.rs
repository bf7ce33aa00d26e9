//! Events of rooms on their way to matchmakers.
//!
//! - What a room sends (`roomevent`, `playerevent`, `status`) is forwarded by [`crate::services`]: to direct forwarders while
//!   the room waits, and for queued ones it is written down.
//! - [`deliverer`] delivers queued events, in the worker that owns the scheduler; [`orphaned`] does it for schedulers that are
//!   deleted. Both work in [`round`]s. When an event is tried again is decided in `maestro_core::event::verdict`.
//! - [`resyncs`] forwards what rooms say by pings. A ping only hands it over.
//! - [`room_gone`] queues the event that a room is gone, in the transaction of its end.

pub(crate) mod deliverer;
pub(crate) mod orphaned;
pub(crate) mod resyncs;
pub(crate) mod room_gone;
mod round;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use maestro_core::event::{EventId, Message, RoomFacts, RpcCode};
use maestro_core::scheduler::{Forwarder, SchedulerName};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::Engine;
use crate::ports::event_sink::{Delivery, DeliveryError};
use crate::ports::store::{RoomRecord, SchedulerRecord};

use resyncs::Resyncs;

/// One call takes no longer than this, whatever the recipe allows.
const TIMEOUT_MOST: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(crate) struct Events {
    pub(crate) resyncs: Resyncs,
    /// Of the schedulers whose events are delivered here.
    bells: Mutex<BTreeMap<SchedulerName, Arc<Notify>>>,
}

impl Events {
    /// An event was queued, here or by another process.
    pub(crate) fn queued(&self, scheduler: &SchedulerName) {
        if let Some(bell) = self.bells.lock().get(scheduler) {
            bell.notify_one();
        }
    }

    /// There may be events of any scheduler.
    pub(crate) fn all_queued(&self) {
        self.bells.lock().values().for_each(|bell| bell.notify_one());
    }

    /// Takes note of a scheduler's recipe. Its owner calls this again and again.
    pub(crate) fn update(&self, record: &SchedulerRecord) {
        self.resyncs.update(record);
        if !record.recipe.forwarders.is_empty() {
            self.queued(&record.name);
        }
    }

    /// A new one: whoever had one before delivers no more.
    fn bell(&self, scheduler: &SchedulerName) -> Arc<Notify> {
        let bell = Arc::<Notify>::default();
        self.bells.lock().insert(scheduler.clone(), bell.clone());
        bell
    }

    /// Unless somebody else has one by now.
    fn forget_bell(&self, scheduler: &SchedulerName, bell: &Arc<Notify>) {
        let mut bells = self.bells.lock();
        if bells.get(scheduler).is_some_and(|known| Arc::ptr_eq(known, bell)) {
            bells.remove(scheduler);
        }
    }
}

/// What messages say of a room.
pub(crate) fn facts_of(row: &RoomRecord, is_gone: bool) -> RoomFacts {
    let host = row.handle.as_ref().map(|handle| handle.host.clone()).unwrap_or_default();
    RoomFacts { id: row.id.clone(), host, ports: row.ports.clone(), is_gone }
}

pub(crate) fn enabled(record: &SchedulerRecord) -> impl Iterator<Item = &Forwarder> {
    record.recipe.forwarders.iter().filter(|forwarder| forwarder.enabled)
}

pub(crate) fn timeout_of(timeout_ms: u64) -> Duration {
    Duration::from_millis(timeout_ms).min(TIMEOUT_MOST)
}

impl Engine {
    /// An event is written down. A deliverer in another process that is not told finds it with the next look at the scheduler.
    pub(crate) fn event_queued(&self, scheduler: &SchedulerName) {
        self.events.queued(scheduler);
        self.ports.wake.events_queued(scheduler);
    }

    /// One attempt, which is counted.
    pub(crate) async fn attempt(
        &self,
        address: &str,
        timeout: Duration,
        id: EventId,
        message: &Message,
    ) -> Result<RpcCode, DeliveryError> {
        let began = Instant::now();
        let outcome = self.ports.events.deliver(Delivery { address, id, message, timeout }).await;
        let outcome = outcome.map(RpcCode::of_reply);
        let code = outcome.as_ref().map_or_else(|error| error.code, |code| *code);
        self.metrics.event_attempt(message.method(), code, began.elapsed());
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_deliverer_that_ends_late_leaves_the_bell_of_the_next() {
        let (events, arena) = (Events::default(), SchedulerName::parse("arena").unwrap());
        let before = events.bell(&arena);
        let now = events.bell(&arena);
        events.forget_bell(&arena, &before);
        events.queued(&arena);
        tokio::time::timeout(Duration::from_secs(1), now.notified()).await.expect("nobody rang");
        events.forget_bell(&arena, &now);
        assert!(events.bells.lock().is_empty());
    }
}
