//! Events as the ring keeps them. The core's events are values that nothing serializes; these are their stored form, which
//! processes of another release may read.

use std::error::Error;
use std::sync::Arc;

use maestro_core::allocation::{AllocationId, AllocationState};
use maestro_core::operation::{OperationId, OperationStatus};
use maestro_core::rollout::RolloutState;
use maestro_core::room::{EndCause, Region, RoomId, RoomStatus};
use maestro_core::scheduler::{SchedulerName, VersionStatus};
use maestro_core::stream::{Decision, Happened, RolloutChange, StreamEvent};
use maestro_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::record::version;

#[derive(Serialize, Deserialize)]
struct EventRecord {
    /// As RFC 3339 has it, exactly.
    at: String,
    scheduler: Option<String>,
    what: What,
}

#[derive(Serialize, Deserialize)]
enum What {
    RoomCreated { room: String, version: String, region: String, validation: bool },
    RoomChanged { room: String, before: String, after: String },
    RoomEnded { room: String, how: String, cause: String },
    AllocationHeld { allocation: String, room: String, expires_at: String, request: Option<String> },
    AllocationEnded { allocation: String, room: String, state: String, cause: String },
    OperationChanged { operation: String, definition: String, status: String, reason: String },
    Decided { operation: String, numbers: [u64; 5], outcome: String, reason: String },
    RolloutChanged { state: Option<String>, to: String, from: String, note: String },
    VersionChanged { version: String, status: String, cause: String },
    RegionReached { region: String, reachable: bool, why: String },
    RegionOrdered { region: String, cordoned: bool, draining: bool, by: String, reason: String },
}

pub(crate) fn write_event(event: &StreamEvent) -> Result<String, Failure> {
    let record = EventRecord {
        at: event.at.to_string(),
        scheduler: event.scheduler.as_ref().map(ToString::to_string),
        what: What::of(&event.what),
    };
    serde_json::to_string(&record).map_err(|error| Failure::Unavailable(error.to_string()))
}

pub(crate) fn parse_event(stored: &str) -> Result<StreamEvent, Failure> {
    let record: EventRecord = serde_json::from_str(stored).map_err(unreadable)?;
    let scheduler =
        record.scheduler.map(|name| SchedulerName::parse(&name).map_err(unreadable)).transpose()?;
    Ok(StreamEvent { at: time(&record.at)?, scheduler, what: record.what.read()? })
}

impl What {
    fn of(happened: &Happened) -> Self {
        match happened {
            Happened::RoomCreated { room, version, region, validation } => Self::RoomCreated {
                room: room.to_string(),
                version: version.to_string(),
                region: region.to_string(),
                validation: *validation,
            },
            Happened::RoomChanged { room, before, after } => Self::RoomChanged {
                room: room.to_string(),
                before: before.to_string(),
                after: after.to_string(),
            },
            Happened::RoomEnded { room, how, cause } => {
                Self::RoomEnded { room: room.to_string(), how: how.to_string(), cause: cause.to_string() }
            }
            Happened::AllocationHeld { allocation, room, expires_at, request } => Self::AllocationHeld {
                allocation: allocation.to_string(),
                room: room.to_string(),
                expires_at: expires_at.to_string(),
                request: request.as_ref().map(ToString::to_string),
            },
            Happened::AllocationEnded { allocation, room, state, cause } => Self::AllocationEnded {
                allocation: allocation.to_string(),
                room: room.to_string(),
                state: state.to_string(),
                cause: cause.to_string(),
            },
            Happened::OperationChanged { operation, definition, status, reason } => Self::OperationChanged {
                operation: operation.to_string(),
                definition: definition.to_string(),
                status: status.to_string(),
                reason: reason.to_string(),
            },
            Happened::Decided { operation, decision } => Self::decided(*operation, decision),
            Happened::RolloutChanged(RolloutChange { state, to, from, note }) => Self::RolloutChanged {
                state: state.map(|state| state.to_string()),
                to: to.to_string(),
                from: from.to_string(),
                note: note.to_string(),
            },
            Happened::VersionChanged { version, status, cause } => Self::VersionChanged {
                version: version.to_string(),
                status: status.to_string(),
                cause: cause.to_string(),
            },
            Happened::RegionReached { region, reachable, why } => Self::RegionReached {
                region: region.to_string(),
                reachable: *reachable,
                why: why.to_string(),
            },
            Happened::RegionOrdered { region, cordoned, draining, by, reason } => Self::RegionOrdered {
                region: region.to_string(),
                cordoned: *cordoned,
                draining: *draining,
                by: by.to_string(),
                reason: reason.to_string(),
            },
        }
    }

