//! Connections that break: what was certainly not done, what nobody knows, and that nothing is done twice.

use std::time::Duration;

use maestro_engine::ports::Store;
use maestro_engine::ports::contract::fixtures::*;
use maestro_engine::ports::store::{StoreError, Transaction, TransactionId};
use maestro_store_postgres::{Options, PostgresStore};
use maestro_testkit::{eventually, postgres::Server};

use crate::database;
use crate::proxy::{Fault, Proxy};

/// A store behind a proxy, and another one beside it that sees what was done.
async fn behind_proxy(statement_timeout: Duration) -> (PostgresStore, PostgresStore, Proxy) {
    let server = Server::shared();
    let (name, options) = database::named().await;
    let witness = database::open(&options).await;
    open(&witness).await;
    let proxy = Proxy::start(server.port()).await;
    let url = proxy.in_front_of(&server.tcp_url(&name), server.port());
    let options = Options { statement_timeout, ..Options::new(url) };
    (database::open(&options).await, witness, proxy)
}

fn adds_one(id: u128) -> Transaction {
    let changes = vec![adjust_fleet(&arena(), 1)];
    Transaction { id: Some(TransactionId(id)), ..Transaction::new("test", &arena(), changes) }
}

async fn check_size(store: &PostgresStore, expected: u32) {
    assert_eq!(scheduler(store, &arena()).await.fleet_size, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_unknown_and_what_is_sent_again_is_done_once() {
    let (store, witness, proxy) = behind_proxy(Options::STATEMENT_TIMEOUT).await;
    for (round, fault, size_after) in
        [(1, Fault::CutBefore, FLEET_SIZE), (2, Fault::CutAfter, FLEET_SIZE + 2)]
    {
        proxy.at_next_commit(fault);
        let lost = store.commit(adds_one(round)).await;
        assert!(matches!(lost, Err(StoreError::Unknown { .. })), "{fault:?}: {lost:?}");
        check_size(&witness, size_after).await;
        store.commit(adds_one(round)).await.unwrap();
        store.commit(adds_one(round)).await.unwrap();
        check_size(&witness, FLEET_SIZE + round as u32).await;
    }
    proxy.at_next_commit(Fault::CutAfter);
    let several = vec![adds_one(3), adds_one(4)];
    let lost = store.commit_each(several.clone()).await;
    assert!(matches!(lost, Err(StoreError::Unknown { .. })), "{lost:?}");
    assert_eq!(store.commit_each(several).await.unwrap(), [Ok(()), Ok(())]);
    check_size(&witness, FLEET_SIZE + 4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_breaks_before_the_commit_changed_nothing() {
    let (name, options) = database::named().await;
    let store = database::open(&options).await;
    open(&store).await;
    let other = database::connect(&options).await;
    other.batch_execute("BEGIN; SELECT 1 FROM schedulers WHERE name = 'arena' FOR UPDATE").await.unwrap();
    let killed = async {
        let waiting = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'";
        eventually("a transaction that waits", async || Server::shared().sql(&name, waiting).unwrap() == "1")
            .await;
    };
    let (answer, ()) = tokio::join!(store.commit(adds_one(1)), killed);
    assert!(matches!(answer, Err(StoreError::Unavailable { .. })), "{answer:?}");
    other.batch_execute("ROLLBACK").await.unwrap();
    check_size(&store, FLEET_SIZE).await;
    store.commit(adds_one(1)).await.unwrap();
    check_size(&store, FLEET_SIZE + 1).await;
}

/// Its locks are given to others after the time that the server gives a transaction.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_stopped_inside_a_transaction_holds_up_nobody_for_long() {
    let (stopped, witness, proxy) = behind_proxy(Duration::from_millis(300)).await;
    proxy.at_next_commit(Fault::Silence);
    let stopped = tokio::spawn(async move { stopped.commit(adds_one(1)).await });
    // Waits for the locks of the other, or comes first.
    witness.commit(adds_one(2)).await.unwrap();
    let lost = stopped.await.unwrap();
    assert!(matches!(lost, Err(StoreError::Unknown { .. })), "{lost:?}");
    check_size(&witness, FLEET_SIZE + 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_is_not_given_is_waited_for_no_longer_than_allowed() {
    let (_, options) = database::named().await;
    let options = Options { statement_timeout: Duration::from_millis(200), ..options };
    let store = database::open(&options).await;
    open(&store).await;
    let other = database::connect(&options).await;
    other.batch_execute("BEGIN; SELECT 1 FROM schedulers WHERE name = 'arena' FOR UPDATE").await.unwrap();
    let refused = store.commit(adds_one(1)).await;
    assert!(matches!(refused, Err(StoreError::Unavailable { .. })), "{refused:?}");
    // Reads are held up by nobody.
    check_size(&store, FLEET_SIZE).await;
}

/// As after a restart of the server.
#[tokio::test(flavor = "multi_thread")]
async fn connections_that_were_closed_while_nobody_used_them_are_replaced() {
    let (name, options) = database::named().await;
    let store = database::open(&options).await;
    open(&store).await;
    let close = "SELECT count(pg_terminate_backend(pid)) > 0 FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    assert_eq!(Server::shared().sql(&name, close).unwrap(), "t");
    eventually("a connection that works", async || store.commit(adds_one(1)).await.is_ok()).await;
    check_size(&store, FLEET_SIZE + 1).await;
}
