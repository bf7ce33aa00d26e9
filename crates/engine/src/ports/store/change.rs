//! Writes as data.

use std::sync::Arc;

use maestro_core::allocation::{AllocationId, AllocationState, ClaimNumber};
use maestro_core::event::EventId;
use maestro_core::lock::{Holder, LockKind, Taker, Waiter};
use maestro_core::operation::{
    Activity, CancelRequest, Definition, DefinitionKind, HistoryEvent, Lease, Operation, OperationId,
    OperationStatus, Origin, Rollback, Token,
};
use maestro_core::rollout::RolloutRecord;
use maestro_core::room::{HostPort, Purpose, Region, RoomId};
use maestro_core::scheduler::{Recipe, SchedulerName, SchedulerState, Version, VersionStatus};
use maestro_core::time::Timestamp;

use crate::ports::runtime::Handle;

use super::outbox::{LastAddress, NewEvent, QueueId};
use super::records::{Ended, RegionRecord, RequestRecord, StopIntent};
#[expect(unused_imports, reason = "what changes are refused with is linked in their documentation")]
use super::refusal::Refusal;

/// Changes that happen together or not at all.
#[derive(Debug, Clone)]
pub struct Transaction {
    /// Names this write in logs, metrics and failpoints.
    pub label: &'static str,
    /// `None` for what needs no ownership: requests from outside, and facts such as a room's end.
    pub guard: Option<Guard>,
    pub changes: Vec<Change>,
}

/// The writer's claim to own the scheduler, checked before any change. Refused with [`Refusal::StaleToken`] if
/// another token is current, or none; one that ran out and was taken by nobody still holds.
#[derive(Debug, Clone)]
pub struct Guard {
    pub scheduler: SchedulerName,
    pub token: Token,
    /// The operation that the writer carries out, forward. Refused with [`Refusal::RollsBack`] if it rolls back: whoever
    /// took its lock away, say, began to roll it back in the same transaction.
    pub operation: Option<OperationId>,
    /// Named locks that the writer believes to hold, by the token that it got with each. Refused with
    /// [`Refusal::LockLost`] if one is free now or has another token; one that ran out and was taken by nobody
    /// still holds.
    pub locks: Vec<(LockKind, Token)>,
}

#[derive(Debug, Clone)]
pub enum Change {
    // Schedulers and versions.
    /// Creates a scheduler with its first version, which is the active one, in state `Creating` and without a rollout.
    /// Refused with [`Refusal::SchedulerExists`].
    CreateScheduler(NewScheduler),
    /// Changes the scheduler's row, if it is still the one that the writer has read. Refused with
    /// [`Refusal::SchedulerNotFound`], with [`Refusal::SchedulerChanged`] if its revision is another one now, and with
    /// [`Refusal::VersionNotFound`] if the version that is to be active does not exist.
    UpdateScheduler(SchedulerUpdate),
    /// Adds `delta` to the fleet size, which stays at least 0. This is how a change is taken back after others may have
    /// changed the size too. With `of`, it takes back that operation's part, and is refused with
    /// [`Refusal::SchedulerChanged`] unless that part is still `-delta`, because the size may have been set anew. Refused
    /// with [`Refusal::SchedulerNotFound`].
    AdjustFleetSize { scheduler: SchedulerName, delta: i64, of: Option<OperationId> },
    /// Sets the status of a version, and why it has that status, in words. Refused with [`Refusal::SchedulerNotFound`] and
    /// [`Refusal::VersionNotFound`].
    SetVersionStatus { scheduler: SchedulerName, version: Version, status: VersionStatus, cause: String },
    /// Adds a version that does not become the active one. Refused with [`Refusal::SchedulerNotFound`], and with
    /// [`Refusal::VersionExists`] if the number was ever given, even if that version was deleted.
    InsertVersion {
        scheduler: SchedulerName,
        recipe: Arc<Recipe>,
        version: Version,
        status: VersionStatus,
        at: Timestamp,
    },
    /// Deletes a version. Its number is not given again. Nothing happens if the version or its scheduler does not exist.
    /// Refused with [`Refusal::VersionIsActive`].
    DeleteVersion { scheduler: SchedulerName, version: Version },
    /// Removes the scheduler with its versions, rollout, rooms, ownership and locks, its queues of events except what
    /// [`Change::OrphanEvents`] kept, and all its operations but `keep`.
    /// Refused with [`Refusal::SchedulerNotFound`], and with [`Refusal::RoomsLeft`] if a room has not ended.
    DeleteScheduler { scheduler: SchedulerName, keep: OperationId },

