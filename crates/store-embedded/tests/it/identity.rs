//! Whose store a directory's is: copies, moves and restores.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use maestro_engine::ports::contract::fixtures::*;
use maestro_engine::ports::runtime::Handle;
use maestro_engine::ports::store::{Change, RoomRegistry};
use maestro_store_embedded::{
    BackupError, EmbeddedStore, Identity, OpenError, Options, RestoreOptions, Restored, backup,
};
use tempfile::TempDir;

use crate::opening::as_first_migrated;

fn id_at(directory: &Path) -> String {
    EmbeddedStore::open(directory).unwrap().store_id().to_owned()
}

fn id_beside(directory: &Path) -> String {
    fs::read_to_string(directory.join("store.id")).unwrap().trim_end().to_owned()
}

fn restore(directory: &Path, from: &Path, identity: Identity) -> Restored {
    let options = RestoreOptions { identity, rooms_of: None };
    maestro_store_embedded::restore(directory, from, &options).unwrap()
}

/// `cp -a`.
fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// A store with one room that runs and one that is about to be started.
async fn store_with_rooms(directory: &Path) -> String {
    let store = EmbeddedStore::open(directory).unwrap();
    open(&store).await;
    accept(&store, vec![Change::IntendRoom(new_room(1, 40001)), Change::IntendRoom(new_room(2, 40002))])
        .await;
    let handle = Handle { host: "here".into(), pids: vec![1], detail: serde_json::Value::Null };
    accept(&store, vec![Change::RoomStarted { scheduler: arena(), room: room_id(1), handle }]).await;
    store.store_id().to_owned()
}

async fn live_rooms(directory: &Path) -> Vec<String> {
    let store = EmbeddedStore::open(directory).unwrap();
    let rooms = store.live_rooms(&arena()).await.unwrap();
    rooms.into_iter().map(|room| room.id.to_string()).collect()
}

struct Original {
    root: TempDir,
    directory: PathBuf,
    backup: PathBuf,
    id: String,
}

async fn original() -> Original {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("data");
    let id = store_with_rooms(&directory).await;
    let file = root.path().join("backup");
    backup(&directory, &file).unwrap();
    Original { backup: file, directory, id, root }
}

#[tokio::test]
async fn a_copy_beside_the_original_is_another_store_without_its_rooms() {
    let original = original().await;
    let copied = original.root.path().join("copy");
    copy(&original.directory, &copied);
    let id = id_at(&copied);
    assert_ne!(id, original.id);
    assert_eq!(id_beside(&copied), id);
    assert_eq!(
        live_rooms(&copied).await,
        [room_id(2).to_string()],
        "the other one runs, and is the original's"
    );
    let store = EmbeddedStore::open(&copied).unwrap();
    assert_eq!(store.ports_in_use(&new_room(1, 1).region).await.unwrap(), [40002]);
    drop(store);
    assert_eq!(id_at(&copied), id, "from now on it is what it is");
    assert_eq!(id_at(&original.directory), original.id);
    assert_eq!(live_rooms(&original.directory).await.len(), 2);
}

#[tokio::test]
async fn a_copy_stays_another_store_when_the_original_is_gone() {
    let original = original().await;
    let copied = original.root.path().join("copy");
    copy(&original.directory, &copied);
    let id = id_at(&copied);
    fs::remove_dir_all(&original.directory).unwrap();
    assert_eq!(id_at(&copied), id);
}

#[tokio::test]
async fn a_directory_that_was_moved_is_the_same_store() {
    let original = original().await;
    let moved = original.root.path().join("moved");
    fs::rename(&original.directory, &moved).unwrap();
    assert_eq!(id_at(&moved), original.id);
    assert_eq!(live_rooms(&moved).await.len(), 2);
    // What takes its place later is not it.
    assert_ne!(id_at(&original.directory), original.id);
    assert_eq!(id_at(&moved), original.id);
    // Moved by copying: to another disk, or from an archive.
    let elsewhere = original.root.path().join("elsewhere");
    copy(&moved, &elsewhere);
    fs::remove_dir_all(&moved).unwrap();
    assert_eq!(id_at(&elsewhere), original.id);
}

