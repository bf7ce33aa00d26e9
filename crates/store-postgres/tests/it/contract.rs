//! The store keeps the contract of its port.

use std::sync::Arc;

use maestro_engine::ports::contract::{
    StoreUnderTest, allocation_store, operation_store, outbox, region_store, room_registry, scheduler_store,
    transactions,
};
use maestro_store_postgres::Options;
use maestro_testkit::postgres::Server;
use parking_lot::Mutex;

use crate::database;

/// One database after the other, on the server's clock, which nobody can set.
#[derive(Default)]
struct Databases {
    last: Mutex<Option<String>>,
    without_prepared_statements: bool,
}

impl Databases {
    /// The one of the last case is done with.
    async fn fresh(&self) -> StoreUnderTest {
        let (name, options) = database::named().await;
        let last = self.last.lock().replace(name);
        if let Some(last) = last {
            Server::shared().drop_database(&last).unwrap();
        }
        let options = Options { prepared_statements: !self.without_prepared_statements, ..options };
        StoreUnderTest::on_running_clock(Arc::new(database::open(&options).await))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn scheduler_store() {
    let databases = Databases::default();
    scheduler_store::run_all(|| databases.fresh()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn operation_store() {
    let databases = Databases::default();
    operation_store::run_all(|| databases.fresh()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn room_registry() {
    let databases = Databases::default();
    room_registry::run_all(|| databases.fresh()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn outbox() {
    let databases = Databases::default();
    outbox::run_all(|| databases.fresh()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn region_store() {
    let databases = Databases::default();
    region_store::run_all(|| databases.fresh()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn allocation_store() {
    let databases = Databases::default();
    allocation_store::run_all(|| databases.fresh()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions() {
    let databases = Databases::default();
    transactions::run_all(|| databases.fresh()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_prepared_statements() {
    // As behind a pooler that knows nothing of them.
    let databases = Databases { without_prepared_statements: true, ..Databases::default() };
    scheduler_store::run_all(|| databases.fresh()).await;
    transactions::run_all(|| databases.fresh()).await;
}
