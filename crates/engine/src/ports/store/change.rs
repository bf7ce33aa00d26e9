//! Writes as data.

use std::sync::Arc;

use maestro_core::allocation::{AllocationId, AllocationState, ClaimNumber};
use maestro_core::event::EventId;
use maestro_core::lock::{Holder, LockKind, Waiter};
use maestro_core::operation::{
    CancelRequest, HistoryEvent, Lease, OperationId, OperationStatus, Rollback, Token,
};
use maestro_core::room::RoomId;
use maestro_core::scheduler::{Recipe, SchedulerName, Version, VersionStatus};
use maestro_core::time::Timestamp;

use crate::ports::runtime::Handle;

use super::new_records::{
    ClaimedSince, ForgetAllocations, NewAllocation, NewLock, NewOperation, NewRoomRecord, NewScheduler,
    NoAction, OperationUpdate, SchedulerUpdate,
};
use super::outbox::{LastAddress, NewEvent, QueueId};
use super::records::{Ended, RegionRecord, StopIntent};
#[expect(unused_imports, reason = "what changes are refused with is linked in their documentation")]
use super::refusal::Refusal;

/// Changes that happen together or not at all.
#[derive(Debug, Clone)]
pub struct Transaction {
    /// Names this write in logs, metrics and failpoints.
    pub label: &'static str,
    /// Sent again under the same id, it is not carried out again. `None`: it is sent once.
    pub id: Option<TransactionId>,
    /// Whose rows it writes. A store that several processes share locks the scheduler's row before anything else, so that
    /// two transactions never wait for each other. `None`: what it writes belongs to no scheduler, or to one that is gone.
    pub scheduler: Option<SchedulerName>,
    /// `None` for what needs no ownership: requests from outside, and facts such as a room's end.
    pub guard: Option<Guard>,
    pub changes: Vec<Change>,
}

/// Made by who sends a transaction; see [`Transaction::id`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TransactionId(pub u128);

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
    /// its time is over. Refused with [`Refusal::SchedulerNotFound`].
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
    /// not exist. Refused with [`Refusal::OtherInstance`] if it lives and has a handle of another instance than the one
    /// that has ended (see [`Handle::is_of_same_instance`]). `instance: None`: whatever instance of it there is, it ends.
    EndRoom { scheduler: SchedulerName, room: RoomId, instance: Option<Handle>, ended: Ended },
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
    /// Ends an open allocation as lost that no caller was told of, and detaches it from its request, so that the same request
    /// can be answered with another room. One that was lost meanwhile, with its room, is detached too. Nothing happens if it
    /// is over otherwise, or not there.
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

impl Transaction {
    /// A request, or a fact, about one scheduler.
    pub fn new(label: &'static str, scheduler: &SchedulerName, changes: Vec<Change>) -> Self {
        Self { scheduler: Some(scheduler.clone()), ..Self::of_no_scheduler(label, changes) }
    }

    /// Written by the scheduler's owner.
    pub fn guarded(label: &'static str, guard: Guard, changes: Vec<Change>) -> Self {
        let scheduler = Some(guard.scheduler.clone());
        Self { scheduler, guard: Some(guard), ..Self::of_no_scheduler(label, changes) }
    }

    pub fn of_no_scheduler(label: &'static str, changes: Vec<Change>) -> Self {
        Self { label, id: None, scheduler: None, guard: None, changes }
    }
}
