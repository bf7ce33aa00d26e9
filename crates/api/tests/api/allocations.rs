//! Rooms for matchmakers: what is handed over, and what is refused with nothing changed.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, Version};
use futures_util::future::join_all;
use maestro_proto::rpc::Method;
use maestro_proto::v1::CreateAllocationsRequest;
use maestro_proto::v1::allocations_service::CreateAllocations;
use prost::Message;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::{Reply, World, recipe};

const ALLOCATIONS: &str = "/schedulers/arena/allocations";

/// A fleet of ready rooms, which hold one match each.
async fn arena(rooms: u32) -> World {
    world_of(&recipe("arena", rooms)).await
}

async fn world_of(recipe: &Value) -> World {
    let world = World::running().await;
    world.post("/schedulers", recipe).await.ok();
    world.settle("arena").await;
    world
}

impl World {
    async fn allocate(&self, request: Value) -> Reply {
        self.post(ALLOCATIONS, &request).await
    }

    async fn allocated(&self, request: Value) -> Vec<Value> {
        self.allocate(request).await.ok()["allocations"].as_array().unwrap().clone()
    }

    async fn listed(&self, query: &str) -> Vec<Value> {
        self.get(&format!("{ALLOCATIONS}{query}")).await.ok()["allocations"].as_array().unwrap().clone()
    }

    async fn state(&self, id: &Value) -> Value {
        let path = format!("{ALLOCATIONS}/{}", id.as_str().unwrap());
        self.get(&path).await.ok()["allocation"]["state"].take()
    }

    async fn give_back(&self, id: &Value) -> Reply {
        self.ask("DELETE", &format!("{ALLOCATIONS}/{}", id.as_str().unwrap()), Body::empty()).await
    }

    async fn ping(&self, room: &Value, body: &Value) -> Value {
        let path = format!("/scheduler/arena/rooms/{}/ping", room.as_str().unwrap());
        let request = Request::put(path).header("maestro-view", "full").body(Body::from(body.to_string()));
        self.send("rooms", request.unwrap()).await.ok()
    }
}

