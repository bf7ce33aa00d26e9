//! Why a database cannot be used, in one line for the person who started Maestro on it.

use tokio_postgres::error::SqlState;

use crate::failure::{Failure, in_words};

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("store.postgres.url cannot be used: {why}")]
    Url { why: String },
    #[error("the settings store.postgres.* cannot be used: {why}")]
    Settings { why: String },
    #[error("PostgreSQL cannot be reached at store.postgres.url: {why}")]
    Unreachable { why: String },
    #[error("PostgreSQL refuses the user or the password of store.postgres.url: {why}")]
    Denied { why: String },
    #[error("the database of store.postgres.url is not there: {why}")]
    NoDatabase { why: String },
    #[error(
        "PostgreSQL at store.postgres.url has no connection left: {why}. Raise its max_connections, or lower \
         store.postgres.poolSize"
    )]
    NoConnection { why: String },
    #[error(
        "PostgreSQL at store.postgres.url is a replica, or its default is read-only: Maestro needs one that can be \
         written to. Name the primary, or all hosts and target_session_attrs=read-write"
    )]
    ReadOnly,
    #[error("PostgreSQL at store.postgres.url is version {version}; Maestro needs {} or newer", OLDEST / 10_000)]
    TooOld { version: String },
    #[error(
        "the pooler at store.postgres.url does not keep the settings or the prepared statements of a connection: set \
         store.postgres.preparedStatements to false, or name PostgreSQL itself"
    )]
    Pooler,
    #[error(
        "the database of store.postgres.url has tables of another application ({table}) and none of Maestro's; nothing \
         was changed. Make a database of its own for Maestro"
    )]
    NotOurs { table: String },
    #[error("the database of store.postgres.url is empty: run `maestro migrate` first")]
    Empty,
    #[error(
        "the database of store.postgres.url has {has} of the {} migrations of this Maestro ({}): run `maestro migrate` \
         first",
        crate::SCHEMA_VERSION, env!("CARGO_PKG_VERSION")
    )]
    Older { has: u32 },
    #[error(
        "the database of store.postgres.url was migrated by Maestro {applied_by}, which is newer than this one ({}); \
         nothing was changed. Start the newer version",
        env!("CARGO_PKG_VERSION")
    )]
    Newer { applied_by: String },
    #[error(
        "the database of store.postgres.url went through a migration {name} that is not the one of this Maestro; \
         nothing was changed. Start the version that wrote it"
    )]
    OtherMigration { name: String },
    #[error("could not {step} in the database of store.postgres.url: {why}")]
    Failed { step: &'static str, why: String },
}

/// As the server says it: 13, the first that makes random UUIDs by itself.
pub(crate) const OLDEST: i64 = 130_000;

impl OpenError {
    /// For `map_err`: completes "could not …".
    pub(crate) fn of(step: &'static str) -> impl Fn(Failure) -> Self + Copy {
        move |failure| {
            let said = if let Failure::Postgres(error) = &failure { error.code() } else { None };
            match said {
                Some(&SqlState::READ_ONLY_SQL_TRANSACTION) => Self::ReadOnly,
                // What was prepared is another client's, or gone.
                Some(&SqlState::DUPLICATE_PSTATEMENT | &SqlState::INVALID_SQL_STATEMENT_NAME) => Self::Pooler,
                Some(_) | None => Self::Failed { step, why: failure.to_string() },
            }
        }
    }

    /// There is no connection.
    pub(crate) fn unconnected(failure: &Failure) -> Self {
        use deadpool_postgres::PoolError;

        match failure {
            Failure::NoConnection(PoolError::Backend(error)) | Failure::Postgres(error) => {
                let why = in_words(error);
                match error.code() {
                    Some(code)
                        if [SqlState::INVALID_PASSWORD, SqlState::INVALID_AUTHORIZATION_SPECIFICATION]
                            .contains(code) =>
                    {
                        Self::Denied { why }
                    }
                    Some(&SqlState::INVALID_CATALOG_NAME) => Self::NoDatabase { why },
                    Some(&SqlState::TOO_MANY_CONNECTIONS) => Self::NoConnection { why },
                    // A pooler that knows nothing of the options of a connection.
                    Some(&SqlState::PROTOCOL_VIOLATION) => Self::Pooler,
                    Some(_) | None => Self::Unreachable { why },
                }
            }
            Failure::NoConnection(PoolError::Timeout(_)) => {
                Self::Unreachable { why: "there was no answer in time".to_owned() }
            }
            Failure::NoConnection(
                PoolError::Closed | PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_),
            )
            | Failure::TooSlow(_)
            | Failure::Refused(_)
            | Failure::Unreadable(_)
            | Failure::RefusedTogether
            | Failure::Lost(_) => Self::Unreachable { why: failure.to_string() },
        }
    }
}
