//! Wake-ups over a real server.

use std::sync::Arc;
use std::time::Duration;

use maestro_engine::ports::WakeUpChannel;
use maestro_engine::ports::contract::wake_ups::{Connected, run_all};
use maestro_engine::ports::wake_ups::WakeUpBatch;
use maestro_store_postgres::{Options, PostgresWakeUps};
use maestro_testkit::postgres::Server;
use tokio::time::timeout;

async fn open(options: &Options) -> Arc<PostgresWakeUps> {
    Arc::new(PostgresWakeUps::open(options).await.unwrap())
}

fn database(server: &Server) -> (String, Options) {
    let database = server.create_database(None).unwrap();
    let options = Options::new(server.url(&database));
    (database, options)
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_the_contract() {
    let server = Server::shared();
    run_all(|| async {
        let (_, options) = database(server);
        Box::new(Connected { one: open(&options).await, other: open(&options).await })
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_broken_connection_everything_may_have_happened() {
    let server = Server::shared();
    let (database, options) = database(server);
    let channel = open(&options).await;
    assert!(channel.passes());
    server
        .sql(&database, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
        .unwrap();
    let received = timeout(Duration::from_secs(30), async {
        loop {
            if let Ok(batch) = channel.receive().await
                && batch == WakeUpBatch::everything()
            {
                break;
            }
        }
    });
    received.await.expect("not connected again");
    channel.send(&WakeUpBatch { workforce: true, ..WakeUpBatch::default() }).await.unwrap();
}
