//! On real servers, which the tests start.

#![allow(clippy::unwrap_used, reason = "a panic is how tests say no")]

mod contract;
mod differential;
mod losses;
mod opening;
mod steps;
mod tables;
mod working;
