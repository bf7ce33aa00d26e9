//! Real processes, real signals, a real kill -9 of the process that started them.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod contract;
mod homes;
mod input;
mod leftovers;
mod logs;
mod owners;
mod restarts;
mod rooms;
mod support;
mod survival;
