//! Recipes as requests carry them.

use serde_json::{Value, json};

/// A valid one, for a fleet of `rooms` rooms.
pub fn recipe(name: &str, rooms: u32) -> Value {
    json!({
        "name": name, "game": "brawl", "maxSurge": "25%", "roomsReplicas": rooms,
        "portRange": {"start": 20000, "end": 29999},
        "spec": {
            "terminationGracePeriod": "5s",
            "containers": [{
                "name": "room", "image": "room:1", "imagePullPolicy": "IfNotPresent", "command": ["/room"],
                "environment": [],
                "requests": {"memory": "16Mi", "cpu": "5m"}, "limits": {"memory": "64Mi", "cpu": "100m"},
                "ports": [{"name": "game", "protocol": "udp", "port": 7777}],
            }],
        },
    })
}
