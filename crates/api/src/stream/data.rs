//! What an event says, as JSON.

use maestro_core::stream::{Decision, Happened, ResetCause, RolloutChange};
use maestro_proto::protobuf::Struct;
use serde::Deserialize;
use serde_json::{Value, json};

pub(super) fn of(what: &Happened) -> Struct {
    let data = match what {
        Happened::RoomCreated { room: _, version, region, validation } => json!({
            "status": "pending",
            "version": version.to_string(),
            "region": region.as_str(),
            "validation": validation,
        }),
        Happened::RoomChanged { room: _, before, after } => {
            json!({ "status": after.as_str(), "before": before.as_str() })
        }
        Happened::RoomEnded { room: _, how, cause } => {
            json!({ "status": "terminated", "ended": { "how": &**how, "cause": cause.as_str() } })
        }
        Happened::AllocationHeld { allocation: _, room, expires_at, request } => {
            let held =
                json!({ "state": "held", "roomId": room.as_str(), "expiresAt": expires_at.to_string() });
            with(held, "requestId", request.as_deref().unwrap_or_default())
        }
        Happened::AllocationEnded { allocation: _, room, state, cause } => {
            with(json!({ "state": state.as_str(), "roomId": room.as_str() }), "cause", cause)
        }
        Happened::OperationChanged { operation: _, definition, status, reason } => {
            with(json!({ "status": status.as_str(), "definitionName": &**definition }), "reason", reason)
        }
        Happened::Decided { operation: _, decision } => decided(decision),
        Happened::RolloutChanged(RolloutChange { state, to, from, note }) => {
            let state = state.map_or("none", |state| state.as_str());
            with(json!({ "state": state, "version": to.to_string(), "from": from.to_string() }), "note", note)
        }
        Happened::VersionChanged { version, status, cause } => {
            with(json!({ "version": version.to_string(), "versionStatus": status.as_str() }), "cause", cause)
        }
        Happened::RegionReached { region: _, reachable, why } => {
            with(json!({ "reachable": reachable }), "reason", why)
        }
        Happened::RegionOrdered { region: _, cordoned, draining, by, reason } => json!({
            "cordoned": cordoned,
            "draining": draining,
            "by": &**by,
            "reason": &**reason,
        }),
    };
    object(&data)
}

pub(super) fn of_reset(cause: ResetCause) -> Struct {
    object(&json!({ "reason": cause.words() }))
}

fn decided(decision: &Decision) -> Value {
    let Decision { total, occupied, ready, desired, desired_ready, outcome, reason } = decision;
    json!({
        "total": total,
        "occupied": occupied,
        "ready": ready,
        "desired": desired,
        "desiredReady": desired_ready,
        "decision": outcome,
        "reason": reason,
    })
}

/// With a text that is left out if it is empty.
fn with(mut data: Value, key: &str, text: &str) -> Value {
    if !text.is_empty() {
        data[key] = text.into();
    }
    data
}

fn object(data: &Value) -> Struct {
    Struct::deserialize(data).unwrap_or_default()
}
