//! Metrics of named locks: how long they are held, how many wait for them, how often people released one.

use maestro_core::lock::{LockKind, Locks};
use maestro_core::time::{Timestamp, age};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::ports::store::SchedulerRecord;

use super::per_scheduler::{OfScheduler, PerScheduler};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
struct LockLabels {
    game: String,
    scheduler: String,
    lock: &'static str,
}

#[derive(Default)]
pub(crate) struct LockMetrics {
    forced: PerScheduler<LockLabels, Counter>,
    held_seconds: Family<LockLabels, Gauge>,
    waiting: Family<LockLabels, Gauge>,
}

impl LockMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("maestro_locks_forced", "Locks that people released", self.forced.family());
        registry.register(
            "maestro_locks_held_seconds",
            "Seconds since a lock was taken that is held",
            self.held_seconds.clone(),
        );
        registry.register("maestro_locks_waiting", "Who waits for a lock", self.waiting.clone());
    }

    pub(crate) fn forced(&self, scheduler: &SchedulerRecord, kind: LockKind) {
        self.forced.of(&labels(scheduler, kind)).inc();
    }

    pub(super) fn keep(&self, is_kept: impl Fn(&str) -> bool) {
        self.forced.keep(is_kept);
    }

    /// What was held is held no more, unless it is shown again.
    pub(super) fn clear(&self) {
        self.held_seconds.clear();
        self.waiting.clear();
    }

    pub(super) fn show(&self, scheduler: &SchedulerRecord, locks: &Locks, now: Timestamp) {
        let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        for kind in LockKind::ALL {
            let labels = labels(scheduler, kind);
            if let Some(lock) = locks.held(kind).filter(|lock| !lock.is_over(now)) {
                let seconds = age(now, lock.acquired_at).0 / 1000;
                self.held_seconds.get_or_create(&labels).set(number(seconds));
            }
            let waiting = locks.waiters_of(kind, now).count();
            if waiting > 0 {
                self.waiting.get_or_create(&labels).set(number(waiting as u64));
            }
        }
    }
}

impl OfScheduler for LockLabels {
    fn scheduler(&self) -> &str {
        &self.scheduler
    }
}

fn labels(scheduler: &SchedulerRecord, kind: LockKind) -> LockLabels {
    LockLabels {
        game: scheduler.recipe.game.clone(),
        scheduler: scheduler.name.to_string(),
        lock: kind.as_str(),
    }
}
