//! The room table: the state of rooms that changes all the time. Pings and observations of runtimes update it directly.
//! Nothing of it is durable: it may be lost at any time, and is rebuilt from the registry, the runtimes and pings.
//!
//! What the table has of a scheduler counts only under a *mark*, which the last step of a rebuild writes. A table that
//! began empty has no marks, and none of them counts in data that come from elsewhere, such as an old dump or a copy that
//! lacks the last writes. Without it the table has *lost* the scheduler: what is there may be old, and what is not
//! there may exist. So [`TableError::Lost`] is the answer to every call about it but these: [`RoomTable::begin_rebuild`],
//! [`RoomTable::insert`], [`RoomTable::set_allocation_rules`], [`RoomTable::end_rebuild`] and
//! [`RoomTable::remove_scheduler`]. Calls about several schedulers go on with the others.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use maestro_core::allocation::{AllocationId, AllocationRules, ClaimNumber, Hold, HoldEnd, HoldStage, Wish};
use maestro_core::autoscaling::Demand;
use maestro_core::operation::OperationId;
use maestro_core::room::{
    HostPort, InstanceCounts, InstanceStatus, PingStatus, Purpose, Region, RoomId, RoomStatus, StatusCounts,
};
use maestro_core::scheduler::{SchedulerName, Version};
use maestro_core::time::{Millis, Timestamp, after};

pub use maestro_core::room::StatusChange;

use super::event_ring::EventRing;
use super::runtime::Handle;
use super::store::{RoomRecord, SchedulerRecord, SchedulerState};

/// Every change of a room is atomic, and so is a claim of several. If a fleet changes during a call, lists and counters
/// show each room once, as it was at some moment of the call. Nothing waits for anything but the table itself.
#[async_trait]
pub trait RoomTable: EventRing {
    /// If the table has lost this scheduler, forgets what is left of it, rules included, so that it can be put into the
    /// table again. Nothing happens if it is not lost: who comes late harms nobody. Tells whether it is lost.
    ///
    /// Several may rebuild at the same time. One may then forget what another has inserted, and the mark be written with
    /// rooms missing: those that the registry has and the table has not are found like any that it lost singly.
    async fn begin_rebuild(&self, scheduler: &SchedulerName) -> Result<bool, TableError>;

    /// Writes the mark: the rooms of the scheduler are in the table again. [`TableError::Lost`] if the table was lost
    /// since the rebuild began: what was inserted before is gone. May be repeated.
    async fn end_rebuild(&self, scheduler: &SchedulerName) -> Result<(), TableError>;

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

    /// Where players reach the room. Until it is known, no matchmaker gets the room.
    async fn set_address(
        &self,
        scheduler: &SchedulerName,
        room: &RoomId,
        address: RoomAddress,
    ) -> Result<(), TableError>;

    /// Takes rooms out of service for an operation: of the candidates, in their order, those that are in one of
    /// the given statuses *now*, not unknown if `known_only`, and not claimed by another operation, at most
    /// `claim.rooms_max`. A claimed room's instance is `Terminating` from this moment: no allocation, no second
    /// claim. Candidates that this operation has claimed before are returned again and count first, wherever they
    /// are in the order: the call may be repeated. Each claim takes the room's next number, as a hold does.
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

