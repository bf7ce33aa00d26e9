//! The embedded side of the ports: everything durable in one SQLite file, and the room table in memory.

mod backup;
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
