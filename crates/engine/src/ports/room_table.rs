//! The room table: the state of rooms that changes all the time. Pings and observations of runtimes update it directly.
//! Nothing of it is durable: it may be lost at any time, and is rebuilt from the registry, the runtimes and pings.

use std::collections::BTreeMap;

use async_trait::async_trait;
use maestro_core::operation::OperationId;
use maestro_core::room::{
    InstanceCounts, InstanceStatus, PingStatus, Purpose, Region, RoomId, RoomStatus, StatusCounts,
};
use maestro_core::scheduler::{SchedulerName, Version};
use maestro_core::time::Timestamp;

pub use maestro_core::room::StatusChange;

use super::store::RoomRecord;

/// Every change of a room is atomic, and so is a claim of several. If a fleet changes during a call, lists and counters
/// show each room once, as it was at some moment of the call. Nothing waits for anything but the table itself.
#[async_trait]
pub trait RoomTable: Send + Sync {
    /// Adds the room. A room that is already in the table stays as it is: the call may be repeated.
    async fn insert(&self, room: NewRoom) -> Result<(), TableError>;

    /// What the game says. The hot path: one lookup, nothing durable. A ping that would make an impossible change
    /// is refused, and nothing of it is kept.
    async fn ping(&self, ping: Ping<'_>, at: Timestamp) -> Result<Pinged, PingError>;

    /// What the runtime sees. `None` if there is no such room, or its status stays the same. What would make an impossible change
    /// (a ready room does not become pending again) is left out. An observation never brings back a room that is
    /// claimed for removal: its instance stays `Terminating` (or becomes `Error`).
    async fn observe(
        &self,
        scheduler: &SchedulerName,
        room: &RoomId,
        instance: InstanceStatus,
    ) -> Result<Option<StatusChange>, TableError>;

    /// Takes rooms out of service for an operation: of the candidates, in their order, those that are in one of
    /// the given statuses *now*, not unknown if `known_only`, and not claimed by another operation, at most
    /// `claim.rooms_max`. A claimed room's instance is `Terminating` from this moment: no allocation, no second
    /// claim. Candidates that this operation has claimed before are returned again and count first, wherever they
    /// are in the order: the call may be repeated.
    async fn claim(&self, claim: Claim<'_>) -> Result<Vec<RoomId>, TableError>;

    /// Gives back the rooms among `rooms` that the operation claimed and that are still there. They get the status that
    /// their last ping and the last observation give them, as if they had not been claimed: a room that is really going
    /// down stays `Terminating`.
    async fn unclaim(
        &self,
        scheduler: &SchedulerName,
        operation: OperationId,
        rooms: &[RoomId],
    ) -> Result<(), TableError>;

    /// Removes the room and returns its last state; `None` if there was none.
    async fn remove(&self, scheduler: &SchedulerName, room: &RoomId) -> Result<Option<RoomView>, TableError>;

    /// Removes all rooms of a scheduler.
    async fn remove_scheduler(&self, scheduler: &SchedulerName) -> Result<(), TableError>;

    /// Sets how many matches a room of this scheduler can hold; statuses are composed again.
    async fn set_matches_max(&self, scheduler: &SchedulerName, matches_max: u32) -> Result<(), TableError>;

    async fn room(&self, scheduler: &SchedulerName, room: &RoomId) -> Result<Option<RoomView>, TableError>;

    /// All rooms of a scheduler, ordered by id.
    async fn rooms(&self, scheduler: &SchedulerName) -> Result<Vec<RoomView>, TableError>;

    /// Counters, kept up to date with every change: no walk over rooms.
    async fn counts(&self, scheduler: &SchedulerName) -> Result<FleetCounts, TableError>;
}

/// A room to add to the table.
#[derive(Debug, Clone)]
pub struct NewRoom {
    pub scheduler: SchedulerName,
    pub id: RoomId,
    pub version: Version,
    pub region: Region,
    pub purpose: Purpose,
    pub instance: InstanceStatus,
    pub created_at: Timestamp,
    pub matches_max: u32,
    /// False if the room is older than the table (restart, failover, flush) and has not pinged since. It stays unknown
    /// until it pings. Unknown is not zero: such rooms count, and are never removed or allocated.
    pub known: bool,
    /// Since when its pings are received: an unknown room has one ping timeout from here.
    pub listened_since: Timestamp,
}

impl NewRoom {
    /// The room of a row: one that is about to start.
    pub(crate) fn starting(row: &RoomRecord, matches_max: u32, now: Timestamp) -> Self {
        Self {
            scheduler: row.scheduler.clone(),
            id: row.id.clone(),
            version: row.version,
            region: row.region.clone(),
            purpose: row.purpose,
            instance: InstanceStatus::Pending,
            created_at: row.created_at,
            matches_max,
            known: true,
            listened_since: now,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Ping<'a> {
    pub scheduler: &'a str,
    pub room: &'a str,
    pub status: PingStatus,
    pub matches: u32,
    /// JSON text as it was sent; stored, not parsed. `None` keeps the last one.
    pub metadata: Option<&'a str>,
}

/// What a ping did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pinged {
    pub before: RoomStatus,
    pub after: RoomStatus,
    /// The room had been unknown until now.
    pub heard_again: bool,
    pub purpose: Purpose,
}

impl Pinged {
    /// Something that a plan may depend on is different now.
    pub fn changed(&self) -> bool {
        self.before != self.after || self.heard_again
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PingError {
    #[error("no such room")]
    UnknownRoom,
    #[error("a room that is {from} cannot become {to}")]
    Refused { from: RoomStatus, to: RoomStatus },
    #[error(transparent)]
    Table(#[from] TableError),
}

#[derive(Debug, Clone, Copy)]
pub struct Claim<'a> {
    pub scheduler: &'a SchedulerName,
    pub operation: OperationId,
    pub candidates: &'a [RoomId],
    pub statuses: &'a [RoomStatus],
    pub known_only: bool,
    pub rooms_max: usize,
}

/// Whether a room counts as having been ready when it ends. Nobody knows that of a room that is not in the table, or that
/// has not pinged since a restart: it is no failed start.
pub(crate) fn was_ready(view: Option<&RoomView>) -> bool {
    view.is_none_or(|view| view.was_ready || !view.known)
}

/// A room as the table knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct RoomView {
    pub id: RoomId,
    pub version: Version,
    pub region: Region,
    pub purpose: Purpose,
    pub instance: InstanceStatus,
    pub ping: PingStatus,
    pub status: RoomStatus,
    pub matches: u32,
    pub created_at: Timestamp,
    pub last_ping_at: Option<Timestamp>,
    /// Since when its pings say `terminating`, without a break.
    pub terminating_since: Option<Timestamp>,
    /// See [`NewRoom::known`].
    pub known: bool,
    pub listened_since: Timestamp,
    /// It was ready, active, occupied or allocated at some time since the table knows it.
    pub was_ready: bool,
    pub claimed_by: Option<OperationId>,
    pub metadata: Option<String>,
}

impl RoomView {
    /// The game says that it is up, and the runtime was last heard to say that it is not. Observations of several workers
    /// may arrive in another order than they were made, and only the runtime can tell which is true.
    pub(crate) fn is_contradicted(&self) -> bool {
        let is_up = matches!(self.ping, PingStatus::Ready | PingStatus::Occupied);
        is_up && self.instance == InstanceStatus::Pending
    }
}

/// Rooms of a scheduler by status and by region; validation rooms are counted nowhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FleetCounts {
    pub by_status: StatusCounts,
    pub by_region: BTreeMap<Region, StatusCounts>,
    pub by_instance: InstanceCounts,
    /// Of all rooms that are counted, whatever their status.
    pub matches: u64,
    /// Rooms that have not pinged since the table began.
    pub unknown: u32,
}

/// The table cannot be reached. The request may or may not have been carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the room table is not available: {0}")]
pub struct TableError(pub String);
