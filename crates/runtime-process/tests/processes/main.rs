//! Real processes, real signals, a real kill -9 of the process that started them.

mod contract;
mod input;
mod restarts;
mod rooms;
mod support;
mod survival;
