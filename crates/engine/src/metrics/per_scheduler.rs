//! Metrics of schedulers that go when their scheduler is gone: otherwise a server on which fleets come and go has more of
//! them with every one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::{Family, MetricConstructor};

/// Labels that name a scheduler.
pub(super) trait OfScheduler:
    Clone + Debug + Eq + Hash + Ord + EncodeLabelSet + Send + Sync + 'static
{
    fn scheduler(&self) -> &str;
}

/// A family that knows which label sets belong to which scheduler.
pub(super) struct PerScheduler<L, M, C = fn() -> M> {
    family: Family<L, M, C>,
    known: Mutex<BTreeMap<String, BTreeSet<L>>>,
}

impl<L: OfScheduler, M: Clone + Default> Default for PerScheduler<L, M> {
    fn default() -> Self {
        Self::new(M::default)
    }
}

impl<L: OfScheduler, M: Clone> PerScheduler<L, M> {
    pub(super) fn new(make: fn() -> M) -> Self {
        Self { family: Family::new_with_constructor(make), known: Mutex::default() }
    }
}

impl<L: OfScheduler, M: Clone, C: MetricConstructor<M> + Clone> PerScheduler<L, M, C> {
    pub(super) fn family(&self) -> Family<L, M, C> {
        self.family.clone()
    }

    pub(super) fn of(&self, labels: &L) -> M {
        if let Some(metric) = self.family.get(labels) {
            return metric.clone();
        }
        let mut known = self.known();
        known.entry(labels.scheduler().to_owned()).or_default().insert(labels.clone());
        self.family.get_or_create_owned(labels)
    }

    /// Drops what belongs to schedulers for which this says no.
    pub(super) fn keep(&self, is_kept: impl Fn(&str) -> bool) {
        self.known().retain(|scheduler, labels| {
            let kept = is_kept(scheduler);
            if !kept {
                for labels in &*labels {
                    self.family.remove(labels);
                }
            }
            kept
        });
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, BTreeSet<L>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
