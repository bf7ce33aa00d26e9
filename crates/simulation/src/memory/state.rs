//! All that the store knows, as tables and the indexes over them.

use std::sync::Arc;

use maestro_core::allocation::{AllocationId, ClaimNumber};
use maestro_core::lock::{Lock, LockKind, Waiter};
use maestro_core::operation::{Operation, OperationId, Token};
use maestro_core::room::{Region, RoomId};
use maestro_core::scheduler::{SchedulerName, Version};
use maestro_core::time::Timestamp;
use maestro_engine::ports::store::{
    AllocationRecord, CarriedOut, Change, Guard, QueueId, Refusal, RegionRecord, RolloutRecord, RoomRecord,
    SchedulerState, Transaction, VersionRecord,
};

use super::outbox;
use super::table::Table;

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) schedulers: Table<SchedulerName, Scheduler>,
    pub(super) versions: Table<(SchedulerName, Version), VersionRecord>,
    /// All that were ever given, of versions that are gone too.
    pub(super) version_numbers: Table<(SchedulerName, Version), ()>,
    pub(super) owners: Table<SchedulerName, Ownership>,
    /// When each worker's last sign of life runs out.
    pub(super) workers: Table<String, Timestamp>,
    pub(super) locks: Table<(SchedulerName, LockKind), Lock>,
    /// In the order in which they came.
    pub(super) waiters: Table<(SchedulerName, LockKind, u64), Waiter>,
    pub(super) operations: Table<OperationId, Queued>,
    /// Operations of a scheduler in the order in which they were enqueued.
    pub(super) queue: Table<(SchedulerName, u64), OperationId>,
    /// The part of the queue that has not ended.
    pub(super) unfinished: Table<(SchedulerName, u64), OperationId>,
    /// Which operation of a scheduler executes.
    pub(super) slots: Table<SchedulerName, OperationId>,
    pub(super) rooms: Table<RoomId, Arc<RoomRecord>>,
    pub(super) live_rooms: Table<(SchedulerName, RoomId), ()>,
    pub(super) ended_rooms: Table<(SchedulerName, Timestamp, RoomId), ()>,
    pub(super) rooms_made_by: Table<(SchedulerName, OperationId, RoomId), ()>,
    /// Ports of live rooms.
    pub(super) ports: Table<(Region, u16), RoomId>,
    /// Their places are those of their rooms.
    pub(super) allocations: Table<(SchedulerName, AllocationId), Arc<AllocationRecord>>,
    pub(super) open_allocations: Table<(SchedulerName, RoomId, ClaimNumber), AllocationId>,
    /// By the caller's id and the index.
    pub(super) requests: Table<(SchedulerName, Arc<str>, u32), AllocationId>,
    pub(super) regions: Table<Region, RegionRecord>,
    pub(super) event_queues: Table<QueueId, outbox::Queue>,
    /// In the order in which they were queued.
    pub(super) outbox: Table<u64, outbox::Queued>,
    pub(super) last_sequence: u64,
    pub(super) last_token: u64,
    pub(super) carried_out: CarriedOut,
}

#[derive(Debug, Clone)]
pub(super) struct Scheduler {
    pub(super) state: SchedulerState,
    pub(super) active_version: Version,
    pub(super) fleet_size: u32,
    pub(super) created_at: Timestamp,
    pub(super) last_shrunk_at: Option<Timestamp>,
    pub(super) rollout: Option<RolloutRecord>,
    pub(super) revision: u32,
}

