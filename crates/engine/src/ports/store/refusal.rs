//! Why a store refuses a transaction, and what that means for whoever asked.

use std::sync::Arc;

use maestro_core::allocation::{AllocationId, AllocationState};
use maestro_core::lock::{LockKind, Obstacle};
use maestro_core::operation::queue::UNFINISHED_MAX;
use maestro_core::operation::{OperationId, OperationStatus};
use maestro_core::room::{Region, RoomId};
use maestro_core::scheduler::{SchedulerName, Version};

/// Why a transaction was refused. Nothing of it was done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("another worker owns scheduler {scheduler} now")]
    StaleToken { scheduler: SchedulerName },
    #[error("scheduler {0} exists already")]
    SchedulerExists(SchedulerName),
    #[error("scheduler {0} not found")]
    SchedulerNotFound(SchedulerName),
    #[error("scheduler {0} is being deleted")]
    SchedulerBeingDeleted(SchedulerName),
    #[error(
        "scheduler {0} has {UNFINISHED_MAX} operations that have not ended, and takes no more: let some end, or cancel some"
    )]
    QueueFull(SchedulerName),
    #[error("scheduler {0} was changed by someone else meanwhile")]
    SchedulerChanged(SchedulerName),
    #[error("scheduler {scheduler} still has {rooms} rooms")]
    RoomsLeft { scheduler: SchedulerName, rooms: u32 },
    #[error("version {version} of scheduler {scheduler} exists already")]
    VersionExists { scheduler: SchedulerName, version: Version },
    #[error("scheduler {scheduler} not found in version {version}")]
    VersionNotFound { scheduler: SchedulerName, version: Version },
    #[error("version {version} is the active one of scheduler {scheduler}")]
    VersionIsActive { scheduler: SchedulerName, version: Version },
    #[error("there is already an ongoing version operation (id: {operation}) for scheduler {scheduler}")]
    VersionOperationUnderWay { scheduler: SchedulerName, operation: OperationId },
    #[error("scheduler {scheduler} is being deleted already (operation {operation})")]
    DeletionUnderWay { scheduler: SchedulerName, operation: OperationId },
    #[error("operation {0} exists already")]
    OperationExists(OperationId),
    #[error("operation {0} not found")]
    OperationNotFound(OperationId),
    #[error("operation {operation} is {is}")]
    WrongStatus { operation: OperationId, is: OperationStatus },
    #[error("operation {0} rolls back")]
    RollsBack(OperationId),
    #[error("operation {by} holds the slot")]
    SlotTaken { by: OperationId },
    #[error("{0}")]
    LockHeld(Box<Obstacle>),
    #[error("the lock {kind} of scheduler {scheduler} was taken away")]
    LockLost { scheduler: SchedulerName, kind: LockKind },
    #[error("room {0} exists already")]
    RoomExists(RoomId),
    #[error("room {0} not found")]
    RoomNotFound(RoomId),
    #[error("room {0} was claimed by someone else meanwhile")]
    RoomClaimed(RoomId),
    #[error("room {0} was started as another instance")]
    OtherInstance(RoomId),
    #[error("request {0} was answered before")]
    RequestExists(Arc<str>),
    #[error("allocation {0} not found")]
    AllocationNotFound(AllocationId),
    #[error("allocation {0} exists already")]
    AllocationExists(AllocationId),
    #[error("allocation {allocation} is {is}")]
    AllocationOver { allocation: AllocationId, is: AllocationState },
    #[error("host port {port} of region {region} is taken")]
    PortTaken { region: Region, port: u16 },
    #[error(
        "{max} events wait for forwarder {forwarder} of scheduler {scheduler}, which is the limit (events.queueMax): its \
         receiver does not take them fast enough"
    )]
    EventQueueFull { scheduler: SchedulerName, forwarder: String, max: u32 },
    #[error("region {0} was changed by someone else meanwhile")]
    RegionChanged(Region),
}

impl Refusal {
    /// Someone else was faster; the same step may work at the next try.
    pub(crate) fn is_race(&self) -> bool {
        match self {
            Self::PortTaken { .. }
            | Self::RoomExists(_)
            | Self::RoomNotFound(_)
            | Self::SlotTaken { .. }
            | Self::QueueFull(_)
            | Self::WrongStatus { .. }
            | Self::RollsBack(_)
            | Self::RoomsLeft { .. }
            | Self::VersionExists { .. }
            | Self::VersionOperationUnderWay { .. }
            | Self::DeletionUnderWay { .. }
            | Self::OperationExists(_)
            | Self::SchedulerBeingDeleted(_)
            | Self::LockHeld(_)
            | Self::LockLost { .. }
            | Self::RegionChanged(_)
            | Self::EventQueueFull { .. }
            | Self::RoomClaimed(_)
            | Self::OtherInstance(_)
            | Self::RequestExists(_)
            | Self::AllocationExists(_)
            | Self::AllocationOver { .. }
            | Self::SchedulerChanged(_) => true,
            Self::StaleToken { .. }
            | Self::VersionNotFound { .. }
            | Self::VersionIsActive { .. }
            | Self::SchedulerExists(_)
            | Self::SchedulerNotFound(_)
            | Self::AllocationNotFound(_)
            | Self::OperationNotFound(_) => false,
        }
    }

    /// A request was decided on something that others have changed since: it has to be decided again.
    pub(crate) fn is_outdated(&self) -> bool {
        matches!(
            self,
            Self::SchedulerChanged(_)
                | Self::LockHeld(_)
                | Self::LockLost { .. }
                | Self::WrongStatus { .. }
                | Self::OperationNotFound(_)
        )
    }

    /// The same step will be refused again, although the operation and its scheduler are there and are ours.
    pub(crate) fn is_for_good(&self) -> bool {
        let is_not_ours =
            matches!(self, Self::StaleToken { .. } | Self::SchedulerNotFound(_) | Self::OperationNotFound(_));
        !self.is_race() && !is_not_ours
    }
}
