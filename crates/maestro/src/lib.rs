//! The `maestro` binary as a library: command line, configuration, wiring. A library, so that tests and tools can
//! use its parts; the binary is only its `main`.

pub mod backup;
pub mod cli;
pub mod config;
pub mod start;
mod yaml;

/// The argument that makes a process the log keeper of a region (see `maestro_runtime_process::keep_logs`). Not a
/// command for people: `maestro start` runs it.
pub const LOG_KEEPER: &str = "room-log-keeper";
