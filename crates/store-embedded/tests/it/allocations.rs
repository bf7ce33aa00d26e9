//! Allocations in a file: several transactions in one commit, killed, on a full disk, and opened again.

use std::path::Path;

use maestro_core::allocation::AllocationState::{Begun, Returned};
use maestro_engine::ports::Store;
use maestro_engine::ports::contract::fixtures::*;
use maestro_engine::ports::store::{
    AllocationStore, Change, NewAllocation, Refusal, RoomRegistry, StoreError, Transaction,
};
use maestro_store_embedded::{EmbeddedStore, Options};
use rusqlite::Connection;

use crate::child;

fn open_with(directory: &Path, failpoints: &str) -> EmbeddedStore {
    let options = Options { failpoints: failpoints.parse().unwrap(), ..Options::default() };
    EmbeddedStore::open_with(directory, options).unwrap()
}

async fn rooms(store: &EmbeddedStore, count: u16) {
    open(store).await;
    let room = |number: u16| Change::IntendRoom(new_room(number.into(), 40000 + number));
    accept(store, (1..=count).map(room).collect()).await;
}

fn one(label: &'static str, change: Change) -> Transaction {
    Transaction::new(label, vec![change])
}

/// Allocations of rooms that have never been claimed, each in a transaction of its own.
fn batch(numbers: impl Iterator<Item = u32>) -> Vec<Transaction> {
    numbers.map(|number| one("allocate", allocate(number.into(), number, 1))).collect()
}

/// Each room says of its allocations what their rows say.
async fn check_rooms(store: &EmbeddedStore, when: &str) {
    let open = store.open_allocations(None).await.unwrap();
    for room in store.all_live_rooms().await.unwrap() {
        let of_room: Vec<_> = open.iter().filter(|allocation| allocation.room == room.id).collect();
        assert_eq!(room.holds as usize, of_room.len(), "holds of {} {when}", room.id);
        assert!(
            of_room.iter().all(|allocation| allocation.number <= room.claim_number),
            "{} {when}",
            room.id
        );
    }
}

#[tokio::test]
async fn transactions_that_are_written_together_share_a_commit() {
    let directory = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(directory.path()).unwrap();
    rooms(&store, 100).await;
    let before = store.write_counts();
    let answers = store.commit_each(batch((1..=100).chain([1]))).await.unwrap();
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 100);
    assert_eq!(answers[100], Err(Refusal::RoomClaimed(room_id(1))));
    let after = store.write_counts();
    assert_eq!((after.writes - before.writes, after.commits - before.commits), (101, 1));
    check_rooms(&store, "after the commit").await;
}

#[tokio::test]
async fn everything_is_there_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(directory.path()).unwrap();
    rooms(&store, 4).await;
    let requested = NewAllocation {
        request: request("match", 0),
        metadata: metadata(r#"{"map":"dust"}"#),
        ..new_allocation(1, 1, 7)
    };
    let handle = handle(5);
    let started = Change::RoomStarted { scheduler: arena(), room: room_id(1), handle };
    accept(&store, vec![started, Change::Allocate(requested), allocate(2, 2, 1)]).await;
    accept(&store, vec![end_allocation(2, Begun, 20), spend(3, 9, 3)]).await;
    accept(&store, vec![allocate(4, 4, 1), end_room(4, 21)]).await;
    let before = everything(&store).await;
    drop(store);

    let store = EmbeddedStore::open(directory.path()).unwrap();
    assert_eq!(everything(&store).await, before);
    assert!(allocation(&store, 1).await.place.is_some());
    check_rooms(&store, "after a restart").await;
    refuse(&store, vec![allocate(5, 1, 8)], Refusal::RoomClaimed(room_id(1))).await;
    refuse(&store, vec![allocate(5, 3, 9)], Refusal::RoomClaimed(room_id(3))).await;
    let again = NewAllocation { request: request("match", 0), ..new_allocation(5, 2, 2) };
    refuse(&store, vec![Change::Allocate(again)], Refusal::RequestExists("match".into())).await;
}

