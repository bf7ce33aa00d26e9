//! Whatever is wrong with a database is said in one line that names the setting, and nothing is changed.

use std::io::{Read, Write};

use maestro_store_postgres::{Options, PostgresStore, SCHEMA_VERSION, Warning, migrate};
use maestro_testkit::http;
use maestro_testkit::postgres::Server;

use crate::database;

/// The message of a store that does not open, in one line.
async fn refused(options: &Options) -> String {
    match PostgresStore::open(options).await {
        Ok(_) => panic!("{options:?} was opened"),
        Err(error) => {
            let message = error.to_string();
            assert!(!message.contains('\n') && message.contains("store.postgres."), "{message}");
            assert!(!message.contains(maestro_testkit::postgres::PASSWORD), "{message}");
            message
        }
    }
}

async fn check(url: &str, expected: &str) {
    let message = refused(&Options::new(url)).await;
    assert!(message.contains(expected), "{message:?} does not say {expected:?}");
}

#[tokio::test]
async fn what_cannot_be_reached_is_named() {
    let server = Server::shared();
    check("postgres://host:port/", "store.postgres.url cannot be used: ").await;
    check("mysql://host/database", "store.postgres.url cannot be used: ").await;
    check("", "store.postgres.url cannot be used: it names no host").await;
    // Nothing listens there.
    check("postgres://maestro@127.0.0.1:1/maestro", "cannot be reached at store.postgres.url: ").await;
    check("postgres://maestro@nowhere.invalid/maestro", "cannot be reached at store.postgres.url: ").await;
    let wrong = server.tcp_url("postgres").replace("secret@", "wrong@");
    check(&wrong, "refuses the user or the password of store.postgres.url: password authentication failed")
        .await;
    check(&server.tcp_url("no_such_database"), "is not there: database \"no_such_database\" does not exist")
        .await;
}

#[tokio::test]
async fn a_database_that_lacks_migrations_is_left_alone() {
    let server = Server::shared();
    let options = Options::new(server.url(&server.create_database(None).unwrap()));
    let message = refused(&options).await;
    assert!(message.contains("is empty: run `maestro migrate` first"), "{message}");
    let would = migrate(&options, true).await.unwrap();
    assert_eq!(would.len(), SCHEMA_VERSION as usize);
    assert_eq!(would[0].to_string(), "0001 initial");
    refused(&options).await;
    assert_eq!(migrate(&options, false).await.unwrap(), would);
    assert_eq!(migrate(&options, false).await.unwrap(), []);
    assert_eq!(migrate(&options, true).await.unwrap(), []);
    let store = database::open(&options).await;
    assert_eq!(store.store_id(), database::open(&options).await.store_id());
}

#[tokio::test]
async fn several_may_migrate_at_once() {
    let server = Server::shared();
    let options = Options::new(server.url(&server.create_database(None).unwrap()));
    let one = || migrate(&options, false);
    let (first, second, third) = tokio::join!(one(), one(), one());
    let done: Vec<_> = [first, second, third].into_iter().map(|migrated| migrated.unwrap().len()).collect();
    assert_eq!(done.iter().sum::<usize>(), SCHEMA_VERSION as usize, "{done:?}");
    database::open(&options).await;
}

#[tokio::test]
async fn databases_of_others_and_of_newer_versions_are_left_alone() {
    let server = Server::shared();
    for (statements, expected) in [
        (
            "CREATE TABLE invoices (id BIGINT); DROP TABLE maestro_migrations",
            "has tables of another application (allocations) and none of Maestro's; nothing was changed",
        ),
        (
            "INSERT INTO maestro_migrations (number, name, checksum, applied_by) VALUES (1000, 'later', '', '9.9.9')",
            "was migrated by Maestro 9.9.9, which is newer than this one",
        ),
        (
            "UPDATE maestro_migrations SET checksum = 'another' WHERE number = 1",
            "went through a migration initial that is not the one of this Maestro; nothing was changed",
        ),
        ("DELETE FROM maestro_migrations", "has 0 of the 1 migrations of this Maestro"),
    ] {
        let (name, options) = database::named().await;
        server.sql(&name, statements).unwrap();
        let message = refused(&options).await;
        assert!(message.contains(expected), "{message:?} does not say {expected:?}");
        if !message.contains("maestro migrate") {
            let migrated = migrate(&options, false).await.map(|_| ()).unwrap_err().to_string();
            assert_eq!(migrated, message, "and it is not migrated");
        }
    }
}

#[tokio::test]
async fn a_server_that_cannot_be_written_to_is_named() {
    let (name, options) = database::named().await;
    let server = Server::shared();
    server.sql("postgres", &format!("ALTER DATABASE {name} SET default_transaction_read_only = on")).unwrap();
    let message = refused(&options).await;
    assert!(message.contains("is a replica, or its default is read-only"), "{message}");
}

#[tokio::test]
async fn a_server_without_a_connection_left_is_named() {
    let (name, options) = database::named().await;
    let server = Server::shared();
    // Superusers are let in, so the limit is for another one.
    let limited = format!(
        "CREATE ROLE guest LOGIN; GRANT ALL ON ALL TABLES IN SCHEMA public TO guest;
         ALTER DATABASE {name} CONNECTION LIMIT 0"
    );
    server.sql(&name, &limited).unwrap();
    let options = Options { url: options.url.replace("user=maestro", "user=guest"), ..options };
    let message = refused(&options).await;
    assert!(message.contains("has no connection left: too many connections for database"), "{message}");
}

/// What PgBouncer says to whom it gives another connection for each transaction.
#[tokio::test]
async fn a_pooler_without_prepared_statements_is_named() {
    let fields = ["SFATAL", "C08P01", "Munsupported startup parameter: options", ""];
    let fields = fields.map(|field| format!("{field}\0")).concat();
    let mut message = vec![b'E'];
    message.extend(u32::try_from(fields.len() + 4).unwrap().to_be_bytes());
    message.extend(fields.as_bytes());
    let pooler = http::listen(move |mut client| {
        let mut startup = [0; 1024];
        let _ = client.read(&mut startup);
        let _ = client.write_all(&message);
    });
    let url = format!("postgres://maestro@{}/maestro", pooler.unwrap());
    check(&url, "set store.postgres.preparedStatements to false, or name PostgreSQL itself").await;
}

#[tokio::test]
async fn a_server_that_may_forget_is_warned_of() {
    let (name, options) = database::named().await;
    assert_eq!(PostgresStore::open(&options).await.unwrap().warnings, []);
    let server = Server::shared();
    server.sql("postgres", &format!("ALTER DATABASE {name} SET synchronous_commit = off")).unwrap();
    assert_eq!(PostgresStore::open(&options).await.unwrap().warnings, [Warning::AsynchronousCommit]);
}
