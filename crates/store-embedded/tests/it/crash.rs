//! Killed at any write, the store holds what was answered, all of each write or nothing of it.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Output;
use std::sync::Arc;

use futures_util::future::join_all;
use maestro_core::lock::LockKind::{Config, Downscaling, Scale};
use maestro_core::operation::{Activity, OperationStatus, Rollback, RollbackEnd, Token};
use maestro_engine::ports::Store;
use maestro_engine::ports::contract::ManualClock;
use maestro_engine::ports::contract::fixtures::*;
use maestro_engine::ports::store::{
    Change, Guard, NewOperation, OperationStore, OperationUpdate, SchedulerState, Transaction, Workforce,
};
use maestro_store_embedded::{EmbeddedStore, Options};
use serde_json::json;

use crate::child;

/// One write in the life of two operations and a rollout. Returns its label.
async fn write(store: &EmbeddedStore, number: usize, token: &mut Option<Token>) -> &'static str {
    match number {
        2 => {
            *token = store.own(&arena(), "worker-1", TTL).await.unwrap();
            return "own";
        }
        14 => {
            store.disown(&arena(), token.unwrap()).await.unwrap();
            return "disown";
        }
        15 => {
            store.retire("worker-1").await.unwrap();
            return "retire";
        }
        _ => {}
    }
    let (label, changes) = match number {
        4 | 11 | 12 => changes_of_locks(store, number).await,
        _ => changes_of_operations(number),
    };
    let guard = token.map(|token| Guard { scheduler: arena(), token, operation: None, locks: Vec::new() });
    let transaction = Transaction { guard, ..Transaction::new(label, &arena(), changes) };
    store.commit(transaction).await.unwrap();
    label
}

const WRITES: usize = 15;

fn changes_of_operations(number: usize) -> (&'static str, Vec<Change>) {
    match number {
        1 => {
            let schedulers = [arena(), bystander()].map(|name| Change::CreateScheduler(new_scheduler(&name)));
            let mut changes = Vec::from(schedulers);
            changes.push(Change::Enqueue(new_operation(1)));
            ("create", changes)
        }
        3 => ("start", vec![start(1)]),
        5 => {
            let mut changes: Vec<_> =
                (1..=3_u16).map(|n| Change::IntendRoom(new_room(n.into(), 40000 + n))).collect();
            changes.push(Change::UpdateOperation(OperationUpdate {
                progress: Some(json!({ "made": 3 })),
                ..OperationUpdate::of(operation_id(1))
            }));
            ("intend", changes)
        }
        6 => {
            let started = |number| Change::RoomStarted {
                scheduler: arena(),
                room: room_id(number),
                handle: handle(number),
            };
            ("started", (1..=3).map(started).collect())
        }
        7 => {
            let in_sync = set_state(0, SchedulerState::InSync);
            let next = Change::Enqueue(new_operation(2));
            let its_lock = take(Downscaling, holder(2));
            ("finish", vec![end(1, OperationStatus::Finished), in_sync, next, its_lock])
        }
        8 => ("start", vec![start(2)]),
        9 => {
            let place = await_lock(Config, holder(2));
            ("stop", vec![intend_stop(1, 2), intend_stop(2, 2), set_activity(2, parked("rooms")), place])
        }
        10 => ("ended", vec![end_room(1, 7), end_room(2, 8)]),
        13 => {
            let wake = set_activity(2, Activity::Executing);
            let forget = Change::ForgetRooms { scheduler: arena(), rooms: vec![room_id(1)] };
            ("finish", vec![wake, end(2, OperationStatus::Error), forget])
        }
        _ => unreachable!("there are {WRITES} writes"),
    }
}

async fn changes_of_locks(store: &EmbeddedStore, number: usize) -> (&'static str, Vec<Change>) {
    match number {
        4 => {
            let taken = [take(Scale, holder(1)), take_for_rollout(Config, None)];
            ("lock", [Vec::from(taken), vec![await_lock(Config, holder(1))]].concat())
        }
        11 => {
            let handed = hand_over(Config, rollout_holder(), holder(2));
            ("hand over", vec![handed, release(Downscaling, holder(2))])
        }
        12 => {
            let roll_back = Change::RollBack {
                operation: operation_id(2),
                rollback: Rollback { then: RollbackEnd::Error, why: "released by ann".into() },
                history: vec![event(5, "config released by ann")],
            };
            ("revoke", vec![revoke(Config, lock(store, Config).await.token), roll_back])
        }
        _ => unreachable!("write {number} is not about locks"),
    }
}

/// The greatest token of all that can be read.
async fn greatest_token(store: &EmbeddedStore) -> Token {
    let workforce = store.workers().await.unwrap();
    let owned = workforce.ownerships.iter().map(|ownership| ownership.token);
    let locks = locks(store).await;
    owned.chain(locks.held.iter().map(|lock| lock.token)).max().unwrap_or(Token(0))
}

fn open_with(directory: &Path, failpoints: &str) -> EmbeddedStore {
    // Two stores that are written to alike show the same times.
    let clock = Arc::new(ManualClock::begin());
    let options = Options { clock, failpoints: failpoints.parse().unwrap(), ..Options::default() };
    EmbeddedStore::open_with(directory, options).unwrap()
}

