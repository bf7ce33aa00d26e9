//! Rooms for matchmakers. An allocation is not an operation: it changes the room table, and is durable before it is
//! answered.
//!
//! Each process has one [`allocator`]. Requests that are there at the same time share one claim in the room table and one
//! commit. A request that finds no room may wait in the queue of its scheduler. When a hold is over, whoever ended it,
//! [`settling`] writes that down.

pub(crate) mod allocator;
mod queue;
mod recording;
pub(crate) mod settling;

use std::sync::Arc;

use maestro_core::allocation::{AllocationId, AllocationRequest, AllocationState};
use maestro_core::room::{HostPort, Region, RoomId};
use maestro_core::scheduler::{SchedulerName, Version};
use maestro_core::time::Timestamp;
use tokio::sync::{Mutex, Notify, mpsc};

use crate::ports::room_table::HeldRoom;
use crate::ports::store::AllocationRecord;
use crate::{Error, Result};

use allocator::Allocator;
pub(crate) use queue::WaitingRequest;

/// Requests that the allocator has not taken yet; further ones are refused at once.
const INBOX_MAX: usize = 4096;

pub(crate) struct Allocations {
    inbox: mpsc::Sender<WaitingRequest>,
    allocator: Mutex<Allocator>,
    /// Notified when a room may have become free.
    freed: Notify,
    /// Notified when holds are over whose rows do not say so yet.
    ended: Notify,
    /// Allocations whose callers have hung up and will never know of them.
    abandoned: parking_lot::Mutex<Vec<AllocationView>>,
}

/// An allocation as its caller sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct AllocationView {
    pub id: AllocationId,
    pub scheduler: SchedulerName,
    pub room: RoomId,
    pub state: AllocationState,
    /// How it came to be lost; empty otherwise.
    pub cause: String,
    pub request_id: Option<Arc<str>>,
    /// Empty if the room is forgotten, as are the ports; so are region and version.
    pub host: Arc<str>,
    pub ports: Arc<[HostPort]>,
    pub region: Option<Region>,
    pub version: Option<Version>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    /// A JSON object.
    pub metadata: Option<Arc<str>>,
}

/// Why there is no room, in numbers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no ready rooms available for scheduler {scheduler}")]
pub struct NoRooms {
    pub scheduler: SchedulerName,
    pub ready: u32,
    pub occupied: u32,
    /// Slots that matchmakers hold.
    pub held: u64,
    /// Requests that wait in this process.
    pub waiting: u32,
    /// How many rooms the fleet should have.
    pub desired: u32,
}

impl Default for Allocations {
    fn default() -> Self {
        let (inbox, requests) = mpsc::channel(INBOX_MAX);
        let allocator = Mutex::new(Allocator::new(requests));
        let (freed, ended) = (Notify::new(), Notify::new());
        Self { inbox, allocator, freed, ended, abandoned: parking_lot::Mutex::default() }
    }
}

impl Allocations {
    /// Hands a request to the allocator.
    pub(crate) fn submit(&self, request: WaitingRequest) -> Result {
        self.inbox.try_send(request).map_err(|_| {
            Error::TooMany(format!(
                "{INBOX_MAX} allocations wait for an answer already; try again in a moment"
            ))
        })
    }

    /// A room may have a free slot that it did not have before.
    pub(crate) fn room_freed(&self) {
        self.freed.notify_one();
    }

    /// Holds are over, and their rows do not say so yet.
    pub(crate) fn hold_ended(&self) {
        self.ended.notify_one();
    }

    /// Takes rooms back whose caller has hung up. If that fails, they are free when their holds are over.
    pub(crate) fn take_back(&self, allocated: Vec<AllocationView>) {
        if !allocated.is_empty() {
            self.abandoned.lock().extend(allocated);
            self.hold_ended();
        }
    }
}

impl AllocationView {
    fn of(waiting: &WaitingRequest, held: &HeldRoom, created_at: Timestamp, expires_at: Timestamp) -> Self {
        let AllocationRequest { request_id, metadata, .. } = &waiting.request;
        Self {
            id: held.allocation,
            scheduler: waiting.scheduler.clone(),
            room: held.room.clone(),
            state: AllocationState::Held,
            cause: String::new(),
            request_id: request_id.clone(),
            host: held.address.host.clone(),
            ports: held.address.ports.clone(),
            region: Some(held.region.clone()),
            version: Some(held.version),
            created_at,
            expires_at,
            ended_at: None,
            metadata: metadata.clone(),
        }
    }
}

impl From<AllocationRecord> for AllocationView {
    fn from(record: AllocationRecord) -> Self {
        let place = record.place;
        let address = place.as_ref().map(|place| place.address.clone());
        Self {
            id: record.id,
            scheduler: record.scheduler,
            room: record.room,
            state: record.state,
            cause: record.cause,
            request_id: record.request.map(|request| request.id),
            host: address.as_ref().map_or_else(|| "".into(), |address| address.host.clone()),
            ports: address.map_or_else(|| [].into(), |address| address.ports),
            region: place.as_ref().map(|place| place.region.clone()),
            version: place.as_ref().map(|place| place.version),
            created_at: record.created_at,
            expires_at: record.expires_at,
            ended_at: record.ended_at,
            metadata: record.metadata,
        }
    }
}
