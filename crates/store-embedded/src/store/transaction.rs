//! Carries out a [`Transaction`]: the guard first, then the changes in their order. The caller undoes all of it if
//! one is refused.

use maestro_core::time::Timestamp;
use maestro_engine::ports::store::{Change, Guard, Refusal, Transaction};
use rusqlite::Connection;

use super::failure::Result;
use super::{
    allocations, locks, no_action, operations, outbox, regions, rooms, schedulers, versions, workers,
};

/// `now` is the store's time.
pub(super) fn carry_out(connection: &Connection, transaction: &Transaction, now: Timestamp) -> Result {
    let Transaction { label: _, id: _, scheduler: _, guard, changes } = transaction;
    if let Some(guard) = guard {
        check(connection, guard)?;
    }
    changes.iter().try_for_each(|change| carry_out_one(connection, change, now))
}

fn check(connection: &Connection, guard: &Guard) -> Result {
    let Guard { scheduler, token, operation, locks } = guard;
    if workers::current_token(connection, scheduler)? != Some(*token) {
        let scheduler = scheduler.clone();
        return Err(Refusal::StaleToken { scheduler }.into());
    }
    if let Some(operation) = operation {
        operations::require_forward(connection, *operation)?;
    }
    locks.iter().try_for_each(|(kind, token)| locks::require(connection, scheduler, *kind, *token))
}

fn carry_out_one(connection: &Connection, change: &Change, now: Timestamp) -> Result {
    match change {
        Change::CreateScheduler(new) => schedulers::create(connection, new),
        Change::UpdateScheduler(update) => schedulers::update(connection, update),
        Change::AdjustFleetSize { scheduler, delta, of } => {
            schedulers::adjust_fleet_size(connection, scheduler, *delta, *of)
        }
        Change::SetVersionStatus { scheduler, version, status, cause } => {
            versions::set_status(connection, scheduler, *version, *status, cause)
        }
        Change::InsertVersion { scheduler, recipe, version, status, at } => {
            versions::create(connection, scheduler, recipe, *version, *status, *at)
        }
        Change::DeleteVersion { scheduler, version } => versions::delete(connection, scheduler, *version),
        Change::DeleteScheduler { scheduler, keep } => schedulers::delete(connection, scheduler, *keep),
        Change::Enqueue(new) => operations::enqueue(connection, new),
        Change::StartOperation { operation, lease, history } => {
            operations::start(connection, *operation, lease, history)
        }
        Change::UpdateOperation(update) => operations::update(connection, update),
        Change::RollBack { operation, rollback, history } => {
            operations::roll_back(connection, *operation, rollback, history)
        }
        Change::EndOperation { operation, status, took_action, history, at } => {
            operations::end(connection, *operation, *status, *took_action, *at, history)
        }
        Change::CancelPending { operation, history, at } => {
            operations::cancel_pending(connection, *operation, *at, history)
        }
        Change::RequestCancel { operation, request, history } => {
            operations::request_cancel(connection, *operation, request, history)
        }
        Change::ForgetOperations { scheduler, ended_before, no_action_before } => {
            operations::forget(connection, scheduler.as_ref(), *ended_before, *no_action_before)
        }
        Change::RecordNoAction(new) => no_action::record(connection, new),
        Change::ForgetNoAction { before } => no_action::forget(connection, *before),
        Change::ForgetFleetDeltas { scheduler, before } => {
            operations::forget_fleet_deltas(connection, scheduler, *before)
        }
        Change::TakeLock(new) => locks::take(connection, new, now),
        Change::AwaitLock { scheduler, waiter } => locks::take_place(connection, scheduler, waiter, now),
        Change::StopAwaiting { scheduler, kind, holder } => {
            locks::remove(connection, "lock_waiters", scheduler, *kind, *holder)
        }
        Change::ReleaseLock { scheduler, kind, holder } => {
            locks::remove(connection, "locks", scheduler, *kind, *holder)
        }
        Change::RevokeLock { scheduler, kind, token } => locks::revoke(connection, scheduler, *kind, *token),
        Change::IntendRoom(new) => rooms::intend(connection, new),
        Change::RoomStarted { scheduler, room, handle } => {
            rooms::started(connection, scheduler, room, handle)
        }
        Change::IntendStop { scheduler, room, stop, unless } => {
            rooms::intend_stop(connection, scheduler, room, stop, *unless)
        }
        Change::EndRoom { scheduler, room, instance, ended } => {
            rooms::end(connection, scheduler, room, instance.as_ref(), ended)
        }
        Change::ForgetRooms { scheduler, rooms } => rooms::forget(connection, scheduler, rooms),
        Change::QueueEvent(new) => outbox::queue(connection, new),
        Change::EventsDelivered { scheduler: _, queue, events, at } => {
            outbox::delivered(connection, *queue, events, *at)
        }
        Change::EventFailed { scheduler: _, queue, event, error, next_at } => {
            outbox::failed(connection, *queue, *event, error, *next_at)
        }
        Change::EventsDead { scheduler: _, queue, events, error, dead_max, at } => {
            outbox::dead(connection, *queue, events, error, *dead_max, *at)
        }
        Change::ReplayEvents { scheduler, events, at } => outbox::replay(connection, scheduler, events, *at),
        Change::ForgetDeadEvents { scheduler, before } => outbox::forget_dead(connection, scheduler, *before),
        Change::OrphanEvents { scheduler, addresses } => outbox::orphan(connection, scheduler, addresses),
        Change::Allocate(new) => allocations::allocate(connection, new),
        Change::EndAllocation { scheduler, allocation, state, cause, at } => {
            allocations::end(connection, scheduler, *allocation, *state, cause, *at)
        }
        Change::WithdrawAllocation { scheduler, allocation, cause, at } => {
            allocations::withdraw(connection, scheduler, *allocation, cause, *at)
        }
        Change::SpendClaim { scheduler, room, number, allocation } => {
            allocations::spend(connection, scheduler, room, *number, *allocation)
        }
        Change::ForgetAllocations(forget) => allocations::forget(connection, forget),
        Change::SetRegion { from, to } => regions::set(connection, from.as_ref(), to),
    }
}