    // Operations.
    /// Adds a pending operation. Refused with:
    /// - [`Refusal::SchedulerNotFound`];
    /// - [`Refusal::SchedulerBeingDeleted`] if it is anything but delete_scheduler on a scheduler that is being deleted;
    /// - [`Refusal::OperationExists`], also if the operation of that id has ended or belongs to another scheduler;
    /// - [`Refusal::VersionOperationUnderWay`] if it asks for that check;
    /// - [`Refusal::DeletionUnderWay`], which names the first one, if it is a second unfinished delete_scheduler;
    /// - [`Refusal::QueueFull`] if a person asks for anything else without priority, and [`UNFINISHED_MAX`] are unfinished.
    Enqueue(NewOperation),
    /// Makes a pending operation one in progress that executes. Refused with [`Refusal::WrongStatus`] and
    /// [`Refusal::SlotTaken`].
    StartOperation { operation: OperationId, lease: Lease, history: Vec<HistoryEvent> },
    /// Changes an operation in progress, which stays in progress. Refused with [`Refusal::WrongStatus`], and with
    /// [`Refusal::SlotTaken`] if it would begin to execute while another one does.
    UpdateOperation(OperationUpdate),
    /// Makes an operation that is pending or in progress roll back, whoever holds its lease: from its next step on it
    /// undoes what it did, and if it is parked it looks again at once. An operation that rolls back already keeps its
    /// first reason; `history` is added all the same. Refused with [`Refusal::WrongStatus`].
    RollBack { operation: OperationId, rollback: Rollback, history: Vec<HistoryEvent> },
    /// Gives an operation a final status. Its lease and activity end, its locks are free, and it waits for no lock any
    /// more. Refused with [`Refusal::WrongStatus`] if that is no legal transition.
    EndOperation {
        operation: OperationId,
        status: OperationStatus,
        took_action: bool,
        history: Vec<HistoryEvent>,
        at: Timestamp,
    },
    /// Ends a pending operation as canceled. Refused with [`Refusal::WrongStatus`] if it has begun: what it has done
    /// would not be undone.
    CancelPending { operation: OperationId, history: Vec<HistoryEvent>, at: Timestamp },
    /// Asks an operation in progress to end. The first request stays; `history` is added all the same. Refused with
    /// [`Refusal::WrongStatus`].
    RequestCancel { operation: OperationId, request: CancelRequest, history: Vec<HistoryEvent> },
    /// Drops operations that were enqueued and have ended: those that ended before `ended_before`, and those that changed
    /// nothing and ended before `no_action_before`. These are the operations of one scheduler or, with `None`, of all
    /// schedulers that are gone.
    ForgetOperations {
        scheduler: Option<SchedulerName>,
        ended_before: Timestamp,
        no_action_before: Timestamp,
    },
    /// Adds an operation that began, changed nothing and ended. It never was in the queue, and had neither slot nor locks.
    /// Refused with [`Refusal::SchedulerNotFound`], [`Refusal::SchedulerBeingDeleted`] and [`Refusal::OperationExists`].
    RecordNoAction(NoAction),
    /// Drops what [`Change::RecordNoAction`] recorded before that time, for all schedulers. [`Change::ForgetOperations`]
    /// leaves it alone.
    ForgetNoAction { before: Timestamp },
    /// Notes that the fleet size was set anew, so that unfinished operations of the scheduler do not take their part of it
    /// back any more. With `before`, this concerns only operations that were enqueued before that one.
    ForgetFleetDeltas { scheduler: SchedulerName, before: Option<OperationId> },

