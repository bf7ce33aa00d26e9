//! Adapters against their contracts, and fleets in a simulated world.

#![allow(clippy::unwrap_used, reason = "tests: a panic is how they fail")]

mod autoscaling;
mod broken_guards;
mod churn;
mod clocks;
mod common;
mod crashes;
mod events;
mod fleet_life;
mod idle;
mod lock_flows;
mod lock_races;
mod locks;
mod lost_tables;
mod operations;
mod panic;
mod panic_nodes;
mod placement;
mod placement_troubles;
mod players_in_rollouts;
mod problems;
mod regions;
mod removal_limit;
mod restarts;
mod rollout_failures;
mod rollout_status;
mod rollout_tables;
mod rollouts;
mod runtime_contract;
mod scenarios;
mod several;
mod silence;
mod store_contract;
mod supervision;
mod unheard_starts;
mod waits;
mod wake_ups;
mod workforce;
