//! The adapters keep the contracts of their ports.

use std::sync::Arc;

use maestro_engine::ports::RoomTable;
use maestro_engine::ports::contract::{
    StoreUnderTest, allocation_store, operation_store, outbox, region_store, room_registry, room_table,
    scheduler_store, transactions,
};
use maestro_store_embedded::{EmbeddedStore, MemoryRoomTable, Options};
use tempfile::TempDir;

async fn fresh(root: &TempDir) -> StoreUnderTest {
    let directory = tempfile::tempdir_in(root).unwrap().keep();
    StoreUnderTest::on_manual_clock(|clock| {
        let options = Options { clock, ..Options::default() };
        Arc::new(EmbeddedStore::open_with(&directory, options).unwrap())
    })
}

#[tokio::test]
async fn scheduler_store() {
    let root = tempfile::tempdir().unwrap();
    scheduler_store::run_all(|| fresh(&root)).await;
}

#[tokio::test]
async fn operation_store() {
    let root = tempfile::tempdir().unwrap();
    operation_store::run_all(|| fresh(&root)).await;
}

#[tokio::test]
async fn room_registry() {
    let root = tempfile::tempdir().unwrap();
    room_registry::run_all(|| fresh(&root)).await;
}

#[tokio::test]
async fn outbox() {
    let root = tempfile::tempdir().unwrap();
    outbox::run_all(|| fresh(&root)).await;
}

#[tokio::test]
async fn region_store() {
    let root = tempfile::tempdir().unwrap();
    region_store::run_all(|| fresh(&root)).await;
}

#[tokio::test]
async fn allocation_store() {
    let root = tempfile::tempdir().unwrap();
    allocation_store::run_all(|| fresh(&root)).await;
}

#[tokio::test]
async fn transactions() {
    let root = tempfile::tempdir().unwrap();
    transactions::run_all(|| fresh(&root)).await;
}

/// As it goes when nobody has a hand on it.
#[tokio::test]
async fn operation_store_on_the_clock_of_the_machine() {
    let root = tempfile::tempdir().unwrap();
    let fresh = || async {
        let directory = tempfile::tempdir_in(&root).unwrap().keep();
        StoreUnderTest::on_running_clock(Arc::new(EmbeddedStore::open(&directory).unwrap()))
    };
    operation_store::run_all(fresh).await;
}

#[tokio::test]
async fn in_memory() {
    let fresh = || async {
        StoreUnderTest::on_manual_clock(|clock| Arc::new(EmbeddedStore::in_memory(clock).unwrap()))
    };
    scheduler_store::run_all(fresh).await;
    operation_store::run_all(fresh).await;
    room_registry::run_all(fresh).await;
    outbox::run_all(fresh).await;
    region_store::run_all(fresh).await;
    allocation_store::run_all(fresh).await;
    transactions::run_all(fresh).await;
}

#[tokio::test]
async fn room_table() {
    room_table::run_all(|| async { Arc::new(MemoryRoomTable::new()) as Arc<dyn RoomTable> }).await;
}