#[derive(Debug, Clone)]
pub(super) struct Queued {
    pub(super) sequence: u64,
    pub(super) operation: Operation,
    /// It was recorded when it had ended, and never enqueued.
    pub(super) is_record: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Ownership {
    pub(super) owner: String,
    pub(super) token: Token,
    pub(super) expires_at: Timestamp,
}

impl State {
    /// `now` is the store's time.
    pub(super) fn commit(&mut self, transaction: Transaction, now: Timestamp) -> Result<(), Refusal> {
        let Transaction { label: _, id, scheduler: _, guard, changes } = transaction;
        if self.carried_out.includes(id) {
            return Ok(());
        }
        let numbers = (self.last_sequence, self.last_token);
        let outcome = self
            .check(guard.as_ref())
            .and_then(|()| changes.into_iter().try_for_each(|change| self.apply(change, now)));
        if outcome.is_ok() {
            self.keep();
            self.carried_out.remember(id);
        } else {
            self.undo();
            (self.last_sequence, self.last_token) = numbers;
        }
        outcome
    }

    fn check(&self, guard: Option<&Guard>) -> Result<(), Refusal> {
        let Some(Guard { scheduler, token, operation, locks }) = guard else {
            return Ok(());
        };
        match self.owners.get(scheduler) {
            Some(ownership) if ownership.token == *token => {}
            _ => return Err(Refusal::StaleToken { scheduler: scheduler.clone() }),
        }
        if let Some(id) = operation
            && self.operation(scheduler, *id).is_some_and(|operation| operation.rollback.is_some())
        {
            return Err(Refusal::RollsBack(*id));
        }
        locks.iter().try_for_each(|(kind, token)| self.check_lock(scheduler, *kind, *token))
    }

    fn apply(&mut self, change: Change, now: Timestamp) -> Result<(), Refusal> {
        match change {
            Change::CreateScheduler(new) => self.create_scheduler(new),
            Change::UpdateScheduler(update) => self.update_scheduler(update),
            Change::AdjustFleetSize { scheduler, delta, of } => self.adjust_fleet_size(scheduler, delta, of),
            Change::SetVersionStatus { scheduler, version, status, cause } => {
                self.set_version_status(scheduler, version, status, cause)
            }
            Change::InsertVersion { scheduler, recipe, version, status, at } => {
                let (is_active, cause) = (false, String::new());
                let record = VersionRecord { version, recipe, status, cause, is_active, created_at: at };
                self.insert_version(scheduler, record)
            }
            Change::DeleteVersion { scheduler, version } => self.delete_version(scheduler, version),
            Change::DeleteScheduler { scheduler, keep } => self.delete_scheduler(scheduler, keep),
            Change::Enqueue(new) => self.enqueue(new),
            Change::StartOperation { operation, lease, history } => {
                self.start_operation(operation, lease, history)
            }
            Change::UpdateOperation(update) => self.update_operation(update),
            Change::EndOperation { operation, status, took_action, history, at } => {
                self.end_operation(operation, status, took_action, history, at)
            }
            Change::CancelPending { operation, history, at } => self.cancel_pending(operation, history, at),
            Change::RequestCancel { operation, request, history } => {
                self.request_cancel(operation, request, history)
            }
            Change::ForgetOperations { scheduler, ended_before, no_action_before } => {
                self.forget_operations(scheduler.as_ref(), ended_before, no_action_before);
                Ok(())
            }
            Change::RecordNoAction(new) => self.record_no_action(new),
            Change::ForgetNoAction { before } => {
                self.forget_no_action(before);
                Ok(())
            }
            Change::RollBack { operation, rollback, history } => self.roll_back(operation, rollback, history),
            Change::TakeLock(new) => self.take_lock(new, now),
            Change::AwaitLock { scheduler, waiter } => self.await_lock(&scheduler, waiter, now),
            Change::StopAwaiting { scheduler, kind, holder } => {
                self.stop_awaiting(&scheduler, kind, holder);
                Ok(())
            }
            Change::ReleaseLock { scheduler, kind, holder } => {
                self.release_lock(&scheduler, kind, holder);
                Ok(())
            }
            Change::RevokeLock { scheduler, kind, token } => self.revoke_lock(&scheduler, kind, token),
            Change::IntendRoom(new) => self.intend_room(new),
            Change::RoomStarted { scheduler, room, handle } => self.room_started(&scheduler, room, handle),
            Change::IntendStop { scheduler, room, stop, unless } => {
                self.intend_stop(&scheduler, &room, stop, unless)
            }
            Change::ForgetFleetDeltas { scheduler, before } => {
                self.forget_fleet_deltas(&scheduler, before);
                Ok(())
            }
            Change::EndRoom { scheduler, room, instance, ended } => {
                self.end_room(&scheduler, &room, instance.as_ref(), ended)
            }
            Change::ForgetRooms { scheduler, rooms } => {
                self.forget_rooms(&scheduler, &rooms);
                Ok(())
            }
            Change::QueueEvent(new) => self.queue_event(*new),
            Change::EventsDelivered { scheduler: _, queue, events, at } => {
                self.events_delivered(queue, &events, at);
                Ok(())
            }
            Change::EventFailed { scheduler: _, queue, event, error, next_at } => {
                self.event_failed(queue, event, error, next_at);
                Ok(())
            }
            Change::EventsDead { scheduler: _, queue, events, error, dead_max, at } => {
                self.events_dead(queue, &events, &error, dead_max, at);
                Ok(())
            }
            Change::ReplayEvents { scheduler, events, at } => {
                self.replay_events(&scheduler, &events, at);
                Ok(())
            }
            Change::ForgetDeadEvents { scheduler, before } => {
                self.forget_dead_events(&scheduler, before);
                Ok(())
            }
            Change::OrphanEvents { scheduler, addresses } => {
                self.orphan_events(&scheduler, addresses);
                Ok(())
            }
            Change::Allocate(new) => self.allocate(new),
            Change::EndAllocation { scheduler, allocation, state, cause, at } => {
                self.end_allocation(scheduler, allocation, state, cause, at)
            }
            Change::WithdrawAllocation { scheduler, allocation, cause, at } => {
                self.withdraw_allocation(scheduler, allocation, cause, at);
                Ok(())
            }
            Change::SpendClaim { scheduler, room, number, allocation } => {
                self.spend_claim(&scheduler, &room, number, allocation)
            }
            Change::ForgetAllocations(forget) => {
                self.forget_allocations(&forget);
                Ok(())
            }
            Change::SetRegion { from, to } => self.set_region(from.as_ref(), to),
        }
    }