#[tokio::test(start_paused = true)]
async fn a_room_is_held_until_its_match_begins() {
    let world = arena(2).await;
    let request = json!({"metadata": {"map": "lava"}, "ttlMillis": 60000});
    let [first] = world.allocated(request).await.try_into().unwrap();
    assert_eq!(
        (&first["state"], &first["region"], &first["version"]),
        (&json!("held"), &json!("default"), &json!("v1.0.0"))
    );
    assert!(first["host"] != "" && first["ports"][0]["port"].is_u64(), "{first}");
    let shown =
        world.get(&format!("/schedulers/arena/rooms/{}", first["roomId"].as_str().unwrap())).await.ok();
    assert_eq!(shown["status"], "allocated");

    let told = world.ping(&first["roomId"], &json!({"status": "ready"})).await;
    let expected = json!({"id": first["id"], "metadata": {"map": "lava"}, "expiresAt": first["expiresAt"]});
    assert_eq!(told, json!({"success": true, "allocations": [expected]}));
    let path = format!("/scheduler/arena/rooms/{}/ping", first["roomId"].as_str().unwrap());
    world.ask("PUT", &path, r#"{"status":"ready"}"#).await.check(200, &json!({"success": true}));

    let told = world.ping(&first["roomId"], &json!({"status": "occupied", "runningMatches": 1})).await;
    assert_eq!(told, json!({"success": true, "allocations": []}));
    let [second] = world.allocated(json!({})).await.try_into().unwrap();
    assert_ne!(first["roomId"], second["roomId"]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.state(&first["id"]).await, "begun");
    assert_eq!(world.listed("?state=held").await, [second]);
}

#[tokio::test(start_paused = true)]
async fn several_at_once_or_none() {
    let world = arena(3).await;
    let refused = world.allocate(json!({"count": 4})).await;
    assert_eq!((refused.status, refused.json()["code"].clone()), (429, json!(8)));
    assert_eq!(world.listed("").await, [] as [Value; 0]);
    assert_eq!(world.allocated(json!({"count": 3})).await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn who_finds_no_room_is_told_why() {
    let world = arena(1).await;
    world.allocated(json!({})).await;
    let refused = world.allocate(json!({})).await;
    assert_eq!(refused.headers["retry-after"], "1");
    let detail = json!({
        "@type": "type.googleapis.com/maestro.api.v1.NoRoomsAvailable",
        "ready": 0, "occupied": 1, "held": 1, "waiting": 0, "desired": 1,
    });
    let message = "no ready rooms available for scheduler arena";
    refused.check(429, &json!({"code": 8, "message": message, "details": [detail]}));
    // v10's clients know no details.
    let refused = world.ask("POST", "/scheduler/arena/rooms/allocate", "{}").await;
    refused.refused(429, 8, message);
}

#[tokio::test(start_paused = true)]
async fn who_waits_gets_what_is_given_back() {
    // Longer than a request may take otherwise.
    for api in ["management", "rooms"] {
        let world = arena(1).await;
        let [first] = world.allocated(json!({})).await.try_into().unwrap();
        let request = Request::post(ALLOCATIONS).body(Body::from(r#"{"waitMillis":30000}"#)).unwrap();
        let giving_back = async {
            tokio::time::sleep(Duration::from_secs(29)).await;
            assert_eq!(world.give_back(&first["id"]).await.status, 204);
        };
        let (answer, ()) = tokio::join!(world.send(api, request), giving_back);
        assert_eq!(answer.ok()["allocations"][0]["roomId"], first["roomId"]);
    }
}

/// Whoever called has gone: the room that becomes free is not for them.
#[tokio::test(start_paused = true)]
async fn a_call_that_waits_ends_at_its_deadline_and_holds_nothing() {
    for api in ["management", "rooms"] {
        let world = arena(1).await;
        let [first] = world.allocated(json!({})).await.try_into().unwrap();
        let scheduler_name = "arena".to_owned();
        let call = CreateAllocationsRequest { scheduler_name, wait_millis: 30_000, ..Default::default() };
        let length = u32::try_from(call.encoded_len()).unwrap().to_be_bytes();
        let frame = [&[0], length.as_slice(), &call.encode_to_vec()].concat();
        let request = Request::post(CreateAllocations::PATH).version(Version::HTTP_2);
        let request = request.header("content-type", "application/grpc").header("grpc-timeout", "2S");
        let asked = Instant::now();
        let reply = world.send(api, request.body(Body::from(frame)).unwrap()).await;
        assert_eq!((&reply.headers["grpc-status"], asked.elapsed().as_secs()), (&"4".parse().unwrap(), 2));
        assert_eq!(world.give_back(&first["id"]).await.status, 204);
        assert_eq!(world.listed("?state=held").await, [] as [Value; 0]);
        assert_eq!(world.allocated(json!({})).await[0]["roomId"], first["roomId"]);
    }
}

#[tokio::test(start_paused = true)]
async fn who_finds_the_queue_full_is_refused_at_once() {
    /// `allocation.queueMax`.
    const QUEUE_MAX: usize = 1000;
    let world = arena(1).await;
    let [first] = world.allocated(json!({})).await.try_into().unwrap();
    // So many at once are for the port of matchmakers.
    let ask = async || {
        let request = Request::post(ALLOCATIONS).body(Body::from(r#"{"waitMillis":30000}"#)).unwrap();
        world.send("rooms", request).await
    };
    let one_more = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let asked = Instant::now();
        let refused = ask().await;
        assert_eq!((refused.status, asked.elapsed()), (429, Duration::ZERO));
        assert_eq!(refused.json()["details"][0]["waiting"], QUEUE_MAX, "{}", refused.text);
        assert_eq!(world.give_back(&first["id"]).await.status, 204);
    };
    let (waited, ()) = tokio::join!(join_all((0..QUEUE_MAX).map(|_| ask())), one_more);
    let given: Vec<_> = waited.iter().map(|reply| reply.status == 200).collect();
    assert!(given[0] && given.iter().filter(|given| **given).count() == 1, "the first in the queue");
}

#[tokio::test(start_paused = true)]
async fn rooms_of_several_matches_are_handed_out_by_slot() {
    let mut many = recipe("arena", 1);
    many["matchAllocation"] = json!({"maxMatches": 3});
    let world = world_of(&many).await;
    let slots = world.allocated(json!({"count": 3})).await;
    assert!(slots.iter().all(|slot| slot["roomId"] == slots[0]["roomId"]), "{slots:?}");
    assert_eq!(world.allocate(json!({})).await.status, 429);

    // The room says whose match has begun: not the one that would expire first.
    let ping = json!({"status": "occupied", "runningMatches": 1, "begun": [slots[2]["id"]]});
    let told = world.ping(&slots[0]["roomId"], &ping).await;
    assert_eq!(told["allocations"].as_array().unwrap().len(), 2);
    tokio::time::sleep(Duration::from_secs(1)).await;
    for (slot, state) in slots.iter().zip(["held", "held", "begun"]) {
        assert_eq!(world.state(&slot["id"]).await, state);
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_request_again() {
    let world = arena(3).await;
    let request = json!({"requestId": "cup-final", "count": 2, "metadata": {"map": "lava"}});
    let first = world.allocated(request.clone()).await;
    let mut with_another_wait = request.clone();
    with_another_wait["waitMillis"] = 1000.into();
    for again in [request.clone(), with_another_wait] {
        assert_eq!(world.allocated(again).await, first, "the same rooms, whatever the wait");
    }
    assert_eq!(world.listed("?state=held").await.len(), 2);

    for (field, value) in [
        ("count", json!(1)),
        ("wishes", json!([{"version": "v1.0.0"}])),
        ("ttlMillis", json!(5000)),
        ("metadata", json!({"map": "ice"})),
    ] {
        let mut other = request.clone();
        other[field] = value;
        let refused = world.allocate(other).await;
        let message = refused.json()["message"].as_str().unwrap().to_owned();
        assert_eq!(refused.status, 409, "{field}: {message}");
        assert!(message.contains("cup-final") && message.contains(field), "{field}: {message}");
    }
    // What is over is not handed out again under the same id.
    assert_eq!(world.give_back(&first[0]["id"]).await.status, 204);
    assert_eq!(world.allocate(request).await.status, 409);
    assert_eq!(world.listed("").await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn giving_back() {
    let world = arena(2).await;
    let [held, played] = world.allocated(json!({"count": 2})).await.try_into().unwrap();
    for _ in ["once", "twice"] {
        let reply = world.give_back(&held["id"]).await;
        assert_eq!((reply.status, reply.text.as_str()), (204, ""));
    }
    assert_eq!(world.state(&held["id"]).await, "returned");

    world.ping(&played["roomId"], &json!({"status": "occupied", "runningMatches": 1})).await;
    let message =
        format!("allocation {} cannot be returned: its match has begun", played["id"].as_str().unwrap());
    world.give_back(&played["id"]).await.refused(409, 10, &message);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.state(&played["id"]).await, "begun");
    world.give_back(&played["id"]).await.refused(409, 10, &message);

    for unknown in ["7", "0199f2d4-8f0e-7c62-9d4b-0f4a7a5d1c11"] {
        let message = format!("allocation {unknown} not found in scheduler arena");
        world.give_back(&json!(unknown)).await.refused(404, 5, &message);
        world.get(&format!("{ALLOCATIONS}/{unknown}")).await.refused(404, 5, &message);
    }
}

#[tokio::test(start_paused = true)]
async fn a_hold_ends_by_itself() {
    let world = arena(1).await;
    let [first] = world.allocated(json!({"ttlMillis": 1000})).await.try_into().unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    world.ping(&first["roomId"], &json!({"status": "ready"})).await;
    let [second] = world.allocated(json!({"waitMillis": 5000})).await.try_into().unwrap();
    assert_eq!((&second["roomId"], world.state(&first["id"]).await), (&first["roomId"], json!("expired")));
}

#[tokio::test(start_paused = true)]
async fn bad_input_changes_nothing() {
    let world = arena(2).await;
    for (request, status, words) in [
        (json!({"count": 0}), 400, "count: 0 rooms cannot be asked for at once; ask for 1 to 100"),
        (json!({"count": 101}), 400, "count: 101 rooms cannot be asked for at once"),
        (json!({"count": -1}), 400, "count"),
        (json!({"count": "many"}), 400, "count"),
        (json!({"waitMillis": 30001}), 400, "waitMillis: 30001 is too long; wait at most 30000"),
        (json!({"ttlMillis": 999}), 400, "ttlMillis: 999 is not possible"),
        (json!({"ttlMillis": 3_600_001}), 400, "ttlMillis: 3600001 is not possible"),
        (json!({"wishes": [{}, {"colour": "red"}]}), 400, "colour"),
        (json!({"colour": "red"}), 400, "colour"),
        (json!({"wishes": [{"version": "two"}]}), 400, "wishes[0].version"),
        (json!({"wishes": [{"regions": ["-"]}]}), 400, "wishes[0].regions[0]"),
        (json!({"wishes": vec![json!({}); 17]}), 400, "wishes: 17 wishes are too many"),
        (json!({"wishes": {}}), 400, "wishes"),
        (json!({"requestId": "x".repeat(129)}), 400, "requestId: has 129 bytes; write 1 to 128"),
        (json!({"metadata": {"x": "x".repeat(4096)}}), 400, "metadata: 4104 bytes are too many"),
        (json!({"metadata": "lava"}), 400, "metadata"),
        (json!([]), 400, "body"),
    ] {
        let reply = world.allocate(request.clone()).await;
        let message = reply.json()["message"].as_str().unwrap().to_owned();
        assert_eq!(reply.status, status, "{request}: {message}");
        assert!(message.contains(words), "{request}: {message}");
    }
    let unknown = world.post("/schedulers/nowhere/allocations", &json!({})).await;
    assert_eq!((unknown.status, unknown.json()["code"].clone()), (404, json!(5)), "{}", unknown.text);
    assert_eq!(world.get("/schedulers/nowhere/allocations").await.status, 404);
    for query in ["?state=open", "?page=0", "?perPage=101"] {
        assert_eq!(world.get(&format!("{ALLOCATIONS}{query}")).await.status, 400, "{query}");
    }
    assert_eq!(world.listed("").await, [] as [Value; 0], "nothing was handed over");
}

/// On the port of people and on that of rooms, whose limits differ.
#[tokio::test(start_paused = true)]
async fn a_body_that_is_too_long_is_refused_on_both_ports() {
    let world = arena(1).await;
    let long = json!({"metadata": {"x": "x".repeat(10 << 20)}}).to_string();
    for api in ["management", "rooms"] {
        let request = Request::post(ALLOCATIONS).body(Body::from(long.clone())).unwrap();
        let reply = world.send(api, request).await;
        assert_eq!((reply.status, reply.json()["code"].clone()), (413, json!(8)), "{api}: {}", reply.text);
    }
    let request = Request::post(ALLOCATIONS).body(Body::from("{}")).unwrap();
    let reply = world.send("rooms", request).await;
    assert_eq!(reply.ok()["allocations"][0]["state"], "held");
}
