//! Failed attempts to validate a version, as they are kept in the operation's data: which room, how it ended, and what
//! it wrote last.

use maestro_core::operation::Operation;
use serde_json::{Value, json};

/// Under this key of the operation's data.
const ATTEMPTS: &str = "attempts";

/// The operation's data, with one more attempt.
pub(super) fn with_attempt(data: &Value, attempt: Value) -> Value {
    let mut data = data.clone();
    match data.get_mut(ATTEMPTS) {
        Some(Value::Array(attempts)) => attempts.push(attempt),
        Some(_) | None => data[ATTEMPTS] = json!([attempt]),
    }
    data
}

/// What the room of the last attempt that failed wrote last.
pub(crate) fn log_lines(operation: &Operation) -> Vec<String> {
    let attempts = operation.data.get(ATTEMPTS).and_then(Value::as_array);
    let lines = attempts.and_then(|attempts| attempts.last()?.get("logLines")?.as_array());
    let text = |line: &Value| line.as_str().map(str::to_owned);
    lines.map(|lines| lines.iter().filter_map(text).collect()).unwrap_or_default()
}
