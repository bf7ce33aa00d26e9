//! Schedulers and rooms on the management API, beyond what is recorded of v10.

use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use maestro_api::{AllowedHosts, Context, Limits, Metrics, RoomsOptions, management_router, rooms_router};
use prometheus_client::registry::Registry;
use serde_json::{Value, json};

use crate::support::{World, recipe};

#[tokio::test(start_paused = true)]
async fn keys_come_in_the_schemas_order() {
    let world = World::standing();
    let created = world.post("/schedulers", &recipe("arena", 1)).await;
    let expected = concat!(
        r#"{"scheduler":{"name":"arena","game":"brawl","state":"creating","portRange":{"start":20000,"end":29999},"#,
        r#""createdAt":"2026-11-15T09:06:47.340425748Z","maxSurge":"25%","roomsReplicas":1,"spec":{"version":"v1.0.0","#,
        r#""terminationGracePeriod":"5s","containers":[{"name":"room","image":"room:1","#,
        r#""imagePullPolicy":"IfNotPresent","command":["/room"],"environment":[],"#,
        r#""requests":{"memory":"16Mi","cpu":"5m"},"limits":{"memory":"64Mi","cpu":"100m"},"#,
        r#""ports":[{"name":"game","protocol":"udp","port":7777,"hostPort":0}]}],"toleration":"","affinity":"","#,
        r#""restartPolicy":"Never"},"forwarders":[],"annotations":{},"labels":{},"matchAllocation":{"maxMatches":1}}}"#,
    );
    assert_eq!(created.text, expected);
}

#[tokio::test(start_paused = true)]
async fn both_spellings_of_a_name_are_read() {
    let world = World::standing();
    let mut snake = recipe("arena", 1);
    snake["rooms_replicas"] = json!("2");
    snake.as_object_mut().unwrap().remove("roomsReplicas");
    let reply = world.post("/schedulers", &snake).await;
    assert!(!reply.headers.contains_key("warning"));
    assert_eq!(reply.ok()["scheduler"]["roomsReplicas"], 2);
}

