//! Allocations in a file: several transactions in one commit, killed, on a full disk, and opened again.

use std::path::{Path, PathBuf};
use std::pin::pin;

use futures_util::FutureExt;
use maestro_core::allocation::AllocationState::{Begun, Expired, Held, Lost, Returned};
use maestro_core::allocation::{AllocationState, ClaimNumber};
use maestro_engine::ports::Store;
use maestro_engine::ports::contract::fixtures::*;
use maestro_engine::ports::store::{
    AllocationPageRequest, AllocationStore, Change, ClaimedSince, NewAllocation, Refusal, RoomRegistry,
    StoreError, Transaction,
};
use maestro_store_embedded::{EmbeddedStore, Options};
use maestro_testkit::eventually;
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
    Transaction::new(label, &arena(), vec![change])
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

#[tokio::test]
async fn an_answer_is_held_back_while_other_writes_go_on() {
    let directory = tempfile::tempdir().unwrap();
    let told = directory.path().join("told");
    let store = open_with(&directory.path().join("data"), &format!("hold:=held back:{}", told.display()));
    rooms(&store, 2).await;
    let mut held_back = pin!(store.commit_each(vec![one("held back", allocate(1, 1, 1))]));
    assert!((&mut held_back).now_or_never().is_none());
    eventually("its commit", async || store.open_allocations(None).await.unwrap().len() == 1).await;
    accept(&store, vec![allocate(2, 2, 1)]).await;
    assert!((&mut held_back).now_or_never().is_none());
    std::fs::write(&told, "").unwrap();
    assert_eq!(held_back.await.unwrap(), [Ok(())]);
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

/// The last migration of a Maestro that counted with the room itself what was claimed of it.
const BEFORE_ROOM_CLAIMS: usize = 18;

/// Takes a closed store back to where that Maestro left it.
fn before_room_claims(directory: &Path) {
    let connection = Connection::open(directory.join("maestro.db")).unwrap();
    let sql = format!(
        "ALTER TABLE rooms ADD COLUMN claim_number INTEGER NOT NULL DEFAULT 0;
         ALTER TABLE rooms ADD COLUMN holds INTEGER NOT NULL DEFAULT 0 CHECK (holds >= 0);
         UPDATE rooms SET (claim_number, holds) = (SELECT claim_number, holds FROM room_claims WHERE room = id);
         DROP TABLE room_claims;
         DELETE FROM migrations WHERE number > {BEFORE_ROOM_CLAIMS};"
    );
    connection.execute_batch(&sql).unwrap();
    assert_eq!(tables(&connection), tables(&migrated(BEFORE_ROOM_CLAIMS)), "it is not what it was then");
}

/// A database that went through the first migrations, as they are written.
fn migrated(count: usize) -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort_unstable();
    for file in &files[..count] {
        connection.execute_batch(&std::fs::read_to_string(file).unwrap()).unwrap();
    }
    connection
}

