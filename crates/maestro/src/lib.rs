//! The `maestro` binary as a library: command line, configuration, wiring. A library, so that tests and tools can
//! use its parts; the binary is only its `main`.

pub mod backup;
pub mod cli;
pub mod config;
pub mod start;
