//! The adapters keep the contracts of their ports.

use std::sync::Arc;

use maestro_engine::ports::contract::{
    allocation_store, operation_store, outbox, region_store, room_registry, room_table, scheduler_store,
    transactions,
};
use maestro_engine::ports::{RoomTable, Store};
use maestro_store_embedded::{EmbeddedStore, MemoryRoomTable};
use tempfile::TempDir;

async fn fresh(root: &TempDir) -> Arc<dyn Store> {
    let directory = tempfile::tempdir_in(root).unwrap().keep();
    Arc::new(EmbeddedStore::open(&directory).unwrap())
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

#[tokio::test]
async fn in_memory() {
    let fresh = || async { Arc::new(EmbeddedStore::in_memory().unwrap()) as Arc<dyn Store> };
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
