//! Why a data directory cannot be used, in words for the person who started Maestro on it.

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

impl OpenError {
    pub(crate) fn io(step: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { step, path: path.into(), source }
    }

    /// Damage is damage whichever step comes upon it.
    pub(crate) fn sqlite(step: &'static str, file: &Path, source: rusqlite::Error) -> Self {
        let file = file.into();
        match source.sqlite_error_code() {
            Some(rusqlite::ErrorCode::NotADatabase | rusqlite::ErrorCode::DatabaseCorrupt) => {
                Self::Damaged { file, why: source.to_string() }
            }
            _ => Self::Sqlite { step, file, source },
        }
    }
}

fn process(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".into(), |pid| format!("process {pid}"))
}
