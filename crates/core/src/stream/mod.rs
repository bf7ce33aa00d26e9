//! The stream of what happens: what a console, a tool or a matchmaker watches instead of asking again and again.
//!
//! Events are kept in a [`Ring`] for a while, so that a reader that was cut off goes on where it was. A reader that cannot
//! go on is told so, with the id from which it can: it reads the lists again, and follows from there. So nobody takes a gap
//! for silence.
//!
//! Events here are values. They are written as JSON for each reader, and not before one asks.

mod filter;
mod id;
mod ring;

use std::sync::Arc;

use crate::allocation::{AllocationId, AllocationState};
use crate::operation::{OperationId, OperationStatus};
use crate::region::Region;
use crate::rollout::RolloutState;
use crate::room::{EndCause, RoomId, RoomStatus};
use crate::scheduler::{SchedulerName, Version, VersionStatus};
use crate::time::Timestamp;
use crate::words::words;

pub use filter::EventFilter;
pub use id::{RingId, StreamId};
pub use ring::{EVENTS_MAX, KEPT_BYTES_MAX, KEPT_FOR, Read, ReadFrom, ResetCause, Ring};

words! {
    /// What an event is about. Readers choose among them.
    pub enum EventType {
        Room = "room",
        Allocation = "allocation",
        Operation = "operation",
        Decision = "decision",
        Rollout = "rollout",
        Region = "region",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamEvent {
    pub at: Timestamp,
    /// `None`: it concerns all of them.
    pub scheduler: Option<SchedulerName>,
    pub what: Happened,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happened {
    /// It is wanted, and about to be started.
    RoomCreated {
        room: RoomId,
        version: Version,
        region: Region,
        validation: bool,
    },
    RoomChanged {
        room: RoomId,
        before: RoomStatus,
        after: RoomStatus,
    },
    RoomEnded {
        room: RoomId,
        how: Arc<str>,
        cause: EndCause,
    },
    AllocationHeld {
        allocation: AllocationId,
        room: RoomId,
        expires_at: Timestamp,
        request: Option<Arc<str>>,
    },
    AllocationEnded {
        allocation: AllocationId,
        room: RoomId,
        state: AllocationState,
        /// How it came to be lost; empty otherwise.
        cause: Arc<str>,
    },
    OperationChanged {
        operation: OperationId,
        /// What was asked for.
        definition: Arc<str>,
        status: OperationStatus,
        /// Why it was asked for; only of a new one.
        reason: Arc<str>,
    },
    Decided {
        /// The health cycle.
        operation: OperationId,
        decision: Arc<Decision>,
    },
    RolloutChanged(RolloutChange),
    VersionChanged {
        version: Version,
        status: VersionStatus,
        cause: Arc<str>,
    },
    RegionReached {
        region: Region,
        reachable: bool,
        /// Why it cannot be reached.
        why: Arc<str>,
    },
    RegionOrdered {
        region: Region,
        cordoned: bool,
        draining: bool,
        by: Arc<str>,
        reason: Arc<str>,
    },
}

/// What a health cycle decided about the size of a fleet, and on which numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub total: u64,
    pub occupied: u64,
    pub ready: u64,
    pub desired: u64,
    pub desired_ready: u64,
    /// Such as `Scale Up: +60`.
    pub outcome: String,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutChange {
    /// `None`: there is none any more.
    pub state: Option<RolloutState>,
    pub to: Version,
    pub from: Version,
    /// Who paused it, or why it halted or goes back.
    pub note: Arc<str>,
}

impl Happened {
    pub fn event_type(&self) -> EventType {
        match self {
            Self::RoomCreated { .. } | Self::RoomChanged { .. } | Self::RoomEnded { .. } => EventType::Room,
            Self::AllocationHeld { .. } | Self::AllocationEnded { .. } => EventType::Allocation,
            Self::OperationChanged { .. } => EventType::Operation,
            Self::Decided { .. } => EventType::Decision,
            Self::RolloutChanged(_) | Self::VersionChanged { .. } => EventType::Rollout,
            Self::RegionReached { .. } | Self::RegionOrdered { .. } => EventType::Region,
        }
    }

    /// The id or name of what it happened to.
    pub fn subject(&self) -> String {
        match self {
            Self::RoomCreated { room, .. }
            | Self::RoomChanged { room, .. }
            | Self::RoomEnded { room, .. } => room.to_string(),
            Self::AllocationHeld { allocation, .. } | Self::AllocationEnded { allocation, .. } => {
                allocation.to_string()
            }
            Self::OperationChanged { operation, .. } | Self::Decided { operation, .. } => {
                operation.to_string()
            }
            Self::RolloutChanged(RolloutChange { to, .. }) => to.to_string(),
            Self::VersionChanged { version, .. } => version.to_string(),
            Self::RegionReached { region, .. } | Self::RegionOrdered { region, .. } => region.to_string(),
        }
    }

    /// About how many bytes it keeps beside its own size.
    fn text_bytes(&self) -> usize {
        match self {
            Self::RoomCreated { room, .. } | Self::RoomChanged { room, .. } => room.as_str().len(),
            Self::RoomEnded { room, how, .. } => room.as_str().len() + how.len(),
            Self::AllocationHeld { room, request, .. } => {
                room.as_str().len() + request.as_ref().map_or(0, |request| request.len())
            }
            Self::AllocationEnded { room, cause, .. } => room.as_str().len() + cause.len(),
            Self::OperationChanged { definition, reason, .. } => definition.len() + reason.len(),
            Self::Decided { decision, .. } => {
                size_of::<Decision>() + decision.outcome.len() + decision.reason.len()
            }
            Self::RolloutChanged(RolloutChange { note, .. }) => note.len(),
            Self::VersionChanged { cause, .. } => cause.len(),
            Self::RegionReached { region, why, .. } => region.as_str().len() + why.len(),
            Self::RegionOrdered { region, by, reason, .. } => region.as_str().len() + by.len() + reason.len(),
        }
    }
}

impl StreamEvent {
    /// About how much memory it takes.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.what.text_bytes()
    }
}