#[tokio::test(start_paused = true)]
async fn unknown_fields_are_named_or_refused() {
    let world = World::standing();
    let mut odd = recipe("arena", 1);
    odd["spec"]["colour"] = json!("red");
    odd["spec"]["containers"][0]["ports"][0]["velocity"] = json!(9);
    odd["maxsurge"] = json!("5");
    odd["labels"] = json!({"any": "name"});
    odd["forwarders"] = json!([{"name": "f", "enable": false, "type": "gRPC", "address": "h:1",
        "options": {"timeout": "1000", "metadata": {"any": {"thing": [1]}}}}]);

    let refused = world.post("/schedulers?strict=true", &odd).await;
    let message = "unknown field maxsurge\nunknown field spec.colour\nunknown field spec.containers[0].ports[0].velocity";
    refused.refused(400, 3, message);
    world.get("/schedulers").await.check(200, &json!({"schedulers": []}));

    let accepted = world.post("/schedulers?strict=false", &odd).await;
    assert_eq!(accepted.status, 200, "{}", accepted.text);
    let warnings: Vec<_> = accepted.headers.get_all("warning").iter().collect();
    assert_eq!(
        warnings,
        [
            r#"299 maestro "unknown field maxsurge; did you mean maxSurge?""#,
            r#"299 maestro "unknown field spec.colour""#,
            r#"299 maestro "unknown field spec.containers[0].ports[0].velocity""#,
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn everything_wrong_with_a_recipe_is_said_at_once() {
    let world = World::standing();
    let mut wrong = recipe("Arena", 1);
    wrong["game"] = json!("");
    wrong["maxSurge"] = json!("x");
    let reply = world.post("/schedulers", &wrong).await;
    assert_eq!(reply.status, 400);
    let answer = reply.json();
    assert_eq!(answer["code"], 3);
    let lines: Vec<_> = answer["message"].as_str().unwrap().lines().collect();
    assert_eq!(lines[0], "Validation Error:");
    for (line, field) in lines[1..].iter().zip(["name: ", "game: ", "maxSurge: "]) {
        assert!(line.starts_with(field), "{lines:?}");
    }
    assert_eq!(lines.len(), 4, "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_named() {
    let world = World::standing();
    let wrong_type = r#"{"spec":{"containers":[{"ports":[{"port":"high"}]}]}}"#;
    let reply = world.ask("POST", "/schedulers", wrong_type).await;
    assert_eq!(reply.status, 400);
    let message = reply.json()["message"].as_str().unwrap().to_owned();
    assert!(
        message.starts_with(r#"spec.containers[0].ports[0].port: invalid value: string "high""#),
        "{message}"
    );

    let too_long = " ".repeat(1024 * 1024 + 1);
    let reply = world.ask("POST", "/schedulers", too_long).await;
    reply.refused(413, 8, "body: longer than the limit of 1048576 bytes");

    let reply = world.post("/schedulers?strict=perhaps", &recipe("arena", 1)).await;
    let message = r#"query parameter strict: invalid value: string "perhaps", expected true or false"#;
    reply.refused(400, 3, message);
    let reply = world.get("/schedulers/%ff").await;
    assert_eq!(reply.status, 400, "{}", reply.text);
    assert_eq!(reply.json()["code"], 3);
}

#[tokio::test(start_paused = true)]
async fn full_versions_have_their_status() {
    let world = World::running().await;
    world.post("/schedulers", &recipe("arena", 1)).await.ok();
    world.settle("arena").await;
    let plain = world.get("/schedulers/arena/versions").await.ok();
    assert!(plain["versions"][0].get("status").is_none());
    let full = world.get("/schedulers/arena/versions?view=full").await.ok();
    assert_eq!(full["versions"][0]["status"], "deployed");
    let reply = world.get("/schedulers/arena/versions?view=half").await;
    let message = r#"query parameter view: "half" is not a view; write full, or leave it out"#;
    reply.refused(400, 3, message);
}

/// v10's clients expect a threshold, and people submit what they have read.
#[tokio::test(start_paused = true)]
async fn a_threshold_that_is_not_set_is_shown_as_one_that_holds_nothing_back() {
    let world = World::running().await;
    let mut autoscaled = recipe("arena", 1);
    autoscaled["autoscaling"] = json!({"enabled": true, "min": 1, "max": 5,
        "policy": {"type": "roomOccupancy", "parameters": {"roomOccupancy": {"readyTarget": 0.5}}}});
    world.post("/schedulers", &autoscaled).await.ok();
    world.settle("arena").await;
    let shown = world.get("/schedulers/arena").await.ok();
    let occupancy = &shown["scheduler"]["autoscaling"]["policy"]["parameters"]["roomOccupancy"];
    assert_eq!(occupancy.to_string(), r#"{"downThreshold":1,"readyTarget":0.5}"#);
    // As in v10 that makes a version, which differs in nothing.
    let submitted = world.post("/schedulers/arena", &shown["scheduler"]).await.ok();
    world.settle("arena").await;
    let id = submitted["operationId"].as_str().unwrap();
    let operation = world.get(&format!("/schedulers/arena/operations/{id}?view=full")).await.ok();
    let data = &operation["operation"]["data"];
    assert_eq!((&data["version"], &data["fields"]), (&json!("v1.1.0"), &json!([])), "{data}");
}

/// What is shown is what was written, digit by digit, as a number.
#[tokio::test(start_paused = true)]
async fn a_ready_target_keeps_all_its_digits() {
    let world = World::running().await;
    let mut autoscaled = recipe("arena", 1);
    autoscaled["autoscaling"] = json!({"enabled": true, "min": 1, "max": 5,
        "policy": {"type": "roomOccupancy", "parameters": {"roomOccupancy": {"readyTarget": "TARGET"}}}});
    let text = autoscaled.to_string();
    let with = |target: &str| text.replace("\"TARGET\"", target);
    world.ask("POST", "/schedulers", with("0.123456789012345678")).await.ok();
    world.settle("arena").await;
    let shown = world.get("/schedulers/arena").await.text;
    assert!(shown.contains(r#""readyTarget":0.123456789012345678,"#), "{shown}");

    for (target, reason) in [
        ("0.999999999999999999", "0.999999999999999999 is not between 0.1 and 0.9"),
        ("0.1234567890123456789", "0.1234567890123456789 has more than 18 digits after the point"),
    ] {
        let reply = world.ask("POST", "/schedulers/arena", with(target)).await;
        let field = "autoscaling.policy.parameters.roomOccupancy.readyTarget";
        reply.refused(400, 3, &format!("Validation Error:\n{field}: {reason}"));
    }
}

fn without_what_containers_need() -> Value {
    let mut bare = recipe("arena", 1);
    let container = bare["spec"]["containers"][0].as_object_mut().unwrap();
    for key in ["image", "imagePullPolicy", "requests", "limits"] {
        container.remove(key);
    }
    bare
}

#[tokio::test(start_paused = true)]
async fn containers_need_an_image_and_resources() {
    let world = World::running().await;
    world.runtimes.values().for_each(|runtime| runtime.run_containers());
    let reply = world.post("/schedulers", &without_what_containers_need()).await;
    assert_eq!(reply.status, 400, "{}", reply.text);
    assert!(reply.text.contains("spec.containers[0].image: is missing"), "{}", reply.text);
    world.post("/schedulers", &recipe("arena", 1)).await.ok();
}

/// A process needs neither an image nor resources.
#[tokio::test(start_paused = true)]
async fn what_only_containers_need_may_be_left_out() {
    let world = World::running().await;
    let mut bare = without_what_containers_need();
    let container = bare["spec"]["containers"][0].as_object_mut().unwrap();
    container.insert("command".into(), json!(["/room", 1]));
    world.post("/schedulers", &bare).await.ok();
    let shown = world.get("/schedulers/arena").await.ok();
    let container = &shown["scheduler"]["spec"]["containers"][0];
    assert_eq!(container["command"], json!(["/room", "1"]));
    assert_eq!((&container["image"], &container["requests"]), (&json!(""), &json!(null)));
    assert_eq!(container["imagePullPolicy"], "IfNotPresent");
}

#[tokio::test(start_paused = true)]
async fn info_counts_rooms_by_what_they_do() {
    let world = World::running().await;
    let mut autoscaled = recipe("arena", 3);
    autoscaled["autoscaling"] = json!({"enabled": false, "min": 1, "max": -1, "cooldown": 30,
        "policy": {"type": "fixedBuffer", "parameters": {"fixedBuffer": {"amount": 2}}}});
    world.post("/schedulers", &autoscaled).await.ok();
    world.settle("arena").await;
    let rooms = world.room_ids("arena").await;
    let path = format!("/scheduler/arena/rooms/{}/ping", rooms[0]);
    world.ask("PUT", &path, r#"{"status":"occupied"}"#).await.ok();
    let info = world.get("/schedulers/info?game=brawl").await.ok();
    let expected = json!({"schedulers": [{
        "name": "arena", "game": "brawl", "state": "in-sync", "roomsReplicas": 3, "roomsReady": 2,
        "roomsOccupied": 1, "roomsPending": 0, "roomsTerminating": 0,
        "autoscaling": {"enabled": false, "min": 1, "max": -1, "cooldown": 30},
    }]});
    assert_eq!(info, expected);
}

#[tokio::test(start_paused = true)]
async fn rooms_are_listed_read_and_logged() {
    let world = World::running().await;
    world.post("/schedulers", &recipe("arena", 2)).await.ok();
    world.settle("arena").await;
    let listed = world.get("/schedulers/arena/rooms").await.ok();
    let room = &listed["rooms"][0];
    let keys: Vec<_> = room.as_object().unwrap().keys().collect();
    let expected = [
        "createdAt",
        "host",
        "id",
        "lastPingAt",
        "pids",
        "ports",
        "region",
        "status",
        "validation",
        "version",
    ];
    assert_eq!(keys, expected);
    assert_eq!(room["status"], "ready");
    assert_eq!(room["region"], "default");
    assert_eq!(room["pids"], json!([4711]));
    assert_eq!(room["ports"][0]["protocol"], "UDP");

    let id = room["id"].as_str().unwrap();
    let path = format!("/schedulers/arena/rooms/{id}");
    world.get(&path).await.check(200, room);
    let logs = world.get(&format!("{path}/logs?tail=2")).await;
    assert_eq!(logs.text, format!("{id} line 2\n{id} line 3\n"));
    assert_eq!(logs.headers["content-type"], "text/plain; charset=utf-8");
    let message = "query parameter tail: 10001 is above the limit of 10000 lines";
    world.get(&format!("{path}/logs?tail=10001")).await.refused(400, 3, message);
    let reply = world.get("/schedulers/arena/rooms/ghost").await;
    reply.refused(404, 5, "room ghost not found in scheduler arena");
    let reply = world.get("/schedulers/nope/rooms").await;
    reply.refused(404, 5, "scheduler nope not found");
}

#[tokio::test(start_paused = true)]
async fn rooms_are_added_and_removed() {
    let world = World::running().await;
    world.post("/schedulers", &recipe("arena", 1)).await.ok();
    world.settle("arena").await;
    let added = world.post("/schedulers/arena/add-rooms", &json!({"amount": 2})).await.ok();
    assert!(added["operationId"].is_string());
    world.settle("arena").await;
    let before = world.room_ids("arena").await;
    assert_eq!(before.len(), 3);

    // One if no number is given.
    world.ask("POST", "/schedulers/arena/remove-rooms", Body::empty()).await.ok();
    world.settle("arena").await;
    let after = world.room_ids("arena").await;
    assert_eq!(after.len(), 2);
    let gone = before.iter().find(|id| !after.contains(id)).unwrap();
    let ended = world.get(&format!("/schedulers/arena/rooms/{gone}")).await.ok();
    assert_eq!(ended["status"], "terminated");
    assert!(ended["ended"]["how"].as_str().is_some_and(|how| !how.is_empty()), "{ended}");
    assert!(ended["ended"]["at"].is_string());

    let reply = world.post("/schedulers/arena/add-rooms", &json!({"amount": -1})).await;
    reply.refused(400, 3, "amount must be at least 1, and is -1");
    let reply = world.post("/schedulers/arena/add-rooms?strict=1", &json!({"amuont": 3})).await;
    reply.refused(400, 3, "unknown field amuont");
    assert_eq!(world.post("/schedulers/nope/add-rooms", &json!({})).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn who_asks_is_recorded() {
    let world = World::standing();
    world.post("/schedulers", &recipe("arena", 1)).await.ok();
    for (user, recorded) in [
        (None, Some("asked for by anonymous; fleet size 1 → 2")),
        (Some("jo@laptop"), Some("asked for by jo@laptop; fleet size 2 → 3")),
        (Some("Jürgen"), Some("asked for by Jürgen; fleet size 3 → 4")),
        (Some(""), None),
        (Some("\tx\ty"), None),
    ] {
        check_user(&world, user, recorded).await;
    }
    check_user(&world, Some(&"x".repeat(129)), None).await;
}

async fn check_user(world: &World, user: Option<&str>, recorded: Option<&str>) {
    let mut request = Request::post("/schedulers/arena/add-rooms").body(Body::from("{}")).unwrap();
    if let Some(user) = user {
        let value = axum::http::HeaderValue::from_bytes(user.as_bytes()).unwrap();
        request.headers_mut().insert("x-maestro-user", value);
    }
    let reply = world.send("management", request).await;
    let Some(recorded) = recorded else {
        let message = "header X-Maestro-User: write a name of 1 to 128 printable characters";
        return reply.refused(400, 3, message);
    };
    let id = reply.ok()["operationId"].as_str().unwrap().to_owned();
    let path = format!("/schedulers/arena/operations/{id}?view=full");
    assert_eq!(world.get(&path).await.ok()["operation"]["reason"], recorded);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_scheduler_is_deleting_and_then_gone() {
    let world = World::running().await;
    world.post("/schedulers", &recipe("arena", 1)).await.ok();
    world.settle("arena").await;
    let deleted = world.ask("DELETE", "/schedulers/arena", Body::empty()).await.ok();
    assert_eq!(world.get("/schedulers/arena").await.ok()["scheduler"]["state"], "deleting");
    for _ in 0..1000 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        if world.get("/schedulers/arena").await.status == 404 {
            break;
        }
    }
    world.get("/schedulers/arena").await.refused(404, 5, "scheduler arena not found");
    let id = deleted["operationId"].as_str().unwrap();
    let operation = world.get(&format!("/schedulers/arena/operations/{id}")).await.ok();
    assert_eq!(operation["operation"]["status"], "finished");
    assert_eq!(operation["operation"]["input"], Value::Object(serde_json::Map::new()));
}

#[tokio::test(start_paused = true)]
async fn where_all_places_are_taken_both_apis_say_so_at_once() {
    let mut world = World::standing();
    let context = Context {
        engine: Arc::clone(&world.engine),
        metrics: Metrics::register(&mut Registry::default()),
        new_request_id: Arc::new(|| 1),
        allowed_hosts: AllowedHosts::default(),
    };
    let full = |limits: Limits| Limits { requests_max: 0, ..limits };
    world.management = management_router(&context, &full(Limits::MANAGEMENT));
    let options = RoomsOptions { limits: full(Limits::ROOMS), ..RoomsOptions::default() };
    world.rooms = rooms_router(&context, &options);
    for path in ["/schedulers", "/scheduler/arena/rooms/arena-1/address"] {
        let reply = world.get(path).await;
        reply.refused(503, 14, "too many requests at once; try again in a second");
        assert_eq!(reply.headers["retry-after"], "1");
    }
}
