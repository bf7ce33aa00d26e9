//! Killed at any write, the store holds what was answered, all of each write or nothing of it.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Output;

use futures_util::future::join_all;
use maestro_core::operation::{Activity, OperationStatus, Token};
use maestro_engine::ports::Store;
use maestro_engine::ports::contract::fixtures::*;
use maestro_engine::ports::store::{
    Change, Guard, NewOperation, OperationStore, OperationUpdate, SchedulerState, Transaction,
};
use maestro_store_embedded::{EmbeddedStore, Options};
use serde_json::json;

use crate::child;

/// The life of two operations. Returns the label of the write that was done.
async fn write(store: &EmbeddedStore, number: usize, token: &mut Option<Token>) -> &'static str {
    let (label, changes) = match number {
        1 => {
            let schedulers = [arena(), bystander()].map(|name| Change::CreateScheduler(new_scheduler(&name)));
            let mut changes = Vec::from(schedulers);
            changes.push(Change::Enqueue(new_operation(1)));
            ("create", changes)
        }
        2 => {
            *token = store.own(&arena(), "worker-1", at(0), TTL).await.unwrap();
            return "own";
        }
        3 => ("start", vec![start(1)]),
        4 => {
            let mut changes: Vec<_> =
                (1..=3_u16).map(|n| Change::IntendRoom(new_room(n.into(), 40000 + n))).collect();
            changes.push(Change::UpdateOperation(OperationUpdate {
                progress: Some(json!({ "made": 3 })),
                ..OperationUpdate::of(operation_id(1))
            }));
            ("intend", changes)
        }
        5 => {
            let started = |number| Change::RoomStarted {
                scheduler: arena(),
                room: room_id(number),
                handle: handle(number),
            };
            ("started", (1..=3).map(started).collect())
        }
        6 => {
            let in_sync = Change::SetState {
                scheduler: arena(),
                from: vec![SchedulerState::Creating],
                to: SchedulerState::InSync,
            };
            let next = Change::Enqueue(new_operation(2));
            ("finish", vec![end(1, OperationStatus::Finished), in_sync, next])
        }
        7 => ("start", vec![start(2)]),
        8 => {
            let stop = |number| Change::IntendStop {
                scheduler: arena(),
                room: room_id(number),
                stop: stop_intent(2),
            };
            ("stop", vec![stop(1), stop(2), set_activity(2, parked("rooms"))])
        }
        9 => ("ended", vec![end_room(1, 7), end_room(2, 8)]),
        10 => {
            let wake = set_activity(2, Activity::Executing);
            let forget = Change::ForgetRooms { scheduler: arena(), rooms: vec![room_id(1)] };
            ("finish", vec![wake, end(2, OperationStatus::Finished), forget])
        }
        11 => {
            store.disown(&arena(), token.unwrap()).await.unwrap();
            return "disown";
        }
        _ => unreachable!("there are {WRITES} writes"),
    };
    let guard = token.map(|token| Guard { scheduler: arena(), token, locks: Vec::new() });
    let transaction = Transaction { label, guard, changes };
    store.commit(transaction).await.unwrap();
    label
}

const WRITES: usize = 11;

fn open_with(directory: &Path, failpoints: &str) -> EmbeddedStore {
    let options = Options { failpoints: failpoints.parse().unwrap(), ..Options::default() };
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
        store.renew(renewal("worker-1", at(1))).await.unwrap();
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
    let mut expected_log = String::new();
    for number in 1..=WRITES {
        let label = write(&reference, number, &mut token).await;
        expected_log += &format!("{number} {label}\n");
        reference.renew(renewal("worker-1", at(1))).await.unwrap();
        states.push(everything(&reference).await);
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
            if written >= 1 {
                let owned = store.own(&arena(), "worker-2", at(1), TTL).await.unwrap();
                let before = u64::from(written >= 2);
                assert_eq!(owned, Some(Token(before + 1)), "taken over at once, after {point}");
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
