//! Maestro from the outside: the real binary, real rooms, real signals.
//!
//! A [`Maestro`] is a data directory of its own and the server that runs on it. Tests start it, kill it, ask it over
//! HTTP, look at the processes of its store, and wait for what must become true, always with a bound. Whatever a test
//! leaves behind, its `Drop` ends.
//!
//! The tests are in `tests/it`; [`chaos`] is also a program, see `scripts/chaos`.

pub mod binaries;
mod broken_log;
pub mod chaos;
pub mod checks;
mod client;
mod files;
mod maestro;
mod ports;
mod processes;
mod recipe;
mod wait;

pub use broken_log::BrokenLog;
pub use client::{Answer, AutoscalingInfo, Client, Ended, Event, FleetInfo, Operation, Room, Time, Version};
pub use files::copy_all;
pub use maestro::{Maestro, STOP_ROOMS, Settings};
pub use ports::PortSlice;
pub use processes::{RoomProcess, of_store as processes_of_store, send_signal};
pub use recipe::Recipe;
pub use wait::{PATIENCE, until};
