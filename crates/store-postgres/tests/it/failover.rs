//! What was written last may be missing after a failover, and what is remembered for some time is forgotten after it.

use maestro_engine::ports::Store;
use maestro_engine::ports::contract::fixtures::*;
use maestro_engine::ports::store::{OperationStore, Transaction, TransactionId};
use maestro_testkit::{eventually, postgres::Server};

use crate::database;

/// The owner that a new primary knows nothing of may still be at work, with a token that would be given again.
#[tokio::test(flavor = "multi_thread")]
async fn on_a_new_timeline_nothing_is_taken_before_all_may_have_run_out() {
    let (name, options) = database::named().await;
    let store = database::open(&options).await;
    open(&store).await;
    let token = store.own(&arena(), "worker-1", NO_TIME).await.unwrap();
    Server::shared().sql(&name, "UPDATE store SET timeline = '00000000'").unwrap();
    let both = [arena(), bystander()];
    assert_eq!(store.own_all(&both, "worker-2", TTL).await.unwrap(), []);
    // Who has got through with it keeps it.
    assert_eq!(store.own(&arena(), "worker-1", NO_TIME).await.unwrap(), token);
    assert_eq!(store.own_all(&both, "worker-2", TTL).await.unwrap(), []);
    let since = "UPDATE store SET timeline_since = timeline_since - 1000000 * 600";
    Server::shared().sql(&name, since).unwrap();
    let taken = store.own_all(&both, "worker-2", TTL).await.unwrap();
    assert_eq!(taken.len(), 2);
    assert!(taken.iter().all(|(_, taken)| Some(*taken) > token));
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_are_forgotten_a_quarter_of_an_hour_after_they_were_carried_out() {
    let (name, options) = database::named().await;
    let store = database::open(&options).await;
    open(&store).await;
    let adds_one = |id| {
        let changes = vec![adjust_fleet(&arena(), 1)];
        Transaction { id: Some(TransactionId(id)), ..Transaction::new("test", &arena(), changes) }
    };
    for id in 1..=3 {
        store.commit(adds_one(id)).await.unwrap();
    }
    let server = Server::shared();
    let ago = |id: u32, minutes: u32| {
        format!(
            "UPDATE carried_out SET at = at - 60000000::BIGINT * {minutes} WHERE id = '{}'",
            uuid::Uuid::from_u128(id.into())
        )
    };
    server.sql(&name, &ago(1, 16)).unwrap();
    server.sql(&name, &ago(2, 14)).unwrap();
    store.renew(renewal("worker-1")).await.unwrap();
    eventually("the oldest one to be forgotten", async || {
        server.sql(&name, "SELECT count(*) FROM carried_out").unwrap() == "2"
    })
    .await;
    for id in 1..=3 {
        store.commit(adds_one(id)).await.unwrap();
    }
    let size = scheduler(&store, &arena()).await.fleet_size;
    assert_eq!(size, FLEET_SIZE + 4, "only the first is new again");
}
