//! Regions that hold so many rooms: what can never fit is refused, what does not fit now waits and says so.

use serde_json::{Value, json};

use crate::support::{World, recipe};

const EU: &str = "eu-west";
const US: &str = "us-east";

async fn world(rooms_max: u32) -> World {
    let world = World::running_with_regions(&[EU, US]).await;
    world.runtimes[EU].set_rooms_max(rooms_max);
    world
}

/// A recipe whose rooms go to `eu-west`.
fn in_eu(name: &str, rooms: u32) -> Value {
    let mut recipe = recipe(name, rooms);
    recipe["placement"] = json!({"regions": [{"name": EU, "weight": 1}]});
    recipe
}

fn refusal(field: &str, rooms: u32) -> String {
    format!("Validation Error:\n{field}: {rooms} rooms do not fit: eu-west holds at most 4 (roomsMax)")
}

#[tokio::test(start_paused = true)]
async fn what_can_never_fit_is_refused() {
    let world = world(4).await;
    world.post("/schedulers", &in_eu("arena", 5)).await.refused(400, 3, &refusal("roomsReplicas", 5));
    let mut autoscaled = in_eu("arena", 0);
    autoscaled["autoscaling"] = json!({"enabled": true, "min": 6, "max": 10,
        "policy": {"type": "roomOccupancy", "parameters": {"roomOccupancy": {"readyTarget": 0.5}}}});
    world.post("/schedulers", &autoscaled).await.refused(400, 3, &refusal("autoscaling.min", 6));
    // What a region without a limit may have.
    world.post("/schedulers", &recipe("elsewhere", 50)).await.ok();

    world.post("/schedulers", &in_eu("arena", 3)).await.ok();
    world.settle("arena").await;
    let larger = json!({"adjustment_type": "EXACT_CAPACITY", "number": 9});
    for (path, body, rooms) in [
        ("/schedulers/arena/add-rooms", json!({"amount": 2}), 5),
        ("/schedulers/arena/resize", larger, 9),
        ("/schedulers/arena", in_eu("arena", 7), 7),
    ] {
        world.post(path, &body).await.refused(400, 3, &refusal("roomsReplicas", rooms));
    }
}

/// Also of one that was lowered: it refuses nothing but growth.
#[tokio::test(start_paused = true)]
async fn what_asks_for_no_more_is_never_refused() {
    let world = world(0).await;
    world.post("/schedulers", &in_eu("arena", 12)).await.ok();
    world.settle("arena").await;
    world.runtimes[EU].set_rooms_max(4);
    let mut same_size = in_eu("arena", 12);
    same_size["maxSurge"] = "50%".into();
    world.post("/schedulers/arena", &same_size).await.ok();
    world.settle("arena").await;
    world.post("/schedulers/arena/add-rooms", &json!({"amount": 1})).await.refused(
        400,
        3,
        &refusal("roomsReplicas", 13),
    );
    let smaller = json!({"adjustment_type": "EXACT_CAPACITY", "number": 6});
    world.post("/schedulers/arena/resize", &smaller).await.ok();
    world.settle("arena").await;
    assert_eq!(world.room_ids("arena").await.len(), 6);
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_now_waits_and_says_why() {
    let world = world(4).await;
    world.post("/schedulers", &in_eu("arena", 3)).await.ok();
    world.settle("arena").await;
    world.post("/schedulers", &in_eu("duel", 3)).await.ok();
    world.settle("duel").await;
    assert_eq!(world.room_ids("duel").await.len(), 1);
    let listed = world.get("/schedulers?view=full&name=duel").await.ok();
    let problem = &listed["schedulers"][0]["problem"];
    let why = "eu-west holds at most 4 rooms (roomsMax), 3 of them of other schedulers";
    assert_eq!(problem["word"], "no capacity");
    assert!(problem["reason"].as_str().unwrap().contains(why), "{problem}");

    world.post("/schedulers/arena/remove-rooms", &json!({"amount": 2})).await.ok();
    world.settle("arena").await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    world.settle("duel").await;
    assert_eq!(world.room_ids("duel").await.len(), 3);
}
