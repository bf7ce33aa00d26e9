//! The engine: services over ports. Requests become operations, operations become rooms, observations become the
//! next plan. Decisions are taken in `maestro-core`; this crate does what they say.

pub mod documents;
pub mod ports;
