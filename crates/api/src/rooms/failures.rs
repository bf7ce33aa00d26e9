//! Counts failed pings by scheduler, without letting clients invent label values: a name that is no scheduler's is
//! counted as `unknown`.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use maestro_engine::Engine;
use maestro_engine::services::SchedulerFilter;
use prometheus_client::metrics::counter::Counter;
use tokio::time::Instant;

use crate::metrics::Metrics;

/// How old the list of schedulers may be. Between two looks a failed ping costs no query, whatever its name.
const KNOWN_FOR: Duration = Duration::from_secs(10);

pub(super) struct Failures {
    metrics: Metrics,
    unknown: Counter,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    counters: BTreeMap<String, Counter>,
    looked_at: Option<Instant>,
}

impl Failures {
    pub(super) fn new(metrics: Metrics) -> Self {
        Self { unknown: metrics.failed_pings("unknown"), metrics, known: Mutex::default() }
    }

    pub(super) async fn count(&self, engine: &Engine, scheduler: &str) {
        if !self.is_known(scheduler) && self.may_look() {
            self.look(engine).await;
        }
        let known = self.lock();
        known.counters.get(scheduler).unwrap_or(&self.unknown).inc();
    }

    fn is_known(&self, scheduler: &str) -> bool {
        self.lock().counters.contains_key(scheduler)
    }

    /// True for one caller in each period, who then looks for all.
    fn may_look(&self) -> bool {
        let now = Instant::now();
        let mut known = self.lock();
        let may = known.looked_at.is_none_or(|before| now.duration_since(before) >= KNOWN_FOR);
        if may {
            known.looked_at = Some(now);
        }
        may
    }

    async fn look(&self, engine: &Engine) {
        // A store that does not answer is reported where it is needed; here the old list will do.
        let Ok(schedulers) = engine.schedulers(&SchedulerFilter::default()).await else {
            return;
        };
        let mut known = self.lock();
        let mut gone = std::mem::take(&mut known.counters);
        for scheduler in schedulers {
            let name = scheduler.name.as_str();
            let counter = gone.remove(name).unwrap_or_else(|| self.metrics.failed_pings(name));
            known.counters.insert(name.to_owned(), counter);
        }
        for name in gone.into_keys() {
            self.metrics.forget_failed_pings(&name);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
