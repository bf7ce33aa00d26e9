//! Named locks, as the engine takes them: changes of a transaction that does something else, too. Who takes what is
//! the table of the design; the rule for taking one is `maestro_core::lock`.

use maestro_core::lock::{Holder, LockKind, Locks, Obstacle, Taker, Waiter};
use maestro_core::operation::{DefinitionKind, Operation, OperationId};
use maestro_core::rollout::{LockChange, RolloutRecord};
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::after;

use crate::Engine;
use crate::ports::store::{Change, NewLock, NewOperation};

impl Engine {
    /// Takes the lock for something that is renewed by whoever owns the scheduler.
    pub(crate) fn take_lock(
        &self,
        scheduler: &SchedulerName,
        kind: LockKind,
        taker: Taker,
        reason: &str,
    ) -> Change {
        let at = self.now();
        Change::TakeLock(NewLock {
            scheduler: scheduler.clone(),
            kind,
            taker,
            reason: reason.into(),
            at,
            expires_at: Some(after(at, self.settings.lock_ttl)),
        })
    }

    pub(crate) fn await_lock(&self, scheduler: &SchedulerName, kind: LockKind, holder: Holder) -> Change {
        let since = self.now();
        let until = after(since, self.settings.lock_wait_timeout);
        Change::AwaitLock { scheduler: scheduler.clone(), waiter: Waiter { kind, holder, since, until } }
    }

    /// Changes that say how many rooms there should be, or from what: nobody else writes such a thing meanwhile.
    pub(crate) fn while_writing(
        &self,
        scheduler: &SchedulerName,
        (kind, id): (DefinitionKind, OperationId),
        reason: &str,
        changes: Vec<Change>,
    ) -> Vec<Change> {
        let holder = Holder::Operation { kind, id };
        let mut all = vec![self.take_lock(scheduler, LockKind::Scale, Taker::of(holder), reason)];
        all.extend(changes);
        all.push(Change::ReleaseLock { scheduler: scheduler.clone(), kind: LockKind::Scale, holder });
        all
    }

    /// What a rollout does to its locks, which end with it and not by time.
    pub(crate) fn lock_change(&self, scheduler: &SchedulerName, change: LockChange) -> Change {
        let scheduler = scheduler.clone();
        match change {
            LockChange::Take { kind, taker, reason } => {
                let at = self.now();
                Change::TakeLock(NewLock { scheduler, kind, taker, reason, at, expires_at: None })
            }
            LockChange::Release { kind, holder } => Change::ReleaseLock { scheduler, kind, holder },
            LockChange::Await { kind, holder } => self.await_lock(&scheduler, kind, holder),
            LockChange::StopAwaiting { kind, holder } => Change::StopAwaiting { scheduler, kind, holder },
        }
    }
}

/// How rooms can be taken out of service now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RemovalLock {
    /// A rollout has the lock for all removals, or can take it.
    OfRollout(Holder),
    /// A removal can take it for itself.
    Free,
    /// Someone else has it, or comes first: who waits, and for what.
    NotFree(Holder, Obstacle),
}

pub(crate) fn removal_lock(engine: &Engine, rollout: Option<&RolloutRecord>, locks: &Locks) -> RemovalLock {
    let rollout = rollout.filter(|rollout| rollout.is_moving()).map(RolloutRecord::holder);
    let holder = rollout.unwrap_or(Holder::HealthController);
    match (locks.may_take(LockKind::Downscaling, taker_for_cycles(holder), engine.now()), rollout) {
        (Ok(()), Some(holder)) => RemovalLock::OfRollout(holder),
        (Ok(()), None) => RemovalLock::Free,
        (Err(obstacle), _) => RemovalLock::NotFree(holder, obstacle),
    }
}

/// A rollout takes the place that a cycle may have taken before it began.
pub(crate) fn taker_for_cycles(holder: Holder) -> Taker {
    Taker { holder, instead_of: Some(Holder::HealthController) }
}

/// Who an operation is as the holder of locks.
pub(crate) fn holder_of(operation: &Operation) -> Holder {
    Holder::Operation { kind: operation.definition.kind(), id: operation.id }
}

pub(crate) fn holder_of_new(operation: &NewOperation) -> Holder {
    Holder::Operation { kind: operation.definition.kind(), id: operation.id }
}

pub(crate) fn stop_awaiting(scheduler: &SchedulerName, kind: LockKind, holder: Holder) -> Change {
    Change::StopAwaiting { scheduler: scheduler.clone(), kind, holder }
}
