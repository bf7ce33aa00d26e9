//! Named locks, as the engine takes them: changes of a transaction that does something else, too. Who takes what is
//! `docs/locks.md`; the rule for taking one is `maestro_core::lock`.

use maestro_core::lock::{Holder, LockKind, Locks, Taker, Waiter};
use maestro_core::rollout::LockChange;
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::after;

use crate::Engine;
use crate::ports::store::{Change, NewLock, StoreError};

impl Engine {
    /// A rollout's lock ends with the rollout. Any other one is renewed by whoever owns the scheduler.
    pub(crate) fn take_lock(
        &self,
        scheduler: &SchedulerName,
        kind: LockKind,
        taker: Taker,
        reason: &str,
    ) -> Change {
        Change::TakeLock(NewLock {
            scheduler: scheduler.clone(),
            kind,
            taker,
            reason: reason.into(),
            ttl: (!taker.holder.is_rollout()).then_some(self.settings.lock_ttl),
        })
    }

    pub(crate) fn await_lock(&self, scheduler: &SchedulerName, kind: LockKind, holder: Holder) -> Change {
        let since = self.now();
        let until = after(since, self.settings.lock_wait_timeout);
        Change::AwaitLock { scheduler: scheduler.clone(), waiter: Waiter { kind, holder, since, until } }
    }

    pub(crate) fn lock_change(&self, scheduler: &SchedulerName, change: LockChange) -> Change {
        match change {
            LockChange::Take { kind, taker, reason } => self.take_lock(scheduler, kind, taker, &reason),
            LockChange::Release { kind, holder } => {
                Change::ReleaseLock { scheduler: scheduler.clone(), kind, holder }
            }
            LockChange::Await { kind, holder } => self.await_lock(scheduler, kind, holder),
            LockChange::StopAwaiting { kind, holder } => {
                Change::StopAwaiting { scheduler: scheduler.clone(), kind, holder }
            }
        }
    }

    /// All locks as people see them.
    pub(crate) async fn shown_locks(&self, scheduler: &SchedulerName) -> Result<Locks, StoreError> {
        let unfinished = match self.ports.store.unfinished(scheduler).await {
            // What cannot be read is left alone, so it holds nothing.
            Err(StoreError::Unreadable(_)) => Vec::new(),
            found => found?,
        };
        Ok(self.ports.store.locks(scheduler).await?.with_termination(&unfinished))
    }
}
