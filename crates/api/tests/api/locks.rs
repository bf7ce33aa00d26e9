//! Locks on the management API: the list, and a forced release.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use maestro_core::lock::{Holder, LockKind, Taker, Waiter};
use maestro_core::operation::{DefinitionKind, HistoryEvent, Lease, OperationId, Token};
use maestro_core::scheduler::{SchedulerName, SizeBaseline, Version};
use maestro_core::time::Millis;
use maestro_engine::Parts;
use maestro_engine::ports::store::{Change, NewLock, RolloutRecord, RolloutState, SchedulerUpdate};
use serde_json::{Value, json};

use crate::support::{Reply, World, recipe};

const PREFIXES: [&str; 2] = ["/scheduler", "/schedulers"];

pub(crate) fn arena() -> SchedulerName {
    SchedulerName::parse("arena").unwrap()
}

/// Schedulers that nobody works on, so that all stays as it is put.
pub(crate) async fn standing_arena() -> World {
    with_schedulers(World::standing()).await
}

pub(crate) async fn with_schedulers(world: World) -> World {
    for name in ["arena", "other"] {
        world.post("/schedulers", &recipe(name, 1)).await.ok();
    }
    world
}

/// A removal that waits in the queue.
pub(crate) async fn removal(world: &World) -> Holder {
    let id = world.enqueue("/schedulers/arena/remove-rooms", &json!({"amount": 1})).await;
    Holder::Operation { kind: DefinitionKind::RemoveRooms, id: OperationId::parse(&id).unwrap() }
}

pub(crate) fn taken(kind: LockKind, holder: Holder, ttl: Option<Duration>) -> Change {
    Change::TakeLock(NewLock {
        scheduler: arena(),
        kind,
        taker: Taker::of(holder),
        reason: "3 rooms more than wanted".into(),
        ttl: ttl.map(Millis::from),
    })
}

async fn take(world: &World, kind: LockKind, holder: Holder, ttl: Option<Duration>) {
    world.write(vec![taken(kind, holder, ttl)]).await;
}

pub(crate) async fn lock(world: &World, kind: LockKind) -> Value {
    let locks = world.get("/schedulers/arena/locks?view=full").await.ok();
    let locks = locks.as_array().unwrap().iter();
    locks.into_iter().find(|lock| lock["kind"] == kind.as_str()).unwrap().clone()
}

pub(crate) async fn release(world: &World, path: &str) -> Reply {
    let request = Request::builder().method("DELETE").uri(path).header("X-Maestro-User", "ada@host");
    world.send("management", request.body(Body::empty()).unwrap()).await
}

#[track_caller]
pub(crate) fn is_released(reply: &Reply) {
    assert_eq!((reply.status, reply.text.as_str()), (204, ""));
}

fn free(kind: &str) -> Value {
    json!({"key": format!("maestro-lock-key-arena-{kind}"), "ttlInSec": 0, "isLocked": false, "kind": kind,
        "owner": null, "operationId": null, "reason": null, "fencingToken": null, "acquiredAt": null})
}

#[tokio::test(start_paused = true)]
async fn free_locks_are_listed() {
    let world = standing_arena().await;
    let all: Vec<_> = ["config", "scale", "termination", "downscaling"].map(free).into();
    for prefix in PREFIXES {
        let reply = world.get(&format!("{prefix}/arena/locks")).await;
        reply.check(200, &json!(all));
        assert_eq!(reply.headers["content-type"], "application/json");
        // v9's keys come first.
        let first =
            r#"[{"key":"maestro-lock-key-arena-config","ttlInSec":0,"isLocked":false,"kind":"config","#;
        assert!(reply.text.starts_with(first), "{}", reply.text);
    }
}