    /// Claims rooms for matchmakers, each request by itself and all or none of it: provisional holds on rooms of the fleet
    /// that are known, have an address and a free slot, are in a region that can be reached, and have pinged since
    /// [`HoldRequest::heard_since`]. Which of them is explained at [`Wish::rank`]; among equals the fullest room, and then
    /// one of the last 64 in the order of removal, chosen by [`HoldRequest::draw`]. If no room was found for a request for
    /// one, later requests of the call that want the same get none either. All requests of a call are of one scheduler.
    async fn hold(&self, requests: &[HoldRequest<'_>]) -> Result<Vec<HoldAnswer>, TableError>;

    /// The rows of these holds are there: provisional ones become firm. Tells of each what it is now. `None`: there is no
    /// such hold, the room has been claimed for removal, or its scheduler is lost.
    async fn confirm(&self, holds: &[HoldKey]) -> Result<Vec<Option<HoldStage>>, TableError>;

    /// Marks a hold as over; the first end counts. Its slot is not free before it is released. Tells which end that was.
    /// `None`: there is no such hold.
    async fn mark(&self, hold: &HoldKey, end: HoldEnd) -> Result<Option<HoldEnd>, TableError>;

    /// Frees the slots of these holds. Nothing happens to those that are not there, or whose scheduler is lost.
    async fn release(&self, holds: &[HoldKey]) -> Result<(), TableError>;

    /// Puts a hold whose row is there into the table again, unless one of that number is there.
    async fn restore(&self, scheduler: &SchedulerName, room: &RoomId, hold: Hold) -> Result<(), TableError>;

    /// Holds that have to be settled now: see [`Hold::due_at`]. At most `holds_max`, the earliest first. None of
    /// schedulers that are lost.
    async fn due_holds(
        &self,
        now: Timestamp,
        ping_timeout: Millis,
        holds_max: usize,
    ) -> Result<Vec<DueHold>, TableError>;

    /// The holds of one room; none if there is no such room.
    async fn holds_of(&self, scheduler: &SchedulerName, room: &RoomId) -> Result<Vec<Hold>, TableError>;

    /// All holds of a scheduler.
    async fn holds(&self, scheduler: &SchedulerName) -> Result<Vec<DueHold>, TableError>;

    async fn allocation_rules(&self, scheduler: &SchedulerName) -> Result<AllocationRules, TableError>;

    /// What decides which rooms matchmakers get, as the scheduler's worker says.
    async fn set_allocation_rules(
        &self,
        scheduler: &SchedulerName,
        rules: AllocationRules,
    ) -> Result<(), TableError>;

    /// How many slots callers of this process wait for that new rooms could give them.
    async fn report_waiting(
        &self,
        scheduler: &SchedulerName,
        process: &str,
        slots: u32,
        now: Timestamp,
    ) -> Result<(), TableError>;

    /// The highest number of slots that were waited for at one time, all processes together, during the last five
    /// minutes. What a process said counts for 15 seconds.
    async fn waiting(&self, scheduler: &SchedulerName, now: Timestamp) -> Result<u32, TableError>;

    /// Removes the room and returns its last state; `None` if there was none.
    async fn remove(&self, scheduler: &SchedulerName, room: &RoomId) -> Result<Option<RoomView>, TableError>;

    /// Removes all rooms of a scheduler, and the mark first.
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
    /// `None`: it is about to start.
    pub address: Option<RoomAddress>,
    /// The last number that was spent on it.
    pub claim_number: ClaimNumber,
    /// Of its open allocations.
    pub holds: Vec<Hold>,
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
            address: row.handle.as_ref().map(|handle| RoomAddress::of(handle, &row.ports)),
            claim_number: row.claim_number,
            holds: Vec::new(),
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
    /// When the room sent it, in seconds by its own clock; `None` if it does not say. A ping that was sent before the last
    /// one, by less than `late_max` seconds, was overtaken: it is only a sign of life. An older time still means that the
    /// room's clock was set back.
    pub sent_at: Option<i64>,
    pub late_max: i64,
    /// The allocations whose matches have begun; none: the number of matches says it.
    pub begun: &'a [AllocationId],
}

impl<'a> Ping<'a> {
    /// A ping that says nothing but a status.
    pub fn of(scheduler: &'a str, room: &'a str, status: PingStatus) -> Self {
        Self { scheduler, room, status, matches: 0, metadata: None, sent_at: None, late_max: 0, begun: &[] }
    }
}

/// What a ping did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pinged {
    pub before: RoomStatus,
    pub after: RoomStatus,
    /// The room had been unknown until now.
    pub heard_again: bool,
    pub purpose: Purpose,
    /// The room has holds that are over, and whose rows do not say so yet.
    pub ended_holds: bool,
}

impl Pinged {
    /// The room may have a slot now that it did not have before.
    pub(crate) fn may_be_free(&self) -> bool {
        let has_slots = |status| matches!(status, RoomStatus::Ready | RoomStatus::Active);
        self.changed() && has_slots(self.after)
    }

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

/// Where players reach a room. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomAddress {
    pub host: Arc<str>,
    pub ports: Arc<[HostPort]>,
}

impl RoomAddress {
    pub fn of(handle: &Handle, ports: &[HostPort]) -> Self {
        Self { host: handle.host.as_str().into(), ports: ports.into() }
    }
}

/// What one matchmaker asks the table for.
#[derive(Debug, Clone)]
pub struct HoldRequest<'a> {
    pub scheduler: &'a SchedulerName,
    /// One for each room or slot that is wanted.
    pub allocations: &'a [AllocationId],
    pub wishes: &'a [Wish],
    pub metadata: Option<&'a Arc<str>>,
    pub now: Timestamp,
    pub expires_at: Timestamp,
    /// Rooms that have not pinged since may be dead.
    pub heard_since: Timestamp,
    /// Any number: callers with different ones do not fight for one room.
    pub draw: u64,
}

