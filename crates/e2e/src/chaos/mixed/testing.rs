//! Operations as a server would show them.

use serde_json::{Value, json};

use crate::Operation;

pub(super) const AT: &str = "2026-01-01T00:00:00Z";

pub(super) fn operation(id: &str, status: &str, reason: &str, events: &[&str]) -> Operation {
    let history: Vec<Value> = events.iter().map(|event| json!({"createdAt": AT, "event": event})).collect();
    let operation = json!({
        "id": id, "status": status, "definitionName": "add_rooms", "createdAt": AT, "reason": reason,
        "executionHistory": history, "data": {},
    });
    serde_json::from_value(operation).expect("an operation")
}
