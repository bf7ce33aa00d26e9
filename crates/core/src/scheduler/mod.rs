//! A scheduler: the recipe of one fleet, its versions, and the fleet's size.

pub mod draft;
mod name;
mod recipe;
mod version;

pub use name::SchedulerName;
pub use recipe::*;
pub use version::{Version, VersionStatus};