fn killed(output: &Output) -> bool {
    output.status.signal() == Some(9)
}

/// In a process of its own: a part of killed_at_every_write.
#[tokio::test]
async fn child_writes() {
    let Some(directory) = child::directory() else {
        return;
    };
    let store = open_with(&directory, &child::failpoints());
    let mut token = None;
    for number in 1..=WRITES {
        write(&store, number, &mut token).await;
        // Comes by the clock in real life, and must not be counted.
        store.renew(renewal("worker-1")).await.unwrap();
        child::say(&number.to_string());
    }
}

#[tokio::test]
async fn killed_at_every_write() {
    // What there is after each write when nobody is killed.
    let root = tempfile::tempdir().unwrap();
    let log = root.path().join("writes");
    let reference = open_with(&root.path().join("reference"), &format!("log:{}", log.display()));
    let mut token = None;
    let mut states = vec![everything(&reference).await];
    let mut last_tokens = vec![Token(0)];
    let mut expected_log = String::new();
    for number in 1..=WRITES {
        let label = write(&reference, number, &mut token).await;
        expected_log += &format!("{number} {label}\n");
        reference.renew(renewal("worker-1")).await.unwrap();
        states.push(everything(&reference).await);
        last_tokens.push(greatest_token(&reference).await.max(last_tokens[number - 1]));
    }
    assert_eq!(std::fs::read_to_string(&log).unwrap(), expected_log);

    for number in 1..=WRITES {
        for (moment, written) in [("before", number - 1), ("after", number)] {
            let point = format!("kill:{number}:{moment}");
            let directory = root.path().join(&point);
            let output = child::run("crash::child_writes", &directory, &point);
            assert!(killed(&output), "at {point}: {output:?}");
            assert_eq!(child::said(&output).len(), number - 1, "answers before {point}");

            let store = EmbeddedStore::open(&directory).unwrap();
            // Renewed or not is not what this is about.
            let found = format!("{:?}", everything(&store).await);
            assert_eq!(
                without_leases(&found),
                without_leases(&format!("{:?}", states[written])),
                "after {point}"
            );
            assert_eq!(store.workers().await.unwrap(), Workforce::default(), "after {point}");
            if written >= 1 {
                let owned = store.own(&arena(), "worker-2", TTL).await.unwrap();
                let next = Token(last_tokens[written].0 + 1);
                assert_eq!(owned, Some(next), "taken over at once, after {point}");
            }
        }
    }
}

fn without_leases(state: &str) -> String {
    let mut parts = state.split("expires_at: ");
    let mut kept = parts.next().unwrap().to_owned();
    for part in parts {
        kept += part.split_once(' ').unwrap().1;
    }
    kept
}

const TASKS: u128 = 32;
const WRITES_PER_TASK: u128 = 20;

/// In a process of its own: a part of killed_in_the_middle_of_a_crowd.
#[tokio::test]
async fn child_crowd() {
    let Some(directory) = child::directory() else {
        return;
    };
    let store = open_with(&directory, &child::failpoints());
    open(&store).await;
    let store = &store;
    let tasks = (0..TASKS).map(|task| async move {
        for write in 0..WRITES_PER_TASK {
            let operation = NewOperation { fleet_delta: 1, ..new_operation(task * 1000 + write) };
            // Two changes, to see whether one of them may get lost.
            accept(store, vec![adjust_fleet(&arena(), 1), Change::Enqueue(operation)]).await;
            child::say(&format!("{task} {write}"));
        }
    });
    join_all(tasks).await;
}

#[tokio::test]
async fn killed_in_the_middle_of_a_crowd() {
    let root = tempfile::tempdir().unwrap();
    for point in ["kill:200:before", "kill:201:after", "kill:500:after"] {
        let directory = root.path().join(point);
        let output = child::run("crash::child_crowd", &directory, point);
        assert!(killed(&output), "at {point}: {output:?}");

        let store = EmbeddedStore::open(&directory).unwrap();
        let mut found: BTreeMap<u128, Vec<u128>> = BTreeMap::new();
        let operations = store.unfinished(&arena()).await.unwrap();
        for operation in &operations {
            let number = u128::from_be_bytes(*operation.id.as_bytes());
            found.entry(number / 1000).or_default().push(number % 1000);
        }
        for (task, writes) in &found {
            let in_order: Vec<_> = (0..writes.len() as u128).collect();
            assert_eq!(*writes, in_order, "of task {task}, after {point}");
        }
        for answered in child::said(&output) {
            let (task, write) = answered.split_once(' ').unwrap();
            let writes = found.get(&task.parse().unwrap());
            let is_there = writes.is_some_and(|writes| writes.contains(&write.parse().unwrap()));
            assert!(is_there, "{answered} was answered and is lost, after {point}");
        }
        let size = scheduler(&store, &arena()).await.fleet_size;
        assert_eq!(size as usize, FLEET_SIZE as usize + operations.len(), "after {point}");
    }
}