/// All but the one about the migrations themselves, with their indexes. Spaces do not count.
fn tables(connection: &Connection) -> Vec<String> {
    let sql = "SELECT sql FROM sqlite_schema
         WHERE sql IS NOT NULL AND tbl_name <> 'migrations' ORDER BY type, name";
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
    rows.map(|sql| sql.unwrap().split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// Of each room: the last number that was spent on it, and how many of its allocations are open.
async fn claims(store: &EmbeddedStore) -> Vec<(u64, u32)> {
    let mut claims = Vec::new();
    for number in 1..=7 {
        let room = room(store, number).await;
        claims.push((room.claim_number.0, room.holds));
    }
    claims
}

/// Newest first.
async fn ids_of(store: &EmbeddedStore, state: AllocationState) -> Vec<u128> {
    let page = AllocationPageRequest { state: Some(state), ..all_allocations() };
    let page = store.allocations(&arena(), page).await.unwrap();
    assert_eq!(page.total as usize, page.allocations.len());
    let number = |id| (1..=9).find(|number| allocation_id(*number) == id).unwrap();
    page.allocations.into_iter().map(|allocation| number(allocation.id)).collect()
}

#[tokio::test]
async fn what_was_claimed_with_an_older_maestro_stays_claimed() {
    let directory = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(directory.path()).unwrap();
    rooms(&store, 7).await;
    let requested = NewAllocation { request: request("match", 0), ..new_allocation(1, 1, 7) };
    let of_several = |id, number| NewAllocation { matches_max: 3, ..new_allocation(id, 5, number) };
    let may_go = ClaimedSince { number: ClaimNumber(1), takes_held: true };
    for changes in [
        // Open, by a request that may come again.
        vec![Change::Allocate(requested)],
        vec![
            allocate(2, 2, 1),
            end_allocation(2, Returned, 20),
            allocate(3, 2, 4),
            end_allocation(3, Expired, 30),
        ],
        // A claim whose row was never written.
        vec![spend(3, 9, 99)],
        // Nobody ever claimed room 4. Room 5 holds several matches.
        [2, 4, 5].into_iter().zip(4..).map(|(number, id)| Change::Allocate(of_several(id, number))).collect(),
        vec![end_allocation(4, Begun, 25)],
        // One that ended, and one that is about to.
        vec![allocate(7, 6, 3), end_room(6, 40)],
        vec![allocate(8, 7, 1), intend_stop_unless(7, 2, may_go)],
    ] {
        accept(&store, changes).await;
    }
    let before = everything(&store).await;
    drop(store);
    before_room_claims(directory.path());

    let store = EmbeddedStore::open(directory.path()).unwrap();
    let last = [(7, 1), (4, 0), (9, 0), (0, 0), (5, 2), (3, 0), (1, 0)];
    assert_eq!(claims(&store).await, last);
    assert_eq!(everything(&store).await, before);
    for (state, expected) in
        [(Held, &[6, 5, 1][..]), (Returned, &[2]), (Expired, &[3]), (Begun, &[4]), (Lost, &[8, 7])]
    {
        assert_eq!(ids_of(&store, state).await, expected, "{state}");
    }
    let open = store.open_allocations(None).await.unwrap();
    let open: Vec<_> = open.iter().map(|allocation| (allocation.room.clone(), allocation.number.0)).collect();
    assert_eq!(open, [(room_id(1), 7), (room_id(5), 4), (room_id(5), 5)]);
    check_rooms(&store, "after the migration").await;

    // Not because it is full.
    let claim = |room, number| {
        Change::Allocate(NewAllocation { matches_max: 100, ..new_allocation(9, room, number) })
    };
    for ((spent, _), room) in last[..5].iter().zip(1..) {
        for number in [0, spent.saturating_sub(1), *spent] {
            refuse(&store, vec![claim(room, number)], Refusal::RoomClaimed(room_id(room))).await;
        }
    }
    refuse(&store, vec![claim(6, 100)], Refusal::RoomNotFound(room_id(6))).await;
    refuse(&store, vec![claim(7, 100)], Refusal::RoomClaimed(room_id(7))).await;
    let full = NewAllocation { matches_max: 2, ..new_allocation(9, 5, 6) };
    refuse(&store, vec![Change::Allocate(full)], Refusal::RoomClaimed(room_id(5))).await;
    for ((spent, _), room) in last[..5].iter().zip(1..) {
        let new =
            NewAllocation { matches_max: 100, ..new_allocation(100 + u128::from(room), room, spent + 1) };
        accept(&store, vec![Change::Allocate(new)]).await;
    }
    accept(&store, vec![end_allocation(1, Begun, 50), end_allocation(5, Begun, 50)]).await;
    assert_eq!(claims(&store).await, [(8, 1), (5, 1), (10, 1), (1, 1), (6, 2), (3, 0), (1, 0)]);
    check_rooms(&store, "after new allocations").await;
}
