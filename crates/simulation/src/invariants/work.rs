//! Who works: one executor at a time, and nobody but the owner; tokens and locks.

use maestro_core::invariant::{Invariant, InvariantViolation, one_executing, token_grew};
use maestro_core::operation::{Activity, OperationId};
use maestro_core::scheduler::SchedulerName;
use maestro_engine::ports::store::{Change, OwnershipRecord, Store, Transaction};

use super::Inspector;

/// What a change is about.
pub(crate) enum Subject<'a> {
    Scheduler(&'a SchedulerName),
    Operation(OperationId),
}

/// `None`: about no scheduler in particular.
pub(crate) fn subject(change: &Change) -> Option<Subject<'_>> {
    Some(match change {
        Change::CreateScheduler(new) => Subject::Scheduler(&new.recipe.name),
        Change::Enqueue(new) => Subject::Scheduler(&new.scheduler),
        Change::RecordNoAction(new) => Subject::Scheduler(&new.scheduler),
        Change::TakeLock(new) => Subject::Scheduler(&new.scheduler),
        Change::IntendRoom(new) => Subject::Scheduler(&new.scheduler),
        Change::QueueEvent(new) => Subject::Scheduler(&new.scheduler),
        Change::Allocate(new) => Subject::Scheduler(&new.scheduler),
        Change::ForgetAllocations(forget) => Subject::Scheduler(&forget.scheduler),
        Change::ForgetOperations { scheduler, .. } => Subject::Scheduler(scheduler.as_ref()?),
        Change::UpdateScheduler(update) => Subject::Scheduler(&update.scheduler),
        Change::AdjustFleetSize { scheduler, .. }
        | Change::SetVersionStatus { scheduler, .. }
        | Change::InsertVersion { scheduler, .. }
        | Change::DeleteVersion { scheduler, .. }
        | Change::DeleteScheduler { scheduler, .. }
        | Change::ForgetFleetDeltas { scheduler, .. }
        | Change::AwaitLock { scheduler, .. }
        | Change::StopAwaiting { scheduler, .. }
        | Change::ReleaseLock { scheduler, .. }
        | Change::RevokeLock { scheduler, .. }
        | Change::RoomStarted { scheduler, .. }
        | Change::IntendStop { scheduler, .. }
        | Change::EndRoom { scheduler, .. }
        | Change::EndAllocation { scheduler, .. }
        | Change::WithdrawAllocation { scheduler, .. }
        | Change::SpendClaim { scheduler, .. }
        | Change::ForgetRooms { scheduler, .. }
        | Change::EventsDelivered { scheduler, .. }
        | Change::EventFailed { scheduler, .. }
        | Change::EventsDead { scheduler, .. }
        | Change::ReplayEvents { scheduler, .. }
        | Change::ForgetDeadEvents { scheduler, .. }
        | Change::OrphanEvents { scheduler, .. } => Subject::Scheduler(scheduler),
        Change::SetRegion { .. } | Change::ForgetNoAction { .. } => return None,
        Change::UpdateOperation(update) => Subject::Operation(update.operation),
        Change::StartOperation { operation, .. }
        | Change::RollBack { operation, .. }
        | Change::EndOperation { operation, .. }
        | Change::CancelPending { operation, .. }
        | Change::RequestCancel { operation, .. } => Subject::Operation(*operation),
    })
}

/// Only the owner of a scheduler may write this. Requests of people and facts, such as a room's end, are anyone's.
pub(super) fn is_owners(transaction: &Transaction) -> bool {
    let of_steps = |change: &Change| {
        matches!(
            change,
            Change::StartOperation { .. }
                | Change::UpdateOperation(_)
                | Change::EndOperation { .. }
                | Change::IntendRoom(_)
                | Change::RoomStarted { .. }
                | Change::IntendStop { .. }
        )
    };
    // A deletion is told by a person that it may forget what it cannot reach.
    if transaction.label == "force delete_scheduler" {
        return false;
    }
    transaction.guard.is_some()
        || transaction.label == "enqueue own"
        || transaction.changes.iter().any(of_steps)
}

/// What the owner writes at any time, also while a step decides on what it has read: how deliveries went, and that earlier
/// cycles had nothing to do.
pub(super) fn is_beside_steps(transaction: &Transaction) -> bool {
    transaction.changes.iter().all(|change| {
        matches!(
            change,
            Change::EventsDelivered { .. }
                | Change::EventFailed { .. }
                | Change::EventsDead { .. }
                | Change::RecordNoAction(_)
        )
    })
}

