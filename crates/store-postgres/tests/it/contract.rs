//! The store keeps the contract of its port.

use std::sync::Arc;

use maestro_engine::ports::contract::{
    StoreUnderTest, allocation_store, operation_store, outbox, region_store, room_registry, scheduler_store,
    transactions,
};
use maestro_store_postgres::Options;
use tokio::sync::OnceCell;
use tokio_postgres::Client;

use crate::database;

/// A database that is emptied for each case, on the server's clock, which nobody can set.
#[derive(Default)]
struct Databases {
    made: OnceCell<(Client, Options)>,
    without_prepared_statements: bool,
}

impl Databases {
    async fn fresh(&self) -> StoreUnderTest {
        let make = || async {
            let (_, options) = database::named().await;
            (database::connect(&options).await, options)
        };
        let (client, options) = self.made.get_or_init(make).await;
        client.batch_execute(EMPTY).await.unwrap();
        let prepared_statements = !self.without_prepared_statements;
        let options = Options { prepared_statements, ..options.clone() };
        StoreUnderTest::on_running_clock(Arc::new(database::open(&options).await))
    }
}

/// Much quicker than a new database. In any order: references are not looked at.
const EMPTY: &str = "DO $$
    DECLARE emptied TEXT;
    BEGIN
        SET LOCAL session_replication_role = replica;
        FOR emptied IN SELECT tablename FROM pg_tables
            WHERE schemaname = current_schema() AND tablename NOT IN ('maestro_migrations', 'store')
        LOOP
            EXECUTE format('DELETE FROM %I', emptied);
        END LOOP;
    END $$";

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
