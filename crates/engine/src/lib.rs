//! The engine: services over ports. Requests become operations, operations become rooms, observations become the
//! next plan. Decisions are taken in `maestro-core`; this crate does what they say.

pub mod documents;
mod engine;
mod error;
mod health;
mod invariants;
mod listening;
mod locks;
pub mod metrics;
mod no_action;
mod operations;
mod panic;
pub mod ports;
mod regions;
mod rollouts;
mod rooms;
pub mod services;
mod settings;
mod silences;
mod tasks;
mod wake;
mod worker;

pub use engine::{Engine, Observing, Parts, Running};
pub use error::{Error, with_sources};
pub use health::{Health, Readiness};
pub use settings::Settings;
pub use tasks::{Importance, TaskName, Tasks};
pub use wake::WakeUps;
