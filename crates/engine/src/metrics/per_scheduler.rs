//! Metrics of schedulers that go when their scheduler is gone: otherwise a server on which fleets come and go has more of
//! them with every one.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use crate::ports::store::SchedulerRecord;

pub(super) type Labels = Vec<(&'static str, String)>;

const SCHEDULER: &str = "scheduler";

/// v10's, in milliseconds.
pub(super) const LATENCY_BUCKETS_MS: [f64; 11] =
    [5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 5000.0, 10000.0];

/// The labels that almost all metrics of a scheduler have.
pub(super) fn fleet_labels(game: &str, scheduler: &str) -> Labels {
    vec![("game", game.to_owned()), (SCHEDULER, scheduler.to_owned())]
}

pub(super) fn labels_of(scheduler: &SchedulerRecord) -> Labels {
    fleet_labels(&scheduler.recipe.game, scheduler.name.as_str())
}

pub(super) fn and(mut labels: Labels, name: &'static str, value: impl Into<String>) -> Labels {
    labels.push((name, value.into()));
    labels
}

/// A family that knows which label sets belong to which scheduler.
pub(super) struct PerScheduler<M> {
    family: Family<Labels, M, fn() -> M>,
    known: Mutex<BTreeMap<String, BTreeSet<Labels>>>,
}

/// How a metric of one label set begins.
pub(super) trait Begin {
    fn begin() -> Self;
}

impl Begin for Counter {
    fn begin() -> Self {
        Self::default()
    }
}

impl Begin for Gauge {
    fn begin() -> Self {
        Self::default()
    }
}

impl Begin for Histogram {
    fn begin() -> Self {
        Self::new(LATENCY_BUCKETS_MS)
    }
}

impl<M: Begin> Default for PerScheduler<M> {
    fn default() -> Self {
        Self { family: Family::new_with_constructor(M::begin), known: Mutex::default() }
    }
}

impl<M: Clone> PerScheduler<M> {
    pub(super) fn family(&self) -> Family<Labels, M, fn() -> M> {
        self.family.clone()
    }

    pub(super) fn of(&self, labels: &Labels) -> M {
        if let Some(metric) = self.family.get(labels) {
            return metric.clone();
        }
        let mut known = self.known.lock();
        known.entry(scheduler_of(labels)).or_default().insert(labels.clone());
        self.family.get_or_create_owned(labels)
    }

    pub(super) fn remove(&self, labels: &Labels) {
        if self.family.remove(labels)
            && let Some(known) = self.known.lock().get_mut(&scheduler_of(labels))
        {
            known.remove(labels);
        }
    }
}

fn scheduler_of(labels: &Labels) -> String {
    let scheduler = labels.iter().find(|(name, _)| *name == SCHEDULER);
    scheduler.map(|(_, scheduler)| scheduler.clone()).unwrap_or_default()
}

/// Whatever is told of schedulers.
pub(super) trait Forgetful {
    /// Drops what belongs to schedulers for which this says no.
    fn keep(&self, is_kept: &dyn Fn(&str) -> bool);
}

impl<M: Clone> Forgetful for PerScheduler<M> {
    fn keep(&self, is_kept: &dyn Fn(&str) -> bool) {
        self.known.lock().retain(|scheduler, labels| {
            let kept = is_kept(scheduler);
            if !kept {
                for labels in &*labels {
                    self.family.remove(labels);
                }
            }
            kept
        });
    }
}
