//! Regions over the wire: which can be reached, what people say about them, and what becomes of rooms in one that is
//! lost and comes back.

use std::time::Duration;

use maestro_engine::Parts;
use serde_json::{Value, json};

use crate::support::{World, recipe};

const EU: &str = "eu-west";
const US: &str = "us-east";

async fn two_regions() -> World {
    World::running_with_regions(&[EU, US]).await
}

/// Rooms that are in `eu-west` while it is there, and elsewhere while it is not.
fn recipe_for_eu(rooms: u32) -> Value {
    let mut recipe = recipe("arena", rooms);
    recipe["placement"] = json!({"regions": [{"name": EU, "weight": 1000}, {"name": US, "weight": 1}]});
    recipe
}

async fn arena_in_eu(rooms: u32) -> World {
    let world = two_regions().await;
    world.post("/schedulers", &recipe_for_eu(rooms)).await.ok();
    world.settle("arena").await;
    assert_eq!(counts(&world), (rooms as usize, 0));
    world
}

/// What really runs in `eu-west` and in `us-east`.
fn counts(world: &World) -> (usize, usize) {
    (world.runtimes[EU].rooms().len(), world.runtimes[US].rooms().len())
}

async fn region(world: &World, name: &str) -> Value {
    let regions = world.get("/regions").await.ok();
    let regions = regions["regions"].as_array().unwrap().clone();
    regions.into_iter().find(|region| region["name"] == name).unwrap()
}

/// Lets rooms ping and time pass until it is so.
async fn until(world: &World, what: &str, is_so: impl AsyncFn(&World) -> bool) {
    until_beside(world, &[], what, is_so).await;
}

