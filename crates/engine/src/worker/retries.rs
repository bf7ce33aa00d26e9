//! What operations wait for because something did not answer: said once, and asked again after a while, longer each
//! time, because it will not be the only one to ask.

use std::collections::BTreeMap;
use std::time::Duration;

use maestro_core::operation::{OperationId, Wait};
use maestro_core::time::{Timestamp, after};

pub(super) const FIRST_RETRY: Duration = Duration::from_millis(500);
const LAST_RETRY: Duration = Duration::from_secs(15);

#[derive(Default)]
pub(super) struct RetryState(BTreeMap<OperationId, Obstacle>);

struct Obstacle {
    what: String,
    /// How long it waits the next time.
    retry: Duration,
}

impl RetryState {
    pub(super) fn is_news(&self, operation: OperationId, what: &str) -> bool {
        self.0.get(&operation).is_none_or(|obstacle| obstacle.what != what)
    }

    /// When to ask again.
    pub(super) fn retry(&self, operation: OperationId) -> Duration {
        self.0.get(&operation).map_or(FIRST_RETRY, |obstacle| obstacle.retry)
    }

    pub(super) fn note(&mut self, operation: OperationId, what: String) {
        let retry = longer(self.retry(operation));
        self.0.insert(operation, Obstacle { what, retry });
    }

    pub(super) fn forget(&mut self, operation: OperationId) {
        self.0.remove(&operation);
    }
}

/// Its time is up. After a step back of the clock, one that asks again would wait for as long as that was.
pub(super) fn is_due(wait: &Wait, now: Timestamp) -> bool {
    wait.until <= now || wait.unanswered && wait.until > after(now, LAST_RETRY.into())
}

pub(super) fn longer(retry: Duration) -> Duration {
    (retry * 2).min(LAST_RETRY)
}
