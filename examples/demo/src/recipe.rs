//! The recipe of the demo's fleet; `examples/scheduler.yaml` is its twin for the command line.

use std::path::Path;

use anyhow::Context;
use serde_json::{Value, json};

pub(crate) const SCHEDULER: &str = "example";

/// The port at which rooms listen for players.
pub(crate) const PORT_NAME: &str = "game";

/// However few rooms there are at least, players who come in numbers find some.
const ROOMS_MAX: u32 = 60;

/// The fleet has at least `rooms` rooms.
pub(crate) fn recipe(rooms: u32, room_program: &Path) -> anyhow::Result<Value> {
    let program = room_program.to_str();
    let program = program.with_context(|| format!("{} is not UTF-8", room_program.display()))?;
    Ok(json!({
        "name": SCHEDULER,
        "game": "demo",
        "roomsReplicas": rooms,
        "autoscaling": {
            "enabled": true,
            "min": rooms,
            "max": rooms.saturating_mul(2).max(ROOMS_MAX),
            "policy": {
                "type": "roomOccupancy",
                "parameters": { "roomOccupancy": { "readyTarget": 0.5 } },
            },
        },
        "maxSurge": "25%",
        "rollout": { "occupied": "waitForMatchEnd" },
        "portRange": { "start": 20000, "end": 20999 },
        "spec": {
            "terminationGracePeriod": "5s",
            "containers": [{
                "name": "room",
                "image": "maestro/example-room:1",
                "imagePullPolicy": "IfNotPresent",
                "command": [program],
                "environment": [{ "name": "ROOM_START_DELAY_MS", "value": "500" }],
                "requests": { "memory": "16Mi", "cpu": "10m" },
                "limits": { "memory": "64Mi", "cpu": "100m" },
                "ports": [{ "name": PORT_NAME, "protocol": "tcp", "port": 7777 }],
            }],
        },
    }))
}

/// Whether a scheduler from an earlier run is the one that this run would create, as far as the command line and the
/// recipe's own history decide.
pub(crate) fn is_current(scheduler: &Value, wanted: &Value) -> bool {
    ["/roomsReplicas", "/autoscaling/min", "/rollout/occupied", "/spec/containers/0/command"]
        .iter()
        .all(|field| scheduler.pointer(field) == wanted.pointer(field))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_yaml_twin_says_the_same() {
        let yaml = include_str!("../../scheduler.yaml");
        let twin: Value = serde_saphyr::from_str(yaml).unwrap();
        assert_eq!(twin, recipe(12, Path::new("maestro-example-room")).unwrap());
    }

    #[test]
    fn there_is_always_room_to_grow() {
        for (rooms, max) in [(1, 60), (12, 60), (30, 60), (40, 80), (u32::MAX, u32::MAX)] {
            let recipe = recipe(rooms, Path::new("room")).unwrap();
            assert_eq!(
                (&recipe["autoscaling"]["min"], &recipe["autoscaling"]["max"]),
                (&json!(rooms), &json!(max))
            );
        }
    }

    #[test]
    fn a_fleet_from_before_autoscaling_is_another_recipe() {
        let wanted = recipe(12, Path::new("room")).unwrap();
        let mut scheduler = wanted.clone();
        scheduler["autoscaling"].take();
        assert!(!is_current(&scheduler, &wanted));
    }

    #[test]
    fn another_number_or_another_program_is_another_recipe() {
        let scheduler = recipe(12, Path::new("/a/room")).unwrap();
        for (rooms, program, same) in [(12, "/a/room", true), (13, "/a/room", false), (12, "/b/room", false)]
        {
            let wanted = recipe(rooms, Path::new(program)).unwrap();
            assert_eq!(is_current(&scheduler, &wanted), same, "{rooms} {program}");
        }
    }
}
