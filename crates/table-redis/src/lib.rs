//! The room table in Redis, which many processes share.
//!
//! [`RedisRoomTable`] implements the engine's `RoomTable` and `EventRing` ports, as the table in memory does; the same
//! contract suite and a test that walks both through the same random steps hold the two together.
//!
//! - **A scheduler's keys** carry one hash tag, and each change is one script on them. `rooms` holds a packed record for each
//!   room. Counters, the rooms with free slots, the holds that are due and the order of the rooms change with the room, in
//!   the one function that may change it (`scripts/room.lua`). What a status becomes is not written in Lua: the tables of
//!   `maestro_core::room` are put before each script as constants.
//! - **Pings** that are in flight at the same time share a round trip (`pings.rs`).
//! - **No script touches more than 1,000 rooms**, so that nobody waits long behind one. What walks over more goes in parts:
//!   removing a scheduler, setting how many matches rooms hold, lists. A claim is atomic among 1,000 candidates; of more, what
//!   the operation claimed before is counted first.
//! - **Lost, not empty.** Redis may come back without its data, or with older data. Each scheduler has a mark, which says of
//!   which history its data is, and every script compares it with the history that the server is on (`rebuilding.rs`).
//!   Until they are inserted again, whoever asks is told that they are lost, and nothing is changed.
//! - **The ring of events** is one for all schedulers, in keys of its own, which may be in another slot of a cluster than the
//!   room that changes. So a change of status is first added to a list of its scheduler, with the change, and then carried
//!   to the ring (`carrying.rs`): at least once, and known by its number, so that it is there once.
//! - **Nothing waits for long.** Every request has a deadline ([`Options::deadline`]). A request whose answer is missing is not
//!   sent again: it may have been carried out.
//!
//! Keys do not expire by themselves, and no call looks at all keys. A server that evicts keys is refused when the table is
//! opened. Sentinel and Redis Cluster are not supported yet; the keys are laid out for a cluster.
//!
//! # Example
//!
//! ```no_run
//! use maestro_core::room::PingStatus;
//! use maestro_core::scheduler::SchedulerName;
//! use maestro_core::time::Timestamp;
//! use maestro_engine::ports::RoomTable;
//! use maestro_engine::ports::room_table::{Ping, PingError};
//! use maestro_table_redis::{Options, RedisRoomTable};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let table = RedisRoomTable::open(&Options::new("redis://127.0.0.1:6379/0")).await?;
//! let arena = SchedulerName::parse("arena")?;
//! table.begin_rebuild(&arena).await?;
//! table.end_rebuild(&arena).await?;
//!
//! let ping = Ping::of("arena", "arena-9b4cbswcfj", PingStatus::Ready);
//! let pinged = table.ping(ping, Timestamp::now()).await;
//! assert_eq!(pinged, Err(PingError::UnknownRoom));
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "bare")]
mod bare;
mod carrying;
mod changing;
mod event_record;
mod failure;
mod holding;
mod options;
mod pings;
mod port;
mod rebuilding;
mod record;
mod ring;
mod rules;
mod scripts;
mod server;
mod settling;
mod table;
mod waiting;
mod walking;
mod watching;

use std::sync::Arc;

use table::Table;

pub use options::{OpenError, Options};

pub struct RedisRoomTable(Arc<Table>);

impl RedisRoomTable {
    /// Refuses a server that cannot hold the table. Nothing is changed in it.
    pub async fn open(options: &Options) -> Result<Self, OpenError> {
        let server = options::connect(options).await?;
        Ok(Self(Arc::new(Table::new(server, options.prefix.clone(), options.deadline))))
    }
}

impl Drop for RedisRoomTable {
    fn drop(&mut self) {
        self.0.watching.stop();
    }
}
