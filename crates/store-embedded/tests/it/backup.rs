//! Backups of a store in use, and restores that may be killed.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use maestro_core::lock::LockKind::{Config, Downscaling, Scale};
use maestro_core::operation::OperationStatus;
use maestro_engine::ports::contract::fixtures::*;
use maestro_engine::ports::store::{Change, OperationStore, Refusal, Workforce};
use maestro_store_embedded::{BackupError, EmbeddedStore, OpenError, RestoreOptions, Restored, backup};
use tempfile::TempDir;

use crate::child;
use crate::opening::as_first_migrated;

fn restore(directory: &Path, from: &Path) -> Result<Restored, BackupError> {
    maestro_store_embedded::restore(directory, from, &RestoreOptions::default())
}

/// The number of operations in the queue of the arena says how far a store had come.
async fn grow(store: &EmbeddedStore, from: u128, to: u128) {
    for number in from..=to {
        accept(store, vec![adjust_fleet(&arena(), 1), Change::Enqueue(new_operation(number))]).await;
    }
}

/// How far it had come; fails if one of the two changes of a write is missing.
async fn grown(store: &EmbeddedStore) -> u32 {
    let operations = store.unfinished(&arena()).await.unwrap().len();
    let size = scheduler(store, &arena()).await.fleet_size;
    assert_eq!(size, FLEET_SIZE + u32::try_from(operations).unwrap());
    size - FLEET_SIZE
}

async fn store_grown_to(directory: &Path, to: u128) -> EmbeddedStore {
    let store = EmbeddedStore::open(directory).unwrap();
    open(&store).await;
    grow(&store, 1, to).await;
    store
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_backup_of_a_store_in_use_is_whole() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("data");
    let store = Arc::new(store_grown_to(&directory, 10).await);
    let stop = Arc::new(AtomicBool::new(false));
    let writing = {
        let (store, stop) = (store.clone(), stop.clone());
        tokio::spawn(async move {
            let mut number = 10;
            while !stop.load(Ordering::Relaxed) {
                number += 1;
                grow(&store, number, number).await;
            }
        })
    };
    let mut last = 10;
    for round in 0..5 {
        let file = root.path().join(format!("backup-{round}"));
        let (from, to) = (directory.clone(), file.clone());
        tokio::task::spawn_blocking(move || backup(&from, &to)).await.unwrap().unwrap();
        let copy = root.path().join(format!("copy-{round}"));
        assert_eq!(restore(&copy, &file).unwrap().kept, None);
        let copy = EmbeddedStore::open(&copy).unwrap();
        let grown = grown(&copy).await;
        assert!(grown >= last, "what was answered before the backup is in it");
        last = grown;
    }
    stop.store(true, Ordering::Relaxed);
    writing.await.unwrap();
    assert_eq!(names(root.path()).iter().filter(|name| name.contains("partial")).count(), 0);
}

/// In a process of its own: a part of another_process_takes_the_backup.
#[test]
fn child_takes_a_backup() {
    let Some(root) = child::directory() else { return };
    backup(&root.join("data"), &root.join("backup")).unwrap();
    child::say("done");
}

#[tokio::test]
async fn another_process_takes_the_backup() {
    let root = tempfile::tempdir().unwrap();
    let store = store_grown_to(&root.path().join("data"), 20).await;
    let output = child::run("backup::child_takes_a_backup", root.path(), "");
    assert_eq!(child::said(&output), ["done"], "{output:?}");
    // The store in use has not noticed.
    grow(&store, 21, 30).await;
    assert_eq!(grown(&store).await, 30);
    restore(&root.path().join("copy"), &root.path().join("backup")).unwrap();
    assert_eq!(grown(&EmbeddedStore::open(&root.path().join("copy")).unwrap()).await, 20);
}

#[tokio::test]
async fn a_backup_overwrites_nothing() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("data");
    let file = root.path().join("backup");
    let error = backup(&directory, &file).unwrap_err();
    assert_eq!(error.to_string(), format!("there is no store in {}", directory.display()));
    drop(EmbeddedStore::open(&directory).unwrap());
    fs::write(&file, "something dear").unwrap();
    let error = backup(&directory, &file).unwrap_err();
    assert!(matches!(error, BackupError::Exists { .. }), "{error}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "something dear");
    let nowhere = root.path().join("nowhere").join("backup");
    assert!(matches!(backup(&directory, &nowhere), Err(BackupError::Store(_))));
}