#[tokio::test(start_paused = true)]
async fn a_held_lock_says_who_and_why() {
    let world = standing_arena().await;
    let holder = removal(&world).await;
    let since = world.now();
    take(&world, LockKind::Downscaling, holder, Some(Duration::from_secs(30))).await;
    take(&world, LockKind::Config, Holder::Rollout(Version::FIRST), None).await;
    let waiter = Waiter {
        kind: LockKind::Downscaling,
        holder: Holder::HealthController,
        since,
        until: since + Duration::from_secs(300),
    };
    world.write(vec![Change::AwaitLock { scheduler: arena(), waiter }]).await;
    let id = holder.operation().unwrap().to_string();
    let at = |seconds| (since + Duration::from_secs(seconds)).to_string();
    let stored = world.engine.ports().store.locks(&arena()).await.unwrap().held;
    let tokens: Vec<u64> = stored.iter().map(|lock| lock.token.0).collect();
    let mut held = json!({"key": "maestro-lock-key-arena-downscaling", "ttlInSec": 30, "isLocked": true,
        "kind": "downscaling", "owner": format!("remove_rooms {id}"), "operationId": id,
        "reason": "3 rooms more than wanted", "fencingToken": tokens[1], "acquiredAt": at(0)});
    let of_rollout = json!({"key": "maestro-lock-key-arena-config", "ttlInSec": -1, "isLocked": true,
        "kind": "config", "owner": "rollout v1.0.0", "operationId": null,
        "reason": "3 rooms more than wanted", "fencingToken": tokens[0], "acquiredAt": at(0)});
    for prefix in PREFIXES {
        let expected = json!([of_rollout, free("scale"), free("termination"), held]);
        world.get(&format!("{prefix}/arena/locks")).await.check(200, &expected);
    }
    held["expiresAt"] = json!(at(30));
    held["waiters"] = json!([{"owner": "the health controller", "operationId": null,
        "since": at(0), "until": at(300)}]);
    // The rollout's has no end, and nobody waits: nothing to add.
    let expected = json!([of_rollout, free("scale"), free("termination"), held]);
    world.get("/scheduler/arena/locks?view=full").await.check(200, &expected);
}

/// Nothing is stored of it: an operation in progress has it.
#[tokio::test(start_paused = true)]
async fn a_deletion_has_the_termination_lock() {
    let world = standing_arena().await;
    let reply = world.ask("DELETE", "/schedulers/arena", Body::empty()).await.ok();
    let operation = OperationId::parse(reply["operationId"].as_str().unwrap()).unwrap();
    assert_eq!(lock(&world, LockKind::Termination).await, free("termination"), "it has not begun");
    let (at, reason) = (world.now(), "asked for by ");
    let lease = Lease { owner: "worker-1".into(), token: Token(7), expires_at: at + Duration::from_secs(12) };
    let history = vec![HistoryEvent { at, event: "Starting operation".into() }];
    world.write(vec![Change::StartOperation { operation, lease, history }]).await;
    let held = lock(&world, LockKind::Termination).await;
    assert!(held["reason"].as_str().unwrap().starts_with(reason), "{held}");
    let expected = json!({"key": "maestro-lock-key-arena-termination", "ttlInSec": 12, "isLocked": true,
        "kind": "termination", "owner": format!("delete_scheduler {operation}"),
        "operationId": operation.to_string(), "reason": held["reason"], "fencingToken": 7,
        "acquiredAt": at.to_string(), "expiresAt": (at + Duration::from_secs(12)).to_string()});
    assert_eq!(held, expected);
    let reply = release(&world, "/scheduler/arena/locks/termination?token=8").await;
    let message = "the lock termination of scheduler arena now has the fencing token 7";
    reply.refused(409, 10, message);
    is_released(&release(&world, "/scheduler/arena/locks/termination?token=7&reason=wait").await);
    let deletion = world.engine.operation("arena", &operation.to_string()).await.unwrap().operation;
    assert_eq!(deletion.cause(), Some("the lock termination was released by ada@host: wait"));
    assert_eq!(lock(&world, LockKind::Termination).await, free("termination"));
}

#[tokio::test(start_paused = true)]
async fn what_is_held_never_looks_free_and_what_ran_out_does() {
    let world = standing_arena().await;
    let holder = removal(&world).await;
    take(&world, LockKind::Config, holder, Some(Duration::from_millis(1200))).await;
    for (advance_ms, ttl, is_locked) in [(0, 2, true), (300, 1, true), (899, 1, true), (1, 0, false)] {
        tokio::time::sleep(Duration::from_millis(advance_ms)).await;
        let lock = lock(&world, LockKind::Config).await;
        assert_eq!((&lock["ttlInSec"], &lock["isLocked"]), (&json!(ttl), &json!(is_locked)));
        assert_eq!(lock["owner"].is_null(), !is_locked);
    }
}

