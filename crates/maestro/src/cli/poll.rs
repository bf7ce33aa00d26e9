//! Asks a server again and again until something has ended.

use std::time::{Duration, Instant};

use super::client::Client;
use super::failure::{Exit, Failure};
use super::json::Json;

/// Often enough to look alive, rare enough for a hundred people to watch at once.
pub(super) const INTERVAL: Duration = Duration::from_millis(250);

/// A server that restarts is back well within this, and goes on with its operations.
const UNREACHABLE_MAX: Duration = Duration::from_secs(15);

/// What is asked for, and until when.
pub(super) struct Poll<'a> {
    pub(super) client: &'a Client,
    pub(super) ask: &'a dyn Fn(&Client) -> Result<Json, Failure>,
    pub(super) timeout: Option<Duration>,
    pub(super) interval: Duration,
}

/// Who looks at the answers.
pub(super) trait Observer {
    /// True: this was the last one.
    fn saw(&mut self, answer: &Json) -> Result<bool, Failure>;

    fn unreachable(&mut self, message: &str);

    /// Nothing more will be seen.
    fn end(&mut self);

    fn timed_out(&self, after: Duration) -> Failure;
}

impl Poll<'_> {
    /// Returns the last answer.
    pub(super) fn run(&self, observer: &mut impl Observer) -> Result<Json, Failure> {
        let outcome = self.ask_until_last(observer);
        observer.end();
        outcome
    }

    fn ask_until_last(&self, observer: &mut impl Observer) -> Result<Json, Failure> {
        let started = Instant::now();
        let mut last_heard = started;
        loop {
            match (self.ask)(&self.client_within(started)) {
                Ok(answer) => {
                    last_heard = Instant::now();
                    if observer.saw(&answer)? {
                        return Ok(answer);
                    }
                }
                Err(failure) if is_passing(&failure) && last_heard.elapsed() < UNREACHABLE_MAX => {
                    observer.unreachable(&failure.message);
                }
                Err(failure) => return Err(failure),
            }
            if self.left(started).is_zero() {
                return Err(observer.timed_out(self.timeout.unwrap_or_default()));
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