    // Locks.
    /// Takes a lock that is free or has expired, if nobody waits before the taker; see `maestro_core::lock::may_take`. The
    /// lock gets a new token, and neither the taker nor whoever it takes the lock over from waits any more. A holder that
    /// takes its lock again keeps its token and `acquired_at`, and gets the new reason and time. Refused with
    /// [`Refusal::SchedulerNotFound`] and [`Refusal::LockHeld`].
    TakeLock(NewLock),
    /// Puts a waiter at the end of the line for a lock. A waiter that is in the line already keeps its position, unless
    /// its time was over before the new one begins. Refused with [`Refusal::SchedulerNotFound`].
    AwaitLock { scheduler: SchedulerName, waiter: Waiter },
    /// Takes a waiter out of the line. Nothing happens if it is not in it.
    StopAwaiting { scheduler: SchedulerName, kind: LockKind, holder: Holder },
    /// Frees a lock. Nothing happens unless this holder has it.
    ReleaseLock { scheduler: SchedulerName, kind: LockKind, holder: Holder },
    /// Takes a lock from whoever holds it by this token. Refused with [`Refusal::LockLost`] if nobody does.
    RevokeLock { scheduler: SchedulerName, kind: LockKind, token: Token },

    // Rooms.
    /// Adds a room that is wanted, before the runtime is asked for it. Refused with [`Refusal::SchedulerNotFound`]; with
    /// [`Refusal::RoomExists`], also if the room of that id has ended or belongs to another scheduler, because a runtime
    /// knows rooms by their id alone; and with [`Refusal::PortTaken`] if a live room of the region, or of one beside it,
    /// has one of the ports, whatever the protocol.
    IntendRoom(NewRoomRecord),
    /// Records how the runtime finds a room that it started. This is also written for a room that has ended meanwhile.
    /// Refused with [`Refusal::RoomNotFound`].
    RoomStarted { scheduler: SchedulerName, room: RoomId, handle: Handle },
    /// Records that a room should go. The first stop intent stays. Its open allocations end as lost. Refused with
    /// [`Refusal::RoomNotFound`] if there is no live row, and with [`Refusal::RoomClaimed`] if somebody else has spent a
    /// number on the room since the writer read its row, or if it has open allocations that must not be taken away.
    IntendStop { scheduler: SchedulerName, room: RoomId, stop: StopIntent, unless: ClaimedSince },
    /// Records that a room has ended; its open allocations end as lost. Nothing happens if it has ended already or does
    /// not exist.
    EndRoom { scheduler: SchedulerName, room: RoomId, ended: Ended },
    /// Drops rows of ended rooms. Live ones stay.
    ForgetRooms { scheduler: SchedulerName, rooms: Vec<RoomId> },

