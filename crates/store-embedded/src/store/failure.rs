//! What can go wrong between a query and its answer, before it becomes the port's error.

use std::sync::Arc;

use maestro_engine::documents::Unreadable;
use maestro_engine::ports::store::{Refusal, StoreError};

pub(crate) type Result<T = (), E = Failure> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    #[error(transparent)]
    GroupLost(#[from] GroupLost),
    #[error("it panicked, and was undone")]
    Panicked,
    /// The store is shutting down, or its thread died.
    #[error("the store is closed")]
    Closed,
}

/// The transaction that several writes shared did not become durable, whatever each of them came to.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub(crate) struct GroupLost(pub(crate) Arc<rusqlite::Error>);

impl Failure {
    pub(crate) fn into_store_error(self, step: &'static str) -> StoreError {
        match self {
            Self::Refused(refusal) => StoreError::Refused(refusal),
            Self::Unreadable(unreadable) => StoreError::Unreadable(unreadable),
            unavailable @ (Self::Sqlite(_) | Self::GroupLost(_) | Self::Panicked | Self::Closed) => {
                StoreError::unavailable(step, unavailable)
            }
        }
    }
}
