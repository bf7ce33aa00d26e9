//! Why a data directory cannot be used, in words for the person who started Maestro on it.

use maestro_core::text::count_of;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(
        "the data directory {} is in use by {}; stop it first, or choose another directory",
        .directory.display(), process(*.pid)
    )]
    InUse { directory: PathBuf, pid: Option<u32> },
    #[error(
        "the database {} is damaged: {why}. Nothing was changed. Restore a backup with `maestro restore`, \
         which keeps the damaged file beside it",
        .file.display()
    )]
    Damaged { file: PathBuf, why: String },
    #[error("{} is not a database of Maestro's; nothing was changed", .file.display())]
    NotOurs { file: PathBuf },
    #[error(
        "the database {} was written by Maestro {written_by}, which is newer than this one ({}); nothing was \
         changed. Start the newer version, or restore a backup that is older than the upgrade",
        .file.display(), env!("CARGO_PKG_VERSION")
    )]
    Newer { file: PathBuf, written_by: String },
    #[error(
        "the database {} went through a migration {name} that is not the one of this Maestro; nothing was changed. \
         Start the version that wrote it",
        .file.display()
    )]
    OtherMigration { file: PathBuf, name: String },
    #[error(transparent)]
    Abandoned(AbandonedRooms),
    #[error("could not {step} ({})", .path.display())]
    Io {
        step: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("could not {step} ({})", .file.display())]
    Sqlite {
        step: &'static str,
        file: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
}

/// Rooms of the store that was in a directory before, which nobody would look after any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbandonedRooms {
    pub directory: PathBuf,
    /// The store that the rooms belong to.
    pub store_id: String,
    pub lost: Lost,
    pub rooms: Vec<String>,
}

/// What became of the database whose rooms still run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    Gone,
    Replaced,
}

/// How many rooms a message names.
const ROOMS_NAMED: usize = 10;

impl std::error::Error for AbandonedRooms {}

impl std::fmt::Display for AbandonedRooms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { directory, store_id, lost, rooms } = self;
        let lost = match lost {
            Lost::Gone => "its database is gone",
            Lost::Replaced => "the database is another store's",
        };
        let named = rooms.iter().take(ROOMS_NAMED).cloned().collect::<Vec<_>>().join(", ");
        let more = match rooms.len().saturating_sub(ROOMS_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let (still_run, directory) =
            (if rooms.len() == 1 { "still runs" } else { "still run" }, directory.display());
        write!(
            f,
            "{} of store {store_id}, which was in {directory}, {still_run}, but {lost}: {named}{more}. Nothing was \
             changed. To keep these rooms, bring their database back with `maestro restore --data-dir {directory} \
             BACKUP`; to end them, use --stop-unknown-rooms",
            count_of(rooms.len(), "room"),
        )
    }
}

impl OpenError {
    /// For `map_err`: completes "could not …".
    pub(crate) fn io(step: &'static str, path: &Path) -> impl Fn(io::Error) -> Self + Copy {
        move |source| Self::Io { step, path: path.into(), source }
    }

    /// Damage is damage whichever step comes upon it.
    pub(crate) fn sqlite(step: &'static str, file: &Path) -> impl Fn(rusqlite::Error) -> Self + Copy {
        move |source| match source.sqlite_error_code() {
            Some(rusqlite::ErrorCode::NotADatabase | rusqlite::ErrorCode::DatabaseCorrupt) => {
                Self::Damaged { file: file.into(), why: source.to_string() }
            }
            _ => Self::Sqlite { step, file: file.into(), source },
        }
    }
}

fn process(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".into(), |pid| format!("process {pid}"))
}
