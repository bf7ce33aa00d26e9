//! The stream of what happens.

use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, Response, StatusCode, Version};
use http_body_util::BodyExt;
use maestro_core::stream::{Happened, StreamEvent};
use maestro_proto::rpc::Method;
use maestro_proto::v1::events::Watch;
use maestro_proto::v1::{self, WatchEventsRequest};
use prost::Message;
use serde_json::{Value, json};
use tokio::time::timeout;
use tonic::Status;
use tower::ServiceExt;

use crate::support::{World, recipe};

/// Of virtual time: only ever waited out by a test that fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// A stream as a client reads it.
pub(crate) struct Reader {
    body: Body,
    text: String,
    /// What a browser would send when it connects again.
    last_id: String,
}

impl Reader {
    async fn open(router: &Router, query: &str, last_id: Option<&str>) -> Self {
        let mut request = Request::get(format!("/events{query}")).header("host", "localhost");
        if let Some(last_id) = last_id {
            request = request.header("last-event-id", last_id);
        }
        Self::of(router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap())
    }

    pub(crate) fn of(response: Response<Body>) -> Self {
        assert_eq!(response.status(), 200);
        let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        assert_eq!([header("content-type"), header("cache-control")], ["text/event-stream", "no-store"]);
        Self { body: response.into_body(), text: String::new(), last_id: String::new() }
    }

    /// The next block of lines; `None`: the stream has ended.
    pub(crate) async fn block(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                return Some(block);
            }
            let frame = timeout(PATIENCE, self.body.frame()).await.expect("something is said")?;
            self.text += std::str::from_utf8(frame.unwrap().data_ref().unwrap()).unwrap();
        }
    }

    /// The next event, past what only keeps the connection alive.
    pub(crate) async fn event(&mut self) -> Option<Value> {
        loop {
            let block = self.block().await?;
            let line = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
            if let Some(id) = line("id: ") {
                self.last_id = id;
            }
            let Some(data) = line("data: ") else { continue };
            let event: Value = serde_json::from_str(&data).unwrap();
            assert_eq!(line("event: ").as_deref(), event["type"].as_str());
            assert_eq!(event["id"], self.last_id.as_str());
            return Some(event);
        }
    }

    pub(crate) async fn next(&mut self) -> Value {
        self.event().await.expect("the stream goes on")
    }

    /// Type and data of the next one.
    async fn said(&mut self) -> (String, Value) {
        let event = self.next().await;
        (event["type"].as_str().unwrap().to_owned(), event["data"].clone())
    }

    /// All up to the first that is like this.
    async fn until(&mut self, is_last: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            events.push(self.next().await);
            if is_last(&events[events.len() - 1]) {
                return events;
            }
        }
    }
}

async fn with_one_room() -> (World, String) {
    let world = World::running().await;
    world.post("/schedulers", &recipe("arena", 1)).await.ok();
    world.settle("arena").await;
    let room = world.room_ids("arena").await.remove(0);
    (world, room)
}

async fn ping(world: &World, room: &str, status: &str) {
    let body = json!({ "status": status }).to_string();
    world.ask("PUT", &format!("/scheduler/arena/rooms/{room}/ping"), body).await.ok();
}

fn room_became(before: &str, status: &str) -> (String, Value) {
    ("room".to_owned(), json!({ "before": before, "status": status }))
}

/// A recent event that means nothing.
pub(crate) fn event(world: &World, region: &str) -> StreamEvent {
    let region = maestro_core::region::Region(region.into());
    let what = Happened::RegionReached { region, reachable: true, why: "".into() };
    StreamEvent { at: world.now(), scheduler: None, what }
}

