//! The domain of Maestro, pure: what a scheduler, a version, a room and an operation are, and how every decision
//! about them is taken. No async, no clock, no randomness, no I/O, nothing `Serialize`.

pub mod autoscaling;
pub mod condition;
pub mod duration;
pub mod guards;
pub mod invariant;
pub mod lock;
mod nearest;
pub mod operation;
pub mod panic;
pub mod placement;
pub mod plan;
pub mod policy;
pub mod region;
pub mod resize;
pub mod rollout;
pub mod room;
pub mod scheduler;
pub mod spread;
pub mod text;
pub mod time;
pub mod violation;
pub mod workforce;

pub use nearest::nearest;
