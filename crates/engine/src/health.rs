//! What is wrong with this process, by component: what `/readyz` says.
//!
//! Components report for themselves; whoever reports a problem clears it. Shared by everything in one process, also by
//! adapters that are opened before the engine.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Cheap to clone; all clones are one.
#[derive(Debug, Clone, Default)]
pub struct Health(Arc<Mutex<BTreeMap<String, Problem>>>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Problem {
    /// The process cannot do its work. Otherwise it can, except for a part of it, such as one scheduler.
    is_fatal: bool,
    why: String,
    /// When it is over, unless it is reported again before. `None`: when it is cleared.
    until: Option<Instant>,
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
        self.report(component.into(), true, why.into());
    }

    /// The process is ready all the same; the problem is named until it is cleared.
    pub fn degraded(&self, component: impl Into<String>, why: impl Into<String>) {
        self.report(component.into(), false, why.into());
    }

    /// The component works. Cheap if it did before.
    pub fn clear(&self, component: &str) {
        if self.0.lock().remove(component).is_some() {
            tracing::info!(component, "healthy again");
        }
    }

    /// The component works, and has to go on for so long to be trusted again.
    pub fn clear_in(&self, component: &str, delay: Duration) {
        if let Some(problem) = self.0.lock().get_mut(component) {
            problem.until = Some(Instant::now() + delay);
        }
    }

    pub fn readiness(&self) -> Readiness {
        let now = Instant::now();
        let mut problems = self.0.lock();
        problems.retain(|_, problem| problem.until.is_none_or(|until| now < until));
        let told = |(component, problem): (&String, &Problem)| format!("{component}: {}", problem.why);
        Readiness {
            is_ready: problems.values().all(|problem| !problem.is_fatal),
            problems: problems.iter().map(told).collect(),
        }
    }

    /// Logged when it is news: a store that fails is reported with every write.
    fn report(&self, component: String, is_fatal: bool, why: String) {
        let problem = Problem { is_fatal, why, until: None };
        let mut problems = self.0.lock();
        if problems.get(&component) != Some(&problem) {
            let severity = if is_fatal { "not ready" } else { "degraded" };
            tracing::warn!(component, severity, why = problem.why, "unhealthy");
            problems.insert(component, problem);
        }
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
        health.not_ready("store", "file is gone");
        check(&health, false, &["store: file is gone", "worker of arena: panicked"]);
        health.clear("store");
        health.clear("store");
        check(&health, true, &["worker of arena: panicked"]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_works_again_is_trusted_after_a_while() {
        let health = Health::default();
        let delay = Duration::from_secs(10);
        health.not_ready("observer", "panicked");
        health.clear_in("observer", delay);
        tokio::time::advance(delay / 2).await;
        check(&health, false, &["observer: panicked"]);
        // Once more: the time begins anew.
        health.not_ready("observer", "panicked again");
        tokio::time::advance(delay).await;
        check(&health, false, &["observer: panicked again"]);
        health.clear_in("observer", delay);
        tokio::time::advance(delay).await;
        check(&health, true, &[]);
        health.clear_in("observer", delay);
        check(&health, true, &[]);
    }
}
