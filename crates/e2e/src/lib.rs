//! Maestro from the outside: the real binary, real rooms, real signals.
//!
//! - [`Maestro`] is a data directory of its own and the server that runs on it. Tests start it, kill it, look at its
//!   processes, and ask it over HTTP through a [`Client`]. Whatever a test leaves behind, its `Drop` ends.
//! - [`Cluster`] is a PostgreSQL, a Redis, and any number of servers of each module on them.
//! - [`Recipe`] makes fleets of the example room, whose misbehaviour can be chosen.
//! - [`chaos`] kills a server at random moments of a mixed workload; it is also a program, see `scripts/chaos`.
//!
//! The tests are in `crates/e2e/tests/it`; what they share with tests of other crates is in `crates/testkit`. Nothing here
//! links the engine: what can be tested without processes is tested in `crates/simulation`, which is much faster.
//!
//! # Example
//!
//! ```no_run
//! use maestro_e2e::Maestro;
//!
//! let mut maestro = Maestro::started(&[])?;
//! let before = maestro.fleet("arena", 3)?;
//!
//! // Rooms outlive the server, and the next start adopts the same processes.
//! maestro.kill()?;
//! maestro.start()?;
//! let after = maestro.api().rooms("arena")?;
//! assert_eq!(before[0].pids, after[0].pids);
//! # Ok::<(), anyhow::Error>(())
//! ```

pub mod binaries;
mod broken_log;
pub mod chaos;
pub mod checks;
mod client;
mod cluster;
mod maestro;
mod recipe;

pub use broken_log::BrokenLog;
pub use client::{Answer, AutoscalingInfo, Client, Ended, Event, FleetInfo, Operation, Room, Time, Version};
pub use cluster::Cluster;
pub use maestro::{Maestro, STOP_ROOMS, Settings};
pub use maestro_testkit::processes::{RoomProcess, of_store as processes_of_store, send_signal};
pub use maestro_testkit::{PATIENCE, PortSlice, copy_all, until};
pub use recipe::Recipe;
