//! One binary for all tests from outside: linking SQLite once is enough.

mod backup;
mod child;
mod concurrency;
mod contract;
mod crash;
mod disk_full;
mod opening;
mod room_table;
