//! One binary for all tests from outside: linking SQLite once is enough.

#![allow(clippy::unwrap_used, reason = "a panic is how tests say no")]

mod allocations;
mod backup;
mod child;
mod concurrency;
mod contract;
mod crash;
mod disk_full;
mod identity;
mod opening;
mod room_table;
mod unreadable;
mod vanished;