impl Inspector {
    pub(super) async fn judge_owner(
        &self,
        node: &str,
        transaction: &Transaction,
        scheduler: &SchedulerName,
        before: Option<&OwnershipRecord>,
        store: &dyn Store,
    ) {
        let owner = match before {
            Some(owner) => Some(owner.clone()),
            None => owner_now(scheduler, store).await,
        };
        let label = transaction.label;
        let wrong = match &owner {
            None if deletes(transaction) => return,
            None => Some(format!("{node} wrote {label:?}, and nobody owns {scheduler}")),
            Some(owner) if owner.owner != node => {
                Some(format!("{node} wrote {label:?}, and {} owns {scheduler}", owner.owner))
            }
            Some(owner) => {
                transaction.guard.as_ref().filter(|guard| guard.token != owner.token).map(|guard| {
                    let (had, is) = (guard.token.0, owner.token.0);
                    format!("{node} wrote {label:?} with token {had}, and {is} is current for {scheduler}")
                })
            }
        };
        self.note_all(wrong.map(|what| InvariantViolation::new(Invariant::OneExecutor, what)));
    }

    /// What a write did to the queue and the locks.
    pub(super) async fn judge_work(
        &self,
        scheduler: &SchedulerName,
        transaction: &Transaction,
        store: &dyn Store,
    ) {
        if transaction.changes.iter().any(takes_slot) {
            self.judge_slot(scheduler, store).await;
        }
        if transaction.changes.iter().any(touches_locks) {
            self.judge_locks(scheduler, transaction, store).await;
        }
    }

    async fn judge_slot(&self, scheduler: &SchedulerName, store: &dyn Store) {
        let Ok(unfinished) = store.unfinished(scheduler).await else {
            return;
        };
        let executing: Vec<_> =
            unfinished.iter().filter(|one| one.is_executing()).map(|one| one.id).collect();
        self.note_all(one_executing(&executing));
        let back = {
            let mut state = self.state.lock();
            let known = state.known(scheduler);
            let was_final =
                |id: &OperationId| known.operations.get(id).is_some_and(|one| one.status.is_final());
            unfinished.iter().map(|operation| operation.id).find(was_final)
        };
        let back = back.map(|id| format!("operation {id} had ended and is unfinished again"));
        self.note_all(back.map(|what| InvariantViolation::new(Invariant::LegalTransitions, what)));
    }

    async fn judge_locks(&self, scheduler: &SchedulerName, transaction: &Transaction, store: &dyn Store) {
        let Ok(locks) = store.locks(scheduler).await else {
            return;
        };
        let mut found = Vec::new();
        for change in &transaction.changes {
            match change {
                Change::TakeLock(new) => {
                    let Some(lock) = locks.held_by(new.kind, new.taker.holder) else { continue };
                    let mut state = self.state.lock();
                    let last = state.known(scheduler).lock_tokens.insert(new.kind, lock.token);
                    found.extend(token_grew(last.filter(|last| *last != lock.token), lock.token));
                }
                Change::EndOperation { operation, .. } | Change::CancelPending { operation, .. } => {
                    let is_left = |holder: maestro_core::lock::Holder| holder.operation() == Some(*operation);
                    let held = locks.held.iter().find(|lock| is_left(lock.holder)).map(|lock| lock.kind);
                    let waits = locks.waiters.iter().find(|one| is_left(one.holder)).map(|one| one.kind);
                    found.extend(held.or(waits).map(|kind| {
                        let what =
                            format!("{operation} has ended and still has, or waits for, the lock {kind}");
                        InvariantViolation::new(Invariant::NoLockLeft, what)
                    }));
                }
                _ => {}
            }
        }
        self.note_all(found);
    }
}

async fn owner_now(scheduler: &SchedulerName, store: &dyn Store) -> Option<OwnershipRecord> {
    let workforce = store.workers().await.ok()?;
    workforce.ownerships.into_iter().find(|ownership| ownership.scheduler == *scheduler)
}

fn deletes(transaction: &Transaction) -> bool {
    transaction.changes.iter().any(|change| matches!(change, Change::DeleteScheduler { .. }))
}

fn takes_slot(change: &Change) -> bool {
    match change {
        Change::StartOperation { .. } => true,
        Change::UpdateOperation(update) => update.activity == Some(Activity::Executing),
        _ => false,
    }
}

fn touches_locks(change: &Change) -> bool {
    matches!(change, Change::TakeLock(_) | Change::EndOperation { .. } | Change::CancelPending { .. })
}
