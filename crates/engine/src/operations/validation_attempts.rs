//! Failed attempts to validate a version, as they are kept in the operation's data: which room, how it ended, and what
//! it wrote last.

use maestro_core::operation::Operation;
use maestro_core::room::RoomId;
use serde_json::{Value, json};

use crate::rooms::log_tail::in_words;

/// Under this key of the operation's data.
const ATTEMPTS: &str = "attempts";

pub(super) struct FailedAttempt<'a> {
    pub(super) number: u32,
    /// So many are made.
    pub(super) attempts_max: u32,
    pub(super) room: &'a RoomId,
    pub(super) how: &'a str,
    pub(super) log_lines: &'a [String],
}

impl FailedAttempt<'_> {
    pub(super) fn in_words(&self) -> String {
        let Self { number, attempts_max, room, how, log_lines } = self;
        format!("attempt {number} of {attempts_max} failed: room {room} {how}{}", in_words(log_lines))
    }

    /// The operation's data, with this attempt.
    pub(super) fn added_to(&self, data: &Value) -> Value {
        let Self { number, attempts_max: _, room, how, log_lines } = self;
        let mut data = data.clone();
        let attempt = json!({ "attempt": number, "room": room.as_str(), "how": how, "logLines": log_lines });
        match data.get_mut(ATTEMPTS) {
            Some(Value::Array(attempts)) => attempts.push(attempt),
            Some(_) | None => data[ATTEMPTS] = json!([attempt]),
        }
        data
    }
}

/// What the room of the last attempt that failed wrote last.
pub(crate) fn log_lines(operation: &Operation) -> Vec<String> {
    let attempts = operation.data.get(ATTEMPTS).and_then(Value::as_array);
    let lines = attempts.and_then(|attempts| attempts.last()?.get("logLines")?.as_array());
    let text = |line: &Value| line.as_str().map(str::to_owned);
    lines.map(|lines| lines.iter().filter_map(text).collect()).unwrap_or_default()
}
