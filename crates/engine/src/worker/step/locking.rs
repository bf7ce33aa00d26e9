//! The named locks of a step: they are taken before it, or waited for.

use maestro_core::lock::{Lock, LockKind, Obstacle, Taker};
use maestro_core::time::after;

use crate::operations::{Executor, Result, Step, StepError, Work};
use crate::ports::store::{Change, Refusal, StoreError};

use super::Stepper;

impl Stepper {
    pub(super) fn take(&self, work: &Work, kind: LockKind) -> Change {
        let taker = Taker::of(work.operation.holder());
        self.engine.take_lock(&work.scheduler.name, kind, taker, &work.operation.reason)
    }

    /// Takes the locks that the next step needs, and has the step's write checked against all that the operation
    /// holds or works under, and against a rollback that began meanwhile. `Some`: one is not free, and this is to be
    /// done instead.
    pub(super) async fn hold_locks(&self, executor: &dyn Executor, work: &mut Work) -> Result<Option<Step>> {
        work.guard.operation = Some(work.operation.id);
        let needs = executor.needs(work).await?;
        for need in &needs {
            if work.has_lock(*need) {
                self.leave_order(work, need.kind).await?;
                continue;
            }
            match self.commit_under(&work.guard, "take lock", vec![self.take(work, need.kind)]).await {
                Ok(()) => {}
                Err(StepError::Store(StoreError::Refused(Refusal::LockHeld(obstacle)))) => {
                    executor.before_it_waits(work).await?;
                    return self.wait_for_lock(work, need.kind, &obstacle).map(Some);
                }
                Err(error) => return Err(error),
            }
            work.locks = self.engine.ports.store.locks(&work.scheduler.name).await?;
        }
        let holder = work.operation.holder();
        let counts =
            |lock: &&Lock| lock.holder == holder || needs.iter().any(|need| need.is_met_by(lock, holder));
        work.guard.locks =
            work.locks.held.iter().filter(counts).map(|lock| (lock.kind, lock.token)).collect();
        Ok(None)
    }

    /// Who works under a lock that was lent waits for it no more.
    async fn leave_order(&self, work: &Work, kind: LockKind) -> Result {
        let holder = work.operation.holder();
        match work.locks.waits(kind, holder) {
            Some(_) => {
                let leave = Change::StopAwaiting { scheduler: work.scheduler.name.clone(), kind, holder };
                self.commit("leave order", vec![leave]).await
            }
            None => Ok(()),
        }
    }

    /// It takes a place in the order and waits for its turn, for a while.
    fn wait_for_lock(&self, work: &Work, kind: LockKind, obstacle: &Obstacle) -> Result<Step> {
        let now = self.engine.now();
        let place = work.locks.waits(kind, work.operation.holder());
        let deadline = match place {
            Some(place) if place.until <= now => {
                let waited = self.engine.settings.lock_wait_timeout;
                return Err(StepError::Failed(format!("waited {waited} for {obstacle}")));
            }
            Some(place) => place.until,
            None => after(now, self.engine.settings.lock_wait_timeout),
        };
        let until = match obstacle {
            Obstacle::Held(Lock { expires_at: Some(expiry), .. }) => deadline.min(*expiry),
            Obstacle::Held(_) | Obstacle::Promised(_) => deadline,
        };
        let mut step = Step::park(obstacle.to_string(), until);
        if place.is_none() {
            step.history.push(format!("waiting for {obstacle}"));
        }
        step.changes.push(self.engine.await_lock(&work.scheduler.name, kind, work.operation.holder()));
        Ok(step)
    }
}