#[tokio::test]
async fn a_directory_brought_back_to_its_place_is_the_original_and_the_one_set_aside_a_copy() {
    let original = original().await;
    let aside = original.root.path().join("aside");
    fs::rename(&original.directory, &aside).unwrap();
    copy(&aside, &original.directory);
    assert_eq!(id_at(&original.directory), original.id);
    assert_ne!(id_at(&aside), original.id);
}

#[test]
fn another_way_to_the_same_directory_is_no_copy() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("data");
    let id = id_at(&directory);
    let link = root.path().join("link");
    std::os::unix::fs::symlink(&directory, &link).unwrap();
    assert_eq!(id_at(&link), id);
    assert_eq!(id_at(&directory), id);
}

#[tokio::test]
async fn a_restore_in_the_originals_place_keeps_the_id_and_the_rooms() {
    let original = original().await;
    // The whole directory is lost.
    fs::remove_dir_all(&original.directory).unwrap();
    let restored = restore(&original.directory, &original.backup, Identity::ByDirectory);
    assert!(restored.is_same_store);
    assert_eq!((&restored.store_id, &id_beside(&original.directory)), (&original.id, &original.id));
    assert_eq!(restored.taken_from, Some(original.directory.canonicalize().unwrap()));
    assert_eq!(id_at(&original.directory), original.id);
    assert_eq!(live_rooms(&original.directory).await.len(), 2);
}

#[tokio::test]
async fn a_restore_anywhere_else_makes_another_store() {
    let original = original().await;
    let elsewhere = original.root.path().join("elsewhere");
    let restored = restore(&elsewhere, &original.backup, Identity::ByDirectory);
    assert!(!restored.is_same_store);
    assert_ne!(restored.store_id, original.id);
    assert_eq!(id_beside(&elsewhere), restored.store_id);
    assert_eq!(id_at(&elsewhere), restored.store_id);
    assert_eq!(live_rooms(&elsewhere).await, [room_id(2).to_string()]);
}

#[tokio::test]
async fn who_says_which_identity_gets_it() {
    let original = original().await;
    let elsewhere = original.root.path().join("elsewhere");
    assert_eq!(restore(&elsewhere, &original.backup, Identity::Same).store_id, original.id);
    assert_eq!(id_at(&elsewhere), original.id, "although the original is there");
    let restored = restore(&original.directory, &original.backup, Identity::New);
    assert_ne!(restored.store_id, original.id);
    assert_eq!(id_at(&original.directory), restored.store_id);
}

#[tokio::test]
async fn a_restore_into_a_directory_that_was_moved_keeps_the_id() {
    let original = original().await;
    let moved = original.root.path().join("moved");
    fs::rename(&original.directory, &moved).unwrap();
    // The reason for the restore.
    fs::write(moved.join("maestro.db"), "damaged").unwrap();
    assert_eq!(restore(&moved, &original.backup, Identity::ByDirectory).store_id, original.id);
}

#[tokio::test]
async fn a_restore_into_a_copy_does_not() {
    let original = original().await;
    let copied = original.root.path().join("copy");
    copy(&original.directory, &copied);
    assert_ne!(restore(&copied, &original.backup, Identity::ByDirectory).store_id, original.id);
}

/// A store that was never opened by a Maestro that records where it is.
#[tokio::test]
async fn a_backup_of_an_older_store_knows_where_it_was_taken() {
    let original = original().await;
    as_first_migrated(&original.directory);
    fs::remove_file(original.directory.join("store.id")).unwrap();
    let file = original.root.path().join("older");
    backup(&original.directory, &file).unwrap();
    assert_ne!(
        restore(&original.root.path().join("elsewhere"), &file, Identity::ByDirectory).store_id,
        original.id
    );
    fs::remove_dir_all(&original.directory).unwrap();
    assert_eq!(restore(&original.directory, &file, Identity::ByDirectory).store_id, original.id);
}

fn three_rooms(_: &str) -> io::Result<Vec<String>> {
    Ok(vec!["arena-1 (pid 7)".into(), "arena-2 (pid 8)".into(), "arena-3 (pid 9)".into()])
}

