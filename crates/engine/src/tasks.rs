//! The only place where the engine spawns. A task that panics is seen and counted, never lost.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use tokio::task::{AbortHandle, JoinHandle};

/// Spawns named tasks and remembers which of them panicked.
#[derive(Clone, Default)]
pub struct Tasks {
    panicked: Arc<Mutex<Vec<String>>>,
    running: Arc<Mutex<Vec<AbortHandle>>>,
}

impl Tasks {
    #[expect(clippy::disallowed_methods, reason = "the one place that spawns")]
    pub fn spawn(
        &self,
        name: impl Into<String>,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> JoinHandle<()> {
        let name = name.into();
        let panicked = self.panicked.clone();
        let task = tokio::spawn(async move {
            let outcome = std::panic::AssertUnwindSafe(future).catch_unwind().await;
            if outcome.is_err() {
                tracing::error!(task = name, "task panicked");
                panicked.lock().unwrap_or_else(PoisonError::into_inner).push(name);
            }
        });
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|task| !task.is_finished());
        running.push(task.abort_handle());
        task
    }

    /// Drops all tasks where they stand, as a crash does: how a simulation kills an engine.
    pub fn abort_all(&self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        for task in running.drain(..) {
            task.abort();
        }
    }

    /// Names of the tasks that panicked so far: a simulation fails on any.
    pub fn panicked(&self) -> Vec<String> {
        self.panicked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
