//! What changes write: new records, and updates of those that are there.

use std::sync::Arc;

use maestro_core::allocation::{AllocationId, ClaimNumber};
use maestro_core::lock::{Holder, LockKind, Taker};
use maestro_core::operation::{
    Activity, Definition, DefinitionKind, HistoryEvent, Lease, Operation, OperationId, OperationStatus,
    Origin, Token,
};
use maestro_core::rollout::RolloutRecord;
use maestro_core::room::{HostPort, Purpose, Region, RoomId};
use maestro_core::scheduler::{Recipe, SchedulerName, SchedulerState, Version, VersionStatus};
use maestro_core::time::{Millis, Timestamp};

use super::records::RequestRecord;
#[expect(unused_imports, reason = "what is refused is linked in the documentation")]
use super::refusal::Refusal;

#[derive(Debug, Clone)]
pub struct NewScheduler {
    pub recipe: Arc<Recipe>,
    pub version: Version,
    pub version_status: VersionStatus,
    pub at: Timestamp,
}

/// What changes in a scheduler's row; `None` stays as it is. One that changes nothing only checks the revision.
#[derive(Debug, Clone)]
pub struct SchedulerUpdate {
    pub scheduler: SchedulerName,
    /// That the writer has read. Every change of the row raises it.
    pub revision: u32,
    pub state: Option<SchedulerState>,
    /// Its recipe is the scheduler's from then on.
    pub active_version: Option<Version>,
    pub fleet_size: Option<u32>,
    /// `Some(None)`: there is none any more.
    pub rollout: Option<Option<RolloutRecord>>,
    pub last_shrunk_at: Option<Timestamp>,
}

impl SchedulerUpdate {
    /// An update that changes nothing yet.
    pub fn of(scheduler: SchedulerName, revision: u32) -> Self {
        Self {
            scheduler,
            revision,
            state: None,
            active_version: None,
            fleet_size: None,
            rollout: None,
            last_shrunk_at: None,
        }
    }

    pub fn changes_nothing(&self) -> bool {
        let Self { scheduler: _, revision: _, state, active_version, fleet_size, rollout, last_shrunk_at } =
            self;
        state.is_none()
            && active_version.is_none()
            && fleet_size.is_none()
            && rollout.is_none()
            && last_shrunk_at.is_none()
    }
}

#[derive(Debug, Clone)]
pub struct NewOperation {
    pub id: OperationId,
    pub scheduler: SchedulerName,
    pub definition: Definition,
    pub origin: Origin,
    pub priority: bool,
    pub reason: String,
    /// What its executor begins with.
    pub progress: serde_json::Value,
    /// By how much the same transaction changes the fleet size; kept so that it can be taken back.
    pub fleet_delta: i64,
    /// Refused with [`Refusal::VersionOperationUnderWay`], which names the first one, while one of
    /// [`VERSION_OPERATIONS`] of the same scheduler is unfinished.
    pub only_version_operation: bool,
    /// The first history event is `Created` at this time, made by the store.
    pub created_at: Timestamp,
}

/// An operation of the engine's own that had nothing to do. Whatever it says at one time is likely what it said the last
/// time, and a store may keep that once: so no times are part of it.
#[derive(Debug, Clone, PartialEq)]
pub struct NoAction {
    pub id: OperationId,
    pub scheduler: SchedulerName,
    pub routine: Routine,
    pub reason: String,
    pub data: serde_json::Value,
    /// Its history after `Created`, all at the same time.
    pub events: Vec<String>,
    /// When it was created, and when it ended.
    pub at: Timestamp,
}

/// What the engine does by itself, again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Routine {
    HealthController,
    StorageCleanUp,
}

impl Routine {
    pub fn definition(self) -> Definition {
        match self {
            Self::HealthController => Definition::HealthController,
            Self::StorageCleanUp => Definition::StorageCleanUp,
        }
    }
}

impl NewOperation {
    /// Who it is as the holder of locks.
    pub(crate) fn holder(&self) -> Holder {
        Holder::Operation { kind: self.definition.kind(), id: self.id }
    }

    /// What the history says of the operation that asks for it.
    pub(crate) fn created_event(&self) -> String {
        format!("created operation {} (id: {}): {}", self.definition.name(), self.id, self.reason)
    }
}

impl NoAction {
    /// As it is read again.
    pub fn into_operation(self) -> Operation {
        let Self { id, scheduler, routine, reason, data, events, at } = self;
        let history = std::iter::once("Created".to_owned()).chain(events);
        Operation {
            id,
            scheduler,
            definition: routine.definition(),
            origin: Origin::Engine,
            priority: false,
            status: OperationStatus::Finished,
            activity: Activity::Executing,
            rollback: None,
            progress: serde_json::Value::Null,
            data,
            reason,
            fleet_delta: 0,
            created_at: at,
            ended_at: Some(at),
            lease: None,
            cancel: None,
            took_action: false,
            history: history.map(|event| HistoryEvent { at, event }).collect(),
        }
    }
}

/// What changes versions, of which a person may ask for one at a time.
pub const VERSION_OPERATIONS: [DefinitionKind; 2] =
    [DefinitionKind::CreateVersion, DefinitionKind::SwitchVersion];

/// What changes in an operation in progress; `None` and empty stay as they are.
#[derive(Debug, Clone)]
pub struct OperationUpdate {
    pub operation: OperationId,
    pub activity: Option<Activity>,
    pub progress: Option<serde_json::Value>,
    pub data: Option<serde_json::Value>,
    pub lease: Option<Lease>,
    pub history: Vec<HistoryEvent>,
}

/// A lock as it is taken, at the store's time.
#[derive(Debug, Clone)]
pub struct NewLock {
    pub scheduler: SchedulerName,
    pub kind: LockKind,
    pub taker: Taker,
    pub reason: String,
    /// `None`: it ends with its holder.
    pub ttl: Option<Millis>,
}

#[derive(Debug, Clone)]
pub struct NewRoomRecord {
    pub id: RoomId,
    pub scheduler: SchedulerName,
    pub version: Version,
    pub region: Region,
    /// Other regions whose rooms share its host: a port that is taken there is taken here.
    pub regions_beside: Vec<Region>,
    pub purpose: Purpose,
    pub ports: Vec<HostPort>,
    pub operation: OperationId,
    pub token: Token,
    pub created_at: Timestamp,
}

/// What must not have happened to a room that is to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimedSince {
    /// The number that the writer has read in the room's row.
    pub number: ClaimNumber,
    /// Open allocations may be taken away with the room.
    pub takes_held: bool,
}

#[derive(Debug, Clone)]
pub struct NewAllocation {
    pub id: AllocationId,
    pub scheduler: SchedulerName,
    pub room: RoomId,
    pub number: ClaimNumber,
    /// How many matches a room holds: so many allocations of it may be open.
    pub matches_max: u32,
    pub request: Option<RequestRecord>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    /// A JSON object.
    pub metadata: Option<Arc<str>>,
}

/// Which allocations that are over are dropped, at most `allocations_max` of them, the earliest ends first.
#[derive(Debug, Clone)]
pub struct ForgetAllocations {
    pub scheduler: SchedulerName,
    /// Those without a request id that ended before this time.
    pub ended_before: Timestamp,
    /// Those with one.
    pub requested_ended_before: Timestamp,
    /// Of the others, all but so many.
    pub keep_max: u32,
    pub allocations_max: u32,
}

impl OperationUpdate {
    /// An update that changes nothing yet.
    pub fn of(operation: OperationId) -> Self {
        Self { operation, activity: None, progress: None, data: None, lease: None, history: Vec::new() }
    }
}
