//! A scheduler: the recipe of one fleet, its versions, and the fleet's size.

mod change;
mod choice;
mod decimal;
mod fleet_size;
mod name;
mod quantity;
mod recipe;
mod regions;
mod surge;
#[cfg(test)]
pub(crate) mod tests;
mod version;

pub use change::{ChangedField, Difference, RecipeChange};
pub use choice::{
    Delivery, ImagePullPolicy, OccupiedRooms, OnFailure, Protocol, RestartPolicy, SchedulerState,
};
pub use decimal::{WHOLE, is_whole_number};
pub use fleet_size::{SizeBaseline, SizeFacts, SizeOnSwitch, on_switch as fleet_size_on_switch};
pub use name::{SchedulerName, parse_label};
pub use quantity::Quantity;
pub use recipe::*;
pub use version::{Version, VersionStatus};
