//! New versions, patches, switches and rollouts on the management API, beyond what is recorded of v10.

use axum::body::Body;
use serde_json::{Value, json};

use crate::support::{World, recipe};

/// A fleet that stands.
pub(crate) async fn arena(rooms: u32) -> World {
    let world = World::running().await;
    world.post("/schedulers", &recipe("arena", rooms)).await.ok();
    world.settle("arena").await;
    world
}

pub(crate) async fn patch(world: &World, body: &Value) -> crate::support::Reply {
    world.ask("PATCH", "/schedulers/arena", body.to_string()).await
}

async fn operation(world: &World, id: &Value) -> Value {
    let path = format!("/schedulers/arena/operations/{}?view=full", id.as_str().unwrap());
    world.get(&path).await.ok()["operation"].clone()
}

async fn versions(world: &World) -> Vec<String> {
    let listed = world.get("/schedulers/arena/versions?view=full").await.ok();
    let versions = listed["versions"].as_array().unwrap().iter();
    let active = |version: &Value| {
        if version["isActive"] == true { " active" } else { "" }
    };
    versions
        .map(|version| {
            let (number, status) = (version["version"].as_str().unwrap(), &version["status"]);
            format!("{number} {}{}", status.as_str().unwrap(), active(version))
        })
        .collect()
}

