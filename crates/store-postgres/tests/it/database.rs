//! Databases of the server that all tests share.

use maestro_store_postgres::{Options, PostgresStore, migrate};
use maestro_testkit::postgres::Server;
use tokio::sync::OnceCell;
use tokio_postgres::{Client, NoTls};

const TEMPLATE: &str = "migrated";

/// A database with the schema, and nothing in it: its name, and how it is reached.
pub(crate) async fn named() -> (String, Options) {
    static TEMPLATE_MADE: OnceCell<()> = OnceCell::const_new();
    let server = Server::shared();
    let make = || async {
        server.create_named(TEMPLATE, None).unwrap();
        migrate(&Options::new(server.url(TEMPLATE)), false).await.unwrap();
    };
    TEMPLATE_MADE.get_or_init(make).await;
    let name = server.create_database(Some(TEMPLATE)).unwrap();
    let options = Options::new(server.url(&name));
    (name, options)
}

pub(crate) async fn open(options: &Options) -> PostgresStore {
    PostgresStore::open(options).await.unwrap().store
}

/// A connection that is not the store's.
pub(crate) async fn connect(options: &Options) -> Client {
    let (client, connection) = tokio_postgres::connect(&options.url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

pub(crate) async fn connect_to(database: &str) -> Client {
    connect(&Options::new(Server::shared().url(database))).await
}
