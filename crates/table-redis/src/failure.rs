//! What a call can fail with.

use std::error::Error;

use maestro_core::scheduler::SchedulerName;
use maestro_engine::ports::room_table::{PingError, TableError};

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    /// The request may or may not have been carried out.
    #[error("{0}")]
    Unavailable(String),
    /// Redis does not have what it was told, or has what was true at another time. Nothing was done.
    #[error("the rooms of scheduler {0} are lost")]
    Lost(SchedulerName),
    /// Written by a newer Maestro, or damaged.
    #[error("{what} in Redis cannot be read: {why}")]
    Unreadable { what: &'static str, why: String },
}

impl Failure {
    pub(crate) fn unreadable(what: &'static str, why: impl Into<Box<dyn Error>>) -> Self {
        Self::Unreadable { what, why: why.into().to_string() }
    }
}

impl From<Failure> for TableError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Lost(scheduler) => Self::Lost(scheduler),
            Failure::Unavailable(_) | Failure::Unreadable { .. } => Self::Unavailable(failure.to_string()),
        }
    }
}

impl From<Failure> for PingError {
    fn from(failure: Failure) -> Self {
        Self::Table(failure.into())
    }
}