/// As long as rooms are replaced; the health controller looks every ten seconds.
pub(crate) async fn roll_out(world: &World) {
    for _ in 0..100 {
        world.settle("arena").await;
        if world.get("/schedulers/arena/rollout").await.ok()["state"] == "none" {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
    panic!("the rollout does not end");
}

#[tokio::test(start_paused = true)]
async fn a_major_version_is_tried_switched_to_and_rolled_out() {
    let world = arena(2).await;
    let mut new = recipe("arena", 2);
    new["spec"]["containers"][0]["image"] = json!("room:2");
    new.as_object_mut().unwrap().remove("name");
    let id = world.post("/schedulers/arena", &new).await.ok()["operationId"].clone();
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    // The room that is tried is no part of the fleet.
    assert_eq!(world.room_ids("arena").await.len(), 3);
    let rollout = world.get("/schedulers/arena/rollout").await.ok();
    assert_eq!(rollout["roomsByVersion"], json!({"v1.0.0": 2}));
    assert_eq!(rollout["oldRooms"], 0);
    let subject = ["state", "version", "status", "outcome", "operationId"].map(|key| rollout[key].clone());
    let validating = ["validating", "v2.0.0", "validating", "inProgress", id.as_str().unwrap()];
    assert_eq!(subject, validating.map(|word| json!(word)));
    world.settle("arena").await;

    let created = operation(&world, &id).await;
    assert_eq!(created["status"], "finished");
    assert_eq!(created["input"]["scheduler"]["Spec"]["Version"], "v2.0.0");
    let data = json!({"version": "v2.0.0", "rollbackVersion": "v1.0.0", "change": "major",
        "fields": ["spec.containers[0].image"]});
    assert_eq!(created["data"], data);
    let history = created["executionHistory"].as_array().unwrap();
    let enqueued = history[history.len() - 2]["event"].as_str().unwrap();
    let switch = enqueued.strip_prefix("enqueued switch active version operation with id: ").unwrap();
    let switch = operation(&world, &json!(switch)).await;
    assert_eq!(switch["input"], json!({"newActiveVersion": "v2.0.0"}));

    roll_out(&world).await;
    assert_eq!(versions(&world).await, ["v2.0.0 deployed active", "v1.0.0 deployed"]);
    let rollout = json!({"state": "none", "active": "v2.0.0", "roomsByVersion": {"v2.0.0": 2},
        "oldRooms": 0, "newRooms": 2, "total": 2, "percent": 100, "waitingFor": "", "version": "v2.0.0",
        "status": "deployed", "outcome": "deployed", "cause": "", "logLines": [], "operationId": switch["id"],
        "occupiedOldRooms": 0, "waitsForMatchEnd": false, "nextOccupiedAt": null});
    world.get("/schedulers/arena/rollout").await.check(200, &rollout);
}

#[tokio::test(start_paused = true)]
async fn new_versions_that_are_refused() {
    let world = arena(1).await;
    let mut wrong = recipe("arena", 1);
    wrong["maxSurge"] = json!("0%");
    wrong["rollout"] = json!({"maxFailures": 0, "occupied": "keep"});
    let reply = world.post("/schedulers/arena", &wrong).await;
    let message = concat!(
        "Validation Error:\n",
        "maxSurge: \"0%\" is not a surge: write a number of rooms such as 10, or a percentage such as 25%, of at least 1\n",
        "rollout.occupied: \"keep\" is not one of deleteLast, waitForMatchEnd\n",
        "rollout.maxFailures: 0 is not at least 1",
    );
    reply.refused(400, 3, message);

    let reply = world.post("/schedulers/arena", &recipe("other", 1)).await;
    reply.refused(400, 3, "name: other is not the scheduler's name, which is arena");
    let reply = world.post("/schedulers/nope", &recipe("nope", 1)).await;
    let message =
        "no scheduler found, can not create new version for inexistent scheduler: scheduler nope not found";
    reply.refused(404, 5, message);
    let mut odd = recipe("arena", 1);
    odd["colour"] = json!("red");
    let reply = world.post("/schedulers/arena?strict=true", &odd).await;
    reply.refused(400, 3, "unknown field colour");
    assert_eq!(versions(&world).await, ["v1.0.0 deployed active"]);

    let accepted = world.post("/schedulers/arena", &odd).await;
    assert_eq!(accepted.headers["warning"], r#"299 maestro "unknown field colour""#);
    let id = accepted.ok()["operationId"].clone();
    let busy = format!(
        "there is already an ongoing version operation (id: {}) for scheduler arena",
        id.as_str().unwrap()
    );
    let reply = world.post("/schedulers/arena", &odd).await;
    reply.refused(400, 9, &format!("cannot create new scheduler version: {busy}"));
    let reply = patch(&world, &json!({"maxSurge": "1"})).await;
    reply.refused(400, 9, &format!("cannot patch scheduler: {busy}"));
    let reply = world.ask("PUT", "/schedulers/arena", r#"{"version":"v1.0.0"}"#).await;
    reply.refused(400, 9, &format!("cannot switch active version: {busy}"));
}

#[tokio::test(start_paused = true)]
async fn patches() {
    let world = arena(1).await;
    let body = json!({"labels": {"team": "a"}, "rollout": {"maxUnavailable": 1},
        "spec": {"containers": [{"name": "room", "command": [], "environment": [{"name": "A", "value": "1"}]}]}});
    patch(&world, &body).await.ok();
    world.settle("arena").await;
    let scheduler = world.get("/schedulers/arena").await.ok()["scheduler"].clone();
    assert_eq!(scheduler["spec"]["version"], "v2.0.0");
    assert_eq!(scheduler["spec"]["containers"][0]["command"], json!([]));
    assert_eq!(scheduler["spec"]["containers"][0]["image"], "room:1");
    let written = json!({"maxUnavailable": 1, "occupied": "deleteLast", "onFailure": "rollback", "maxFailures": 5,
        "rejoinGrace": "0s", "occupiedInterval": "30s"});
    assert_eq!(scheduler["rollout"], written);

    roll_out(&world).await;
    patch(&world, &json!({"rollout": {"timeout": "1800s"}})).await.ok();
    world.settle("arena").await;
    let scheduler = world.get("/schedulers/arena").await.ok()["scheduler"].clone();
    assert_eq!(scheduler["spec"]["version"], "v2.1.0");
    assert_eq!(scheduler["rollout"]["timeout"], "1800s");
    assert_eq!(scheduler["rollout"]["maxUnavailable"], 1);
}

#[tokio::test(start_paused = true)]
async fn patches_that_are_refused() {
    let world = arena(1).await;
    let reply = world.ask("PATCH", "/schedulers/arena", Body::empty()).await;
    reply.refused(409, 6, "no change found to scheduler arena");
    let reply = patch(&world, &json!({"maxsurge": "50%"})).await;
    reply.refused(
        409,
        6,
        "no change found to scheduler arena\nunknown field maxsurge; did you mean maxSurge?",
    );
    let reply = patch(&world, &json!({"name": "other", "maxSurge": "50%"})).await;
    reply.refused(400, 3, "name: other is not the scheduler's name, which is arena");
    let reply = patch(&world, &json!({"spec": {"containers": [{}, {"name": "room"}, {"image": "i"}]}})).await;
    let message = concat!(
        "Validation Error:\n",
        "spec.containers[1].name: is missing; a name of 1 to 63 characters a-z, 0-9 and - is needed",
    );
    reply.refused(400, 3, message);
    assert_eq!(versions(&world).await, ["v1.0.0 deployed active"]);
}

#[tokio::test(start_paused = true)]
async fn switches_that_are_refused() {
    let world = arena(1).await;
    let switch = |path, body: Value| world.ask("PUT", path, body.to_string());
    let reply = switch("/schedulers/arena", json!({"version": "v9.0.0"})).await;
    reply.refused(404, 5, r#"scheduler arena not found in version "v9.0.0""#);
    let reply = switch("/schedulers/arena", json!({})).await;
    reply.refused(400, 3, "version: is missing; name the version to switch to, such as v1.2.0");
    let reply = switch("/schedulers/nope", json!({"version": "v1.0.0"})).await;
    reply.refused(404, 5, "scheduler nope not found");
    let reply = switch("/schedulers/arena?strict=1", json!({"verson": "v1.0.0"})).await;
    reply.refused(400, 3, "unknown field verson");
}

#[tokio::test(start_paused = true)]
async fn a_rollout_is_paused_resumed_and_canceled() {
    let world = arena(3).await;
    for action in ["pause", "resume", "cancel"] {
        let reply = world.ask("POST", &format!("/schedulers/arena/rollout/{action}"), Body::empty()).await;
        assert_eq!(reply.status, 409, "{}", reply.text);
    }
    let body = json!({"maxSurge": "1", "spec": {"containers": [{"image": "room:2"}]}});
    patch(&world, &body).await.ok();
    world.settle("arena").await;
    let post = |action: &str| {
        let path = format!("/schedulers/arena/rollout/{action}");
        let world = &world;
        async move { world.ask("POST", &path, Body::empty()).await }
    };
    post("pause").await.check(200, &json!({}));
    let paused = world.get("/schedulers/arena/rollout").await.ok();
    assert_eq!((&paused["state"], &paused["active"]), (&json!("paused"), &json!("v2.0.0")));
    assert!(paused["oldRooms"].as_u64() > Some(0), "{paused}");
    post("resume").await.check(200, &json!({}));
    assert_eq!(world.get("/schedulers/arena/rollout").await.ok()["state"], "rolling");
    assert!(post("cancel").await.ok()["operationId"].is_string());
    roll_out(&world).await;
    assert_eq!(versions(&world).await, ["v2.0.0 canceled", "v1.0.0 deployed active"]);
    let reply = world.get("/schedulers/nope/rollout").await;
    reply.refused(404, 5, "scheduler nope not found");
}

#[tokio::test(start_paused = true)]
async fn autoscaling_says_what_it_decided() {
    let world = World::running().await;
    let mut autoscaled = recipe("arena", 0);
    autoscaled["autoscaling"] = json!({"enabled": true, "min": 2, "max": -1,
        "policy": {"type": "roomOccupancy", "parameters": {"roomOccupancy": {"readyTarget": 0.5}}}});
    world.post("/schedulers", &autoscaled).await.ok();
    world.settle("arena").await;
    tokio::time::sleep(std::time::Duration::from_secs(30)).await;
    let answer = world.get("/schedulers/arena/autoscaling").await.ok();
    let decisions = answer["decisions"].as_array().unwrap();
    let (newest, first) = (&decisions[0], decisions.last().unwrap());
    let keys: Vec<_> = first.as_object().unwrap().keys().collect();
    let expected = ["at", "decision", "desired", "desiredReady", "occupied", "ready", "reason", "total"];
    assert_eq!(keys, expected);
    assert_eq!(first["decision"], "Scale Up: +2");
    assert_eq!(newest["decision"], "Do Nothing: 0");
    assert!(newest["at"].as_str() > first["at"].as_str());
    let reply = world.get("/schedulers/nope/autoscaling").await;
    reply.refused(404, 5, "scheduler nope not found");
}
