//! The in-memory store is a store like any other.

use std::sync::Arc;

use maestro_engine::ports::contract::{self, StoreUnderTest};
use maestro_simulation::MemoryStore;

async fn fresh() -> StoreUnderTest {
    StoreUnderTest::on_manual_clock(|clock| Arc::new(MemoryStore::new(clock)))
}

#[tokio::test]
async fn scheduler_store() {
    contract::scheduler_store::run_all(fresh).await;
}

#[tokio::test]
async fn operation_store() {
    contract::operation_store::run_all(fresh).await;
}

#[tokio::test]
async fn room_registry() {
    contract::room_registry::run_all(fresh).await;
}

#[tokio::test]
async fn allocation_store() {
    contract::allocation_store::run_all(fresh).await;
}

#[tokio::test]
async fn transactions() {
    contract::transactions::run_all(fresh).await;
}

#[tokio::test]
async fn region_store() {
    contract::region_store::run_all(fresh).await;
}

#[tokio::test]
async fn outbox() {
    contract::outbox::run_all(fresh).await;
}
