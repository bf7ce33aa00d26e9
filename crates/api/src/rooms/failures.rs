//! Counts failed pings by scheduler, without letting clients invent label values: a name that is no scheduler's is counted as
//! `unknown`. The counts of a scheduler are removed with it.

use std::collections::BTreeMap;
use std::time::Duration;

use maestro_engine::Engine;
use maestro_engine::services::SchedulerFilter;
use parking_lot::Mutex;
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
    /// All schedulers by name; those of which a ping has failed have a counter.
    counters: BTreeMap<String, Option<Counter>>,
    looked_at: Option<Instant>,
}

impl Failures {
    pub(super) fn new(metrics: Metrics) -> Self {
        Self { unknown: metrics.failed_pings("unknown"), metrics, known: Mutex::default() }
    }

    pub(super) async fn count(&self, engine: &Engine, scheduler: &str) {
        if self.may_look() {
            self.look(engine).await;
        }
        match self.known.lock().counters.get_mut(scheduler) {
            Some(counter) => counter.get_or_insert_with(|| self.metrics.failed_pings(scheduler)).inc(),
            None => self.unknown.inc(),
        };
    }

    /// True for one caller in each period, who then looks for all.
    fn may_look(&self) -> bool {
        let now = Instant::now();
        let mut known = self.known.lock();
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
        let mut known = self.known.lock();
        let mut gone = std::mem::take(&mut known.counters);
        for scheduler in schedulers {
            let counter = gone.remove(scheduler.name.as_str()).flatten();
            known.counters.insert(scheduler.name.to_string(), counter);
        }
        for (name, _) in gone.into_iter().filter(|(_, counter)| counter.is_some()) {
            self.metrics.forget_failed_pings(&name);
        }
    }
}
