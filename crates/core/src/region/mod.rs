//! Regions: named groups of rooms with a runtime of their own, and whether they can be reached.

mod name;
mod reachability;

pub use name::Region;
pub use reachability::{Reachability, Sight, Turn};

use crate::words::words;

words! {
    /// What people can say about a region.
    pub enum RegionOrder {
        /// It gets no new rooms.
        Cordon = "cordon",
        /// It gets no new rooms, and those that are there go as soon as the fleet can do without them.
        Drain = "drain",
        /// It is neither cordoned nor drained any more.
        Uncordon = "uncordon",
        /// Its rooms that fell silent together are dead.
        ConfirmLost = "confirm-lost",
    }
}
