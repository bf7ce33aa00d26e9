//! Locks: who holds and awaits them, and a forced release.

use maestro_core::lock::{Holder, Lock, LockKind, Locks, Waiter};
use maestro_core::operation::{HistoryEvent, Operation, OperationId, Rollback, RollbackEnd, Token};
use maestro_core::rollout::RolloutEvent;
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::{Timestamp, age};

use crate::ports::store::{Change, SchedulerRecord, Transaction};
use crate::rollouts::RolloutWrite;
use crate::{Engine, Error, Result};

use super::{ATTEMPTS, changes_too_fast};

/// A lock as people see it.
#[derive(Debug, Clone)]
pub struct LockView {
    pub kind: LockKind,
    pub key: String,
    /// `None`: it is free. An expired lock is shown as free, although its row stays until somebody takes it.
    pub held: Option<Lock>,
    /// Those whose place still counts, first come first served.
    pub waiters: Vec<Waiter>,
    pub seen_at: Timestamp,
}

/// A forced release, as it is recorded.
struct Release<'a> {
    lock: &'a Lock,
    user: &'a str,
    reason: &'a str,
}

impl Engine {
    /// All kinds that are listed, held or free.
    pub async fn locks(&self, name: &str) -> Result<Vec<LockView>> {
        let record = self.scheduler(name).await?;
        let locks = self.shown_locks(&record.name).await?;
        let now = self.now();
        let view = |kind: LockKind| LockView {
            kind,
            key: kind.key(&record.name),
            held: locks.held(kind).filter(|lock| !lock.is_over(now)).cloned(),
            waiters: locks.waiters_of(kind, now).cloned().collect(),
            seen_at: now,
        };
        Ok(LockKind::LISTED.into_iter().map(view).collect())
    }

    /// Takes a lock from whoever holds it, in one transaction with the end of what it protected: an operation is
    /// rolled back and ends as `error`, a rollout is paused. Nothing happens to a free one. With a token, only the lock that
    /// has this one is released.
    ///
    /// One whose time is over and that nobody took is released too: until then its holder may go on.
    pub async fn release_lock(
        &self,
        name: &str,
        key: &str,
        token: Option<u64>,
        user: &str,
        reason: &str,
    ) -> Result {
        for _ in 0..ATTEMPTS {
            let record = self.scheduler(name).await?;
            let kind = kind_of(key, &record.name)?;
            let locks = self.shown_locks(&record.name).await?;
            let Some(lock) = locks.held(kind) else { return Ok(()) };
            if token.is_some_and(|token| Token(token) != lock.token) {
                let is = lock.token.0;
                let text = format!("the lock {kind} of scheduler {name} now has the fencing token {is}");
                return Err(Error::Conflict(text));
            }
            let release = Release { lock, user, reason };
            let transaction = self.forced_release(&record, &release).await?;
            if self.accepted(transaction).await? {
                self.lock_was_released(&record, &release);
                return Ok(());
            }
        }
        Err(changes_too_fast(name))
    }

    async fn forced_release(&self, record: &SchedulerRecord, release: &Release<'_>) -> Result<Transaction> {
        let Lock { kind, holder, token, .. } = *release.lock;
        let scheduler = record.name.clone();
        let mut changes = match kind {
            // Its holder has it as long as it goes on.
            LockKind::Termination => Vec::new(),
            _ => vec![Change::RevokeLock { scheduler, kind, token }],
        };
        match holder {
            Holder::Operation { id, .. } => {
                let operation = self.ports.store.operation(&record.name, id).await?;
                let unfinished = operation.filter(|operation| !operation.status.is_final());
                changes.extend(unfinished.map(|operation| self.roll_back(&operation, release)));
            }
            Holder::Rollout(_) => {
                let why = release.to_string();
                let event = RolloutEvent::LockReleased(release.lock, &why);
                let RolloutWrite { update, changes: released, .. } =
                    self.rollout_write(record, event, &Locks::default())?;
                changes.extend(released);
                changes.push(Change::UpdateScheduler(update));
            }
            // It waits, and never holds.
            Holder::HealthController => {}
        }
        Ok(Transaction::new("force lock", &record.name, changes))
    }

    fn roll_back(&self, operation: &Operation, release: &Release<'_>) -> Change {
        let why = release.to_string();
        let events = match &operation.rollback {
            None => vec![format!("operation execution failed: {why}"), "Starting operation rollback".into()],
            // It rolls back already, for a reason of its own.
            Some(_) => vec![why.clone()],
        };
        let at = self.now();
        Change::RollBack {
            operation: operation.id,
            rollback: Rollback { then: RollbackEnd::Error, why },
            history: events.into_iter().map(|event| HistoryEvent { at, event }).collect(),
        }
    }

    fn lock_was_released(&self, record: &SchedulerRecord, release: &Release<'_>) {
        let Release { lock, user, reason } = release;
        self.metrics.lock_forced(record, lock.kind);
        let operation_id = lock.holder.operation().map(|id: OperationId| id.to_string());
        tracing::warn!(
            scheduler_name = %record.name, lock = %lock.kind, holder = %lock.holder, operation_id,
            token = lock.token.0, user, reason, "lock released by force"
        );
        // Others may wait for it, its holder has to roll back, and a rollout that is paused changes the plan.
        self.ports.wake.queue_changed(&record.name);
        self.ports.wake.room_changed(record.name.as_str());
    }
}

/// A kind by its name, or by the full key of this scheduler. The panic lock is not for people.
fn kind_of(key: &str, scheduler: &SchedulerName) -> Result<LockKind> {
    let is_meant = |kind: &LockKind| kind.as_str() == key || kind.key(scheduler) == key;
    LockKind::LISTED.into_iter().find(is_meant).ok_or_else(|| Error::Invalid("invalid lock key".into()))
}

impl LockView {
    /// Whole seconds, rounded up, so that what is held never looks free: 0 while it is free, -1 if it ends with its
    /// holder and not by time.
    pub fn ttl_in_sec(&self) -> i32 {
        match self.held.as_ref().map(|lock| lock.expires_at) {
            None => 0,
            Some(None) => -1,
            Some(Some(at)) => {
                i32::try_from(age(at, self.seen_at).0.div_ceil(1000)).unwrap_or(i32::MAX).max(1)
            }
        }
    }
}

impl std::fmt::Display for Release<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the lock {} was released by {}: {}", self.lock.kind, self.user, self.reason)
    }
}