#[tokio::test(start_paused = true)]
async fn requests_that_are_refused() {
    let world = standing_arena().await;
    for prefix in PREFIXES {
        let reply = world.get(&format!("{prefix}/nope/locks")).await;
        reply.refused(404, 5, "scheduler nope not found");
        let reply = release(&world, &format!("{prefix}/nope/locks/config")).await;
        reply.refused(404, 5, "scheduler nope not found");
        let reply = world.get(&format!("{prefix}/arena/locks?view=wide")).await;
        reply.refused(400, 3, r#"query parameter view: "wide" is not a view; write full, or leave it out"#);
        for key in [
            "panic",
            "maestro:panic:lock:arena",
            "maestro-lock-key-other-config",
            "maestro-lock-key-arena",
            "remove-dead-rooms",
            "CONFIG",
        ] {
            let reply = release(&world, &format!("{prefix}/arena/locks/{key}")).await;
            reply.refused(400, 3, "invalid lock key");
        }
        let reply = release(&world, &format!("{prefix}/arena/locks/config?token=-1")).await;
        let message = r#"query parameter token: invalid value: string "-1", expected a whole number of 64 bits, not negative"#;
        reply.refused(400, 3, message);
        for reason in ["two%0Alines".to_owned(), "x".repeat(513)] {
            let reply = release(&world, &format!("{prefix}/arena/locks/config?reason={reason}")).await;
            let message = "query parameter reason: write it on one line of at most 512 characters";
            reply.refused(400, 3, message);
        }
        for (method, path, allowed) in [
            ("POST", "locks", "GET,HEAD"),
            ("DELETE", "locks", "GET,HEAD"),
            ("GET", "locks/config", "DELETE"),
        ] {
            let reply = world.ask(method, &format!("{prefix}/arena/{path}"), Body::empty()).await;
            reply.refused(405, 12, "Method Not Allowed");
            assert_eq!(reply.headers["allow"], allowed);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn releasing_a_free_lock_is_fine() {
    let world = standing_arena().await;
    for prefix in PREFIXES {
        for key in ["termination", "maestro-lock-key-arena-termination", "scale?token=7&reason=why%20not"] {
            is_released(&release(&world, &format!("{prefix}/arena/locks/{key}")).await);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_operation_whose_lock_is_released_ends_as_error() {
    let mut world = standing_arena().await;
    let holder = removal(&world).await;
    let id = holder.operation().unwrap();
    let ttl = Some(Duration::from_secs(30));
    take(&world, LockKind::Downscaling, holder, ttl).await;
    let path = "/scheduler/arena/locks/maestro-lock-key-arena-downscaling?reason=it%20hangs";
    is_released(&release(&world, path).await);
    assert_eq!(lock(&world, LockKind::Downscaling).await, free("downscaling"));
    // Twice is once.
    is_released(&release(&world, path).await);

    world.start(Parts::ALL).await;
    world.settle("arena").await;
    let operation = world.get(&format!("/schedulers/arena/operations/{id}")).await.ok()["operation"].clone();
    assert_eq!(operation["status"], "error");
    let history = operation["executionHistory"].as_array().unwrap().iter();
    let events: Vec<_> = history.map(|event| event["event"].as_str().unwrap()).collect();
    let expected = [
        "Created",
        "operation execution failed: the lock downscaling was released by ada@host: it hangs",
        "Starting operation rollback",
        "Starting operation",
        "Operation rollback flow execution finished with success",
    ];
    assert_eq!(events, expected);
    let forced = r#"maestro_locks_forced_total{game="brawl",scheduler="arena",lock="downscaling"} 1"#;
    assert_eq!(world.metrics("maestro_locks_forced_total"), [forced]);
}

#[tokio::test(start_paused = true)]
async fn how_long_locks_are_held_and_who_waits_is_measured() {
    let mut world = standing_arena().await;
    let rollout = Holder::Rollout(Version::FIRST);
    take(&world, LockKind::Config, rollout, None).await;
    let since = world.now();
    let (kind, holder) = (LockKind::Config, Holder::HealthController);
    let waiter = Waiter { kind, holder, since, until: since + Duration::from_secs(45) };
    world.write(vec![Change::AwaitLock { scheduler: arena(), waiter }]).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    // It reports, and nobody works.
    world.start(Parts::METRICS_REPORTER).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    let line = |name: &str, value| {
        format!(r#"maestro_locks_{name}{{game="brawl",scheduler="arena",lock="config"}} {value}"#)
    };
    assert_eq!(world.metrics("maestro_locks"), [line("held_seconds", 30), line("waiting", 1)]);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(world.metrics("maestro_locks"), [line("held_seconds", 50)]);
    world.write(vec![Change::ReleaseLock { scheduler: arena(), kind, holder: rollout }]).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(world.metrics("maestro_locks"), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn one_that_ran_out_is_released_too_because_its_holder_may_go_on() {
    let world = standing_arena().await;
    let holder = removal(&world).await;
    take(&world, LockKind::Downscaling, holder, Some(Duration::from_secs(1))).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    is_released(&release(&world, "/schedulers/arena/locks/downscaling").await);
    let unfinished = world.engine.ports().store.unfinished(&arena()).await.unwrap();
    let removal = unfinished.iter().find(|operation| Some(operation.id) == holder.operation()).unwrap();
    let why = &removal.rollback.as_ref().unwrap().why;
    assert_eq!(why, "the lock downscaling was released by ada@host: no reason given");
}

#[tokio::test(start_paused = true)]
async fn a_stale_token_releases_nothing() {
    let world = standing_arena().await;
    let (first, second) = (removal(&world).await, removal(&world).await);
    let ttl = Some(Duration::from_secs(30));
    take(&world, LockKind::Downscaling, first, ttl).await;
    let seen = lock(&world, LockKind::Downscaling).await["fencingToken"].clone();
    world
        .write(vec![
            Change::ReleaseLock { scheduler: arena(), kind: LockKind::Downscaling, holder: first },
            taken(LockKind::Downscaling, second, ttl),
        ])
        .await;
    let held = lock(&world, LockKind::Downscaling).await;
    let is =
        format!("the lock downscaling of scheduler arena now has the fencing token {}", held["fencingToken"]);
    for prefix in PREFIXES {
        let reply = release(&world, &format!("{prefix}/arena/locks/downscaling?token={seen}")).await;
        reply.refused(409, 10, &is);
        assert_eq!(lock(&world, LockKind::Downscaling).await, held);
    }
    let current = &held["fencingToken"];
    is_released(&release(&world, &format!("/scheduler/arena/locks/downscaling?token={current}")).await);
    assert_eq!(lock(&world, LockKind::Downscaling).await, free("downscaling"));
}

pub(crate) fn set_rollout(revision: u32, rollout: &RolloutRecord) -> Change {
    let update = SchedulerUpdate::of(arena(), revision);
    Change::UpdateScheduler(SchedulerUpdate { rollout: Some(Some(rollout.clone())), ..update })
}

pub(crate) fn rollout(world: &World, state: RolloutState, note: &str) -> RolloutRecord {
    RolloutRecord {
        state,
        to: Version::FIRST,
        from: Version::FIRST,
        since: world.now(),
        fleet_size: SizeBaseline { before: 1, after: 1 },
        occupied_at: None,
        note: note.into(),
    }
}

/// A rollout that holds both of its locks.
async fn rolling_arena(state: RolloutState, note: &str) -> World {
    let world = standing_arena().await;
    let rollout = rollout(&world, state, note);
    let holder = Holder::Rollout(Version::FIRST);
    world
        .write(vec![
            set_rollout(0, &rollout),
            taken(LockKind::Config, holder, None),
            taken(LockKind::Downscaling, holder, None),
        ])
        .await;
    world
}

#[tokio::test(start_paused = true)]
async fn a_rollout_whose_lock_is_released_is_paused() {
    for (state, note, kind, expected) in [
        (RolloutState::Rolling, "", LockKind::Config, ("paused", "paused: ")),
        (RolloutState::Rolling, "", LockKind::Downscaling, ("paused", "paused: ")),
        (RolloutState::RollingBack, "canceled by bob", LockKind::Config, ("paused", "paused: ")),
        (RolloutState::Paused, "paused by bob", LockKind::Config, ("paused", "paused: ")),
        // It stands still in any case, and why it failed must not be lost.
        (RolloutState::Halted, "v1.0.0 failed", LockKind::Config, ("halted", "v1.0.0 failed; ")),
    ] {
        let world = rolling_arena(state, note).await;
        is_released(&release(&world, &format!("/schedulers/arena/locks/{kind}?reason=wrong%20build")).await);
        let rollout = world.get("/schedulers/arena/rollout").await.ok();
        let (state, said) = expected;
        assert_eq!(rollout["state"], state);
        let waits_for =
            format!("someone to resume it: {said}the lock {kind} was released by ada@host: wrong build");
        assert_eq!(rollout["waitingFor"], waits_for);
        // Paused it gives up the one, and keeps the other unless that was taken from it.
        assert_eq!(lock(&world, LockKind::Downscaling).await, free("downscaling"));
        let keeps_config = kind == LockKind::Downscaling;
        assert_eq!(lock(&world, LockKind::Config).await["isLocked"], keeps_config);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_a_rollout_left_behind_can_be_released() {
    let world = standing_arena().await;
    take(&world, LockKind::Config, Holder::Rollout(Version::FIRST), None).await;
    is_released(&release(&world, "/scheduler/arena/locks/config").await);
    assert_eq!(lock(&world, LockKind::Config).await, free("config"));
}
