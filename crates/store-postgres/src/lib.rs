//! The store of many processes: everything durable in PostgreSQL.
//!
//! - [`PostgresStore`] implements the engine's `Store` port. A transaction arrives as data and is carried out completely or
//!   not at all, on one connection of a small pool. What does not depend on an answer is sent without waiting for one.
//! - [`migrate`] makes the schema, and brings it up to date. It is the only thing that changes a schema: a store that is
//!   opened on another one refuses it.
//!
//! Transactions run in READ COMMITTED. Each begins with the rows that it locks (`row_locks.rs`), all in the same order; what
//! must be unique across schedulers is a constraint of the schema. What meets another transaction all the same, in a deadlock
//! or at a constraint, is undone and done again, so that it is refused in the same words as by any other store. Whether
//! something has run out is decided by the server's clock, in the statement that depends on it.
//!
//! If a connection breaks before a commit was sent, nothing was done; after that, nobody knows. Such a transaction is sent
//! again under the same id, which the first one wrote down if it was done (`transaction.rs`).
//!
//! Nothing is decided here: which changes go together is the engine's business, and the suites in
//! `crates/engine/src/ports/contract` say how a store must behave.
//!
//! [`PostgresWakeUps`] carries wake-ups between the processes, on a connection of its own.
//!
//! # Example
//!
//! ```
//! use maestro_core::room::Region;
//! use maestro_core::time::Timestamp;
//! use maestro_engine::ports::store::{Change, RegionRecord, RegionStore, Store, Transaction};
//! use maestro_store_postgres::{Options, PostgresStore, migrate};
//!
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
//! # let server = maestro_testkit::postgres::Server::start()?;
//! # let url = server.url(&server.create_database(None)?);
//! // For example postgres://maestro:secret@localhost/maestro.
//! let options = Options::new(url);
//! migrate(&options, false).await?;
//! let store = PostgresStore::open(&options).await?.store;
//!
//! let cordoned = RegionRecord {
//!     name: Region::default_region(),
//!     cordoned: true,
//!     draining: false,
//!     by: "ada@host".into(),
//!     reason: "slow network".into(),
//!     at: Timestamp::UNIX_EPOCH,
//!     lost_at: None,
//! };
//! let changes = vec![Change::SetRegion { from: None, to: cordoned.clone() }];
//! store.commit(Transaction::of_no_scheduler("cordon", changes)).await?;
//!
//! // Another process sees it at once.
//! let another = PostgresStore::open(&options).await?.store;
//! assert_eq!(another.regions().await?, [cordoned]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod allocation_rows;
mod allocations;
mod carried_out;
mod changes;
mod columns;
mod error;
mod failure;
mod fleet;
mod locks;
mod migrations;
mod no_action;
mod opening;
mod operation_rows;
mod operations;
mod options;
mod outbox;
mod outbox_rows;
mod ports;
mod query;
mod recipes;
mod regions;
mod room_rows;
mod rooms;
mod row_locks;
mod schedulers;
mod server;
mod session;
mod store;
mod time;
mod transaction;
mod value;
mod versions;
mod wake_ups;
mod workers;
mod writes;

pub use error::OpenError;
pub use migrations::{Migration, SCHEMA_VERSION, migrate};
pub use opening::Warning;
pub use options::Options;
pub use store::{Opened, PostgresStore};
pub use wake_ups::PostgresWakeUps;
