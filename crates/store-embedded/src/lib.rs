//! The embedded store: everything durable in one SQLite file, and the room table in memory.
//!
//! - [`EmbeddedStore`] implements the engine's `Store` port. One thread writes, and commits what has gathered in the
//!   meantime together; a few connections read. A transaction arrives as data and is carried out completely or not at all.
//! - [`MemoryRoomTable`] implements the `RoomTable` port: the status of every room, its last ping, and who
//!   holds it. It may be lost at any
//!   time, because the engine rebuilds it from the store.
//! - [`backup`] and [`restore`] copy a store, also while a server uses it.
//!
//! A store belongs to one data directory and serves one process at a time. It has an id, which its rooms carry in their
//! environment; `store/identity.rs` decides when a copy is the same store and when it gets a new id.
//!
//! Nothing is decided here: which changes go together is the engine's business, and the suites in
//! `crates/engine/src/ports/contract` say how a store must behave.
//!
//! # Example
//!
//! ```
//! use maestro_core::room::Region;
//! use maestro_core::time::Timestamp;
//! use maestro_engine::ports::store::{Change, RegionRecord, RegionStore, Store, Transaction};
//! use maestro_store_embedded::EmbeddedStore;
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let directory = tempfile::tempdir()?;
//! let cordoned = RegionRecord {
//!     name: Region::default_region(),
//!     cordoned: true,
//!     draining: false,
//!     by: "ada@host".into(),
//!     reason: "slow network".into(),
//!     at: Timestamp::UNIX_EPOCH,
//!     lost_at: None,
//! };
//!
//! let store = EmbeddedStore::open(directory.path())?;
//! let changes = vec![Change::SetRegion { from: None, to: cordoned.clone() }];
//! store.commit(Transaction::of_no_scheduler("cordon", changes)).await?;
//! drop(store);
//!
//! // It is still there after a restart.
//! let store = EmbeddedStore::open(directory.path())?;
//! assert_eq!(store.regions().await?, [cordoned]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod backup;
mod clock;
#[cfg(any(test, feature = "failpoints"))]
mod failpoints;
#[cfg(not(any(test, feature = "failpoints")))]
#[path = "no_failpoints.rs"]
mod failpoints;
mod room_table;
mod store;

pub use backup::{BackupError, Identity, RestoreOptions, Restored, backup, restore};
pub use failpoints::Failpoints;
pub use room_table::MemoryRoomTable;
pub use store::{
    AbandonedRooms, EmbeddedStore, Lost, OpenError, Options, RoomsOf, SCHEMA_VERSION, WriteCounts, server_of,
};
