//! Schedulers as people read them.

use jiff::Timestamp;

use crate::cli::age;
use crate::cli::json::Json;
use crate::cli::output::{fields, note, table};
use crate::cli::sheet::Sheet;

pub(super) fn schedulers_sheet(answer: &Json) -> Sheet {
    let now = Timestamp::now();
    let header = [
        "NAME",
        "GAME",
        "STATE",
        "VERSION",
        "READY",
        "OCCUPIED",
        "REPLICAS",
        "AUTOSCALING",
        "AGE",
        "PROBLEM",
    ];
    let row = |scheduler: &Json| {
        let [name, game, state, version] =
            ["name", "game", "state", "version"].map(|key| scheduler.get(key).cell());
        vec![
            name,
            game,
            state,
            version,
            ready(scheduler),
            scheduler.get("roomsOccupied").cell(),
            scheduler.get("roomsReplicas").cell(),
            autoscaling(scheduler.get("autoscaling")),
            age::cell(scheduler.get("createdAt"), now),
            problem(scheduler.get("problem")),
        ]
    };
    Sheet::new(&header, answer.get("schedulers").items().iter().map(row))
}

/// `8/8`: of the rooms that are wanted and not occupied, how many are ready.
pub(super) fn ready(scheduler: &Json) -> String {
    let number = |key| scheduler.get(key).as_u64();
    let (Some(ready), Some(wanted)) = (number("roomsReady"), number("roomsWanted")) else {
        return scheduler.get("roomsReady").cell();
    };
    let occupied = number("roomsOccupied").unwrap_or(0);
    format!("{ready}/{}", wanted.saturating_sub(occupied))
}

/// `crashing: rooms end before they are ready; …`
fn problem(problem: &Json) -> String {
    match problem {
        Json::Object(_) => format!("{}: {}", problem.get("word").cell(), problem.get("reason").cell()),
        _ => "-".to_owned(),
    }
}

/// `1 to 20`, `5 and up`, or `off`.
fn autoscaling(autoscaling: &Json) -> String {
    if !autoscaling.get("enabled").is_true() {
        return "off".to_owned();
    }
    let (min, max) = (autoscaling.get("min").cell(), autoscaling.get("max").cell());
    if max == "-1" { format!("{min} and up") } else { format!("{min} to {max}") }
}

pub(super) fn versions_table(answer: &Json) -> String {
    let now = Timestamp::now();
    let row = |version: &Json| {
        let active = if version.get("isActive").is_true() { "active" } else { "" };
        vec![
            version.get("version").cell(),
            active.to_owned(),
            version.get("status").cell(),
            age::cell(version.get("createdAt"), now),
        ]
    };
    table(&["VERSION", "ACTIVE", "STATUS", "AGE"], answer.get("versions").items().iter().map(row))
}

pub(super) fn decisions_table(answer: &Json) -> String {
    let decisions = answer.get("decisions").items();
    if decisions.is_empty() {
        note("no decisions yet");
    }
    let now = Timestamp::now();
    let header = ["AGE", "TOTAL", "OCCUPIED", "READY", "DESIRED", "DESIRED READY", "DECISION", "REASON"];
    let keys = ["total", "occupied", "ready", "desired", "desiredReady", "decision", "reason"];
    let row = |decision: &Json| {
        let mut row = vec![age::cell(decision.get("at"), now)];
        row.extend(keys.map(|key| decision.get(key).cell()));
        row
    };
    table(&header, decisions.iter().map(row))
}

pub(super) fn recipe_fields(scheduler: &Json) -> String {
    let spec = scheduler.get("spec");
    let range = |range: &Json| match range {
        Json::Object(_) => format!("{} to {}", range.get("start").cell(), range.get("end").cell()),
        _ => "-".to_owned(),
    };
    let mut rows = vec![
        ("Name", scheduler.get("name").cell()),
        ("Game", scheduler.get("game").cell()),
        ("State", scheduler.get("state").cell()),
        ("Version", spec.get("version").cell()),
        ("Created", scheduler.get("createdAt").cell()),
        ("Replicas", scheduler.get("roomsReplicas").cell()),
        ("Autoscaling", autoscaling(scheduler.get("autoscaling"))),
        ("Max surge", scheduler.get("maxSurge").cell()),
        ("Port range", range(scheduler.get("portRange"))),
        ("Grace period", spec.get("terminationGracePeriod").cell()),
        ("Labels", pairs(scheduler.get("labels"))),
        ("Annotations", pairs(scheduler.get("annotations"))),
    ];
    let rollout = scheduler.get("rollout");
    if !rollout.is_null() {
        rows.push(("Rollout", pairs(rollout)));
    }
    let head = fields(rows);
    let container = |container: &Json| {
        let port = |port: &Json| {
            format!("{}:{}/{}", port.get("name").cell(), port.get("port").cell(), port.get("protocol").cell())
        };
        let command: Vec<String> = container.get("command").items().iter().map(Json::cell).collect();
        let ports: Vec<String> = container.get("ports").items().iter().map(port).collect();
        vec![container.get("name").cell(), container.get("image").cell(), ports.join(","), command.join(" ")]
    };
    let containers = spec.get("containers").items().iter().map(container);
    format!("{head}\n\n{}", table(&["CONTAINER", "IMAGE", "PORTS", "COMMAND"], containers))
}

/// `team=a,tier=gold`
fn pairs(map: &Json) -> String {
    match map {
        Json::Object(entries) if !entries.is_empty() => {
            let pairs: Vec<String> =
                entries.iter().map(|(key, value)| format!("{key}={}", value.cell())).collect();
            pairs.join(",")
        }
        _ => "-".to_owned(),
    }
}
