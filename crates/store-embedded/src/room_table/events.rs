//! The ring of events, in memory.
//!
//! Its lock is the last one that is taken: a room's change of status is added while the room's shard is locked, so that the
//! events of a room are in the order of its changes.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::pin::pin;
use std::sync::Arc;

use async_trait::async_trait;
use maestro_core::room::{RoomId, RoomStatus};
use maestro_core::scheduler::SchedulerName;
use maestro_core::stream::{Happened, Read, ReadFrom, Ring, RingId, StreamEvent, StreamId};
use maestro_core::time::Timestamp;
use maestro_engine::ports::room_table::TableError;
use maestro_engine::ports::{Clock, EventRing};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::MemoryRoomTable;

pub(super) struct Events {
    ring: Mutex<Ring<Arc<StreamEvent>>>,
    clock: Arc<dyn Clock>,
    draw: Box<dyn Fn() -> u64 + Send + Sync>,
    /// Somebody may wait for events that are there now.
    grown: Notify,
}

impl Events {
    pub(super) fn new(clock: Arc<dyn Clock>, draw: Box<dyn Fn() -> u64 + Send + Sync>) -> Self {
        let ring = Mutex::new(Ring::new(RingId::new(clock.now(), draw())));
        Self { ring, clock, draw, grown: Notify::new() }
    }

    /// A room of the table has another status.
    pub(super) fn room_changed(
        &self,
        scheduler: &SchedulerName,
        room: &str,
        before: RoomStatus,
        after: RoomStatus,
    ) {
        let what = Happened::RoomChanged { room: RoomId::new(room), before, after };
        let now = self.clock.now();
        let event = StreamEvent { at: now, scheduler: Some(scheduler.clone()), what };
        push(&mut self.ring.lock(), event, now);
        self.grown.notify_waiters();
    }

    fn append(&self, events: Vec<StreamEvent>, after_loss: bool) {
        let now = self.clock.now();
        let mut ring = self.ring.lock();
        if after_loss {
            *ring = Ring::new(RingId::new(now, (self.draw)()));
        }
        events.into_iter().for_each(|event| push(&mut ring, event, now));
        drop(ring);
        self.grown.notify_waiters();
    }
}

fn push(ring: &mut Ring<Arc<StreamEvent>>, event: StreamEvent, now: Timestamp) {
    let (at, bytes) = (event.at, event.bytes());
    ring.push(Arc::new(event), bytes, at, now);
}

#[async_trait]
impl EventRing for MemoryRoomTable {
    async fn append(&self, events: Vec<StreamEvent>, after_loss: bool) -> Result<(), TableError> {
        self.events.append(events, after_loss);
        Ok(())
    }

    async fn read_events(
        &self,
        from: ReadFrom,
        events_max: usize,
    ) -> Result<Read<Arc<StreamEvent>>, TableError> {
        let now = self.events.clock.now();
        Ok(self.events.ring.lock().read(from, events_max, now))
    }

    async fn wait_for_events(&self, next: StreamId) -> Result<(), TableError> {
        loop {
            let mut grown = pin!(self.events.grown.notified());
            // From here on nothing is missed, so what was before can be looked at.
            grown.as_mut().enable();
            if self.events.ring.lock().last() != next {
                return Ok(());
            }
            grown.await;
        }
    }
}

/// From the keys that the standard library draws for its maps.
pub(super) fn drawn_by_machine() -> u64 {
    RandomState::new().hash_one(0)
}