/// The same, but these rooms do not ping.
async fn until_beside(world: &World, silent: &[String], what: &str, is_so: impl AsyncFn(&World) -> bool) {
    for _ in 0..600 {
        for runtime in world.runtimes.values() {
            for room in runtime.rooms().into_iter().filter(|room| !silent.contains(room)) {
                let path = format!("/scheduler/arena/rooms/{room}/ping");
                world.ask("PUT", &path, r#"{"status":"ready"}"#).await;
            }
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        if is_so(world).await {
            return;
        }
    }
    panic!("not so: {what}: {:?}", counts(world));
}

async fn until_reachable(world: &World, name: &str, reachable: bool) {
    let is_so = async |world: &World| region(world, name).await["reachable"] == reachable;
    until(world, &format!("{name} to be reachable: {reachable}"), is_so).await;
}

#[tokio::test(start_paused = true)]
async fn regions_are_listed_with_their_rooms() {
    let world = arena_in_eu(2).await;
    let rooms = |ready: u32| {
        json!({"ready": ready, "pending": 0, "unready": 0, "active": 0, "occupied": 0, "allocated": 0,
               "terminating": 0, "terminated": 0, "error": 0})
    };
    let listed = |name: &str, ready| {
        json!({"name": name, "reachable": true, "cordoned": false, "draining": false, "reason": "",
               "capacity": null, "rooms": rooms(ready)})
    };
    let expected = json!({"regions": [listed(EU, 2), listed(US, 0)]});
    world.get("/regions").await.check(200, &expected);
    let room = world.get("/schedulers/arena/rooms").await.ok()["rooms"][0].clone();
    assert_eq!(room["region"], EU);
}

#[tokio::test(start_paused = true)]
async fn who_cordons_or_drains_is_recorded_and_why() {
    let world = World::with_regions(&[EU, US]);
    let state = async || {
        let region = region(&world, EU).await;
        (
            region["cordoned"] == true,
            region["draining"] == true,
            region["reason"].as_str().unwrap().to_owned(),
        )
    };
    // (order, how the reason is given, body) → (cordoned, draining, reason)
    for (order, query, body, expected) in [
        ("cordon", "?reason=slow%20network", json!({}), (true, false, "cordoned by anonymous: slow network")),
        ("drain", "", json!({"reason": "new machines"}), (true, true, "drained by anonymous: new machines")),
        // Who cordons what is drained does not end that.
        ("cordon", "", json!({}), (true, true, "drained by anonymous: no reason given")),
        ("uncordon", "?reason=done", json!({}), (false, false, "")),
        ("uncordon", "", json!({}), (false, false, "")),
    ] {
        world.post(&format!("/regions/{EU}/{order}{query}"), &body).await.check(200, &json!({}));
        let (cordoned, draining, reason) = expected;
        assert_eq!(state().await, (cordoned, draining, reason.to_owned()), "{order}");
    }
    let records = world.engine.ports().store.regions().await.unwrap();
    let said: Vec<_> = records.iter().map(|record| (&*record.name.0, &*record.by, &*record.reason)).collect();
    assert_eq!(said, [(EU, "anonymous", "no reason given")]);
}

#[tokio::test(start_paused = true)]
async fn orders_that_cannot_be() {
    let world = World::with_regions(&[EU, US]);
    for order in ["cordon", "uncordon", "drain", "confirm-lost"] {
        let reply = world.post(&format!("/regions/mars/{order}"), &json!({})).await;
        reply.refused(404, 5, "region mars not found; there are: eu-west, us-east");
    }
    let reply = world.post(&format!("/regions/{EU}/cordon?reason=a%0Ab"), &json!({})).await;
    assert_eq!(reply.status, 400, "{}", reply.text);
    assert_eq!(world.get(&format!("/regions/{EU}/cordon")).await.status, 405);
    assert_eq!(world.engine.ports().store.regions().await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn rooms_that_stop_pinging_together_go_when_that_is_confirmed() {
    let world = arena_in_eu(6).await;
    let path = format!("/regions/{EU}/confirm-lost?reason=gone");
    let refusal = "region eu-west has no rooms that stopped pinging together; there is nothing to confirm";
    world.post(&path, &json!({})).await.refused(409, 10, refusal);
    let silent = world.runtimes[EU].rooms();
    let are_replaced = async |world: &World| {
        let rooms = region(world, EU).await["rooms"].clone();
        (&rooms["ready"], &rooms["unready"]) == (&json!(6), &json!(6))
    };
    until_beside(&world, &silent, "others to be ready, and them not", are_replaced).await;
    let reason = region(&world, EU).await["reason"].as_str().unwrap().to_owned();
    assert!(
        reason.starts_with("6 rooms stopped pinging together and are not considered dead yet"),
        "{reason}"
    );
    let room = world.get(&format!("/schedulers/arena/rooms/{}", silent[0])).await.ok();
    assert_eq!(room["status"], "ready");
    assert_eq!(room["silent"]["since"], room["lastPingAt"]);
    assert!(room["silent"]["until"].is_string(), "{room}");
    tokio::time::sleep(Duration::from_secs(10)).await;
    let shown = world.metrics("maestro_region_silent_rooms");
    assert!(shown.contains(&r#"maestro_region_silent_rooms{region="eu-west"} 6"#.to_owned()), "{shown:?}");

    world.post(&path, &json!({})).await.check(200, &json!({}));
    let gone = async |world: &World| world.runtimes[EU].rooms().iter().all(|room| !silent.contains(room));
    until_beside(&world, &silent, "them to be gone", gone).await;
    until(&world, "six others", async |world| world.room_ids("arena").await.len() == 6).await;
    let ready = region(&world, EU).await["rooms"]["ready"].as_u64().unwrap();
    assert_eq!((ready, region(&world, EU).await["reason"].as_str()), (6, Some("")));
    let record = world.engine.ports().store.regions().await.unwrap().remove(0);
    assert_eq!((record.cordoned, &*record.by, &*record.reason), (false, "anonymous", "gone"));
}

#[tokio::test(start_paused = true)]
async fn a_cordoned_region_gets_no_new_rooms() {
    let world = two_regions().await;
    world.post(&format!("/regions/{EU}/cordon?reason=slow"), &json!({})).await.ok();
    world.post("/schedulers", &recipe("arena", 2)).await.ok();
    world.settle("arena").await;
    assert_eq!(counts(&world), (0, 2));
    world.post(&format!("/regions/{US}/drain?reason=old"), &json!({})).await.ok();
    let id = world.enqueue("/schedulers/arena/add-rooms", &json!({"amount": 1})).await;
    world.settle("arena").await;
    let operation = world.get(&format!("/schedulers/arena/operations/{id}")).await.ok();
    assert_eq!(operation["operation"]["status"], "error");
    let history = operation["operation"]["executionHistory"].to_string();
    let why = "no region may have new rooms: eu-west is cordoned by anonymous: slow; us-east is drained by anonymous: old";
    assert!(history.contains(why), "{history}");
    world.post(&format!("/regions/{US}/uncordon"), &json!({})).await.ok();
    world.enqueue("/schedulers/arena/add-rooms", &json!({"amount": 1})).await;
    world.settle("arena").await;
    assert_eq!(counts(&world), (0, 3));
}

#[tokio::test(start_paused = true)]
async fn a_lost_region_is_stood_in_for_and_counted_again_when_it_is_back() {
    let world = arena_in_eu(3).await;
    let before = world.runtimes[EU].rooms();
    world.runtimes[EU].set_away(true);
    until_reachable(&world, EU, false).await;
    let lost = region(&world, EU).await;
    let reason = lost["reason"].as_str().unwrap();
    assert!(reason.starts_with("cannot be reached: no route to host (since "), "{reason}");
    assert_eq!(lost["rooms"]["ready"], 3);
    until(&world, "three rooms elsewhere", async |world| counts(world) == (3, 3)).await;
    let adds =
        world.get("/schedulers/arena/operations?stage=final&view=full").await.ok()["operations"].to_string();
    assert!(adds.contains("0 of 3 rooms (and 3 in regions that cannot be reached): adding 3"), "{adds}");
    let shown = world.metrics("maestro_region_");
    for line in [
        r#"maestro_region_reachable{region="eu-west"} 0"#,
        r#"maestro_region_reachable{region="us-east"} 1"#,
        r#"maestro_region_changes_total{region="eu-west",to="unreachable"} 1"#,
    ] {
        assert!(shown.iter().any(|shown| shown == line), "{line} in {shown:?}");
    }
    // Longer than any timeout of a room: what cannot be seen is neither deleted nor ended.
    let hours_later = world.now() + Duration::from_secs(2 * 3600);
    while world.now() < hours_later {
        let rooms = world.runtimes[US].rooms();
        for room in rooms {
            let path = format!("/scheduler/arena/rooms/{room}/ping");
            world.ask("PUT", &path, r#"{"status":"ready"}"#).await;
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    assert_eq!(world.runtimes[EU].rooms(), before);
    assert_eq!(world.room_ids("arena").await.len(), 6);
    // Back again they are counted, and what is too many goes.
    world.runtimes[EU].set_away(false);
    until(&world, "three rooms in all", async |world| {
        let (eu, us) = counts(world);
        eu + us == 3 && world.room_ids("arena").await.len() == 3
    })
    .await;
    assert_eq!(region(&world, EU).await["reachable"], true);
}

#[tokio::test(start_paused = true)]
async fn an_engine_starts_although_a_region_does_not_answer() {
    let mut world = World::with_regions(&[EU, US]);
    world.runtimes[EU].set_away(true);
    world.start(Parts::ALL).await;
    assert_eq!(region(&world, EU).await["reachable"], false);
    world.post("/schedulers", &recipe("arena", 2)).await.ok();
    world.settle("arena").await;
    assert_eq!(counts(&world), (0, 2));
    // The scheduler has a place there as soon as the region is back.
    world.runtimes[EU].set_away(false);
    until_reachable(&world, EU, true).await;
    world.enqueue("/schedulers/arena/add-rooms", &json!({"amount": 2})).await;
    world.settle("arena").await;
    assert_eq!(counts(&world), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_deletion_waits_for_a_lost_region_unless_it_is_forced() {
    let world = arena_in_eu(2).await;
    world.runtimes[EU].set_away(true);
    until_reachable(&world, EU, false).await;
    until(&world, "rooms elsewhere", async |world| counts(world) == (2, 2)).await;
    let id = world.ask("DELETE", "/schedulers/arena", "").await.ok()["operationId"].clone();
    until(&world, "only the lost ones to be left", async |world| counts(world) == (2, 0)).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let path = format!("/schedulers/arena/operations/{}?view=full", id.as_str().unwrap());
    let waits = world.get(&path).await.ok()["operation"].clone();
    let waiting_for = "2 rooms to be gone, 2 of them in region eu-west, which cannot be reached";
    assert_eq!(waits["waitingFor"], waiting_for);
    let forced = world.ask("DELETE", "/schedulers/arena?force=true", "").await.ok()["operationId"].clone();
    assert_eq!(forced, id);
    let is_gone = async |world: &World| world.get("/schedulers/arena").await.status == 404;
    until(&world, "the scheduler to be gone", is_gone).await;
    let history = world.get(&path).await.ok()["operation"]["executionHistory"].to_string();
    assert!(history.contains("forced by anonymous"), "{history}");
    assert!(history.contains("forgot 2 rooms by force"), "{history}");
    // They run on, and are stopped as unwanted when their region is back.
    assert_eq!(counts(&world), (2, 0));
    world.runtimes[EU].set_away(false);
    until(&world, "nothing to be left", async |world| counts(world) == (0, 0)).await;
}

#[tokio::test(start_paused = true)]
async fn old_rooms_of_a_lost_region_keep_a_rollout_open() {
    let world = arena_in_eu(2).await;
    world.runtimes[EU].set_away(true);
    until_reachable(&world, EU, false).await;
    let mut next = recipe_for_eu(2);
    next["spec"]["containers"][0]["image"] = json!("room:2");
    world.enqueue("/schedulers/arena", &next).await;
    let waits = async |world: &World| {
        let rollout = world.get("/schedulers/arena/rollout").await.ok();
        rollout["waitingFor"] == "region eu-west to be reached (2 old rooms are there)"
    };
    until(&world, "the rollout to wait for the region", waits).await;
    let rollout = world.get("/schedulers/arena/rollout").await.ok();
    assert_eq!(
        (&rollout["state"], &rollout["oldRooms"], &rollout["newRooms"]),
        (&json!("rolling"), &json!(2), &json!(2))
    );
    world.runtimes[EU].set_away(false);
    let is_over = async |world: &World| world.get("/schedulers/arena/rollout").await.ok()["state"] == "none";
    until(&world, "the rollout to end", is_over).await;
    assert_eq!(counts(&world), (0, 2));
}
