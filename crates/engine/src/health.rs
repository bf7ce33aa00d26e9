//! What is wrong with this process, by component: what `/readyz` says.
//!
//! Components report for themselves; whoever reports a problem clears it. Shared by everything in one process, also by
//! adapters that are opened before the engine.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Cheap to clone; all clones are one.
#[derive(Debug, Clone, Default)]
pub struct Health(Arc<Mutex<BTreeMap<String, Problem>>>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Problem {
    severity: Severity,
    why: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Severity {
    /// The process cannot do its work.
    NotReady,
    /// It can, except for a part of it, such as one scheduler.
    Degraded,
}

/// The health of the whole process at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Readiness {
    pub is_ready: bool,
    /// `component: why`, by component.
    pub problems: Vec<String>,
}

impl Health {
    /// The process is not ready until this component is cleared. Reported again, the newer reason counts.
    pub fn not_ready(&self, component: impl Into<String>, why: impl Into<String>) {
        self.report(component.into(), Severity::NotReady, why.into());
    }

    /// The process is ready all the same; the problem is named until it is cleared.
    pub fn degraded(&self, component: impl Into<String>, why: impl Into<String>) {
        self.report(component.into(), Severity::Degraded, why.into());
    }

    /// The component works. Cheap if it did before.
    pub fn clear(&self, component: &str) {
        if self.lock().remove(component).is_some() {
            tracing::info!(component, "healthy again");
        }
    }

    pub fn readiness(&self) -> Readiness {
        let problems = self.lock();
        Readiness {
            is_ready: problems.values().all(|problem| problem.severity != Severity::NotReady),
            problems: problems
                .iter()
                .map(|(component, problem)| format!("{component}: {}", problem.why))
                .collect(),
        }
    }

    /// Logged when it is news: a store that fails is reported with every write.
    fn report(&self, component: String, severity: Severity, why: String) {
        let problem = Problem { severity, why };
        let mut problems = self.lock();
        if problems.get(&component) != Some(&problem) {
            tracing::warn!(component, %severity, why = problem.why, "unhealthy");
            problems.insert(component, problem);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Problem>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotReady => "not ready",
            Self::Degraded => "degraded",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(health: &Health, is_ready: bool, problems: &[&str]) {
        let problems = problems.iter().map(|&problem| problem.to_owned()).collect();
        assert_eq!(health.readiness(), Readiness { is_ready, problems });
    }

    #[test]
    fn a_process_is_ready_unless_a_component_says_that_it_is_not() {
        let health = Health::default();
        check(&health, true, &[]);
        health.degraded("worker of arena", "panicked");
        check(&health, true, &["worker of arena: panicked"]);
        health.not_ready("store", "disk is full");
        check(&health, false, &["store: disk is full", "worker of arena: panicked"]);
        health.clone().not_ready("store", "file is gone");
        check(&health, false, &["store: file is gone", "worker of arena: panicked"]);
        health.clear("store");
        health.clear("store");
        check(&health, true, &["worker of arena: panicked"]);
    }
}