#[tokio::test]
async fn a_restore_takes_the_store_back_and_keeps_what_was_there() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("data");
    let file = root.path().join("backup");
    let store = store_grown_to(&directory, 10).await;
    let early = store.own(&arena(), "worker-1", NO_TIME).await.unwrap();
    accept(&store, vec![start(1)]).await;
    backup(&directory, &file).unwrap();
    grow(&store, 11, 15).await;
    // Tokens that the backup does not know of.
    let mut late = early;
    for round in 1..=5 {
        late = store.own(&arena(), &format!("worker-{round}-b"), NO_TIME).await.unwrap();
    }
    assert!(late > early);
    drop(store);

    let kept = directory.join("maestro.db.before-restore");
    assert_eq!(restore(&directory, &file).unwrap().kept, Some(kept.clone()));
    assert_eq!(names(&directory), ["maestro.db", "maestro.db.before-restore", "maestro.lock", "store.id"]);
    let store = EmbeddedStore::open(&directory).unwrap();
    assert_eq!(grown(&store).await, 10);
    let running = operation(&store, 1).await;
    assert_eq!((running.status, running.lease), (OperationStatus::InProgress, None));
    let next = store.own(&arena(), "worker-2", TTL).await.unwrap();
    assert!(next > late, "{next:?} after {late:?}: tokens never go back");
    drop(store);

    // And back again.
    let again = root.path().join("again");
    restore(&again, &kept).unwrap();
    assert_eq!(grown(&EmbeddedStore::open(&again).unwrap()).await, 15);
}

/// The first backup was the wrong one: what was there before it is still wanted.
#[tokio::test]
async fn a_second_restore_keeps_what_the_first_one_kept() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("data");
    let file = root.path().join("backup");
    let store = store_grown_to(&directory, 3).await;
    backup(&directory, &file).unwrap();
    grow(&store, 4, 7).await;
    drop(store);
    restore(&directory, &file).unwrap();
    restore(&directory, &file).unwrap();
    let aside = directory.join("maestro.db.before-restore-2");
    let again = root.path().join("again");
    restore(&again, &aside).unwrap();
    assert_eq!(grown(&EmbeddedStore::open(&again).unwrap()).await, 7);
}

#[tokio::test]
async fn a_restore_brings_locks_back_and_no_token_twice() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("data");
    let file = root.path().join("backup");
    let store = store_grown_to(&directory, 2).await;
    store.renew(renewal("worker-1")).await.unwrap();
    accept(&store, vec![take(Scale, holder(1)), take_for_rollout(Config, None)]).await;
    accept(&store, [2, 1].map(|number| await_lock(Config, holder(number))).into()).await;
    let before = locks(&store).await;
    backup(&directory, &file).unwrap();
    // What the backup does not know of.
    accept(&store, vec![release(Scale, holder(1)), take(Scale, holder(2))]).await;
    let late = lock(&store, Scale).await.token;
    drop(store);

    restore(&directory, &file).unwrap();
    let store = EmbeddedStore::open(&directory).unwrap();
    assert_eq!(locks(&store).await, before);
    assert_eq!(store.workers().await.unwrap(), Workforce::default());
    let lost = Refusal::LockLost { scheduler: arena(), kind: Scale };
    refuse(&store, vec![revoke(Scale, late)], lost).await;
    accept(&store, vec![take(Downscaling, holder(2))]).await;
    assert!(lock(&store, Downscaling).await.token > late, "tokens never go back");
}

#[tokio::test]
async fn a_backup_of_an_older_maestro_is_restored() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("data");
    let file = root.path().join("backup");
    drop(store_grown_to(&directory, 3).await);
    as_first_migrated(&directory);
    backup(&directory, &file).unwrap();
    let copy = root.path().join("copy");
    restore(&copy, &file).unwrap();
    assert_eq!(grown(&EmbeddedStore::open(&copy).unwrap()).await, 3);
}

#[tokio::test]
async fn a_restore_waits_for_no_one() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("data");
    let store = store_grown_to(&directory, 3).await;
    let file = root.path().join("backup");
    backup(&directory, &file).unwrap();
    let error = restore(&directory, &file).unwrap_err();
    assert!(
        matches!(error, BackupError::Store(OpenError::InUse { pid: Some(pid), .. }) if pid == std::process::id()),
        "{error}"
    );
    grow(&store, 4, 5).await;
    assert_eq!(grown(&store).await, 5);
}

