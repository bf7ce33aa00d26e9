//! `roomsReplicas` is one number: whatever changes it, all answers say the same.

use axum::body::Body;
use serde_json::{Value, json};

use crate::support::{World, recipe};
use crate::versions::{arena, patch, roll_out};

/// What every answer says about the active version.
async fn shown(world: &World) -> [Value; 4] {
    let scheduler = world.get("/schedulers/arena").await.ok()["scheduler"].clone();
    let version = scheduler["spec"]["version"].as_str().unwrap();
    let named = world.get(&format!("/schedulers/arena?version={version}")).await.ok()["scheduler"].clone();
    let list = world.get("/schedulers").await.ok()["schedulers"][0].clone();
    let info = world.get("/schedulers/info").await.ok()["schedulers"][0].clone();
    [scheduler, named, list, info].map(|answer| answer["roomsReplicas"].clone())
}

async fn check(world: &World, replicas: u32, step: &str) {
    assert_eq!(shown(world).await, [replicas; 4].map(|number| json!(number)), "{step}");
}

async fn change_rooms(world: &World, path: &str, amount: u32) {
    world.post(&format!("/schedulers/arena/{path}"), &json!({"amount": amount})).await.ok();
}

/// Until the version is the active one: rooms may still be replaced then.
async fn until_active(world: &World, version: &str) {
    for _ in 0..100 {
        world.settle("arena").await;
        if world.get("/schedulers/arena/rollout").await.ok()["active"] == version {
            return;
        }
    }
    panic!("{version} does not become active");
}

#[tokio::test(start_paused = true)]
async fn all_answers_agree_at_every_step() {
    let world = arena(3).await;
    check(&world, 3, "created").await;
    change_rooms(&world, "add-rooms", 2).await;
    check(&world, 5, "resized").await;
    world.settle("arena").await;

    // A file that is applied wins, also with the number that the recipe had before.
    let file = recipe("arena", 3);
    let id = world.post("/schedulers/arena", &file).await.ok()["operationId"].clone();
    until_active(&world, "v1.1.0").await;
    check(&world, 3, "applied").await;
    let path = format!("/schedulers/arena/operations/{}?view=full", id.as_str().unwrap());
    let fields = world.get(&path).await.ok()["operation"]["data"]["fields"].clone();
    assert_eq!(fields, json!(["roomsReplicas"]), "compared with the present number");
    world.settle("arena").await;

    // A patch that says nothing about it leaves it alone.
    change_rooms(&world, "add-rooms", 2).await;
    patch(&world, &json!({"maxSurge": "2"})).await.ok();
    until_active(&world, "v1.2.0").await;
    check(&world, 5, "patched something else").await;
    patch(&world, &json!({"roomsReplicas": 4})).await.ok();
    until_active(&world, "v1.3.0").await;
    check(&world, 4, "patched").await;
    change_rooms(&world, "remove-rooms", 1).await;
    check(&world, 3, "resized down").await;
    world.settle("arena").await;

    // A rollout that is canceled returns to the number before it, and what people changed since.
    let mut file = recipe("arena", 8);
    file["spec"]["containers"][0]["image"] = json!("room:2");
    file["maxSurge"] = json!("1");
    world.post("/schedulers/arena", &file).await.ok();
    until_active(&world, "v2.0.0").await;
    check(&world, 8, "rolling").await;
    change_rooms(&world, "add-rooms", 2).await;
    check(&world, 10, "resized while rolling").await;
    let inactive = world.get("/schedulers/arena?version=v1.3.0").await.ok();
    assert_eq!(inactive["scheduler"]["roomsReplicas"], 4, "what its recipe said");
    let canceled = world.ask("POST", "/schedulers/arena/rollout/cancel", Body::empty()).await;
    canceled.ok();
    until_active(&world, "v1.3.0").await;
    check(&world, 5, "canceled").await;
    roll_out(&world).await;
    check(&world, 5, "back").await;

    // A person's switch sets the number of the recipe only where that differs from the one it leaves.
    let switch = |version: &str| json!({"version": version}).to_string();
    world.ask("PUT", "/schedulers/arena", switch("v1.0.0")).await.ok();
    until_active(&world, "v1.0.0").await;
    check(&world, 3, "switched to another number").await;
    change_rooms(&world, "add-rooms", 3).await;
    world.ask("PUT", "/schedulers/arena", switch("v1.1.0")).await.ok();
    until_active(&world, "v1.1.0").await;
    check(&world, 6, "switched to the same number").await;

    // As in v10, what is not written in a whole recipe is 0.
    let mut file = recipe("arena", 6);
    file.as_object_mut().unwrap().remove("roomsReplicas");
    world.post("/schedulers/arena", &file).await.ok();
    until_active(&world, "v1.4.0").await;
    check(&world, 0, "not written").await;
    world.settle("arena").await;
    assert_eq!(world.room_ids("arena").await.len(), 0);
}
