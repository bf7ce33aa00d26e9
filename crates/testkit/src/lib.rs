//! What tests of several crates need, in one place. Only for `[dev-dependencies]`, and for the crates that test or measure.
//!
//! - [`recorded`], [`path`] and [`repository`] find the files of `testdata/`, of which `testdata/README.md` tells;
//!   [`rollout_table`] reads the tables of the specification, which several crates are tested with.
//! - [`until`] and [`eventually`] wait for what must become true, always with a bound; [`Lines`] waits for what a program
//!   prints.
//! - [`PortSlice`] gives ports that no other test has; [`processes`] finds the rooms of a store among all processes.
//! - With the feature `postgres`, `postgres::Server` is a PostgreSQL that is gone when its test is.
//! - `RedisServer` is a Redis of its own for a test (feature `redis`).
//! - [`documented_metrics`] and [`exported_metrics`] read the table of metrics in the documentation, and a scrape.
//! - [`http`] is a server that answers what a test tells it to; [`recipe`] is a recipe for its requests.
//!
//! Values of core types that tests begin with are not here but in `crates/engine/src/ports/contract/fixtures.rs`, because
//! this crate links nothing of Maestro.
//!
//! # Example
//!
//! ```
//! let exchanges = maestro_testkit::recorded("http-v10.jsonl");
//! assert!(exchanges.iter().all(|exchange| exchange["method"].is_string()));
//! ```

mod files;
pub mod http;
mod lines;
mod metrics;
mod ports;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod processes;
mod recipe;
mod recordings;
#[cfg(feature = "redis")]
mod redis;
mod wait;

pub use files::copy_all;
pub use lines::Lines;
pub use metrics::{Metric, Metrics, MetricsPage, documented_metrics, exported_metrics, metrics_of_v10};
pub use ports::PortSlice;
pub use recipe::recipe;
pub use recordings::{path, recorded, recorded_text, repository, rollout_table};
#[cfg(feature = "redis")]
pub use redis::RedisServer;
pub use wait::{PATIENCE, eventually, until};
