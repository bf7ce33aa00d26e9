//! What there is to tell of a transaction. Most of it is in the changes; the rest is looked up when they are written.

use std::collections::BTreeSet;
use std::sync::Arc;

use maestro_core::allocation::{AllocationId, AllocationState};
use maestro_core::operation::{OperationId, OperationStatus};
use maestro_core::rollout::RolloutRecord;
use maestro_core::room::{Purpose, RoomId};
use maestro_core::scheduler::SchedulerName;
use maestro_core::stream::{Decision, Happened};
use maestro_core::time::Timestamp;
use serde::Deserialize;

use crate::ports::store::{
    Change, Ended, NewAllocation, NewOperation, NewRoomRecord, NoAction, OperationUpdate, RegionRecord,
    SchedulerUpdate, Transaction,
};
use crate::services::AutoscalingDecision;

/// What is to be told if the transaction is accepted.
pub(super) struct Draft {
    pub(super) at: Timestamp,
    pub(super) what: What,
}

pub(super) enum What {
    Event(Option<SchedulerName>, Happened),
    /// `None`: the change does not say of which scheduler.
    OperationBecame(Option<SchedulerName>, OperationId, OperationStatus),
    AllocationEnded(SchedulerName, AllocationId, AllocationState, Arc<str>),
    /// Unless it was over.
    Withdrawn(SchedulerName, AllocationId, Arc<str>),
    /// The room's open allocations end with it, which no change says.
    TakesHeld {
        scheduler: SchedulerName,
        room: RoomId,
        ends_at: Timestamp,
        held: Held,
    },
    Decided(SchedulerName, OperationId, Arc<Decision>),
    Rollout(SchedulerName, Option<RolloutRecord>),
    SchedulerGone(SchedulerName),
}

/// The allocations that had a hold on a room, before it was taken.
#[derive(Default)]
pub(super) struct Held {
    pub(super) open: BTreeSet<AllocationId>,
    /// They were over, and the table did not know yet.
    pub(super) over: BTreeSet<AllocationId>,
}

pub(super) fn drafts(transaction: &Transaction, now: Timestamp) -> Vec<Draft> {
    let owned = transaction.guard.as_ref().map(|guard| &guard.scheduler);
    let mut drafts = Vec::new();
    for change in &transaction.changes {
        drafts.extend(of_change(change, owned).into_iter().flatten().map(|what| Draft { at: now, what }));
    }
    drafts
}

