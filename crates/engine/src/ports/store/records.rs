//! What the store's read ports return.

use std::sync::Arc;

use maestro_core::allocation::{AllocationId, AllocationState, ClaimNumber, Hold};
use maestro_core::lock::Locks;
use maestro_core::operation::{
    DefinitionKind, IdPrefix, Operation, OperationId, OperationStatus, RemovalReason, Token,
};
use maestro_core::rollout::RolloutRecord;
use maestro_core::room::{EndCause, Ending, HostPort, Purpose, Region, RoomId};
use maestro_core::scheduler::{Autoscaling, Recipe, SchedulerName, SchedulerState, Version, VersionStatus};
use maestro_core::time::{Millis, Timestamp};

use crate::ports::room_table::{HoldKey, RoomAddress};
use crate::ports::runtime::Handle;

use super::change::Change;
use super::new_records::SchedulerUpdate;

#[derive(Debug, Clone, PartialEq)]
pub struct SchedulerRecord {
    pub name: SchedulerName,
    pub state: SchedulerState,
    pub active_version: Version,
    /// Of the active version.
    pub recipe: Arc<Recipe>,
    /// How many rooms to hold while autoscaling is off.
    pub fleet_size: u32,
    pub created_at: Timestamp,
    /// Of the active version.
    pub version_created_at: Timestamp,
    /// When autoscaling last asked for fewer rooms: the cooldown counts from here.
    pub last_shrunk_at: Option<Timestamp>,
    /// While rooms of an older major version are being replaced, and if that went wrong.
    pub rollout: Option<RolloutRecord>,
    /// Raised by every change of these fields: what was decided on an older one is refused.
    pub revision: u32,
}

/// A scheduler that this build cannot read, because a newer one wrote it or its rules have changed. It is shown, and left
/// alone with its rooms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableScheduler {
    pub name: SchedulerName,
    /// As it is stored.
    pub active_version: String,
    pub fleet_size: u32,
    pub created_at: Timestamp,
    pub why: String,
}

impl SchedulerRecord {
    /// `None`: the fleet size is held.
    pub fn autoscaling(&self) -> Option<&Autoscaling> {
        self.recipe.autoscaling.as_ref().filter(|autoscaling| autoscaling.enabled)
    }

    /// A change that is refused if anybody else changes the scheduler first.
    pub fn update(&self) -> SchedulerUpdate {
        SchedulerUpdate::of(self.name.clone(), self.revision)
    }

    /// What new rooms are made from: the active version; while a rollout is halted, the last one that was deployed.
    pub fn version_to_make(&self) -> Version {
        self.rollout.as_ref().map_or(self.active_version, RolloutRecord::version_to_make)
    }
}

/// What is stored of a scheduler and its fleet, all of it of one moment: what plans are made of.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetRecord {
    pub scheduler: SchedulerRecord,
    /// Operations that have not ended, in the order in which they were enqueued, without their histories.
    pub unfinished: Vec<Operation>,
    pub locks: Locks,
    /// Rooms that have not ended, ordered by id.
    pub live: Vec<RoomRecord>,
    /// The newest of those that have, latest end first.
    pub ended: Vec<RoomRecord>,
}

/// A worker's sign of life.
#[derive(Debug, Clone, Copy)]
pub struct Renewal<'a> {
    pub worker: &'a str,
    /// Of its ownerships, and of the sign of life itself.
    pub ownership_ttl: Millis,
    pub operation_ttl: Millis,
    pub lock_ttl: Millis,
}

/// All workers and what they own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Workforce {
    pub workers: Vec<WorkerRecord>,
    pub ownerships: Vec<OwnershipRecord>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerRecord {
    pub name: String,
    pub expires_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnershipRecord {
    pub scheduler: SchedulerName,
    pub owner: String,
    pub token: Token,
    pub expires_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq)]
pub struct VersionRecord {
    pub version: Version,
    pub recipe: Arc<Recipe>,
    pub status: VersionStatus,
    /// Why it is superseded, canceled or in error; empty otherwise.
    pub cause: String,
    pub is_active: bool,
    pub created_at: Timestamp,
}

/// A version whose recipe this build cannot read. It is shown, and cannot be switched to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableVersion {
    pub version: Version,
    pub is_active: bool,
    pub created_at: Timestamp,
    pub why: String,
}

/// One page of a list of operations, in the order in which they were enqueued or the other way round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest {
    /// From 1.
    pub page: u32,
    pub page_size: u32,
    pub newest_first: bool,
    /// Also those that ended and changed nothing. What has not ended is always part of the list.
    pub no_action: bool,
    pub only: OperationFilter,
}

impl PageRequest {
    /// The newest ones of all kinds.
    pub(crate) fn newest(page_size: u32, no_action: bool) -> Self {
        Self { page: 1, page_size, newest_first: true, no_action, only: OperationFilter::default() }
    }
}

/// Which operations of a list are asked for. `None` asks for nothing in particular.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OperationFilter {
    pub kind: Option<DefinitionKind>,
    pub status: Option<OperationStatus>,
    /// Created at this time or later.
    pub since: Option<Timestamp>,
    pub id: Option<IdPrefix>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct OperationPage {
    pub total: u32,
    pub operations: Vec<Operation>,
}

