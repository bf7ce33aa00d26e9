//! Following an operation to its end.

use std::time::Duration;

use maestro_core::operation::{OperationStatus, Stage};

use super::{Client, Exit, Failure, Json, Poll, Progress, Resource, decision, plain, poll};

/// Waits for the end of an operation and returns the server's last answer, `{"operation": …}`.
pub(super) fn follow(
    client: &Client,
    scheduler: &str,
    id: &str,
    timeout: Option<Duration>,
    progress: Progress,
) -> Result<Json, Failure> {
    let resource = Resource::new(&["schedulers", scheduler, "operations", id]);
    let ask = |client: &Client| client.get(&resource, "operation");
    let (mut status, mut events_seen) = ("pending".to_owned(), 0);
    let poll = Poll { client, ask: &ask, timeout, interval: poll::INTERVAL };
    let last = poll.run(progress, |answer, progress| {
        let operation = answer.get("operation");
        let history = operation.get("executionHistory").items();
        for event in history.iter().skip(events_seen) {
            let line = if progress.is_spinner() { event.get("event").cell() } else { history_line(event) };
            progress.say(&line)?;
        }
        events_seen = history.len();
        // What it waits for now is news too, but not history.
        if let Some(waiting_for) = operation.get("waitingFor").as_str().filter(|_| progress.is_spinner()) {
            progress.say(&format!("waiting for {waiting_for}"))?;
        }
        status = operation.get("status").cell();
        Ok(OperationStatus::parse(&status).is_some_and(|status| status.stage() == Stage::Final))
    })?;
    last.ok_or_else(|| {
        let after = timeout.unwrap_or_default();
        let message = format!(
            "operation {id} is still {status} after {after:?}; it continues: maestro operation watch {scheduler} {id}"
        );
        Failure::new(Exit::TimedOut, message)
    })
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
    Err(Failure::failed(message))
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
