//! The `maestro` binary as a library, so that tests and tools can use its parts.
//!
//! - [`cli`] is the command line: it parses arguments, talks to a server over HTTP, and prints tables. It knows no engine.
//! - [`config`] reads the configuration: defaults, then a file, then the environment, then flags. Each value remembers where
//!   it came from.
//! - [`start`] is the server. `start/server.rs` is the only place that knows every adapter and puts them together;
//!   `start/log_writer.rs` writes the log from a bounded queue, so that nobody waits for it.
//! - [`backup`] copies and restores a store; [`migrate`] brings the schema of a shared one up to date.
//!
//! # Example
//!
//! Which settings are in effect, and where does each come from?
//!
//! ```
//! use maestro::config::{Sources, load};
//!
//! let environment = vec![("MAESTRO_ROOMSAPI_PORT".into(), "9070".into())];
//! let loaded = load(&Sources { environment, ..Sources::default() })?;
//! assert_eq!(loaded.config.rooms_api.port, 9070);
//!
//! let port = loaded.settings.iter().find(|setting| setting.path() == "roomsApi.port").expect("a known key");
//! assert_eq!(port.origin.to_string(), "MAESTRO_ROOMSAPI_PORT");
//! # Ok::<(), maestro::config::ConfigError>(())
//! ```

pub mod backup;
pub mod cli;
pub mod config;
pub mod migrate;
pub mod start;
mod yaml;

/// The argument that makes a process the log keeper of a region (see `maestro_runtime_process::keep_logs`). Not a
/// command for people: `maestro start` runs it.
pub const LOG_KEEPER: &str = "room-log-keeper";
