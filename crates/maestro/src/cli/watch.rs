//! Following an operation to its end.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::client::Client;
use super::failure::{Exit, Failure};
use super::json::Json;
use super::output::{note, plain, print};
use super::resource::Resource;

/// Often enough to look alive, rare enough for a hundred people to watch at once.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

const SPINNER_INTERVAL: Duration = Duration::from_millis(100);

/// A server that restarts is back well within this, and goes on with its operations.
const UNREACHABLE_MAX: Duration = Duration::from_secs(15);

/// Which operation, and until when.
pub(super) struct Watch<'a> {
    pub(super) client: &'a Client,
    pub(super) scheduler: &'a str,
    pub(super) operation: &'a str,
    pub(super) timeout: Option<Duration>,
}

impl Watch<'_> {
    /// Waits for the end and returns the server's last answer, `{"operation": …}`.
    pub(super) fn follow(&self, mut progress: Progress) -> Result<Json, Failure> {
        let resource = Resource::new(&["schedulers", self.scheduler, "operations", self.operation]);
        let started = Instant::now();
        let mut last_heard = started;
        let mut status = "pending".to_owned();
        let mut history_seen = 0;
        loop {
            match self.client_within(started).get(&resource, "operation") {
                Ok(answer) => {
                    last_heard = Instant::now();
                    let operation = answer.get("operation");
                    let history = operation.get("executionHistory").items();
                    for event in history.iter().skip(history_seen) {
                        progress.event(event)?;
                    }
                    history_seen = history.len();
                    status = operation.get("status").cell();
                    progress.state(operation);
                    if is_final(&status) {
                        progress.end();
                        return Ok(answer);
                    }
                }
                Err(failure) if is_passing(&failure) && last_heard.elapsed() < UNREACHABLE_MAX => {
                    progress.unreachable(&failure.message);
                }
                Err(failure) => {
                    progress.end();
                    return Err(failure);
                }
            }
            if self.left(started).is_zero() {
                progress.end();
                return Err(self.timed_out(&status));
            }
            std::thread::sleep(POLL_INTERVAL.min(self.left(started)));
        }
    }

    fn left(&self, started: Instant) -> Duration {
        self.timeout
            .map_or(Duration::MAX, |timeout| timeout.saturating_sub(started.elapsed()))
    }

    fn client_within(&self, started: Instant) -> Client {
        // At least one poll's worth: a request without any time could never be answered.
        let left = self.left(started).max(POLL_INTERVAL);
        self.client.within(self.client.timeout().min(left))
    }

    fn timed_out(&self, status: &str) -> Failure {
        let message = format!(
            "operation {id} is still {status} after {timeout:?}; it goes on: maestro operation watch {scheduler} {id}",
            id = self.operation,
            timeout = self.timeout.unwrap_or_default(),
            scheduler = self.scheduler,
        );
        Failure::new(Exit::TimedOut, message)
    }
}

/// Whether a server that restarts may look like this from outside.
fn is_passing(failure: &Failure) -> bool {
    matches!(failure.exit, Exit::Unreachable | Exit::TimedOut)
}

fn is_final(status: &str) -> bool {
    matches!(status, "finished" | "error" | "canceled" | "evicted")
}

/// Success if the operation finished, else a failure that says why it did not.
pub(super) fn verdict(answer: &Json) -> Result<(), Failure> {
    let operation = answer.get("operation");
    let status = operation.get("status").cell();
    if status == "finished" {
        return Ok(());
    }
    let (name, id) = (operation.get("definitionName").cell(), operation.get("id").cell());
    let mut message = format!("{name} {id} ended as {status}: {}", reason(operation));
    // The stored reason may be why it was asked for, not why it ended.
    if let Some(event) = last_event(operation).filter(|event| *event != reason(operation)) {
        message = format!("{message}\nlast event: {}", plain(event));
    }
    Err(Failure::new(Exit::Failed, message))
}

/// The stored reason, or else the last word of the history.
pub(super) fn reason(operation: &Json) -> &str {
    let reason = operation.get("reason").as_str().or_else(|| last_event(operation));
    reason.unwrap_or("no reason was recorded")
}

fn last_event(operation: &Json) -> Option<&str> {
    operation
        .get("executionHistory")
        .items()
        .last()?
        .get("event")
        .as_str()
}

/// `2026-11-15T09:06:53Z Created`.
pub(super) fn history_line(event: &Json) -> String {
    plain(&format!(
        "{} {}",
        event.get("createdAt").cell(),
        event.get("event").cell()
    ))
}

/// What a person sees meanwhile.
pub(super) enum Progress {
    /// On a terminal: one line that shows the newest event.
    Spinner(ProgressBar),
    /// Elsewhere: each event once, on stderr.
    Notes { said_unreachable: bool },
    /// The events are the result: each once, on stdout.
    Lines,
}

impl Progress {
    /// For a command whose result is something else.
    pub(super) fn beside_result() -> Self {
        if !std::io::stderr().is_terminal() {
            return Self::Notes {
                said_unreachable: false,
            };
        }
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(SPINNER_INTERVAL);
        Self::Spinner(bar)
    }

    fn event(&mut self, event: &Json) -> Result<(), Failure> {
        match self {
            Self::Spinner(bar) => bar.set_message(plain(&event.get("event").cell())),
            Self::Notes { said_unreachable } => {
                *said_unreachable = false;
                note(&history_line(event));
            }
            Self::Lines => print(&history_line(event))?,
        }
        Ok(())
    }

    /// What the operation waits for now is news too, but not history.
    fn state(&mut self, operation: &Json) {
        if let (Self::Spinner(bar), Some(waiting_for)) = (self, operation.get("waitingFor").as_str()) {
            bar.set_message(format!("waiting for {}", plain(waiting_for)));
        }
    }

    fn unreachable(&mut self, message: &str) {
        let line = format!("{message}; trying again");
        match self {
            Self::Spinner(bar) => bar.set_message(line),
            Self::Notes { said_unreachable } if *said_unreachable => {}
            Self::Notes { said_unreachable } => {
                *said_unreachable = true;
                note(&line);
            }
            Self::Lines => note(&line),
        }
    }

    fn end(&mut self) {
        match self {
            Self::Spinner(bar) => bar.finish_and_clear(),
            Self::Notes { .. } | Self::Lines => {}
        }
    }
}
