//! Named locks, as the engine takes them: changes of a transaction that does something else, too. Who takes what is
//! the table of the design; the rule for taking one is `maestro_core::lock`.

use maestro_core::lock::{Holder, LockKind, Locks, Obstacle, Taker, Waiter};
use maestro_core::operation::{DefinitionKind, Operation, OperationId};
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::after;

use crate::Engine;
use crate::ports::store::{Change, NewLock, NewOperation, RolloutRecord, RolloutState};

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

    /// What a rollout that becomes another one does to the locks that belong to it. It has the recipe from its
    /// switch to its end, and the rooms on their way out while it replaces any. `switch` hands over what it holds.
    pub(crate) fn rollout_locks(
        &self,
        scheduler: &SchedulerName,
        from: Option<&RolloutRecord>,
        to: Option<&RolloutRecord>,
        switch: Option<Holder>,
        locks: &Locks,
    ) -> Vec<Change> {
        let before = from.map(|rollout| Holder::Rollout(rollout.to));
        let Some(rollout) = to else {
            return before.map(|holder| give_up(scheduler, holder)).unwrap_or_default();
        };
        let holder = Holder::Rollout(rollout.to);
        let hands_over = |kind| {
            let held = locks.held(kind).map(|lock| lock.holder);
            held.filter(|held| Some(*held) == before || Some(*held) == switch)
        };
        let locks = &locks.clone().without(Holder::HealthController);
        let take = |kind| {
            let taker = Taker { holder, instead_of: hands_over(kind).or(before) };
            locks.may_take(kind, taker, self.now()).ok()?;
            Some(self.take_for_rollout(scheduler, kind, taker, rollout))
        };
        // Cycles wait as the rollout from now on, or, if it replaces nothing, ask again as themselves.
        let mut changes = vec![stop_awaiting(scheduler, LockKind::Downscaling, Holder::HealthController)];
        // Not to have it changes nothing for the rollout: whoever has it is about to replace the rollout itself.
        changes.extend(take(LockKind::Config));
        if !replaces(rollout) {
            let holders = before.into_iter().chain([holder]);
            changes.extend(holders.flat_map(|holder| stop_downscaling(scheduler, holder)));
        } else if let Some(taken) = take(LockKind::Downscaling) {
            changes.push(taken);
        } else {
            let forget = |holder| stop_awaiting(scheduler, LockKind::Downscaling, holder);
            changes.extend(before.filter(|before| *before != holder).map(forget));
            changes.push(self.await_lock(scheduler, LockKind::Downscaling, holder));
        }
        changes
    }

    /// It ends with the rollout, not by time.
    pub(crate) fn take_for_rollout(
        &self,
        scheduler: &SchedulerName,
        kind: LockKind,
        taker: Taker,
        rollout: &RolloutRecord,
    ) -> Change {
        Change::TakeLock(NewLock {
            scheduler: scheduler.clone(),
            kind,
            taker,
            reason: format!("rooms are replaced by those of {}", rollout.to),
            at: self.now(),
            expires_at: None,
        })
    }
}

/// Paused and halted, it replaces nothing.
pub(crate) fn replaces(rollout: &RolloutRecord) -> bool {
    match rollout.state {
        RolloutState::Rolling | RolloutState::RollingBack => true,
        RolloutState::Paused | RolloutState::Halted => false,
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
    let rollout = rollout.filter(|rollout| replaces(rollout)).map(|rollout| Holder::Rollout(rollout.to));
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

pub(crate) fn stop_downscaling(scheduler: &SchedulerName, holder: Holder) -> [Change; 2] {
    let kind = LockKind::Downscaling;
    let release = Change::ReleaseLock { scheduler: scheduler.clone(), kind, holder };
    [release, stop_awaiting(scheduler, kind, holder)]
}

fn give_up(scheduler: &SchedulerName, holder: Holder) -> Vec<Change> {
    let kind = LockKind::Config;
    let config = Change::ReleaseLock { scheduler: scheduler.clone(), kind, holder };
    std::iter::once(config).chain(stop_downscaling(scheduler, holder)).collect()
}
