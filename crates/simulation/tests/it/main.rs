//! Adapters against their contracts, and whole lives of fleets in a simulated world.

#![allow(clippy::unwrap_used, reason = "tests: a panic is how they fail")]

mod autoscaling;
mod broken_guards;
mod common;
mod crashes;
mod fleet_life;
mod locks;
mod operations;
mod restarts;
mod rollouts;
mod runtime_contract;
mod scenarios;
mod store_contract;
