//! Panic scale over the wire: what a recipe may say, and all ways in which rooms come to be occupied.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{World, recipe};

fn panicking(panic: &Value) -> Value {
    let mut recipe = recipe("arena", 2);
    recipe["autoscaling"] = json!({"enabled": true, "min": 2, "max": -1, "panic": panic,
        "policy": {"type": "roomOccupancy", "parameters": {"roomOccupancy": {"readyTarget": 0.5}}}});
    recipe
}

/// Operations that add rooms, as `?view=full` shows them.
async fn adds(world: &World) -> Vec<Value> {
    let mut adds = Vec::new();
    for stage in ["pending", "active", "final"] {
        let path = format!("/schedulers/arena/operations?view=full&stage={stage}");
        let operations = world.get(&path).await.ok()["operations"].take();
        adds.extend(operations.as_array().unwrap().iter().cloned());
    }
    adds.retain(|operation| operation["definitionName"] == "add_rooms");
    adds
}

#[tokio::test(start_paused = true)]
async fn from_all_routes() {
    for route in ["ping", "status", "allocation"] {
        let world = World::running().await;
        let panic = json!({"enabled": true, "limit": 60, "delta": 3});
        world.post("/schedulers", &panicking(&panic)).await.ok();
        world.settle("arena").await;
        if route == "allocation" {
            world.post("/schedulers/arena/allocations", &json!({"count": 2})).await.ok();
        }
        for room in world.room_ids("arena").await.into_iter().filter(|_| route != "allocation") {
            let path = format!("/scheduler/arena/rooms/{room}/{route}");
            let reply = world.ask("PUT", &path, r#"{"status":"occupied","runningMatches":1}"#).await;
            reply.check(200, &json!({"success": true}));
        }
        let reason = "2 of 2 matches' places are taken (limit 60 %), 2 of 4 rooms: adding 3";
        let mut found = false;
        for _ in 0..100 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            found |= adds(&world).await.iter().any(|add| add["reason"] == reason);
        }
        assert!(found, "by {route}: {:#?}", adds(&world).await);
        let counted = r#"maestro_panic_total{game="brawl",scheduler="arena"} 1"#;
        assert_eq!(world.metrics("maestro_panic_total"), [counted]);
    }
}

#[tokio::test(start_paused = true)]
async fn shown_where_it_is_used_and_nowhere_else() {
    let world = World::standing();
    world.post("/schedulers", &panicking(&json!({"enabled": true}))).await.ok();
    let shown = world.get("/schedulers/arena").await.ok()["scheduler"]["autoscaling"]["panic"].take();
    assert_eq!(shown, json!({"enabled": true, "limit": 90, "delta": 10, "timeout": "120s"}));
    let mut without = panicking(&Value::Null);
    without["name"] = json!("plain");
    world.post("/schedulers", &without).await.ok();
    let plain = world.get("/schedulers/plain").await.ok()["scheduler"]["autoscaling"].take();
    assert!(!plain.as_object().unwrap().contains_key("panic"), "{plain}");
}

#[tokio::test(start_paused = true)]
async fn what_makes_no_sense_is_refused() {
    let world = World::standing();
    let reply =
        world.post("/schedulers", &panicking(&json!({"limit": 100, "delta": 0, "timeout": "0s"}))).await;
    let message = concat!(
        "Validation Error:\n",
        "autoscaling.panic.limit: 100 is not between 1 and 99; it is the percentage of all places above which it \
         panics, and no fleet is more than full\n",
        "autoscaling.panic.delta: 0 is not at least 1\n",
        "autoscaling.panic.timeout: 0s is too short; write a time longer than zero, such as \"30s\"",
    );
    reply.refused(400, 3, message);
}