/// What several processes take for the store's time may differ by so much, while its clock is set.
const CLOCKS_DIFFER: Millis = Millis::from_seconds(5);

impl HoldRequest<'_> {
    /// Whether a room that one of them accepts is always one that the other accepts as well.
    pub fn wants_the_same(&self, other: &HoldRequest<'_>) -> bool {
        self.scheduler == other.scheduler
            && self.heard_since == other.heard_since
            && self.wishes == other.wishes
    }

    /// Whether a room is alive whose last ping came at this time. One that lies ahead is from before the clock was set back,
    /// and says nothing.
    pub fn is_alive(&self, last_ping_at: Option<Timestamp>) -> bool {
        let (earliest, latest) = self.alive_within();
        last_ping_at.is_some_and(|at| earliest <= at && at <= latest)
    }

    /// Between which times a room that is alive has pinged last.
    pub fn alive_within(&self) -> (Timestamp, Timestamp) {
        (self.heard_since, after(self.now, CLOCKS_DIFFER))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HoldAnswer {
    /// In the order of the allocations.
    Held(Vec<HeldRoom>),
    /// There are not that many rooms that fit.
    NotEnough,
}

/// A room that a matchmaker gets if it can be written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldRoom {
    pub allocation: AllocationId,
    pub room: RoomId,
    pub number: ClaimNumber,
    pub version: Version,
    pub region: Region,
    pub address: RoomAddress,
    /// How many matches it holds.
    pub matches_max: u32,
}

/// A hold, by the claim that made it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HoldKey {
    pub scheduler: SchedulerName,
    pub room: RoomId,
    pub number: ClaimNumber,
}

/// A hold, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueHold {
    pub key: HoldKey,
    pub hold: Hold,
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
    /// Matches that are expected: open holds.
    pub expected: u32,
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
    /// Slots that are held, likewise.
    pub holds: u64,
    /// Rooms that have not pinged since the table began.
    pub unknown: u32,
}

impl FleetCounts {
    /// What players want of rooms that hold so many matches.
    pub(crate) fn demand(&self, matches_max: u32) -> Demand {
        let occupied = self.by_status.occupied();
        // With one match a room, a room is a match, whatever number it says.
        let matches = if matches_max > 1 { self.matches + self.holds } else { occupied.into() };
        Demand { matches, occupied, total: self.by_status.total(), matches_max, waiting: 0 }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// The table cannot be reached. The request may or may not have been carried out.
    #[error("the room table is not available: {0}")]
    Unavailable(String),
    /// What it knew of this scheduler is lost or old. Its owner puts the rooms of the registry into it again.
    #[error(
        "the room table has lost what it knew of scheduler {0}, and its rooms are being put into it again; try again in a moment"
    )]
    Lost(SchedulerName),
}

impl TableError {
    pub(crate) fn is_lost(&self) -> bool {
        match self {
            Self::Lost(_) => true,
            Self::Unavailable(_) => false,
        }
    }
}

/// For those who go on with what the registry says.
pub(crate) trait OrIfLost<T>: Sized {
    fn or_if_lost(self, otherwise: T) -> Result<T, TableError>;

    /// A scheduler that is being created has no rooms that could have been lost.
    fn or_if_created_now(self, scheduler: &SchedulerRecord, otherwise: T) -> Result<T, TableError>;
}

impl<T> OrIfLost<T> for Result<T, TableError> {
    fn or_if_lost(self, otherwise: T) -> Self {
        match self {
            Err(TableError::Lost(_)) => Ok(otherwise),
            answered => answered,
        }
    }

    fn or_if_created_now(self, scheduler: &SchedulerRecord, otherwise: T) -> Self {
        match scheduler.state {
            SchedulerState::Creating => self.or_if_lost(otherwise),
            SchedulerState::InSync | SchedulerState::Deleting => self,
        }
    }
}
