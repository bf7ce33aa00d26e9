//! A simulated world: the real engine on a virtual clock, among faults that a seed chooses.
//!
//! Hours of a fleet's life pass in milliseconds, and the same seed gives the same run again, line by line. This is how we
//! find what goes wrong once in a thousand restarts; `docs/simulation.md` explains how to run it and what it simulates.
//!
//! - [`World`] holds several engines on one store and one room table, and a [`Host`] for the rooms of each region.
//! - [`Receivers`] are where events go, and may treat them badly ([`Reception`]).
//! - [`Faults`] says what goes wrong at every port; [`Life`] freezes, thaws and ends an engine.
//! - [`Inspector`] checks the named invariants of `maestro-core` after every write.
//! - [`scenarios`] turns a seed into people, players, machines and bad luck; [`sweep`] runs many seeds, and counts which rare
//!   events occurred.
//!
//! Tests of single behaviours build a [`World`] of their own, see `crates/simulation/tests/it`.
//!
//! # Example
//!
//! ```
//! use maestro_simulation::scenarios::{Options, run};
//!
//! let first = run(7, &Options::default());
//! assert!(first.violations.is_empty(), "{:?}", first.violations);
//!
//! let again = run(7, &Options::default());
//! assert_eq!(first.trace, again.trace);
//! ```

mod broken;
mod clock;
mod coverage;
mod faults;
mod host;
mod invariants;
mod life;
mod memory;
mod receivers;
mod runtime;
pub mod scenarios;
mod seed;
mod store;
mod story;
pub mod sweep;
mod table;
mod trace;
mod world;

pub use clock::{Skew, VirtualClock};
pub use coverage::{Coverage, RareEvent};
pub use faults::{Faults, Intercept, PortFaults, Rate};
pub use host::{Exit, GamePing, Habits, Host, HostFaults, Outage, Phase, RoomOnHost, RoomsApi, Span};
pub use invariants::Inspector;
pub use life::Life;
pub use memory::MemoryStore;
pub use receivers::{Receivers, Reception, Taken};
pub use runtime::SimulatedRuntime;
pub use store::{CrashPoint, SimulatedStore};
pub use trace::Trace;
pub use world::{NodeNumber, NodePlan, World};
