//! Named locks, and who waits for them.

use maestro_core::guards;
use maestro_core::invariant::Invariant;
use maestro_core::lock::{Holder, Lock, LockKind, Locks, Waiter};
use maestro_core::operation::{OperationId, Token};
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::{Timestamp, after};
use maestro_engine::ports::store::{NewLock, Refusal};

use super::state::State;

impl State {
    pub(super) fn locks(&self, scheduler: &SchedulerName) -> Locks {
        let held = LockKind::ALL.into_iter().filter_map(|kind| self.locks.get(&(scheduler.clone(), kind)));
        let mut waiters: Vec<_> = self.waiters_of(scheduler).collect();
        waiters.sort_by_key(|((_, _, number), _)| *number);
        Locks {
            held: held.cloned().collect(),
            waiters: waiters.into_iter().map(|(_, waiter)| waiter).collect(),
        }
    }

    pub(super) fn check_lock(
        &self,
        scheduler: &SchedulerName,
        kind: LockKind,
        token: Token,
    ) -> Result<(), Refusal> {
        match self.locks.get(&(scheduler.clone(), kind)) {
            Some(lock) if lock.token == token => Ok(()),
            _ => Err(Refusal::LockLost { scheduler: scheduler.clone(), kind }),
        }
    }

    pub(super) fn take_lock(&mut self, new: NewLock, now: Timestamp) -> Result<(), Refusal> {
        let NewLock { scheduler, kind, taker, reason, ttl } = new;
        let expires_at = ttl.map(|ttl| after(now, ttl));
        self.existing(&scheduler)?;
        let locks = self.locks(&scheduler);
        locks.may_take(kind, taker, now).map_err(|obstacle| Refusal::LockHeld(Box::new(obstacle)))?;
        let holder = taker.holder;
        let lock = match locks.held_by(kind, holder) {
            Some(own) => Lock { reason, expires_at, ..own.clone() },
            None => {
                let token = self.next_token();
                Lock { kind, holder, reason, token, acquired_at: now, expires_at }
            }
        };
        self.locks.put((scheduler.clone(), kind), lock);
        for holder in [Some(holder), taker.instead_of].into_iter().flatten() {
            self.stop_awaiting(&scheduler, kind, holder);
        }
        Ok(())
    }

    pub(super) fn await_lock(
        &mut self,
        scheduler: &SchedulerName,
        waiter: Waiter,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        self.existing(scheduler)?;
        let locks = self.locks(scheduler);
        let place = locks.waits(waiter.kind, waiter.holder);
        if place.is_none_or(|place| place.until <= now) {
            self.stop_awaiting(scheduler, waiter.kind, waiter.holder);
            self.last_sequence += 1;
            self.waiters.put((scheduler.clone(), waiter.kind, self.last_sequence), waiter);
        }
        Ok(())
    }

    pub(super) fn stop_awaiting(&mut self, scheduler: &SchedulerName, kind: LockKind, holder: Holder) {
        self.forget_waiters(scheduler, |waiter| waiter.kind == kind && waiter.holder == holder);
    }

    pub(super) fn release_lock(&mut self, scheduler: &SchedulerName, kind: LockKind, holder: Holder) {
        let key = (scheduler.clone(), kind);
        if self.locks.get(&key).is_some_and(|lock| lock.holder == holder) {
            self.locks.remove(&key);
        }
    }

    pub(super) fn revoke_lock(
        &mut self,
        scheduler: &SchedulerName,
        kind: LockKind,
        token: Token,
    ) -> Result<(), Refusal> {
        self.check_lock(scheduler, kind, token)?;
        self.locks.remove(&(scheduler.clone(), kind));
        Ok(())
    }

    /// An operation that ended holds nothing and waits for nothing.
    pub(super) fn free_locks_of(&mut self, scheduler: &SchedulerName, operation: OperationId) {
        if !guards::stands(Invariant::NoLockLeft) {
            return;
        }
        for kind in LockKind::ALL {
            let key = (scheduler.clone(), kind);
            if self.locks.get(&key).is_some_and(|lock| lock.holder.operation() == Some(operation)) {
                self.locks.remove(&key);
            }
        }
        self.forget_waiters(scheduler, |waiter| waiter.holder.operation() == Some(operation));
    }

    pub(super) fn forget_locks(&mut self, scheduler: &SchedulerName) {
        for kind in LockKind::ALL {
            self.locks.remove(&(scheduler.clone(), kind));
        }
        self.forget_waiters(scheduler, |_| true);
    }

    pub(super) fn renew_locks(&mut self, scheduler: &SchedulerName, until: Timestamp) {
        for kind in LockKind::ALL {
            let key = (scheduler.clone(), kind);
            let Some(lock) = self.locks.get(&key) else { continue };
            if lock.expires_at.is_some() && self.is_unfinished(lock.holder) {
                self.locks.change(&key, |lock| lock.expires_at = Some(until));
            }
        }
    }

    fn is_unfinished(&self, holder: Holder) -> bool {
        let queued = holder.operation().and_then(|id| self.operations.get(&id));
        queued.is_some_and(|queued| !queued.operation.status.is_final())
    }

    fn forget_waiters(&mut self, scheduler: &SchedulerName, which: impl Fn(&Waiter) -> bool) {
        let gone: Vec<_> = self.waiters_of(scheduler).filter(|(_, waiter)| which(waiter)).collect();
        for (key, _) in gone {
            self.waiters.remove(&key);
        }
    }

    fn waiters_of(
        &self,
        scheduler: &SchedulerName,
    ) -> impl Iterator<Item = ((SchedulerName, LockKind, u64), Waiter)> {
        let (first, last) = (LockKind::Config, LockKind::Panic);
        let bounds = (scheduler.clone(), first, 0)..=(scheduler.clone(), last, u64::MAX);
        self.waiters.range(bounds).map(|(key, waiter)| (key.clone(), waiter.clone()))
    }
}