pub(crate) async fn append(world: &World, events: Vec<StreamEvent>, after_loss: bool) {
    world.engine.ports().table.append(events, after_loss).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_reader_begins_now_and_hears_of_what_happens_to_rooms() {
    let (world, room) = with_one_room().await;
    let mut reader = Reader::open(&world.management, "?scheduler=arena&types=room,allocation", None).await;
    assert_eq!(reader.block().await.as_deref(), Some("retry: 1000"));
    let first = reader.next().await;
    assert_eq!(first["type"], "reset");
    assert_eq!(first["data"], json!({ "reason": "the stream begins here" }));
    ping(&world, &room, "occupied").await;
    let event = reader.next().await;
    for (key, value) in [("type", "room"), ("scheduler", "arena"), ("subject", &room)] {
        assert_eq!(event[key], value);
    }
    assert!(event["at"].as_str().unwrap().starts_with("2026-11-15T"), "{event}");
    assert_eq!(event["data"], json!({ "before": "ready", "status": "occupied" }));
    // A ping that changes nothing is no event.
    ping(&world, &room, "occupied").await;
    ping(&world, &room, "ready").await;
    assert_eq!(reader.said().await, room_became("occupied", "ready"));
    let allocated = world.post("/schedulers/arena/allocations", &json!({ "requestId": "a" })).await.ok();
    let id = allocated["allocations"][0]["id"].as_str().unwrap();
    assert_eq!(reader.said().await, room_became("ready", "allocated"));
    let held = reader.next().await;
    assert_eq!((&held["type"], &held["subject"]), (&json!("allocation"), &json!(id)));
    let expires_at = &allocated["allocations"][0]["expiresAt"];
    let data = json!({ "state": "held", "roomId": room, "expiresAt": expires_at, "requestId": "a" });
    assert_eq!(held["data"], data);
    world.ask("DELETE", &format!("/schedulers/arena/allocations/{id}"), Body::empty()).await;
    let returned = json!({ "state": "returned", "roomId": room });
    let mut last = [reader.said().await, reader.said().await];
    last.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(last, [("allocation".to_owned(), returned), room_became("allocated", "ready")]);
}

#[tokio::test(start_paused = true)]
async fn operations_decisions_rollouts_and_regions() {
    let world = World::running().await;
    let mut reader = Reader::open(&world.management, "", None).await;
    reader.next().await;
    world.post("/schedulers", &recipe("arena", 1)).await.ok();
    world.settle("arena").await;
    let is_ready = |event: &Value| event["data"]["status"] == "ready";
    let events = reader.until(is_ready).await;
    let of = |kind: &str, key: &str| -> Vec<&str> {
        let of_kind = events.iter().filter(|event| event["type"] == kind);
        of_kind.filter_map(|event| event["data"][key].as_str()).collect()
    };
    let creation: Vec<_> = events
        .iter()
        .filter(|event| event["data"]["definitionName"] == "create_scheduler")
        .map(|event| event["data"]["status"].as_str().unwrap())
        .collect();
    assert_eq!(creation, ["pending", "in_progress", "finished"]);
    assert_eq!(of("rollout", "versionStatus"), ["deployed"]);
    assert!(of("decision", "decision").contains(&"Scale Up: +1"), "{events:?}");
    let [created, .., ready] = &*of("room", "status") else { panic!("{events:?}") };
    assert_eq!([*created, *ready], ["pending", "ready"]);
    let region = world.post("/regions/default/cordon", &json!({ "reason": "new machines" })).await;
    region.ok();
    let cordoned = reader.until(|event| event["type"] == "region").await.pop().unwrap();
    assert_eq!((&cordoned["subject"], &cordoned["scheduler"]), (&json!("default"), &json!("")));
    assert_eq!(cordoned["data"]["cordoned"], true);
    assert_eq!(cordoned["data"]["reason"], "new machines");
    // A room that goes.
    world.enqueue("/schedulers/arena/remove-rooms", &json!({ "amount": 1 })).await;
    let is_end = |event: &Value| event["data"]["ended"].is_object();
    let end = reader.until(is_end).await.pop().unwrap();
    assert_eq!(
        (&end["data"]["status"], &end["data"]["ended"]["cause"]),
        (&json!("terminated"), &json!("asked"))
    );
}

/// No change says so: the allocation ends in the store, with the intent to stop the room.
#[tokio::test(start_paused = true)]
async fn an_allocation_that_is_lost_with_its_room() {
    let (world, room) = with_one_room().await;
    let allocated = world.post("/schedulers/arena/allocations", &json!({})).await.ok();
    let id = allocated["allocations"][0]["id"].as_str().unwrap();
    let mut reader = Reader::open(&world.management, "?types=allocation", None).await;
    reader.next().await;
    world.enqueue("/schedulers/arena/remove-rooms", &json!({ "rooms": [room] })).await;
    let lost = reader.next().await;
    assert_eq!(lost["subject"], id);
    let row = world.get(&format!("/schedulers/arena/allocations/{id}")).await.ok();
    let cause = &row["allocation"]["cause"];
    assert!(!cause.as_str().unwrap().is_empty(), "{row}");
    assert_eq!(lost["data"], json!({ "state": "lost", "roomId": room, "cause": cause }));
    // Once: not again when the room has ended.
    world.settle("arena").await;
    let query = format!("?types=allocation&lastEventId={}&follow=false", reader.last_id);
    assert_eq!(Reader::open(&world.management, &query, None).await.event().await, None);
}

#[tokio::test(start_paused = true)]
async fn who_was_cut_off_goes_on_where_it_was() {
    let (world, room) = with_one_room().await;
    let mut reader = Reader::open(&world.management, "?types=room", None).await;
    reader.next().await;
    ping(&world, &room, "occupied").await;
    assert_eq!(reader.said().await, room_became("ready", "occupied"));
    let last_id = reader.last_id.clone();
    drop(reader);
    ping(&world, &room, "ready").await;
    ping(&world, &room, "occupied").await;
    // By the header, or by a query; on the other API too.
    let mut again = Reader::open(&world.rooms, "?types=room", Some(&last_id)).await;
    assert_eq!(again.said().await, room_became("occupied", "ready"));
    assert_eq!(again.said().await, room_became("ready", "occupied"));
    // The header is newer than what is in the URL.
    let query = format!("?types=room&lastEventId={last_id}");
    let mut newest = Reader::open(&world.management, &query, Some(&again.last_id)).await;
    ping(&world, &room, "ready").await;
    assert_eq!(newest.said().await, room_became("occupied", "ready"));
    let mut all = Reader::open(&world.management, &format!("{query}&follow=false"), None).await;
    let expected = [
        room_became("occupied", "ready"),
        room_became("ready", "occupied"),
        room_became("occupied", "ready"),
    ];
    for said in expected {
        assert_eq!(all.said().await, said);
    }
    assert_eq!(all.event().await, None, "it does not follow");
}

#[tokio::test(start_paused = true)]
async fn who_cannot_go_on_is_told_to_begin_anew() {
    let world = World::standing();
    append(&world, vec![event(&world, "one")], false).await;
    let mut reader = Reader::open(&world.management, "?lastEventId=oldest", None).await;
    assert_eq!(reader.next().await["subject"], "one");
    // While it reads.
    append(&world, vec![event(&world, "two")], true).await;
    let before = reader.last_id.clone();
    let reset = reader.next().await;
    let reason = "the events before this one are lost: the server was started anew";
    assert_eq!((&reset["type"], &reset["data"]), (&json!("reset"), &json!({ "reason": reason })));
    append(&world, vec![event(&world, "three")], false).await;
    assert_eq!(reader.next().await["subject"], "three", "from the reset on nothing is missing");
    // And when it comes back.
    let mut again = Reader::open(&world.management, "", Some(&before)).await;
    let reset = again.next().await;
    assert_eq!(reset["data"], json!({ "reason": reason }));
    assert_eq!(reset["id"], reader.last_id.as_str());
}

#[tokio::test(start_paused = true)]
async fn who_is_too_slow_is_told_what_it_has_missed() {
    let world = World::standing();
    let mut reader = Reader::open(&world.management, "", None).await;
    reader.next().await;
    let why = "x".repeat(1 << 20);
    let large = |number: u32| {
        let mut event = event(&world, &number.to_string());
        event.what = Happened::RegionReached {
            region: maestro_core::region::Region("eu".into()),
            reachable: false,
            why: why.as_str().into(),
        };
        event
    };
    for number in 0..40 {
        append(&world, vec![large(number)], false).await;
    }
    let reset = reader.next().await;
    assert_eq!(
        reset["data"],
        json!({ "reason": "the events after the last one that was read are not kept any more" })
    );
    append(&world, vec![event(&world, "last")], false).await;
    assert_eq!(reader.next().await["subject"], "last");
}

#[tokio::test(start_paused = true)]
async fn an_idle_stream_says_that_it_is_alive_and_where_it_is() {
    let (world, room) = with_one_room().await;
    let mut reader = Reader::open(&world.management, "?types=rollout", None).await;
    reader.block().await;
    let reset = reader.next().await;
    ping(&world, &room, "occupied").await;
    let alive = reader.block().await.unwrap();
    let id = alive.strip_prefix(": keep-alive\nid: ").expect(&alive);
    assert_ne!(reset["id"], id, "it has passed over what it did not want");
    // Minutes later too.
    for _ in 0..20 {
        assert!(reader.block().await.unwrap().starts_with(": keep-alive\nid: "));
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_watched() {
    let world = World::standing();
    world.post("/schedulers", &recipe("arena", 1)).await.ok();
    let refused = async |query: &str, code: u8, status: u16, message: &str| {
        world.get(&format!("/events{query}")).await.refused(status, code, message);
    };
    refused("?scheduler=nobody", 5, 404, "scheduler nobody not found").await;
    refused(
        "?types=room,rooom",
        3,
        400,
        r#"query parameter types: "rooom" is not a type of event; did you mean room?"#,
    )
    .await;
    let no_id = |id| {
        format!(
            "Last-Event-ID: {id:?} is not the id of an event; write one that you were sent, oldest, or nothing"
        )
    };
    refused("?lastEventId=7", 3, 400, &no_id("7")).await;
    refused(
        "?follow=perhaps",
        3,
        400,
        r#"query parameter follow: invalid value: string "perhaps", expected true or false"#,
    )
    .await;
    let request = Request::get("/events").header("last-event-id", "x-1").body(Body::empty()).unwrap();
    world.send("rooms", request).await.refused(400, 3, &no_id("x-1"));
}

#[tokio::test(start_paused = true)]
async fn there_are_not_any_number_of_streams() {
    let world = World::standing();
    let mut open = Vec::new();
    for _ in 0..1024 {
        open.push(Reader::open(&world.management, "", None).await);
    }
    let refused = world.get("/events").await;
    refused.refused(503, 14, "1024 streams are open, and there are no more; try again later");
    assert_eq!(refused.headers["retry-after"], "10");
    // Requests have a capacity of their own.
    world.get("/schedulers").await.ok();
    open.pop();
    Reader::open(&world.management, "", None).await;
}

/// Sends it as gRPC does, to a router that thinks that it is HTTP/2.
async fn watch(router: &Router, request: &WatchEventsRequest) -> (StatusCode, HeaderMap, Body) {
    let message = request.encode_to_vec();
    let mut framed = vec![0];
    framed.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
    framed.extend(message);
    let request = Request::post(Watch::PATH).version(Version::HTTP_2).header("host", "localhost");
    let request = request.header("content-type", "application/grpc").body(Body::from(framed)).unwrap();
    let (parts, body) = router.clone().oneshot(request).await.unwrap().into_parts();
    (parts.status, parts.headers, body)
}

#[tokio::test(start_paused = true)]
async fn the_same_over_grpc() {
    let (world, room) = with_one_room().await;
    ping(&world, &room, "occupied").await;
    let request = WatchEventsRequest {
        scheduler: "arena".into(),
        types: "room,operation".into(),
        last_event_id: "oldest".into(),
        follow: Some(false),
    };
    let (status, headers, body) = watch(&world.rooms, &request).await;
    assert_eq!((status, headers["content-type"].to_str().unwrap()), (StatusCode::OK, "application/grpc"));
    let collected = body.collect().await.unwrap();
    let trailers = collected.trailers().unwrap().clone();
    assert_eq!(trailers["grpc-status"], "0");
    let mut bytes = collected.to_bytes();
    let mut by_grpc = Vec::new();
    while !bytes.is_empty() {
        let length = u32::from_be_bytes(bytes[1..5].try_into().unwrap()) as usize;
        let message = bytes.split_to(5 + length).split_off(5);
        by_grpc.push(serde_json::to_value(v1::StreamEvent::decode(message).unwrap()).unwrap());
    }
    let query = "?scheduler=arena&types=room,operation&lastEventId=oldest&follow=false";
    let mut reader = Reader::open(&world.management, query, None).await;
    let mut by_http = Vec::new();
    while let Some(event) = reader.event().await {
        by_http.push(event);
    }
    assert!(by_http.len() > 5, "{by_http:?}");
    assert_eq!(by_grpc, by_http);
    let unknown = WatchEventsRequest { scheduler: "nobody".into(), ..WatchEventsRequest::default() };
    let (_, headers, body) = watch(&world.management, &unknown).await;
    let status = Status::from_header_map(&headers).unwrap();
    assert_eq!((status.code(), status.message()), (tonic::Code::NotFound, "scheduler nobody not found"));
    assert!(to_bytes(body, 100).await.unwrap().is_empty());
}
