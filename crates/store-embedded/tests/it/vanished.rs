//! Files that are deleted or replaced under a store in use.

use std::fs;
use std::path::Path;

use maestro_engine::Health;
use maestro_engine::ports::contract::fixtures::*;
use maestro_engine::ports::store::{Change, OperationStore, Store, StoreError, Transaction};
use maestro_store_embedded::EmbeddedStore;
use maestro_testkit::eventually;

async fn write(store: &EmbeddedStore, number: u128) -> Result<(), StoreError> {
    let change = Change::Enqueue(new_operation(number));
    store.commit(Transaction::of_no_scheduler("test", vec![change])).await
}

async fn watched(directory: &Path) -> (EmbeddedStore, Health) {
    let (store, health) = (EmbeddedStore::open(directory).unwrap(), Health::default());
    store.report_to(health.clone());
    open(&store).await;
    write(&store, 1).await.unwrap();
    assert!(health.readiness().is_ready);
    (store, health)
}

#[tokio::test]
async fn a_store_whose_files_are_gone_says_so_and_does_nothing() {
    type Harm = fn(&Path);
    let harms: [(&str, Harm); 5] = [
        ("maestro.db", |file| fs::remove_file(file).unwrap()),
        ("maestro.db-wal", |file| fs::remove_file(file).unwrap()),
        ("maestro.lock", |file| fs::remove_file(file).unwrap()),
        ("maestro.db", |file| {
            let copy = file.with_extension("copy");
            fs::copy(file, &copy).unwrap();
            fs::rename(&copy, file).unwrap();
        }),
        ("maestro.db", |file| {
            fs::rename(file.parent().unwrap(), file.parent().unwrap().with_extension("away")).unwrap();
        }),
    ];
    for (name, harm) in harms {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("data");
        let (store, health) = watched(&directory).await;
        let file = directory.join(name);
        harm(&file);
        // The very next write is refused; nobody has to wait for the watch.
        let error = write(&store, 2).await.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable { .. }), "{name}: {error}");
        let readiness = health.readiness();
        assert!(!readiness.is_ready, "{name}");
        let problem = readiness.problems.join("\n");
        assert!(problem.contains(&*file.to_string_lossy()), "{name}: {problem}");
        assert!(store.unfinished(&arena()).await.is_err(), "{name}: what it would read may be no more");
    }
}

#[tokio::test]
async fn an_idle_store_notices_too_and_goes_on_when_its_files_are_back() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("data");
    let (store, health) = watched(&directory).await;
    let away = root.path().join("away");
    fs::rename(&directory, &away).unwrap();
    eventually("it is noticed", async || !health.readiness().is_ready).await;
    fs::rename(&away, &directory).unwrap();
    eventually("it goes on", async || health.readiness().is_ready).await;
    write(&store, 2).await.unwrap();
    assert_eq!(store.unfinished(&arena()).await.unwrap().len(), 2);
}

/// Its log is still open, and a store that is closed writes it back.
#[tokio::test]
async fn what_was_only_in_a_deleted_log_survives_a_clean_stop() {
    let directory = tempfile::tempdir().unwrap();
    let (store, _) = watched(directory.path()).await;
    fs::remove_file(directory.path().join("maestro.db-wal")).unwrap();
    assert!(write(&store, 2).await.is_err());
    drop(store);
    let store = EmbeddedStore::open(directory.path()).unwrap();
    assert_eq!(store.unfinished(&arena()).await.unwrap().len(), 1);
}
