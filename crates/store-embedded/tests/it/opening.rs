//! What a data directory may look like when Maestro starts on it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use maestro_core::allocation::ClaimNumber;
use maestro_core::lock::LockKind::{Config, Downscaling, Scale, Termination};
use maestro_core::operation::RemovalReason;
use maestro_engine::ports::contract::fixtures::*;
use maestro_engine::ports::store::{
    Change, ClaimedSince, Intent, OperationStore, RolloutState, StopIntent, Workforce,
};
use maestro_store_embedded::{EmbeddedStore, OpenError, Options};
use rusqlite::Connection;

use crate::child;

fn database(directory: &Path) -> PathBuf {
    directory.join("maestro.db")
}

/// A store with something in it, closed.
async fn fill(directory: &Path) {
    let store = EmbeddedStore::open(directory).unwrap();
    open(&store).await;
    for number in 1..=50 {
        let room = new_room(number, 40000 + u16::try_from(number).unwrap());
        accept(&store, vec![Change::Enqueue(new_operation(number.into())), Change::IntendRoom(room)]).await;
    }
}

#[test]
fn the_id_is_made_with_the_store_and_stays() {
    let root = tempfile::tempdir().unwrap();
    let [one, other, given] = ["one", "other", "given"].map(|name| root.path().join(name));
    let id = EmbeddedStore::open(&one).unwrap().store_id().to_owned();
    assert_eq!(EmbeddedStore::open(&one).unwrap().store_id(), id);
    assert_ne!(EmbeddedStore::open(&other).unwrap().store_id(), id);
    for (wish, expected) in [("mine", "mine"), ("another", "mine")] {
        let options = Options { store_id: Some(wish.into()), ..Options::default() };
        let store = EmbeddedStore::open_with(&given, options).unwrap();
        assert_eq!(store.store_id(), expected);
    }
}

#[test]
fn a_second_open_is_refused_and_names_the_first() {
    let directory = tempfile::tempdir().unwrap();
    let first = EmbeddedStore::open(directory.path()).unwrap();
    let error = EmbeddedStore::open(directory.path()).err().unwrap();
    let expected = format!(
        "the data directory {} is in use by process {}; stop it first, or choose another directory",
        directory.path().display(),
        std::process::id()
    );
    assert_eq!(error.to_string(), expected);
    drop(first);
    EmbeddedStore::open(directory.path()).unwrap();
}

/// In a process of its own: a part of another_process_is_named_and_leaves_its_place_when_it_dies.
#[tokio::test]
async fn child_holds_the_store() {
    let Some(directory) = child::directory() else {
        return;
    };
    let store = EmbeddedStore::open(&directory).unwrap();
    open(&store).await;
    store.own(&arena(), "worker-1", TTL).await.unwrap().unwrap();
    store.renew(renewal("worker-1")).await.unwrap();
    child::say("open");
    // Until it is killed.
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

#[tokio::test]
async fn another_process_is_named_and_leaves_its_place_when_it_dies() {
    let directory = tempfile::tempdir().unwrap();
    let mut holder = child::command("opening::child_holds_the_store", directory.path())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().ends_with("say open")));
    let error = EmbeddedStore::open(directory.path()).err().unwrap();
    assert!(matches!(error, OpenError::InUse { pid: Some(pid), .. } if pid == holder.id()), "{error}");
    holder.kill().unwrap();
    holder.wait().unwrap();

    let store = EmbeddedStore::open(directory.path()).unwrap();
    assert_eq!(store.workers().await.unwrap(), Workforce::default(), "the dead work no more");
    let token = store.own(&arena(), "worker-2", TTL).await.unwrap();
    assert!(token > Some(token_of_the_dead()), "owned at once, although the other's time is not over");
}

fn token_of_the_dead() -> maestro_core::operation::Token {
    token(1)
}

#[tokio::test]
async fn locks_outlive_the_process_that_took_them() {
    let directory = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(directory.path()).unwrap();
    open(&store).await;
    let taken = [take_for_rollout(Config, None), take(Downscaling, holder(1))];
    let places = [3, 2].map(|number| await_lock(Config, holder(number)));
    accept(&store, [Change::Enqueue(new_operation(1))].into_iter().chain(taken).chain(places).collect())
        .await;
    let before = locks(&store).await;
    drop(store);
    let store = EmbeddedStore::open(directory.path()).unwrap();
    assert_eq!(locks(&store).await, before);
    // Who owns the scheduler next keeps them, and goes on in the one sequence.
    let owned = store.own(&arena(), "worker-2", TTL).await.unwrap().unwrap();
    assert!(before.held.iter().all(|lock| lock.token < owned));
    let (renewed, window) = in_window(&store, store.renew(renewal("worker-2"))).await;
    renewed.unwrap();
    window.check(lock(&store, Downscaling).await.expires_at.unwrap(), TTL);
}

