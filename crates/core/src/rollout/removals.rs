//! The removals of one health cycle, and the lock that they hold. Rooms are taken out of service by one removal at a time,
//! so that each sees what the one before has left. During a rollout, all of them use the rollout's lock.

use crate::lock::{Holder, Lock, LockKind, Locks, Obstacle, Taker};
use crate::operation::Token;
use crate::time::Timestamp;

use super::{LockChange, RolloutRecord};

const KIND: LockKind = LockKind::Downscaling;

/// How a cycle can take rooms out of service.
pub struct Removals<'a> {
    rollout: Option<&'a RolloutRecord>,
    locks: &'a Locks,
    now: Timestamp,
    access: Access,
    changes: Vec<LockChange>,
    is_new: bool,
}

enum Access {
    /// A rollout has the lock for all removals, or can take it.
    OfRollout,
    /// A removal can take it for itself.
    Free,
    /// Someone else has it, or comes first.
    NotFree(Obstacle),
}

/// What a cycle would do about removals and their lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemovalOutlook {
    /// It would take the lock for the rollout, or give up a place that nobody needs any more.
    pub settles_lock: bool,
    pub removes: bool,
}

/// What a cycle does to the lock, beside its removals.
pub struct Settled {
    pub changes: Vec<LockChange>,
    /// Something of that is new: a lock was taken, or somebody began to wait.
    pub is_new: bool,
}

impl<'a> Removals<'a> {
    pub fn new(rollout: Option<&'a RolloutRecord>, locks: &'a Locks, now: Timestamp) -> Self {
        let rollout = rollout.filter(|rollout| rollout.is_moving());
        let access = match locks.may_take(KIND, for_cycle(waiter(rollout)), now) {
            Ok(()) if rollout.is_some() => Access::OfRollout,
            Ok(()) => Access::Free,
            Err(obstacle) => Access::NotFree(obstacle),
        };
        Self { rollout, locks, now, access, changes: Vec::new(), is_new: false }
    }

    /// `planned`: rooms are to go.
    pub fn outlook(&self, planned: bool) -> RemovalOutlook {
        let has_place = |holder| self.locks.waits(KIND, holder).is_some();
        let (settles_lock, removes) = match self.access {
            Access::OfRollout => (self.locks.held_by(KIND, waiter(self.rollout)).is_none(), planned),
            Access::Free | Access::NotFree(_) if !planned => (has_place(Holder::HealthController), false),
            Access::Free => (false, true),
            // A cycle could only find again what waits in the order of the lock already.
            Access::NotFree(_) => (false, !has_place(waiter(self.rollout))),
        };
        RemovalOutlook { settles_lock, removes }
    }

    /// Whether this removal may begin, under the rollout's lock or with its own. If not, whoever removes gets in line.
    pub fn begin(&mut self, removal: Holder, reason: &str) -> Result<(), Obstacle> {
        match &self.access {
            Access::OfRollout => Ok(()),
            Access::Free => {
                let reason = reason.to_owned();
                self.changes.push(LockChange::Take {
                    kind: KIND,
                    taker: for_cycle(removal),
                    reason: reason.clone(),
                });
                // The next removal of the same cycle finds it taken.
                let (token, acquired_at, expires_at) = (Token(0), self.now, None);
                let taken = Lock { kind: KIND, holder: removal, reason, token, acquired_at, expires_at };
                self.access = Access::NotFree(Obstacle::Held(taken));
                Ok(())
            }
            Access::NotFree(obstacle) => {
                let holder = waiter(self.rollout);
                self.changes.push(LockChange::Await { kind: KIND, holder });
                self.is_new |= self.locks.waits(KIND, holder).is_none();
                Err(obstacle.clone())
            }
        }
    }

    /// Gives up a place in the order of the lock that is not needed any more. A rollout takes its locks as soon as it can.
    pub fn settle(mut self) -> Settled {
        let holder = Holder::HealthController;
        let awaits =
            |change: &LockChange| matches!(change, LockChange::Await { holder: who, .. } if *who == holder);
        match (&self.access, self.rollout) {
            (Access::OfRollout, Some(rollout)) => self.take_for(rollout),
            _ if self.locks.waits(KIND, holder).is_some() && !self.changes.iter().any(awaits) => {
                self.changes.push(LockChange::StopAwaiting { kind: KIND, holder });
            }
            _ => {}
        }
        Settled { changes: self.changes, is_new: self.is_new }
    }

    /// And the recipe, if that was taken away and is free again.
    fn take_for(&mut self, rollout: &RolloutRecord) {
        let taker = for_cycle(rollout.holder());
        for kind in [LockKind::Config, KIND] {
            let is_missing = self.locks.held_by(kind, taker.holder).is_none();
            if is_missing && self.locks.may_take(kind, taker, self.now).is_ok() {
                self.changes.push(rollout.take_lock(kind, taker.instead_of));
                self.is_new = true;
            }
        }
    }
}

/// Who waits for the lock on behalf of a cycle.
fn waiter(rollout: Option<&RolloutRecord>) -> Holder {
    rollout.map_or(Holder::HealthController, RolloutRecord::holder)
}

/// It takes the place that a cycle may have taken before.
fn for_cycle(holder: Holder) -> Taker {
    Taker { holder, instead_of: Some(Holder::HealthController) }
}
