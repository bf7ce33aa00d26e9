//! What can go wrong between a question and its answer, before it becomes the port's error.

use std::time::Duration;

use deadpool_postgres::PoolError;
use maestro_engine::documents::Unreadable;
use maestro_engine::ports::store::{Refusal, StoreError};
use tokio_postgres::error::SqlState;

pub(crate) type Result<T = (), E = Failure> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    #[error("PostgreSQL: {}", in_words(.0))]
    Postgres(#[from] tokio_postgres::Error),
    #[error("no connection to PostgreSQL: {}", why_no_connection(.0))]
    NoConnection(#[from] PoolError),
    #[error("PostgreSQL did not answer within {0:?}")]
    TooSlow(Duration),
    /// Several changes were sent before the first of them was answered, and one was refused: which one, and why, is found
    /// out when they are done one by one.
    #[error("one of several changes was refused")]
    RefusedTogether,
    /// The commit was sent, and what became of it is not known.
    #[error("{0}")]
    Lost(Box<Failure>),
}

impl Failure {
    pub(crate) fn into_store_error(self, step: &'static str) -> StoreError {
        match self {
            Self::Refused(refusal) => StoreError::Refused(refusal),
            Self::Unreadable(unreadable) => StoreError::Unreadable(unreadable),
            Self::Lost(lost) => StoreError::unknown(step, *lost),
            failure @ (Self::Postgres(_)
            | Self::NoConnection(_)
            | Self::TooSlow(_)
            | Self::RefusedTogether) => StoreError::unavailable(step, failure),
        }
    }

    /// Somebody else was faster, and nothing was done: done again, it is decided on what they left. Where a constraint was
    /// in the way, it is refused in the right words then.
    pub(crate) fn is_conflict(&self) -> bool {
        let Self::Postgres(error) = self else { return false };
        error.code().is_some_and(|code| {
            [
                SqlState::T_R_SERIALIZATION_FAILURE,
                SqlState::T_R_DEADLOCK_DETECTED,
                SqlState::UNIQUE_VIOLATION,
                SqlState::FOREIGN_KEY_VIOLATION,
            ]
            .contains(code)
        })
    }
}

/// What the server said, or what the connection came to.
pub(crate) fn in_words(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(said) => format!("{} ({})", said.message(), said.code().code()),
        None => maestro_engine::with_sources(error),
    }
}

fn why_no_connection(error: &PoolError) -> String {
    match error {
        PoolError::Timeout(_) => "all are in use (store.postgres.poolSize)".to_owned(),
        PoolError::Backend(error) => in_words(error),
        PoolError::Closed | PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => error.to_string(),
    }
}
