//! The `maestro` binary as a library: command line, configuration, wiring.

pub mod config;