#[tokio::test]
async fn an_unsound_backup_is_refused_before_anything_is_touched() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("data");
    drop(store_grown_to(&directory, 3).await);
    let file = root.path().join("backup");
    backup(&directory, &file).unwrap();
    let sound = fs::read(&file).unwrap();
    let before = fs::read(directory.join("maestro.db")).unwrap();
    let files = names(&directory);
    for (damage, bytes) in [
        ("empty", Vec::new()),
        ("text", b"not a database".repeat(100)),
        ("cut off", sound[..sound.len() / 2].to_vec()),
    ] {
        fs::write(&file, bytes).unwrap();
        let error = restore(&directory, &file).unwrap_err();
        assert!(matches!(error, BackupError::Damaged { .. }), "{damage}: {error}");
        assert_eq!(names(&directory), files, "{damage}");
        assert!(fs::read(directory.join("maestro.db")).unwrap() == before);
    }
    let error = restore(&directory, &root.path().join("nowhere")).unwrap_err();
    assert!(matches!(error, BackupError::NoBackup { .. }), "{error}");
    assert_eq!(grown(&EmbeddedStore::open(&directory).unwrap()).await, 3);
}

/// In a process of its own: a part of tests that need a store that was killed.
#[tokio::test]
async fn child_dies_with_a_log() {
    let Some(directory) = child::directory() else {
        return;
    };
    // The tenth write after the schedulers are made.
    let options = maestro_store_embedded::Options {
        failpoints: "kill:11:after".parse().unwrap(),
        ..Default::default()
    };
    let store = EmbeddedStore::open_with(&directory, options).unwrap();
    open(&store).await;
    grow(&store, 1, 99).await;
}

/// A store whose process was killed: what it wrote last is only in its log.
fn killed_store(root: &TempDir) -> std::path::PathBuf {
    let directory = root.path().join("data");
    let output = child::run("backup::child_dies_with_a_log", &directory, "");
    assert_eq!(output.status.signal(), Some(9), "{output:?}");
    assert!(fs::metadata(directory.join("maestro.db-wal")).unwrap().len() > 0);
    directory
}

#[tokio::test]
async fn a_store_that_was_killed_is_backed_up_with_its_log() {
    let root = tempfile::tempdir().unwrap();
    let directory = killed_store(&root);
    let file = root.path().join("backup");
    backup(&directory, &file).unwrap();
    let copy = root.path().join("copy");
    restore(&copy, &file).unwrap();
    assert_eq!(grown(&EmbeddedStore::open(&copy).unwrap()).await, 10);
}

#[tokio::test]
async fn a_log_of_before_is_not_replayed_into_the_restored_store() {
    let root = tempfile::tempdir().unwrap();
    let other = root.path().join("other");
    drop(store_grown_to(&other, 3).await);
    let file = root.path().join("backup");
    backup(&other, &file).unwrap();

    let directory = killed_store(&root);
    restore(&directory, &file).unwrap();
    assert_eq!(grown(&EmbeddedStore::open(&directory).unwrap()).await, 3);
    // What was there is whole, with its log.
    let again = root.path().join("again");
    restore(&again, &directory.join("maestro.db.before-restore")).unwrap();
    assert_eq!(grown(&EmbeddedStore::open(&again).unwrap()).await, 10);
}

/// The moments at which a restore can be killed after the point of no return, each as it leaves the directory.
#[tokio::test]
async fn a_killed_restore_is_carried_to_its_end() {
    let root = tempfile::tempdir().unwrap();
    let other = root.path().join("other");
    drop(store_grown_to(&other, 3).await);
    for moved in 0..=3 {
        let root = tempfile::tempdir().unwrap();
        let directory = killed_store(&root);
        let path = |name: &str| directory.join(name);
        fs::copy(other.join("maestro.db"), path("maestro.db.restored")).unwrap();
        if moved >= 1 {
            fs::rename(path("maestro.db-wal"), path("maestro.db.before-restore-wal")).unwrap();
        }
        if moved >= 2 {
            fs::rename(path("maestro.db"), path("maestro.db.before-restore")).unwrap();
        }
        if moved >= 3 {
            fs::remove_file(path("maestro.db-shm")).unwrap();
        }
        let store = EmbeddedStore::open(&directory).unwrap();
        assert_eq!(grown(&store).await, 3, "killed after {moved} steps");
        drop(store);
        let again = root.path().join("again");
        restore(&again, &path("maestro.db.before-restore")).unwrap();
        assert_eq!(grown(&EmbeddedStore::open(&again).unwrap()).await, 10, "what was there is whole");
    }
}
