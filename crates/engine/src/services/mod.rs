//! What people, tools and rooms can ask for. Each file is one group of requests. All of them are methods of
//! [`Engine`](crate::Engine) that take text as it was written, and answer in the caller's terms.
//!
//! A request is accepted when its transaction is written, not before: the answer says so, and a crash does not undo it.

mod admission;
mod allocations;
mod autoscaling;
mod events;
mod explain;
mod fleet_size;
mod imports;
mod locks;
mod operations;
mod overview;
mod pings;
mod regions;
mod rollouts;
mod rooms;
mod schedulers;
mod stream;
mod versions;

pub(crate) use admission::Admission;
pub use allocations::{AllocationList, ExpectedMatch};
pub use autoscaling::AutoscalingDecision;
pub use events::{NotForwarded, ReplayOrder};
pub use explain::ExplainedOperation;
pub use fleet_size::ResizeOrder;
pub use imports::{ImportedScheduler, ImportedVersion};
pub use locks::LockView;
pub use maestro_core::region::RegionOrder;
pub use operations::{OperationList, OperationView};
pub use overview::FleetOverview;
pub(crate) use overview::rooms_wanted;
pub use pings::Address;
pub use regions::RegionView;
pub use rollouts::{OccupiedOldRooms, RolloutPhase, RolloutView};
pub use rooms::{ListedRoom, RoomSilence};
pub use schedulers::{FleetInfo, SchedulerFilter};
pub use stream::{EventReader, Told};
pub use versions::NextVersions;

use maestro_core::scheduler::SchedulerName;

use crate::ports::store::{StoreError, Transaction};
use crate::{Engine, Error, Result};

/// How often a request is decided again when others change what it was decided on.
const ATTEMPTS: u32 = 20;

impl Engine {
    /// False: what it was decided on has changed, so that it has to be decided again.
    async fn accepted(&self, transaction: Transaction) -> Result<bool, StoreError> {
        match self.commit(transaction).await {
            Err(StoreError::Refused(refusal)) if refusal.is_outdated() => Ok(false),
            outcome => outcome.map(|()| true),
        }
    }
}

fn changes_too_fast(scheduler: &str) -> Error {
    Error::Conflict(format!("scheduler {scheduler} changes too fast; try again"))
}

/// A name from a path. One that cannot exist is not found, like one that does not.
fn known_name(text: &str) -> Result<SchedulerName> {
    SchedulerName::parse(text).map_err(|_| scheduler_not_found(text))
}

fn scheduler_not_found(name: &str) -> Error {
    Error::NotFound(format!("scheduler {name} not found"))
}