/// `owned`: the scheduler that the writer owns, which is that of its operations.
fn of_change(change: &Change, owned: Option<&SchedulerName>) -> [Option<What>; 2] {
    let became = |id: &OperationId, status| What::OperationBecame(owned.cloned(), *id, status);
    let only = |what| [Some(what), None];
    match change {
        Change::UpdateScheduler(SchedulerUpdate { scheduler, rollout: Some(rollout), .. }) => {
            only(What::Rollout(scheduler.clone(), rollout.clone()))
        }
        Change::SetVersionStatus { scheduler, version, status, cause } => {
            let cause = cause.as_str().into();
            let what = Happened::VersionChanged { version: *version, status: *status, cause };
            only(What::Event(Some(scheduler.clone()), what))
        }
        Change::DeleteScheduler { scheduler, keep: _ } => only(What::SchedulerGone(scheduler.clone())),
        Change::Enqueue(operation) => only(enqueued(operation)),
        Change::StartOperation { operation, .. } => only(became(operation, OperationStatus::InProgress)),
        Change::UpdateOperation(OperationUpdate { operation, data: Some(data), .. }) => {
            let decision = owned.zip(decision(data));
            let decided =
                |(name, decision): (&SchedulerName, _)| What::Decided(name.clone(), *operation, decision);
            [decision.map(decided), None]
        }
        Change::EndOperation { operation, status, .. } => only(became(operation, *status)),
        Change::CancelPending { operation, .. } => only(became(operation, OperationStatus::Canceled)),
        Change::RecordNoAction(NoAction { id, scheduler, data, .. }) => {
            [decision(data).map(|decision| What::Decided(scheduler.clone(), *id, decision)), None]
        }
        Change::IntendRoom(room) => only(created(room)),
        Change::IntendStop { scheduler, room, stop, unless } => {
            [unless.takes_held.then(|| takes_held(scheduler, room, stop.at)), None]
        }
        Change::EndRoom { scheduler, room, instance: _, ended } => {
            let Ended { at, how, cause, was_ready: _ } = ended;
            let what = Happened::RoomEnded { room: room.clone(), how: how.as_str().into(), cause: *cause };
            [Some(takes_held(scheduler, room, *at)), Some(What::Event(Some(scheduler.clone()), what))]
        }
        Change::Allocate(allocation) => only(held(allocation)),
        Change::EndAllocation { scheduler, allocation, state, cause, at: _ } => {
            only(What::AllocationEnded(scheduler.clone(), *allocation, *state, cause.as_str().into()))
        }
        Change::WithdrawAllocation { scheduler, allocation, cause, at: _ } => {
            only(What::Withdrawn(scheduler.clone(), *allocation, cause.as_str().into()))
        }
        Change::SetRegion { from: _, to } => only(ordered(to)),
        Change::CreateScheduler(_)
        | Change::UpdateScheduler(SchedulerUpdate { rollout: None, .. })
        | Change::AdjustFleetSize { .. }
        | Change::InsertVersion { .. }
        | Change::DeleteVersion { .. }
        | Change::UpdateOperation(OperationUpdate { data: None, .. })
        | Change::RollBack { .. }
        | Change::RequestCancel { .. }
        | Change::ForgetOperations { .. }
        | Change::ForgetNoAction { .. }
        | Change::ForgetFleetDeltas { .. }
        | Change::TakeLock(_)
        | Change::AwaitLock { .. }
        | Change::StopAwaiting { .. }
        | Change::ReleaseLock { .. }
        | Change::RevokeLock { .. }
        | Change::RoomStarted { .. }
        | Change::ForgetRooms { .. }
        | Change::QueueEvent(_)
        | Change::EventsDelivered { .. }
        | Change::EventFailed { .. }
        | Change::EventsDead { .. }
        | Change::ReplayEvents { .. }
        | Change::ForgetDeadEvents { .. }
        | Change::OrphanEvents { .. }
        | Change::SpendClaim { .. }
        | Change::ForgetAllocations(_) => [None, None],
    }
}

fn enqueued(operation: &NewOperation) -> What {
    let NewOperation { id, scheduler, definition, reason, .. } = operation;
    let what = Happened::OperationChanged {
        operation: *id,
        definition: definition.name().into(),
        status: OperationStatus::Pending,
        reason: reason.as_str().into(),
    };
    What::Event(Some(scheduler.clone()), what)
}

fn held(allocation: &NewAllocation) -> What {
    let NewAllocation { id, scheduler, room, request, expires_at, .. } = allocation;
    let request = request.as_ref().map(|request| request.id.clone());
    let (room, expires_at) = (room.clone(), *expires_at);
    let what = Happened::AllocationHeld { allocation: *id, room, expires_at, request };
    What::Event(Some(scheduler.clone()), what)
}

fn created(room: &NewRoomRecord) -> What {
    let NewRoomRecord { id, scheduler, version, region, purpose, .. } = room;
    let (version, region) = (*version, region.clone());
    let validation = *purpose == Purpose::Validation;
    let what = Happened::RoomCreated { room: id.clone(), version, region, validation };
    What::Event(Some(scheduler.clone()), what)
}

fn takes_held(scheduler: &SchedulerName, room: &RoomId, ends_at: Timestamp) -> What {
    What::TakesHeld { scheduler: scheduler.clone(), room: room.clone(), ends_at, held: Held::default() }
}

fn ordered(region: &RegionRecord) -> What {
    let RegionRecord { name, cordoned, draining, by, reason, .. } = region;
    let what = Happened::RegionOrdered {
        region: name.clone(),
        cordoned: *cordoned,
        draining: *draining,
        by: by.as_str().into(),
        reason: reason.as_str().into(),
    };
    What::Event(None, what)
}

/// Of a health cycle's data.
fn decision(data: &serde_json::Value) -> Option<Arc<Decision>> {
    let stored = AutoscalingDecision::deserialize(data.get("decision")?).ok()?;
    let AutoscalingDecision { at: _, total, occupied, ready, desired, desired_ready, decision, reason } =
        stored;
    Some(Arc::new(Decision { total, occupied, ready, desired, desired_ready, outcome: decision, reason }))
}
