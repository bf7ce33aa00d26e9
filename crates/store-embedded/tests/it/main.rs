//! One binary for all tests from outside: linking SQLite once is enough.

mod contract;
mod room_table;
