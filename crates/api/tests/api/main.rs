//! The APIs from outside: requests in, answers out, over a whole engine in memory.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod allocations;
mod both_ways;
mod capacity;
mod dead_letters;
mod explanations;
mod grpc;
mod locks;
mod management;
mod metrics;
mod named_rooms;
mod one_number;
mod open_streams;
mod operations;
mod panic;
mod policies;
mod reading;
mod regions;
mod releases;
mod resize;
mod rooms;
mod runtime;
mod serving;
mod stream;
mod support;
mod versions;
mod waiting;