    /// Ends a transaction that was done.
    pub(super) fn keep(&mut self) {
        self.tables().into_iter().for_each(Journaled::keep);
    }

    /// Ends a transaction that was refused.
    fn undo(&mut self) {
        self.tables().into_iter().for_each(Journaled::undo);
    }

    /// Destructures, so that a table that is forgotten here does not compile.
    fn tables(&mut self) -> [&mut dyn Journaled; 22] {
        let Self {
            schedulers,
            versions,
            version_numbers,
            owners,
            workers,
            locks,
            waiters,
            operations,
            queue,
            unfinished,
            slots,
            rooms,
            live_rooms,
            ended_rooms,
            rooms_made_by,
            ports,
            allocations,
            open_allocations,
            requests,
            regions,
            event_queues,
            outbox,
            last_sequence: _,
            last_token: _,
            carried_out: _,
        } = self;
        [
            schedulers,
            versions,
            version_numbers,
            owners,
            workers,
            locks,
            waiters,
            operations,
            queue,
            unfinished,
            slots,
            rooms,
            live_rooms,
            ended_rooms,
            rooms_made_by,
            ports,
            allocations,
            open_allocations,
            requests,
            regions,
            event_queues,
            outbox,
        ]
    }
}

/// What all tables have in common, whatever is in them.
trait Journaled {
    fn keep(&mut self);
    fn undo(&mut self);
}

impl<K: Ord + Clone, V: Clone> Journaled for Table<K, V> {
    fn keep(&mut self) {
        Table::keep(self);
    }

    fn undo(&mut self) {
        Table::undo(self);
    }
}