/// Refused with a message that says what to do, and not a byte was changed.
fn check_damaged(directory: &Path, damage: &str) {
    let before = fs::read(database(directory)).unwrap();
    let error = EmbeddedStore::open(directory).err();
    let Some(OpenError::Damaged { file, .. }) = &error else {
        panic!("{damage}: {error:?} instead of damage");
    };
    assert_eq!(*file, database(directory));
    let message = error.unwrap().to_string();
    assert!(message.contains("Restore a backup with `maestro restore`"), "{message}");
    assert!(fs::read(database(directory)).unwrap() == before, "after {damage}");
}

#[tokio::test]
async fn a_damaged_file_is_refused_and_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    fill(directory.path()).await;
    let sound = fs::read(database(directory.path())).unwrap();
    let half = sound.len() / 2;
    let overwritten = |at: usize, with: &[u8]| {
        let mut bytes = sound.clone();
        bytes[at..at + with.len()].copy_from_slice(with);
        bytes
    };
    for (damage, bytes) in [
        ("emptied", Vec::new()),
        ("cut off in the header", sound[..10].to_vec()),
        ("cut off in the first page", sound[..1000].to_vec()),
        ("cut off in the middle", sound[..half].to_vec()),
        ("cut off at a page", sound[..half / 4096 * 4096].to_vec()),
        ("all zeros", vec![0; sound.len()]),
        ("text", b"this is not a database at all, not in the least".repeat(9)),
        ("another header", overwritten(0, b"SQLite format 4\0")),
        ("no tree on the second page", overwritten(4096, &[0xff; 12])),
        ("no tree in the middle", overwritten(half / 4096 * 4096, &[0xff; 12])),
    ] {
        fs::write(database(directory.path()), bytes).unwrap();
        check_damaged(directory.path(), damage);
    }
    fs::write(database(directory.path()), &sound).unwrap();
    EmbeddedStore::open(directory.path()).unwrap();
}

/// Not all damage can be seen at once; but none makes Maestro panic, and what is refused is not touched.
#[tokio::test]
async fn a_flipped_byte_is_survived() {
    let directory = tempfile::tempdir().unwrap();
    fill(directory.path()).await;
    let sound = fs::read(database(directory.path())).unwrap();
    let mut refused = 0;
    for step in 0..150 {
        let mut bytes = sound.clone();
        let at = step * sound.len() / 150;
        bytes[at] ^= 0xff;
        fs::write(database(directory.path()), &bytes).unwrap();
        match EmbeddedStore::open(directory.path()) {
            Err(_) => {
                refused += 1;
                assert!(fs::read(database(directory.path())).unwrap() == bytes, "byte {at}");
            }
            Ok(store) => {
                // Answers or errors, both are fine.
                let _ = store.unfinished(&arena()).await;
            }
        }
    }
    assert!(refused > 0);
}

#[tokio::test]
async fn a_missing_file_with_a_log_is_no_new_store() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("maestro.db-wal"), "the log of a lost database").unwrap();
    let error = EmbeddedStore::open(directory.path()).err().unwrap();
    assert!(error.to_string().contains("the file is missing, but its log (-wal) is there"));
    assert!(!database(directory.path()).exists());
}

#[test]
fn a_half_made_store_is_made_anew() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("maestro.db.new"), "killed while it was made").unwrap();
    EmbeddedStore::open(directory.path()).unwrap();
    assert!(!directory.path().join("maestro.db.new").exists());
}

/// Takes a closed store back to where the first Maestro left it.
pub(crate) fn as_first_migrated(directory: &Path) {
    let connection = Connection::open(database(directory)).unwrap();
    connection
        .execute_batch(
            "DROP TABLE allocations;
             DROP TABLE room_claims;
             DROP TABLE event_queues;
             DROP TABLE outbox;
             DROP TABLE no_action_operations;
             DROP TABLE no_action_contents;
             DROP INDEX rooms_leaving;
             DROP INDEX operations_of_schedulers;
             DROP INDEX operations_of_versions;
             ALTER TABLE versions DROP COLUMN cause;
             ALTER TABLE store DROP COLUMN directory;
             ALTER TABLE rooms DROP COLUMN stop_cause;
             ALTER TABLE rooms DROP COLUMN stop_matches;
             ALTER TABLE operations DROP COLUMN wait_unanswered;
             DROP TABLE version_numbers;
             DROP TABLE locks;
             DROP TABLE lock_waiters;
             DROP TABLE workers;
             DROP TABLE regions;
             DROP TABLE rollouts;
             ALTER TABLE schedulers DROP COLUMN last_shrunk_at;
             ALTER TABLE schedulers DROP COLUMN revision;
             DELETE FROM migrations WHERE number > 1;",
        )
        .unwrap();
}

