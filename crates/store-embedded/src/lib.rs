//! The embedded side of the ports: everything durable in one SQLite file, and the room table in memory.

mod backup;
mod failpoints;
mod room_table;
mod store;

pub use backup::{BackupError, Restored, backup, restore};
pub use failpoints::Failpoints;
pub use room_table::MemoryRoomTable;
pub use store::{EmbeddedStore, OpenError, Options, WriteCounts};
