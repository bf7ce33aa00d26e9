//! Regions: named groups of rooms with a runtime of their own, and whether they can be reached.

mod name;
mod reachability;

pub use name::Region;
pub use reachability::{Reachability, Sight, Turn};
