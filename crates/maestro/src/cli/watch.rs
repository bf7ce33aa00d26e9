//! Following an operation to its end.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::client::Client;
use super::decision;
use super::failure::{Exit, Failure};
use super::json::Json;
use super::output::{note, plain, print};
use super::poll::{self, Observer, Poll};
use super::resource::Resource;

const SPINNER_INTERVAL: Duration = Duration::from_millis(100);

/// Which operation, and until when.
pub(super) struct Watch<'a> {
    pub(super) client: &'a Client,
    pub(super) scheduler: &'a str,
    pub(super) operation: &'a str,
    pub(super) timeout: Option<Duration>,
}

impl Watch<'_> {
    /// Waits for the end and returns the server's last answer, `{"operation": …}`.
    pub(super) fn follow(&self, progress: Progress) -> Result<Json, Failure> {
        let resource = Resource::new(&["schedulers", self.scheduler, "operations", self.operation]);
        let ask = |client: &Client| client.get(&resource, "operation");
        let poll = Poll { client: self.client, ask: &ask, timeout: self.timeout, interval: poll::INTERVAL };
        poll.run(&mut Following { watch: self, progress, status: "pending".to_owned(), history_seen: 0 })
    }
}

/// What was seen of an operation so far.
struct Following<'a> {
    watch: &'a Watch<'a>,
    progress: Progress,
    status: String,
    history_seen: usize,
}

impl Observer for Following<'_> {
    fn saw(&mut self, answer: &Json) -> Result<bool, Failure> {
        let operation = answer.get("operation");
        let history = operation.get("executionHistory").items();
        for event in history.iter().skip(self.history_seen) {
            self.progress.event(event)?;
        }
        self.history_seen = history.len();
        self.status = operation.get("status").cell();
        self.progress.state(operation);
        Ok(is_final(&self.status))
    }

    fn unreachable(&mut self, message: &str) {
        self.progress.unreachable(message);
    }

    fn end(&mut self) {
        self.progress.end();
    }

    fn timed_out(&self, after: Duration) -> Failure {
        let message = format!(
            "operation {id} is still {status} after {after:?}; it goes on: maestro operation watch {scheduler} {id}",
            id = self.watch.operation,
            status = self.status,
            scheduler = self.watch.scheduler,
        );
        Failure::new(Exit::TimedOut, message)
    }
}

fn is_final(status: &str) -> bool {
    matches!(status, "finished" | "error" | "canceled" | "evicted")
}

/// Success if the operation finished, else a failure that says why it did not, and where more is said.
pub(super) fn verdict(answer: &Json) -> Result<(), Failure> {
    let operation = answer.get("operation");
    let status = operation.get("status").cell();
    if status == "finished" {
        return Ok(());
    }
    let [name, id, scheduler] =
        ["definitionName", "id", "schedulerName"].map(|key| operation.get(key).cell());
    let mut message = format!("{name} {id} ended as {status}: {}", plain(cause(operation)));
    if let Some(refusal) = decision::refusal(operation.get("data")) {
        message = format!("{message}\nrefused: {}", plain(refusal));
    }
    let failed_room = operation.get("data").get("attempts").items().last().map(|attempt| attempt.get("room"));
    if let Some(room) = failed_room.and_then(Json::as_str) {
        message = format!("{message}\nits log: maestro room logs {scheduler} {}", plain(room));
    }
    if scheduler != "-" {
        message = format!("{message}\nmore: maestro operation get {scheduler} {id}");
    }
    Err(Failure::new(Exit::Failed, message))
}

/// Why it did not finish, or what is known of it.
fn cause(operation: &Json) -> &str {
    operation.get("cause").as_str().unwrap_or_else(|| reason(operation))
}

/// The stored reason, or else the last word of the history.
pub(super) fn reason(operation: &Json) -> &str {
    let reason = operation.get("reason").as_str().or_else(|| last_event(operation));
    reason.unwrap_or("no reason was recorded")
}

fn last_event(operation: &Json) -> Option<&str> {
    operation.get("executionHistory").items().last()?.get("event").as_str()
}

/// `2026-11-15T09:06:53Z Created`.
pub(super) fn history_line(event: &Json) -> String {
    plain(&format!("{} {}", event.get("createdAt").cell(), event.get("event").cell()))
}

/// What a person sees meanwhile.
pub(super) enum Progress {
    /// On a terminal: one line that shows the newest event.
    Spinner(ProgressBar),
    /// Elsewhere: each event once, on stderr.
    Notes {
        /// Why the server could not be asked, if that was said last.
        unreachable: String,
    },
    /// The events are the result: each once, on stdout.
    Lines,
}

/// One line that stays current, on stderr.
pub(super) fn spinner() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(SPINNER_INTERVAL);
    bar
}

impl Progress {
    /// For a command whose result is something else.
    pub(super) fn beside_result() -> Self {
        if !std::io::stderr().is_terminal() {
            return Self::notes();
        }
        Self::Spinner(spinner())
    }

    pub(super) fn notes() -> Self {
        Self::Notes { unreachable: String::new() }
    }

    /// Something that is news by itself.
    pub(super) fn say(&mut self, line: &str) -> Result<(), Failure> {
        match self {
            Self::Spinner(bar) => bar.set_message(plain(line)),
            Self::Notes { unreachable } => {
                unreachable.clear();
                note(line);
            }
            Self::Lines => print(&plain(line))?,
        }
        Ok(())
    }

    fn event(&mut self, event: &Json) -> Result<(), Failure> {
        let line = match self {
            Self::Spinner(_) => event.get("event").cell(),
            Self::Notes { .. } | Self::Lines => history_line(event),
        };
        self.say(&line)
    }

    /// What the operation waits for now is news too, but not history.
    fn state(&mut self, operation: &Json) {
        if let (Self::Spinner(bar), Some(waiting_for)) = (self, operation.get("waitingFor").as_str()) {
            bar.set_message(format!("waiting for {}", plain(waiting_for)));
        }
    }

    pub(super) fn unreachable(&mut self, message: &str) {
        let line = format!("{message}; trying again");
        match self {
            Self::Spinner(bar) => bar.set_message(line),
            Self::Notes { unreachable } if *unreachable == message => {}
            Self::Notes { unreachable } => {
                unreachable.replace_range(.., message);
                note(&line);
            }
            Self::Lines => note(&line),
        }
    }

    pub(super) fn end(&mut self) {
        match self {
            Self::Spinner(bar) => bar.finish_and_clear(),
            Self::Notes { .. } | Self::Lines => {}
        }
    }
}