#[tokio::test]
async fn each_of_them_is_a_write_of_its_own_to_failpoints() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("writes");
    let store = open_with(&directory.path().join("data"), &format!("log:{}", log.display()));
    rooms(&store, 2).await;
    let writes = vec![
        one("allocate", allocate(1, 1, 1)),
        one("allocate", allocate(2, 1, 2)),
        one("end", end_allocation(1, Returned, 20)),
        one("settle", spend(2, 1, 3)),
    ];
    store.commit_each(writes).await.unwrap();
    let expected = "1 contract\n2 contract\n3 allocate\n4 allocate\n5 end\n6 settle\n";
    assert_eq!(std::fs::read_to_string(&log).unwrap(), expected);
}

#[tokio::test]
async fn on_a_full_disk_none_of_them_is_done() {
    let directory = tempfile::tempdir().unwrap();
    let store = open_with(directory.path(), "full:=last");
    rooms(&store, 3).await;
    let before = everything(&store).await;
    let writes = || {
        let mut writes = batch(1..=2);
        writes.push(one("last", allocate(3, 3, 1)));
        writes
    };
    let answer = store.commit_each(writes()).await;
    assert!(matches!(answer, Err(StoreError::Unavailable { .. })), "{answer:?}");
    assert_eq!(everything(&store).await, before);
    assert_eq!(store.commit_each(writes()).await.unwrap(), [Ok(()), Ok(()), Ok(())]);
    check_rooms(&store, "after there was space again").await;
}

const BATCHES: u32 = 6;
const BATCH: u32 = 8;

/// In a process of its own: a part of killed_between_any_two_allocations.
#[tokio::test]
async fn child_allocates() {
    let Some(directory) = child::directory() else {
        return;
    };
    let store = open_with(&directory, &child::failpoints());
    rooms(&store, 48).await;
    for number in 0..BATCHES {
        let first = number * BATCH + 1;
        let answers = store.commit_each(batch(first..first + BATCH)).await.unwrap();
        assert!(answers.iter().all(Result::is_ok));
        child::say(&number.to_string());
    }
}

#[tokio::test]
async fn killed_between_any_two_allocations() {
    let root = tempfile::tempdir().unwrap();
    // The first two writes make the schedulers and the rooms.
    for (write, moment, whole) in [(3, "before", 0), (10, "after", 1), (11, "after", 2), (31, "before", 3)] {
        let point = format!("kill:{write}:{moment}");
        let directory = root.path().join(&point);
        let output = child::run("allocations::child_allocates", &directory, &point);
        let answered = child::said(&output).len();
        assert_eq!(answered, if moment == "before" { whole } else { whole - 1 }, "{point}: {output:?}");

        let store = EmbeddedStore::open(&directory).unwrap();
        let open = store.open_allocations(Some(&arena())).await.unwrap();
        assert_eq!(open.len(), whole * BATCH as usize, "after {point}");
        check_rooms(&store, &format!("after {point}")).await;
    }
}

#[tokio::test]
async fn an_allocation_that_cannot_be_read_hides_no_other_ones() {
    let directory = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(directory.path()).unwrap();
    rooms(&store, 2).await;
    accept(&store, vec![allocate(1, 1, 1), allocate(2, 2, 1)]).await;
    drop(store);
    let connection = Connection::open(directory.path().join("maestro.db")).unwrap();
    let sql = "UPDATE allocations SET number = -1 WHERE room = ?1";
    assert_eq!(connection.execute(sql, [room_id(1).as_str()]).unwrap(), 1);
    drop(connection);
    let store = EmbeddedStore::open(directory.path()).unwrap();
    assert_eq!(store.open_allocations(None).await.unwrap(), [allocation(&store, 2).await]);
    let of_arena = store.open_allocations(Some(&arena())).await;
    assert!(matches!(of_arena, Err(StoreError::Unreadable(_))), "whoever compares them must not miss one");
    let answers = store.commit_each(vec![one("allocate", allocate(3, 1, 2))]).await.unwrap();
    assert_eq!(answers, [Err(Refusal::RoomClaimed(room_id(1)))], "it counts all the same");
}
