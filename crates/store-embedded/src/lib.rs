//! The embedded side of the ports: everything durable in one SQLite file, and the room table in memory.

mod room_table;

pub use room_table::MemoryRoomTable;
