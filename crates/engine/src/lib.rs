//! The engine: requests become operations, operations become rooms, and what is observed becomes the next plan.
//!
//! The engine carries out what `maestro-core` decides. It knows neither HTTP nor SQL nor processes: those are adapters
//! behind [`ports`], which are traits. It takes time and randomness from ports as well, and spawns through [`Tasks`], so
//! that the simulated world can run it on a virtual clock and repeat a run exactly.
//!
//! # Where to find what
//!
//! - [`Engine`] is everything at once: the ports, the settings, and what runs on them. [`Engine::start`] adopts what is
//!   there and begins to work; a part of the work can be left out ([`Parts`]).
//! - [`services`] are its methods that answer requests. They read, or write a change and enqueue the operation that follows
//!   from it, in one transaction.
//! - `operations` has one executor per operation. An executor is a small state machine over stored progress: each call does
//!   one bounded step and says what comes next.
//! - `worker` decides which scheduler this engine owns, and runs one loop for each. The loop starts operations in order, and
//!   starts a health cycle when one is due or something has changed.
//! - `rooms` starts, stops and observes rooms, and compares the registry with what the runtimes report.
//! - `stream` tells whoever watches what has happened. It has the only way to write, `Engine::commit`; `commits` sends what
//!   is written until the store answers.
//! - `allocations` hands rooms to matchmakers, and settles what they hold.
//! - `events` delivers what rooms say to the receivers of their scheduler's forwarders.
//! - [`documents`] is the JSON form of what is stored, the same for all stores.
//! - [`metrics`] has the names and labels of all metrics.
//!
//! `ARCHITECTURE.md` follows a ping, an allocation, a request, the death of a room and a new version through these modules.
//!
//! # Examples
//!
//! A service is a method of the engine. The caller gets an answer as soon as the operation is durably enqueued:
//!
//! ```
//! use maestro_core::operation::OperationId;
//! use maestro_engine::{Engine, Error};
//!
//! /// Adds three rooms to the fleet `arena`, unless autoscaling is on.
//! async fn add_three(engine: &Engine) -> Result<OperationId, Error> {
//!     engine.add_rooms("arena", 3, false, "ada@host").await
//! }
//! ```
//!
//! A port is a trait with a contract in its documentation. This clock stands still:
//!
//! ```
//! use std::time::Duration;
//!
//! use maestro_core::time::Timestamp;
//! use maestro_engine::ports::{Clock, Randomness};
//!
//! struct Standing(Timestamp);
//!
//! impl Clock for Standing {
//!     fn now(&self) -> Timestamp {
//!         self.0
//!     }
//!
//!     fn since_boot(&self) -> Duration {
//!         Duration::ZERO
//!     }
//! }
//!
//! // All randomness comes from one seed, so the same seed gives the same ids.
//! let clock = Standing(Timestamp::UNIX_EPOCH);
//! let id = |seed| Randomness::from_seed(seed).operation_id(clock.now());
//! assert_eq!(id(7), id(7));
//! assert_ne!(id(7), id(8));
//! ```

mod allocations;
mod commits;
pub mod documents;
mod engine;
mod error;
mod events;
mod health;
mod invariants;
mod listening;
mod locks;
pub mod metrics;
mod no_action;
mod operations;
mod panic_scaling;
pub mod ports;
mod regions;
mod rollouts;
mod rooms;
pub mod services;
mod settings;
mod silences;
mod stream;
mod tasks;
mod time;
mod wake;
mod worker;

pub use allocations::{AllocationView, NoRooms};
pub use engine::{Engine, Observing, Parts, Running};
pub(crate) use error::Result;
pub use error::{Error, with_sources};
pub use health::{Health, Readiness};
pub use regions::observed::bind_region;
pub use settings::Settings;
pub use tasks::{Importance, TaskName, Tasks};
pub use wake::WakeUps;