    fn decided(operation: OperationId, decision: &Decision) -> Self {
        let Decision { total, occupied, ready, desired, desired_ready, outcome, reason } = decision;
        Self::Decided {
            operation: operation.to_string(),
            numbers: [*total, *occupied, *ready, *desired, *desired_ready],
            outcome: outcome.clone(),
            reason: reason.clone(),
        }
    }

    fn read(self) -> Result<Happened, Failure> {
        Ok(match self {
            Self::RoomCreated { room, version: text, region, validation } => Happened::RoomCreated {
                room: RoomId::new(&room),
                version: version(&text)?,
                region: Region(region.into()),
                validation,
            },
            Self::RoomChanged { room, before, after } => Happened::RoomChanged {
                room: RoomId::new(&room),
                before: parsed(RoomStatus::parse, &before)?,
                after: parsed(RoomStatus::parse, &after)?,
            },
            Self::RoomEnded { room, how, cause } => Happened::RoomEnded {
                room: RoomId::new(&room),
                how: how.into(),
                cause: parsed(EndCause::parse, &cause)?,
            },
            Self::AllocationHeld { allocation, room, expires_at, request } => Happened::AllocationHeld {
                allocation: parsed(AllocationId::parse, &allocation)?,
                room: RoomId::new(&room),
                expires_at: time(&expires_at)?,
                request: request.map(Arc::from),
            },
            Self::AllocationEnded { allocation, room, state, cause } => Happened::AllocationEnded {
                allocation: parsed(AllocationId::parse, &allocation)?,
                room: RoomId::new(&room),
                state: parsed(AllocationState::parse, &state)?,
                cause: cause.into(),
            },
            Self::OperationChanged { operation, definition, status, reason } => Happened::OperationChanged {
                operation: parsed(OperationId::parse, &operation)?,
                definition: definition.into(),
                status: parsed(OperationStatus::parse, &status)?,
                reason: reason.into(),
            },
            Self::Decided {
                operation,
                numbers: [total, occupied, ready, desired, desired_ready],
                outcome,
                reason,
            } => {
                let decision = Decision { total, occupied, ready, desired, desired_ready, outcome, reason };
                Happened::Decided {
                    operation: parsed(OperationId::parse, &operation)?,
                    decision: decision.into(),
                }
            }
            Self::RolloutChanged { state, to, from, note } => Happened::RolloutChanged(RolloutChange {
                state: state.map(|state| parsed(RolloutState::parse, &state)).transpose()?,
                to: version(&to)?,
                from: version(&from)?,
                note: note.into(),
            }),
            Self::VersionChanged { version: text, status, cause } => Happened::VersionChanged {
                version: version(&text)?,
                status: parsed(VersionStatus::parse, &status)?,
                cause: cause.into(),
            },
            Self::RegionReached { region, reachable, why } => {
                Happened::RegionReached { region: Region(region.into()), reachable, why: why.into() }
            }
            Self::RegionOrdered { region, cordoned, draining, by, reason } => Happened::RegionOrdered {
                region: Region(region.into()),
                cordoned,
                draining,
                by: by.into(),
                reason: reason.into(),
            },
        })
    }
}

fn parsed<T>(parse: impl FnOnce(&str) -> Option<T>, text: &str) -> Result<T, Failure> {
    parse(text).ok_or_else(|| unreadable(text))
}

fn time(text: &str) -> Result<Timestamp, Failure> {
    text.parse::<Timestamp>().map_err(unreadable)
}

fn unreadable(why: impl Into<Box<dyn Error>>) -> Failure {
    Failure::unreadable("an event", why)
}
