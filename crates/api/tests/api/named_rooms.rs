//! Rooms that are removed by name, and a scheduler whose name is a path of v10.

use serde_json::{Value, json};

use crate::support::{World, recipe};

const REMOVE: &str = "/schedulers/arena/remove-rooms";

async fn replicas(world: &World) -> Value {
    world.get("/schedulers/info").await.ok()["schedulers"][0]["roomsReplicas"].clone()
}

async fn fleet_of_three() -> (World, Vec<String>) {
    let world = World::running().await;
    world.post("/schedulers", &recipe("arena", 3)).await.ok();
    world.settle("arena").await;
    let rooms = world.room_ids("arena").await;
    (world, rooms)
}

#[tokio::test(start_paused = true)]
async fn the_named_rooms_go_and_the_fleet_is_smaller() {
    let (world, rooms) = fleet_of_three().await;
    // Also one with players in it: whoever names a room means it.
    let ping = format!("/scheduler/arena/rooms/{}/ping", rooms[1]);
    world.ask("PUT", &ping, r#"{"status":"occupied","runningMatches":1}"#).await.ok();
    let id = world.enqueue(REMOVE, &json!({"rooms": [rooms[1], rooms[1]]})).await;
    world.settle("arena").await;
    assert_eq!(world.room_ids("arena").await, [rooms[0].clone(), rooms[2].clone()]);
    assert_eq!(replicas(&world).await, 2);
    let operation = world.get(&format!("/schedulers/arena/operations/{id}?view=full")).await.ok();
    let operation = &operation["operation"];
    assert_eq!(operation["status"], "finished");
    assert_eq!(operation["input"]["rooms_ids"], json!([rooms[1]]));
    assert!(operation["reason"].as_str().unwrap().contains("fleet size 3 → 2"), "{operation}");

    let listed = world.get("/schedulers/arena/rooms?ended=true").await.ok();
    let ended: Vec<&Value> =
        listed["rooms"].as_array().unwrap().iter().filter(|room| !room["ended"].is_null()).collect();
    assert_eq!(ended.len(), 1, "{listed}");
    assert_eq!(ended[0]["id"], json!(rooms[1]));
    assert_eq!(ended[0]["status"], "terminated");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_removed_by_name() {
    let (world, rooms) = fleet_of_three().await;
    for (body, status, code, message) in [
        (json!({"rooms": ["ghost"]}), 404, 5, "room ghost not found in scheduler arena"),
        (json!({"rooms": [rooms[0], "ghost"]}), 404, 5, "room ghost not found in scheduler arena"),
        (
            json!({"rooms": [rooms[0]], "amount": 1}),
            400,
            3,
            "rooms: either name the rooms to remove or give an amount, not both",
        ),
    ] {
        world.post(REMOVE, &body).await.refused(status, code, message);
        assert_eq!(replicas(&world).await, 3, "{body}");
    }
    world.enqueue(REMOVE, &json!({"rooms": [rooms[0]]})).await;
    world.settle("arena").await;
    let again = world.post(REMOVE, &json!({"rooms": [rooms[0]]})).await;
    assert_eq!(again.status, 409, "{}", again.text);
    assert!(again.text.contains(&format!("room {} has already ended", rooms[0])), "{}", again.text);
    assert_eq!(world.room_ids("arena").await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_list_in_full_says_how_many_rooms_there_should_be() {
    let mut world = World::standing();
    world.post("/schedulers", &recipe("arena", 3)).await.ok();
    let listed = async |world: &World| world.get("/schedulers?view=full").await.ok()["schedulers"][0].clone();
    let before = listed(&world).await;
    assert_eq!((&before["roomsReady"], &before["roomsWanted"]), (&json!(0), &json!(3)), "{before}");
    let expected = json!({"word": "adding", "reason": "3 rooms to be added", "room": ""});
    assert_eq!(before["problem"], expected);
    world.start(maestro_engine::Parts::ALL).await;
    world.settle("arena").await;
    let rooms = world.room_ids("arena").await;
    let ping = format!("/scheduler/arena/rooms/{}/ping", rooms[0]);
    world.ask("PUT", &ping, r#"{"status":"occupied","runningMatches":1}"#).await.ok();
    let after = listed(&world).await;
    let counts =
        ["roomsReady", "roomsOccupied", "roomsWanted", "roomsReplicas"].map(|key| after[key].clone());
    assert_eq!(counts, [2, 1, 3, 3].map(|rooms| json!(rooms)));
    assert!(after.get("problem").is_none_or(Value::is_null), "{after}");
    // Without being asked for, nothing that v10's clients do not know.
    let v10 = world.get("/schedulers").await.ok()["schedulers"][0].clone();
    assert!(v10.get("roomsReady").is_none() && v10.get("problem").is_none(), "{v10}");
}

#[tokio::test(start_paused = true)]
async fn a_scheduler_may_be_called_info() {
    let world = World::running().await;
    world.post("/schedulers", &recipe("info", 1)).await.ok();
    world.settle("info").await;
    assert!(world.get("/schedulers/info").await.ok()["schedulers"].is_array(), "this path is v10's");
    let shown = world.get("/scheduler/info").await.ok();
    assert_eq!(shown["scheduler"]["name"], "info");
    assert_eq!(world.room_ids("info").await.len(), 1);
    assert_eq!(world.get("/schedulers/info/versions").await.ok()["versions"][0]["version"], "v1.0.0");
    let mut changed = recipe("info", 1);
    changed["maxSurge"] = json!("50%");
    world.enqueue("/scheduler/info", &changed).await;
    world.settle("info").await;
    assert_eq!(world.get("/scheduler/info").await.ok()["scheduler"]["maxSurge"], "50%");
    world.ask("DELETE", "/scheduler/info", axum::body::Body::empty()).await.ok();
}
