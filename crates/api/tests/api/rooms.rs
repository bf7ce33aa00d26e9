//! The rooms API, beyond what is recorded of v10.

use axum::body::Body;
use prometheus_client::encoding::text::encode;
use serde_json::json;

use crate::support::{World, recipe};

#[tokio::test(start_paused = true)]
async fn a_ping_changes_the_room() {
    let world = World::running().await;
    let mut many = recipe("arena", 1);
    many["matchAllocation"] = json!({"maxMatches": 3});
    world.post("/schedulers", &many).await.ok();
    world.settle("arena").await;
    let room = world.room_ids("arena").await.remove(0);
    for (path, body, status) in [
        ("ping", r#"{"status":"occupied","runningMatches":"2"}"#, "active"),
        ("ping", r#"{"status":"occupied","running_matches":3,"timestamp":1}"#, "occupied"),
        ("status", r#"{"status":"ready","metadata":{"map":"lava"}}"#, "ready"),
    ] {
        let reply = world.ask("PUT", &format!("/scheduler/arena/rooms/{room}/{path}"), body).await;
        assert_eq!((reply.status, reply.text.as_str()), (200, r#"{"success":true}"#));
        let shown = world.get(&format!("/schedulers/arena/rooms/{room}")).await.ok();
        assert_eq!(shown["status"], status);
    }
    // What a room says about itself is shown where one asks for it, and not in lists.
    let shown = world.get(&format!("/schedulers/arena/rooms/{room}")).await.ok();
    assert_eq!(shown["metadata"], json!({"map": "lava"}));
    let listed = world.get("/schedulers/arena/rooms").await.ok();
    assert_eq!(listed["rooms"][0].get("metadata"), None);
    // Names may come encoded.
    let encoded = room.replace('-', "%2D");
    let reply =
        world.ask("PUT", &format!("/scheduler/aren%61/rooms/{encoded}/ping"), r#"{"status":"ready"}"#).await;
    reply.check(200, &json!({"success": true}));
}

#[tokio::test(start_paused = true)]
async fn a_room_that_says_too_much_is_refused() {
    let world = World::standing();
    let long = format!(r#"{{"status":"ready","metadata":{{"x":"{}"}}}}"#, "x".repeat(64 * 1024));
    let reply = world.ask("PUT", "/scheduler/arena/rooms/r/ping", long).await;
    reply.refused(413, 8, "body: longer than the limit of 65536 bytes");
}

#[tokio::test(start_paused = true)]
async fn failed_pings_are_counted_by_schedulers_that_exist() {
    let world = World::standing();
    world.post("/schedulers", &recipe("arena", 1)).await.ok();
    for scheduler in ["arena", "made-up-1", "arena", "made-up-2"] {
        let path = format!("/scheduler/{scheduler}/rooms/ghost/ping");
        world.ask("PUT", &path, r#"{"status":"ready"}"#).await.check(200, &json!({"success": false}));
    }
    let mut text = String::new();
    encode(&mut text, &world.registry).unwrap();
    let name = "maestro_api_ping_handler_update_room_failures_total";
    let mut lines: Vec<_> = text.lines().filter(|line| line.starts_with(name)).collect();
    lines.sort_unstable();
    let expected = ["arena", "unknown"].map(|scheduler| format!(r#"{name}{{scheduler="{scheduler}"}} 2"#));
    assert_eq!(lines, expected);
}

#[tokio::test(start_paused = true)]
async fn the_empty_route_is_not_there_unless_asked_for() {
    let world = World::standing();
    let request = axum::http::Request::get("/bench/empty").body(Body::empty()).unwrap();
    world.send("rooms", request).await.refused(404, 5, "Not Found");
}
