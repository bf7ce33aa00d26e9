//! What can go wrong with a request, in the terms of whoever asked. The API maps each kind to a status once.

use maestro_core::rollout::Refused;
use maestro_core::violation::Violations;

use crate::allocations::NoRooms;
use crate::ports::room_table::TableError;
use crate::ports::runtime::RuntimeError;
use crate::ports::store::{Refusal, StoreError};

pub(crate) type Result<T = (), E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request itself is wrong: which field, and what would be right.
    #[error("{0}")]
    Invalid(String),
    #[error(transparent)]
    Violations(#[from] Violations),
    #[error("{0}")]
    NotFound(String),
    #[error("{0}")]
    AlreadyExists(String),
    /// It does not fit the current state: the same request may be right at another time.
    #[error("{0}")]
    Conflict(String),
    /// It has to wait for something that is under way.
    #[error("{0}")]
    Precondition(String),
    /// Every room is taken: it may be right in a moment.
    #[error(transparent)]
    NoRooms(#[from] Box<NoRooms>),
    /// Too many ask at the same time.
    #[error("{0}")]
    TooMany(String),
    /// Something behind us does not work. The source is for the log.
    #[error("{what}")]
    Unavailable {
        what: String,
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        Self::Conflict(refused.to_string())
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Refused(refusal) => refusal.into(),
            StoreError::Unreadable(unreadable) => Self::Conflict(format!(
                "{unreadable}; this Maestro ({}) leaves it and its rooms alone: start the version that wrote it",
                env!("CARGO_PKG_VERSION")
            )),
            error @ (StoreError::Unavailable { .. } | StoreError::Unknown { .. }) => {
                let advice = match &error {
                    StoreError::Unknown { .. } => {
                        "; it may or may not have been done: check before you try again"
                    }
                    _ => "; nothing was changed: try again",
                };
                let what = format!("{}{advice}", with_sources(&error));
                Self::Unavailable { what, source: Some(Box::new(error)) }
            }
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        let text = refusal.to_string();
        match refusal {
            Refusal::SchedulerNotFound(_)
            | Refusal::VersionNotFound { .. }
            | Refusal::OperationNotFound(_)
            | Refusal::AllocationNotFound(_)
            | Refusal::RoomNotFound(_) => Self::NotFound(text),
            Refusal::SchedulerExists(_)
            | Refusal::VersionExists { .. }
            | Refusal::OperationExists(_)
            | Refusal::AllocationExists(_)
            | Refusal::RequestExists(_)
            | Refusal::RoomExists(_) => Self::AlreadyExists(text),
            Refusal::VersionOperationUnderWay { .. } => Self::Precondition(text),
            Refusal::StaleToken { .. }
            | Refusal::SchedulerBeingDeleted(_)
            | Refusal::QueueFull(_)
            | Refusal::SchedulerChanged(_)
            | Refusal::RoomsLeft { .. }
            | Refusal::WrongStatus { .. }
            | Refusal::RollsBack(_)
            | Refusal::SlotTaken { .. }
            | Refusal::VersionIsActive { .. }
            | Refusal::DeletionUnderWay { .. }
            | Refusal::LockHeld(_)
            | Refusal::LockLost { .. }
            | Refusal::RegionChanged(_)
            | Refusal::EventQueueFull { .. }
            | Refusal::RoomClaimed(_)
            | Refusal::OtherInstance(_)
            | Refusal::AllocationOver { .. }
            | Refusal::PortTaken { .. } => Self::Conflict(text),
        }
    }
}

impl From<NoRooms> for Error {
    fn from(no_rooms: NoRooms) -> Self {
        Self::NoRooms(Box::new(no_rooms))
    }
}

impl From<TableError> for Error {
    fn from(error: TableError) -> Self {
        Self::Unavailable { what: error.to_string(), source: None }
    }
}

impl From<RuntimeError> for Error {
    fn from(error: RuntimeError) -> Self {
        match error {
            RuntimeError::Refused(text) | RuntimeError::Full(text) => Self::Conflict(text),
            unavailable @ RuntimeError::Unavailable(_) => {
                Self::Unavailable { what: unavailable.to_string(), source: None }
            }
        }
    }
}

/// An error and what caused it, on one line.
pub fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text += &format!(": {cause}");
        source = cause.source();
    }
    text
}
