//! Schedulers as people read them.

use crate::cli::room::port;
use crate::cli::{Age, At, Column, Json, Text, fields, or_dash, table};

pub(super) const SCHEDULERS: &[Column] = &[
    ("NAME", At("name")),
    ("GAME", At("game")),
    ("STATE", At("state")),
    ("VERSION", At("version")),
    ("READY", Text(ready)),
    ("OCCUPIED", At("roomsOccupied")),
    ("REPLICAS", At("roomsReplicas")),
    ("AUTOSCALING", Text(autoscaling)),
    ("AGE", Age("createdAt")),
    ("PROBLEM", Text(problem)),
];

pub(super) const VERSIONS: &[Column] = &[
    ("VERSION", At("version")),
    ("ACTIVE", Text(|version| if version.get("isActive").is_true() { "active" } else { "" }.to_owned())),
    ("STATUS", At("status")),
    ("AGE", Age("createdAt")),
];

pub(super) const DECISIONS: &[Column] = &[
    ("AGE", Age("at")),
    ("TOTAL", At("total")),
    ("OCCUPIED", At("occupied")),
    ("READY", At("ready")),
    ("DESIRED", At("desired")),
    ("DESIRED READY", At("desiredReady")),
    ("DECISION", At("decision")),
    ("REASON", At("reason")),
];

const SCHEDULER: &[Column] = &[
    ("Name", At("name")),
    ("Game", At("game")),
    ("State", At("state")),
    ("Version", At("spec.version")),
    ("Created", At("createdAt")),
    ("Replicas", At("roomsReplicas")),
    ("Autoscaling", Text(autoscaling)),
    ("Max surge", At("maxSurge")),
    ("Port range", Text(port_range)),
    ("Grace period", At("spec.terminationGracePeriod")),
    ("Labels", Text(|scheduler| pairs(scheduler.get("labels")))),
    ("Annotations", Text(|scheduler| pairs(scheduler.get("annotations")))),
];

const ROLLOUT: &[Column] = &[("Rollout", Text(|scheduler| pairs(scheduler.get("rollout"))))];

const CONTAINERS: &[Column] = &[
    ("CONTAINER", At("name")),
    ("IMAGE", At("image")),
    (
        "PORTS",
        Text(|container| container.get("ports").items().iter().map(port).collect::<Vec<_>>().join(",")),
    ),
    ("COMMAND", Text(command)),
];

pub(super) fn description(scheduler: &Json) -> String {
    let has_rollout = !scheduler.get("rollout").is_null();
    let lines = [SCHEDULER, if has_rollout { ROLLOUT } else { &[] }].concat();
    let containers = table(scheduler.at("spec.containers"), CONTAINERS);
    format!("{}\n\n{containers}", fields(scheduler, &lines))
}

/// `8/8`: of the rooms that are wanted and not occupied, how many are ready.
fn ready(scheduler: &Json) -> String {
    let number = |key| scheduler.get(key).as_u64();
    let (Some(ready), Some(wanted)) = (number("roomsReady"), number("roomsWanted")) else {
        return scheduler.get("roomsReady").cell();
    };
    let occupied = number("roomsOccupied").unwrap_or(0);
    format!("{ready}/{}", wanted.saturating_sub(occupied))
}

/// `crashing: rooms end before they are ready; …`
fn problem(scheduler: &Json) -> String {
    match scheduler.get("problem") {
        problem @ Json::Object(_) => {
            format!("{}: {}", problem.get("word").cell(), problem.get("reason").cell())
        }
        _ => "-".to_owned(),
    }
}

/// `1 to 20`, `5 and up`, or `off`.
fn autoscaling(scheduler: &Json) -> String {
    let autoscaling = scheduler.get("autoscaling");
    if !autoscaling.get("enabled").is_true() {
        return "off".to_owned();
    }
    let (min, max) = (autoscaling.get("min").cell(), autoscaling.get("max").cell());
    if max == "-1" { format!("{min} and up") } else { format!("{min} to {max}") }
}

fn port_range(scheduler: &Json) -> String {
    match scheduler.get("portRange") {
        range @ Json::Object(_) => format!("{} to {}", range.get("start").cell(), range.get("end").cell()),
        _ => "-".to_owned(),
    }
}

/// Unlike a cell of another list, without commas: it is one command.
fn command(container: &Json) -> String {
    container.get("command").items().iter().map(Json::cell).collect::<Vec<_>>().join(" ")
}

/// `team=a,tier=gold`
fn pairs(map: &Json) -> String {
    or_dash(map.entries().iter().map(|(key, value)| format!("{key}={}", value.cell())), ",")
}
