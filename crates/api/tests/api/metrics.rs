//! Gauges of fleets, as their recipes change.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{World, recipe};

#[tokio::test(start_paused = true)]
async fn only_the_policy_of_the_recipe_is_shown() {
    let world = World::running().await;
    world.post("/schedulers", &recipe("arena", 1)).await.ok();
    let policy = |word: &str, parameters: Value| json!({"type": word, "parameters": {word: parameters}});
    let occupancy = policy("roomOccupancy", json!({"readyTarget": 0.5}));
    let buffer = policy("fixedBuffer", json!({"amount": 3}));
    let ready_target = r#"maestro_worker_ready_target{game="brawl",scheduler="arena"} 0.5"#;
    let fixed_buffer = r#"maestro_worker_fixed_buffer{game="brawl",scheduler="arena"} 3"#;
    for (policy, shown) in [
        (None, None),
        (Some(&occupancy), Some(ready_target)),
        (Some(&buffer), Some(fixed_buffer)),
        (Some(&occupancy), Some(ready_target)),
        (None, None),
    ] {
        let mut recipe = recipe("arena", 1);
        if let Some(policy) = policy {
            recipe["autoscaling"] = json!({"enabled": true, "min": 1, "max": 5, "policy": policy});
        }
        // The same recipe again is no new version.
        world.post("/schedulers/arena", &recipe).await;
        world.settle("arena").await;
        tokio::time::sleep(Duration::from_secs(11)).await;
        let mut lines = world.metrics("maestro_worker_ready_target");
        lines.extend(world.metrics("maestro_worker_fixed_buffer"));
        assert_eq!(lines, shown.into_iter().collect::<Vec<_>>(), "{policy:?}");
    }
}
