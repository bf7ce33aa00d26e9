//! One binary for all tests from outside: one server is enough for most of them.

#![allow(clippy::unwrap_used, reason = "a panic is how tests say no")]

mod concurrency;
mod contract;
mod database;
mod failover;
mod lost_answers;
mod opening;
mod proxy;
mod unreadable;
mod wake_ups;
