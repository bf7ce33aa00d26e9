//! Events that wait to be delivered, and those that could not be.
//!
//! Each forwarder of a scheduler has a queue, known by the forwarder's name. Order holds among the events of one room in one
//! queue: only the first of them, its *head*, may be delivered.

use async_trait::async_trait;
use maestro_core::event::{EventId, Message};
use maestro_core::room::RoomId;
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::{Millis, Timestamp};

use super::Result;

#[async_trait]
pub trait Outbox: Send + Sync {
    /// The queues of a scheduler in which events wait or are dead, by forwarder. Not those that a deleted scheduler of the
    /// same name left behind.
    async fn event_queues(&self, scheduler: &SchedulerName) -> Result<Vec<EventQueue>>;

    /// Events to deliver: of at most `rooms_max` rooms whose head is due at `now`, those that are due longest first, and of
    /// these the one that was queued first, the first `events_max` that wait, in order. What follows a head is part of it, whether it is due by itself or not.
    async fn due_events(
        &self,
        queue: QueueId,
        now: Timestamp,
        rooms_max: usize,
        events_max: usize,
    ) -> Result<Vec<QueuedEvent>>;

    /// One page of a scheduler's events, in the order in which they were queued.
    async fn events(
        &self,
        scheduler: &SchedulerName,
        only: &EventFilter,
        page: EventPageRequest,
    ) -> Result<EventPage>;

    /// Whether there are queues of deleted schedulers.
    async fn has_orphaned_queues(&self) -> Result<bool>;

    /// Makes `owner` the owner of all queues of deleted schedulers that nobody else owns, or whose owner's time has run out,
    /// and renews those that it owns. Returns what it owns now. One that has become empty is removed.
    async fn own_orphaned_queues(&self, owner: &str, ttl: Millis) -> Result<Vec<OrphanedQueue>>;
}

/// Known to the store alone; never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueId(pub i64);

/// The queue of one forwarder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventQueue {
    pub id: QueueId,
    pub forwarder: String,
    /// Those that are not dead.
    pub waiting: u32,
    pub dead: u32,
    /// When the first of those that wait was queued.
    pub oldest_at: Option<Timestamp>,
    /// When the next head is due.
    pub next_at: Option<Timestamp>,
}

/// The queue of a forwarder whose scheduler is deleted: events wait in it all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrphanedQueue {
    pub id: QueueId,
    pub scheduler: SchedulerName,
    pub forwarder: String,
    pub last: LastAddress,
    pub next_at: Option<Timestamp>,
}

/// Where a forwarder's events went when its scheduler was deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastAddress {
    pub address: String,
    pub timeout_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedEvent {
    pub id: EventId,
    pub forwarder: String,
    pub room: RoomId,
    pub message: Message,
    /// Failed ones.
    pub attempts: u32,
    /// When the next attempt is due, if it is a head.
    pub next_at: Timestamp,
    /// Of the last attempt; empty if there was none.
    pub last_error: String,
    /// When it was queued, or was last replayed.
    pub queued_at: Timestamp,
    /// Since when it is a dead letter.
    pub dead_at: Option<Timestamp>,
}

/// An event as it is queued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    pub id: EventId,
    pub scheduler: SchedulerName,
    pub forwarder: String,
    pub room: RoomId,
    pub message: Message,
    /// Only while fewer than these wait in the queue. `None`: in any case.
    pub waiting_max: Option<u32>,
    pub if_ended: IfEnded,
    pub at: Timestamp,
}

/// What becomes of an event if its room has ended, or does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfEnded {
    /// It is queued all the same.
    Queue,
    /// It is passed over: with the room's end in the same transaction, it is queued once however often that is written.
    Skip,
    /// It is refused: the room's end is what receivers hear last.
    Refuse,
}

/// Which events of a scheduler are asked for. `None` asks for nothing in particular.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    pub dead: Option<bool>,
    pub forwarder: Option<String>,
    pub room: Option<RoomId>,
    pub id: Option<EventId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventPageRequest {
    /// From 1.
    pub page: u32,
    pub page_size: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPage {
    pub total: u32,
    pub events: Vec<QueuedEvent>,
}
