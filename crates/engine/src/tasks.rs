//! The only place where the engine spawns. A task that panics is seen and counted, never lost.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use tokio::task::JoinHandle;

/// Spawns named tasks and remembers which of them panicked.
#[derive(Clone, Default)]
pub struct Tasks {
    panicked: Arc<Mutex<Vec<String>>>,
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
        tokio::spawn(async move {
            let outcome = std::panic::AssertUnwindSafe(future).catch_unwind().await;
            if outcome.is_err() {
                tracing::error!(task = name, "task panicked");
                panicked.lock().unwrap_or_else(PoisonError::into_inner).push(name);
            }
        })
    }

    /// Names of the tasks that panicked so far: a simulation fails on any.
    pub fn panicked(&self) -> Vec<String> {
        self.panicked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
