//! How long a worker may believe that it owns a scheduler, by its own clock that never jumps back. Longer than the
//! store says it never is: it counts from before the request that renewed it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Cheap to clone; all clones are one.
#[derive(Debug, Clone)]
pub(crate) struct Tenure(Arc<Mutex<Instant>>);

impl Tenure {
    pub(super) fn until(end: Instant) -> Self {
        Self(Arc::new(Mutex::new(end)))
    }

    /// Renewed by a request that was sent at `asked_at`.
    pub(super) fn renewed(&self, asked_at: Instant, ttl: Duration) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = asked_at + ttl;
    }

    pub(crate) fn is_over(&self) -> bool {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) <= Instant::now()
    }
}