fn no_rooms(_: &str) -> io::Result<Vec<String>> {
    Ok(Vec::new())
}

fn open_asking(
    directory: &Path,
    rooms_of: maestro_store_embedded::RoomsOf,
) -> Result<EmbeddedStore, OpenError> {
    EmbeddedStore::open_with(directory, Options { rooms_of: Some(rooms_of), ..Options::default() })
}

#[test]
fn a_new_database_does_not_take_the_place_of_one_whose_rooms_run() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let id = id_at(path);
    open_asking(path, three_rooms).unwrap();
    fs::remove_file(path.join("maestro.db")).unwrap();
    let error = open_asking(path, three_rooms).err().unwrap();
    let OpenError::Abandoned(abandoned) = &error else { panic!("{error}") };
    assert_eq!(abandoned.store_id, id);
    for words in [
        &*id,
        "3 rooms of store",
        "its database is gone",
        "arena-2 (pid 8)",
        "maestro restore",
        "--stop-unknown-rooms",
    ] {
        assert!(error.to_string().contains(words), "{words:?} in {error}");
    }
    assert_eq!(id_beside(path), id);
    assert!(!path.join("maestro.db").exists());
    // They are gone: a new store may be made, which is not the old one.
    let store = open_asking(path, no_rooms).unwrap();
    assert_ne!(store.store_id(), id);
    assert_eq!(id_beside(path), store.store_id());
}

#[test]
fn another_stores_database_does_not_either() {
    let root = tempfile::tempdir().unwrap();
    let [one, other] = ["one", "other"].map(|name| root.path().join(name));
    let (id, other_id) = (id_at(&one), id_at(&other));
    fs::copy(other.join("maestro.db"), one.join("maestro.db")).unwrap();
    let error = open_asking(&one, three_rooms).err().unwrap();
    assert!(error.to_string().contains("the database is another store's"), "{error}");
    assert_eq!(id_beside(&one), id);

    let file = root.path().join("backup");
    backup(&other, &file).unwrap();
    let options = RestoreOptions { rooms_of: Some(three_rooms), ..RestoreOptions::default() };
    let before = fs::read(one.join("maestro.db")).unwrap();
    let error = maestro_store_embedded::restore(&one, &file, &options).unwrap_err();
    assert!(matches!(error, BackupError::Store(OpenError::Abandoned(_))), "{error}");
    assert!(fs::read(one.join("maestro.db")).unwrap() == before);
    assert_ne!(open_asking(&one, no_rooms).unwrap().store_id(), other_id, "the other one is where it was");
}

fn modes(directory: &Path) -> Vec<(String, u32)> {
    let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
    let mut modes: Vec<_> = entries
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().mode() & 0o777))
        .collect();
    modes.sort();
    modes
}

#[tokio::test]
async fn nobody_else_can_read_a_store_its_log_or_its_backups() {
    let root = tempfile::tempdir().unwrap();
    let (directory, backups) = (root.path().join("data"), root.path().join("backups"));
    fs::create_dir(&backups).unwrap();
    store_with_rooms(&directory).await;
    let store = EmbeddedStore::open(&directory).unwrap();
    accept(&store, vec![Change::Enqueue(new_operation(1))]).await;
    backup(&directory, &backups.join("one")).unwrap();
    let check = |directory: &Path, names: &[&str]| {
        let expected: Vec<_> = names.iter().map(|name| ((*name).to_owned(), 0o600)).collect();
        assert_eq!(modes(directory), expected);
    };
    let used = ["maestro.db", "maestro.db-shm", "maestro.db-wal", "maestro.lock", "store.id"];
    check(&directory, &used);
    check(&backups, &["one"]);
    assert_eq!(fs::metadata(&directory).unwrap().mode() & 0o777, 0o700);
    drop(store);

    // One of an older Maestro, which left them open.
    for (name, _) in modes(&directory) {
        fs::set_permissions(directory.join(name), fs::Permissions::from_mode(0o644)).unwrap();
    }
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
    let _store = EmbeddedStore::open(&directory).unwrap();
    check(&directory, &used);
    assert_eq!(fs::metadata(&directory).unwrap().mode() & 0o777, 0o700);
}