    // Events.
    /// Adds an event at the end of its forwarder's queue, which is made if there is none. Refused with
    /// [`Refusal::SchedulerNotFound`], [`Refusal::EventQueueFull`], and [`Refusal::RoomNotFound`] if the room has ended or
    /// does not exist, and the event is to be refused then.
    QueueEvent(Box<NewEvent>),
    /// Forgets events that were delivered. Those that are not there are passed over; what follows a head that is gone
    /// becomes the head, due at `at`.
    EventsDelivered { scheduler: SchedulerName, queue: QueueId, events: Vec<EventId>, at: Timestamp },
    /// Records that an attempt failed. Nothing happens if the event is not there, or is dead.
    EventFailed {
        scheduler: SchedulerName,
        queue: QueueId,
        event: EventId,
        error: String,
        next_at: Timestamp,
    },
    /// Events are not delivered any more: they are kept as dead letters, the newest `dead_max` of a queue. Those that are
    /// not there, or are dead already, are passed over.
    EventsDead {
        scheduler: SchedulerName,
        queue: QueueId,
        events: Vec<EventId>,
        error: String,
        dead_max: u32,
        at: Timestamp,
    },
    /// Puts dead letters back at the end of their queue, as if they were queued now. Those that are not there, or are not
    /// dead, are passed over.
    ReplayEvents { scheduler: SchedulerName, events: Vec<EventId>, at: Timestamp },
    /// Drops dead letters that died before.
    ForgetDeadEvents { scheduler: SchedulerName, before: Timestamp },
    /// What waits in these queues outlives the scheduler, which is deleted in the same transaction: where it goes, by
    /// forwarder. Everything else goes with the scheduler, dead letters too.
    OrphanEvents { scheduler: SchedulerName, addresses: Vec<(String, LastAddress)> },

    // Allocations.
    /// Hands a room or one of its slots to a matchmaker, and spends the number of the claim. Refused with:
    /// - [`Refusal::SchedulerNotFound`] and [`Refusal::SchedulerBeingDeleted`];
    /// - [`Refusal::RoomNotFound`] if there is no live row of a room of the fleet;
    /// - [`Refusal::RoomClaimed`] if the number is not above the last one that was spent on the room, if the room is
    ///   to stop, or if it has as many open allocations as it holds matches;
    /// - [`Refusal::AllocationExists`] if there is one of that id;
    /// - [`Refusal::RequestExists`] if this part of the request was answered before.
    Allocate(NewAllocation),
    /// Ends an open allocation. Refused with [`Refusal::AllocationNotFound`], and with [`Refusal::AllocationOver`], which
    /// names what it has become.
    EndAllocation {
        scheduler: SchedulerName,
        allocation: AllocationId,
        state: AllocationState,
        cause: String,
        at: Timestamp,
    },
    /// Ends an open allocation of which nobody has heard as lost, and gives its place in its request back, so that the same
    /// request can be answered otherwise. Nothing happens if it is over or not there.
    WithdrawAllocation { scheduler: SchedulerName, allocation: AllocationId, cause: String, at: Timestamp },
    /// Spends the number of a claim whose row was never written, so that it cannot be written any more. Nothing happens if
    /// the number is spent already or the room does not exist. Refused with [`Refusal::AllocationExists`] if the row is there.
    SpendClaim { scheduler: SchedulerName, room: RoomId, number: ClaimNumber, allocation: AllocationId },
    /// Drops allocations that are over.
    ForgetAllocations(ForgetAllocations),

    // Regions.
    /// Replaces a region's record. `from` is the record that the writer has read, or `None` if nobody has said anything
    /// about the region yet. Refused with [`Refusal::RegionChanged`] if the record differs from it in any field. Times are
    /// compared as they come back.
    SetRegion { from: Option<RegionRecord>, to: RegionRecord },
}

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

/// A lock as it is taken.
#[derive(Debug, Clone)]
pub struct NewLock {
    pub scheduler: SchedulerName,
    pub kind: LockKind,
    pub taker: Taker,
    pub reason: String,
    pub at: Timestamp,
    /// `None`: it ends with its holder.
    pub expires_at: Option<Timestamp>,
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

impl Transaction {
    pub fn new(label: &'static str, changes: Vec<Change>) -> Self {
        Self { label, guard: None, changes }
    }

    pub fn guarded(label: &'static str, guard: Guard, changes: Vec<Change>) -> Self {
        Self { label, guard: Some(guard), changes }
    }
}

impl OperationUpdate {
    /// An update that changes nothing yet.
    pub fn of(operation: OperationId) -> Self {
        Self { operation, activity: None, progress: None, data: None, lease: None, history: Vec::new() }
    }
}
