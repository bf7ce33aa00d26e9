//! The removals of one health cycle, and the lock that they hold. Rooms are taken out of service by one removal at a time,
//! so that each sees what the one before has left. During a rollout, all of them use the rollout's lock.

use maestro_core::lock::{Holder, Lock, LockKind, Obstacle, Taker};
use maestro_core::operation::{DefinitionKind, Token};

use crate::locks::{self, RemovalLock, removal_lock};
use crate::ports::store::{NewOperation, RolloutRecord, SchedulerRecord};

use super::fleet::Fleet;
use super::{Step, Work};

pub(super) struct Removals<'a> {
    work: &'a Work,
    fleet: &'a Fleet,
    rollout: Option<&'a RolloutRecord>,
    lock: RemovalLock,
    /// Who has to wait now, if anybody.
    waits: Option<Holder>,
}

impl<'a> Removals<'a> {
    pub(super) fn new(work: &'a Work, scheduler: &'a SchedulerRecord, fleet: &'a Fleet) -> Self {
        let rollout = scheduler.rollout.as_ref();
        let lock = removal_lock(&work.engine, rollout, &fleet.locks);
        Self { work, fleet, rollout, lock, waits: None }
    }

    /// Whether the operation may be enqueued; the lock is taken with it. A removal that has to wait is left out, and
    /// the history says why.
    pub(super) fn allow(&mut self, operation: &NewOperation, step: &mut Step) -> bool {
        if operation.definition.kind() != DefinitionKind::RemoveRooms {
            return true;
        }
        match self.lock.clone() {
            RemovalLock::OfRollout(_) => true,
            RemovalLock::Free => {
                self.take(operation, step);
                true
            }
            RemovalLock::NotFree(waiter, obstacle) => {
                step.history.push(format!("deferred: lock {obstacle}: {}", operation.reason));
                self.waits = Some(waiter);
                false
            }
        }
    }

    /// Takes a place in the order of the lock, or gives up one that is not needed any more. A rollout takes the lock as
    /// soon as it can. True: something of that is new.
    pub(super) fn settle(self, step: &mut Step) -> bool {
        if let RemovalLock::OfRollout(holder) = self.lock {
            return self.take_for_rollout(holder, step);
        }
        let (scheduler, kind) = (&self.work.scheduler.name, LockKind::Downscaling);
        let has_place = |holder| self.fleet.locks.waits(kind, holder).is_some();
        if self.waits != Some(Holder::HealthController) && has_place(Holder::HealthController) {
            step.changes.push(locks::stop_awaiting(scheduler, kind, Holder::HealthController));
        }
        let Some(holder) = self.waits else { return false };
        step.changes.push(self.work.engine.await_lock(scheduler, kind, holder));
        !has_place(holder)
    }

    /// And the recipe, if that was taken away and is free again.
    fn take_for_rollout(&self, holder: Holder, step: &mut Step) -> bool {
        let (engine, scheduler) = (&self.work.engine, &self.work.scheduler.name);
        let (Some(rollout), locks) = (self.rollout, &self.fleet.locks) else { return false };
        let mut took = false;
        for kind in [LockKind::Config, LockKind::Downscaling] {
            let taker = locks::taker_for_cycles(holder);
            if locks.held_by(kind, holder).is_none() && locks.may_take(kind, taker, engine.now()).is_ok() {
                let take = rollout.take_lock(kind, taker.instead_of);
                step.changes.push(engine.lock_change(scheduler, take));
                took = true;
            }
        }
        took
    }

    /// The next removal of the same cycle finds it taken.
    fn take(&mut self, operation: &NewOperation, step: &mut Step) {
        let kind = LockKind::Downscaling;
        let holder = locks::holder_of_new(operation);
        let taker = Taker { holder, instead_of: Some(Holder::HealthController) };
        let (engine, scheduler) = (&self.work.engine, &self.work.scheduler.name);
        step.changes.push(engine.take_lock(scheduler, kind, taker, &operation.reason));
        let taken = Lock {
            kind,
            holder,
            reason: operation.reason.clone(),
            token: Token(0),
            acquired_at: engine.now(),
            expires_at: None,
        };
        self.lock = RemovalLock::NotFree(Holder::HealthController, Obstacle::Held(taken));
    }
}