/// A room's row.
#[derive(Debug, Clone, PartialEq)]
pub struct RoomRecord {
    pub id: RoomId,
    pub scheduler: SchedulerName,
    pub version: Version,
    pub region: Region,
    pub purpose: Purpose,
    pub ports: Vec<HostPort>,
    /// `None`: it is wanted; whether it runs is not known yet.
    pub handle: Option<Handle>,
    pub intent: Intent,
    /// The operation that made it, under which token.
    pub operation: OperationId,
    pub token: Token,
    pub created_at: Timestamp,
    pub ended: Option<Ended>,
    /// The last number that was spent on it: see [`maestro_core::allocation`].
    pub claim_number: ClaimNumber,
    /// Its open allocations.
    pub holds: u32,
}

impl RoomRecord {
    /// Whether what is seen of this instance is not about the room. Before its start is written down, it may be any.
    pub(crate) fn is_another_than(&self, instance: Option<&Handle>) -> bool {
        match (&self.handle, instance) {
            (Some(handle), Some(instance)) => !handle.is_of_same_instance(instance),
            (None, _) | (_, None) => false,
        }
    }

    pub(crate) fn end(&self, ended: Ended) -> Change {
        let Self { scheduler, id, handle, .. } = self.clone();
        Change::EndRoom { scheduler, room: id, instance: handle, ended }
    }
}

/// How many live rooms of a fleet there are of a version in a region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomCount {
    pub version: Version,
    pub region: Region,
    pub rooms: u32,
}

/// What is wanted of a room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Intent {
    Run,
    Stop(StopIntent),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopIntent {
    pub operation: OperationId,
    /// Why a removal takes the room; `None`: it goes with its scheduler, in a rollback, or after its validation.
    pub cause: Option<RemovalReason>,
    /// How many matches were running in the room when it was asked to stop.
    pub matches: u32,
    /// In words, for people.
    pub reason: String,
    pub at: Timestamp,
}

/// An allocation's row.
#[derive(Debug, Clone, PartialEq)]
pub struct AllocationRecord {
    pub id: AllocationId,
    pub scheduler: SchedulerName,
    pub room: RoomId,
    pub number: ClaimNumber,
    /// Of a request whose caller chose an id.
    pub request: Option<RequestRecord>,
    pub state: AllocationState,
    /// How it came to be lost; empty otherwise.
    pub cause: String,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    /// What the matchmaker wants the room to know: a JSON object.
    pub metadata: Option<Arc<str>>,
    /// Of its room. `None`: the registry has forgotten the room.
    pub place: Option<AllocatedPlace>,
}

impl AllocationRecord {
    /// What the room table has of it while it is open.
    pub(crate) fn hold(&self) -> Hold {
        let Self { id, number, expires_at, metadata, .. } = self;
        Hold { metadata: metadata.clone(), ..Hold::firm(*id, *number, *expires_at) }
    }

    pub(crate) fn key(&self) -> HoldKey {
        HoldKey { scheduler: self.scheduler.clone(), room: self.room.clone(), number: self.number }
    }
}

/// Where an allocated room is, and of which version.
#[derive(Debug, Clone, PartialEq)]
pub struct AllocatedPlace {
    pub version: Version,
    pub region: Region,
    pub address: RoomAddress,
}

/// Which part of which request an allocation is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRecord {
    pub id: Arc<str>,
    /// From 0.
    pub index: u32,
    /// What the request asked for: see [`maestro_core::allocation::AllocationRequest::digest`].
    pub digest: String,
}

/// One page of a list of allocations, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllocationPageRequest {
    /// From 1.
    pub page: u32,
    pub page_size: u32,
    pub state: Option<AllocationState>,
    pub room: Option<RoomId>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct AllocationPage {
    pub total: u32,
    pub allocations: Vec<AllocationRecord>,
}

/// What people have said about a region, and who said it last, why and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegionRecord {
    pub name: Region,
    /// It gets no new rooms.
    pub cordoned: bool,
    /// It loses those that it has; it is cordoned too.
    pub draining: bool,
    pub by: String,
    pub reason: String,
    pub at: Timestamp,
    /// When somebody confirmed that those of its rooms are lost that were silent at that time.
    pub lost_at: Option<Timestamp>,
}

/// What a process that can reach a region saw of it last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegionObservation {
    pub region: Region,
    /// Who saw it: the engine by its name.
    pub observer: String,
    pub at: Timestamp,
    pub contact: Contact,
    /// How many rooms it can hold, if it says so.
    pub capacity: Option<u32>,
}

/// Whether a region can be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contact {
    /// `since`: when it came back, if it was away.
    Reachable {
        since: Option<Timestamp>,
    },
    /// It was not adopted since the observer began, and it is too early to call it lost.
    Unsettled {
        why: String,
    },
    Unreachable {
        why: String,
    },
}

/// A room that ended, as retention needs to know it. Ordered by their ends.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EndedRoom {
    pub at: Timestamp,
    pub id: RoomId,
    pub region: Region,
}

/// How a room ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub at: Timestamp,
    /// In words.
    pub how: String,
    pub cause: EndCause,
    /// It had been ready; a room that ends before is a failed start.
    pub was_ready: bool,
}

impl Ended {
    pub(crate) fn by(ending: &Ending, at: Timestamp, was_ready: bool) -> Self {
        Self { at, how: ending.to_string(), cause: ending.cause(), was_ready }
    }
}
