//! What operations wait for, and which are stuck, on the management API.

use std::time::Duration;

use axum::body::Body;
use maestro_core::allocation::ClaimNumber;
use maestro_core::lock::{Holder, LockKind, Waiter};
use maestro_core::operation::{Activity, HistoryEvent, Lease, OperationId, RemovalReason, Token, Wait};
use maestro_core::room::{Purpose, Region, RoomId};
use maestro_core::scheduler::Version;
use maestro_core::time::{Millis, Timestamp};
use maestro_engine::ports::store::{
    Change, ClaimedSince, NewRoomRecord, OperationUpdate, Renewal, StopIntent,
};
use serde_json::{Value, json};

use crate::locks::{arena, removal, standing_arena, taken};
use crate::support::{World, recipe};

const TTL: Millis = Millis::from_seconds(10);

async fn explain(world: &World, operation: OperationId) -> Value {
    world.get(&format!("/schedulers/arena/operations/{operation}/explain")).await.ok()
}

async fn stuck(world: &World) -> Vec<Value> {
    let answer = world.get("/schedulers/arena/operations/stuck").await.ok();
    answer["operations"].as_array().unwrap().clone()
}

/// A worker that owns the scheduler, and gives a sign of life now.
async fn worker(world: &World) -> Token {
    let store = &world.engine.ports().store;
    let token = store.own(&arena(), "worker-1", TTL).await.unwrap().unwrap();
    let renewal = Renewal { worker: "worker-1", ownership_ttl: TTL, operation_ttl: TTL, lock_ttl: TTL };
    store.renew(renewal).await.unwrap();
    token
}

fn after(at: Timestamp, seconds: u64) -> String {
    (at + Duration::from_secs(seconds)).to_string()
}

#[tokio::test(start_paused = true)]
async fn nobody_works_on_it() {
    let world = standing_arena().await;
    let since = world.now();
    let id = removal(&world).await.operation().unwrap();
    let mut expected = json!({
        "id": id.to_string(), "definitionName": "remove_rooms", "schedulerName": "arena",
        "status": "pending", "since": since.to_string(), "waitingFor": "a worker to pick it up",
        "lastEvent": "Created", "owner": null, "lease": null,
        "next": [{"what": "nothing more happens before a worker is started", "at": null}],
        "stuck": false, "stuckBecause": "",
    });
    assert_eq!(explain(&world, id).await, expected);
    assert_eq!(stuck(&world).await, Vec::<Value>::new());

    tokio::time::sleep(Duration::from_secs(11)).await;
    expected["stuck"] = json!(true);
    expected["stuckBecause"] = json!("no worker is running");
    assert_eq!(explain(&world, id).await, expected);
    let ids: Vec<_> = stuck(&world).await.iter().map(|one| one["definitionName"].clone()).collect();
    assert_eq!(ids, ["create_scheduler", "remove_rooms"]);
}