#[tokio::test]
async fn a_store_of_an_older_maestro_is_taken_along_with_all_that_is_in_it() {
    let directory = tempfile::tempdir().unwrap();
    fill(directory.path()).await;
    let before = {
        let store = EmbeddedStore::open(directory.path()).unwrap();
        everything(&store).await
    };
    as_first_migrated(directory.path());
    let store = EmbeddedStore::open(directory.path()).unwrap();
    assert_eq!(everything(&store).await, before);
    let begun = rollout(RolloutState::Rolling);
    accept(&store, vec![set_rollout(0, Some(begun.clone())), set_last_shrunk(1, 3)]).await;
    accept(&store, vec![take(Downscaling, holder(1)), allocate(1, 1, 1)]).await;
    drop(store);
    let store = EmbeddedStore::open(directory.path()).unwrap();
    assert_eq!(allocation(&store, 1).await.room, room_id(1));
    assert_eq!(room(&store, 1).await.holds, 1);
    let record = scheduler(&store, &arena()).await;
    assert_eq!((record.rollout, record.last_shrunk_at), (Some(begun), Some(at(3))));
    assert_eq!(lock(&store, Downscaling).await.holder, holder(1));
}

/// An older Maestro stored two more of them.
#[tokio::test]
async fn locks_that_are_not_stored_any_more_are_dropped() {
    let directory = tempfile::tempdir().unwrap();
    fill(directory.path()).await;
    let store = EmbeddedStore::open(directory.path()).unwrap();
    accept(&store, vec![take(Downscaling, holder(1)), await_lock(Downscaling, holder(2))]).await;
    let kept = locks(&store).await;
    accept(&store, vec![take(Scale, holder(1)), take(Termination, holder(2))]).await;
    accept(&store, vec![await_lock(Termination, holder(1))]).await;
    drop(store);
    let connection = Connection::open(database(directory.path())).unwrap();
    let sql = "DROP TABLE allocations;
         DROP TABLE room_claims;
         DROP TABLE event_queues;
         DROP TABLE outbox;
         ALTER TABLE schedulers DROP COLUMN revision;
         DELETE FROM migrations WHERE number > 14";
    connection.execute_batch(sql).unwrap();
    drop(connection);
    let store = EmbeddedStore::open(directory.path()).unwrap();
    assert_eq!(locks(&store).await, kept);
}

/// They were all that was written down of why a room goes.
#[tokio::test]
async fn the_words_of_an_older_maestro_are_understood() {
    let directory = tempfile::tempdir().unwrap();
    fill(directory.path()).await;
    let words = [
        ("expired_room (asked for by the health controller)", Some(RemovalReason::ExpiredRoom), 0),
        ("rolling_update_replace, with players in it (v2.0.0)", Some(RemovalReason::RollingUpdate), 1),
        ("rolling_update_replace (v2.0.0)", Some(RemovalReason::RollingUpdate), 0),
        ("delete_scheduler", None, 0),
    ];
    let store = EmbeddedStore::open(directory.path()).unwrap();
    for (number, (reason, ..)) in (1..).zip(words) {
        let stop = StopIntent { cause: None, matches: 0, reason: reason.into(), ..stop_intent(1) };
        let unless = ClaimedSince { number: ClaimNumber(0), takes_held: false };
        let change = Change::IntendStop { scheduler: arena(), room: room_id(number), stop, unless };
        accept(&store, vec![change]).await;
    }
    drop(store);
    as_first_migrated(directory.path());
    let store = EmbeddedStore::open(directory.path()).unwrap();
    for (number, (reason, cause, matches)) in (1..).zip(words) {
        let stop = StopIntent { cause, matches, reason: reason.into(), ..stop_intent(1) };
        assert_eq!(room(&store, number).await.intent, Intent::Stop(stop));
    }
}

#[test]
fn what_does_not_fit_is_refused_in_words() {
    let check = |sql: &str, words: &str| {
        let directory = tempfile::tempdir().unwrap();
        drop(EmbeddedStore::open(directory.path()).unwrap());
        let connection = Connection::open(database(directory.path())).unwrap();
        connection.execute_batch(sql).unwrap();
        drop(connection);
        let error = EmbeddedStore::open(directory.path()).err().unwrap();
        assert!(error.to_string().contains(words), "{error}");
    };
    check("PRAGMA application_id = 42", "is not a database of Maestro's; nothing was changed");
    check(
        "INSERT INTO migrations VALUES (999, 'the future', 'abc', '9.9.9')",
        "was written by Maestro 9.9.9, which is newer than this one",
    );
    check(
        "UPDATE migrations SET checksum = 'abc' WHERE number = 1",
        "went through a migration initial that is not the one of this Maestro",
    );
}

#[test]
fn someone_elses_database_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let theirs = Connection::open(database(directory.path())).unwrap();
    theirs.execute_batch("CREATE TABLE songs (title TEXT)").unwrap();
    drop(theirs);
    let before = fs::read(database(directory.path())).unwrap();
    let error = EmbeddedStore::open(directory.path()).err().unwrap();
    assert!(matches!(error, OpenError::NotOurs { .. }), "{error}");
    assert!(fs::read(database(directory.path())).unwrap() == before);
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = EmbeddedStore::open(&file.path().join("data")).err().unwrap();
    assert!(error.to_string().starts_with("could not make the data directory ("), "{error}");
}
