//! Asks a server again and again until something has ended.

use std::time::{Duration, Instant};

use super::{Client, Exit, Failure, Progress};

/// Often enough to look alive, rare enough for a hundred people to watch at once.
pub(super) const INTERVAL: Duration = Duration::from_millis(250);

/// A server that restarts is back well within this, and goes on with its operations.
const UNREACHABLE_MAX: Duration = Duration::from_secs(15);

/// What is asked for, and until when.
pub(super) struct Poll<'a, T> {
    pub(super) client: &'a Client,
    pub(super) ask: &'a dyn Fn(&Client) -> Result<T, Failure>,
    pub(super) timeout: Option<Duration>,
    pub(super) interval: Duration,
}

impl<T> Poll<'_, T> {
    /// Returns the first answer that `is_last` accepts; `None` if the time is up before there is one.
    pub(super) fn run(
        &self,
        mut progress: Progress,
        mut is_last: impl FnMut(&T, &mut Progress) -> Result<bool, Failure>,
    ) -> Result<Option<T>, Failure> {
        let started = Instant::now();
        let mut last_reached = started;
        loop {
            match (self.ask)(&self.client_within(started)) {
                Ok(answer) => {
                    last_reached = Instant::now();
                    progress.reached();
                    if is_last(&answer, &mut progress)? {
                        return Ok(Some(answer));
                    }
                }
                Err(failure) if is_passing(&failure) && last_reached.elapsed() < UNREACHABLE_MAX => {
                    progress.unreachable(&failure.message);
                }
                Err(failure) => return Err(failure),
            }
            if self.left(started).is_zero() {
                return Ok(None);
            }
            std::thread::sleep(self.interval.min(self.left(started)));
        }
    }

    fn left(&self, started: Instant) -> Duration {
        self.timeout.map_or(Duration::MAX, |timeout| timeout.saturating_sub(started.elapsed()))
    }

    fn client_within(&self, started: Instant) -> Client {
        // At least one poll's worth: a request without any time could never be answered.
        let left = self.left(started).max(INTERVAL);
        self.client.within(self.client.timeout().min(left))
    }
}

/// Whether a server that restarts may look like this from outside.
fn is_passing(failure: &Failure) -> bool {
    matches!(failure.exit, Exit::Unreachable | Exit::TimedOut)
}
