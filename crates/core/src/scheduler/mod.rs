//! A scheduler: the recipe of one fleet, its versions, and the fleet's size.

mod change;
mod choice;
mod decimal;
pub mod draft;
mod fleet_size;
mod name;
mod parse;
mod quantity;
mod recipe;
mod regions;
mod surge;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod to_draft;
mod version;

pub use change::{Change, ChangedField, Difference};
pub use decimal::WHOLE;
pub use fleet_size::{SizeBaseline, SizeFacts, SizeOnSwitch, on_switch as fleet_size_on_switch};
pub use name::SchedulerName;
pub use quantity::Quantity;
pub use recipe::*;
pub use version::{Version, VersionStatus};