#[tokio::test(start_paused = true)]
async fn it_waits_for_a_lock_until_its_patience_is_over() {
    let world = standing_arena().await;
    let holder = removal(&world).await;
    let id = holder.operation().unwrap();
    let token = worker(&world).await;
    let since = world.now();
    let lease = Lease { owner: "worker-1".into(), token, expires_at: since + Duration::from_secs(400) };
    let until = since + Duration::from_secs(300);
    let mut update = OperationUpdate::of(id);
    update.activity = Some(Activity::Parked(Wait { what: "downscaling".into(), until, unanswered: false }));
    let history = vec![HistoryEvent { at: since, event: "Starting operation".into() }];
    world
        .write(vec![
            taken(LockKind::Downscaling, Holder::Rollout(Version::FIRST), None),
            Change::StartOperation { operation: id, lease, history },
            Change::UpdateOperation(update),
            Change::AwaitLock {
                scheduler: arena(),
                waiter: Waiter { kind: LockKind::Downscaling, holder, since, until },
            },
        ])
        .await;
    let waiting_for = format!("downscaling held by rollout v1.0.0 since {since:.3}");
    let expected = json!({
        "id": id.to_string(), "definitionName": "remove_rooms", "schedulerName": "arena",
        "status": "in_progress", "since": since.to_string(), "waitingFor": waiting_for,
        "lastEvent": "Starting operation",
        "owner": {"worker": "worker-1", "until": after(since, 10), "fencingToken": token.0, "hasRunOut": false},
        "lease": {"worker": "worker-1", "until": after(since, 400), "fencingToken": token.0, "hasRunOut": false},
        "next": [
            {"what": "takes the lock downscaling when rollout v1.0.0 gives it up", "at": null},
            {"what": "is taken over by another worker, at the latest, if worker-1 stops now",
             "at": after(since, 20)},
            {"what": "ends as error if it has not got the lock downscaling by then (locks.waitTimeout)",
             "at": after(since, 300)},
        ],
        "stuck": false, "stuckBecause": "",
    });
    assert_eq!(explain(&world, id).await, expected);

    tokio::time::sleep(Duration::from_secs(11)).await;
    let gone = explain(&world, id).await;
    assert_eq!(gone["owner"]["hasRunOut"], true);
    let ran_out = since + Duration::from_secs(10);
    assert_eq!(
        gone["stuckBecause"],
        format!("worker-1's ownership of the scheduler expired at {ran_out:.3}")
    );

    tokio::time::sleep(Duration::from_secs(140)).await;
    worker(&world).await;
    let long = format!("it has waited for the lock downscaling since {since:.3}");
    assert_eq!(explain(&world, id).await["stuckBecause"], long);
    assert_eq!(stuck(&world).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn it_waits_for_rooms_to_be_gone() {
    let world = standing_arena().await;
    let holder = removal(&world).await;
    let id = holder.operation().unwrap();
    let token = worker(&world).await;
    let since = world.now();
    let lease = Lease { owner: "worker-1".into(), token, expires_at: since + Duration::from_secs(5) };
    let until = since + Duration::from_secs(7);
    let mut update = OperationUpdate::of(id);
    update.activity =
        Some(Activity::Parked(Wait { what: "room arena-1 to be gone".into(), until, unanswered: false }));
    let room = NewRoomRecord {
        id: RoomId::new("arena-1"),
        scheduler: arena(),
        version: Version::FIRST,
        region: Region::default_region(),
        regions_beside: Vec::new(),
        purpose: Purpose::Fleet,
        ports: Vec::new(),
        operation: id,
        token,
        created_at: since,
    };
    let (scheduler, room_id) = (arena(), room.id.clone());
    let (cause, reason) = (Some(RemovalReason::ScaleDown), "scale_down".into());
    let unless = ClaimedSince { number: ClaimNumber(0), takes_held: true };
    let stop = StopIntent { operation: id, cause, matches: 0, reason, at: since };
    world
        .write(vec![
            Change::StartOperation { operation: id, lease, history: Vec::new() },
            Change::UpdateOperation(update),
            Change::IntendRoom(room),
            Change::IntendStop { scheduler, room: room_id, stop, unless },
        ])
        .await;
    let explained = explain(&world, id).await;
    assert_eq!(explained["waitingFor"], "room arena-1 to be gone");
    // The recipe gives a room five seconds.
    let expected = json!([
        {"what": "rooms that are still there are killed", "at": after(since, 5)},
        {"what": "looks again, or earlier if something happens", "at": after(since, 7)},
        {"what": "is taken over by another worker, at the latest, if worker-1 stops now",
         "at": after(since, 20)},
    ]);
    assert_eq!(explained["next"], expected);
}

#[tokio::test(start_paused = true)]
async fn one_that_has_ended_waits_for_nothing() {
    let world = World::running().await;
    world.post("/schedulers", &recipe("arena", 2)).await.ok();
    world.settle("arena").await;
    let id = removal(&world).await.operation().unwrap();
    world.settle("arena").await;
    let explained = explain(&world, id).await;
    assert_eq!(explained["status"], "finished");
    assert_eq!((&explained["next"], &explained["lease"]), (&json!([]), &Value::Null));
    assert_eq!(explained["lastEvent"], "Operation finished");
    assert_eq!(stuck(&world).await, Vec::<Value>::new());
}

#[tokio::test(start_paused = true)]
async fn questions_that_are_refused() {
    let world = standing_arena().await;
    let id = OperationId::from_u128(7);
    for (path, message) in [
        (
            format!("/schedulers/arena/operations/{id}/explain"),
            format!("operation {id} not found in scheduler arena"),
        ),
        (format!("/schedulers/nope/operations/{id}/explain"), "scheduler nope not found".into()),
        ("/schedulers/arena/operations/x/explain".into(), "operation x not found in scheduler arena".into()),
        ("/schedulers/nope/operations/stuck".into(), "scheduler nope not found".into()),
    ] {
        world.get(&path).await.refused(404, 5, &message);
        world.ask("POST", &path, Body::empty()).await.refused(405, 12, "Method Not Allowed");
    }
}
