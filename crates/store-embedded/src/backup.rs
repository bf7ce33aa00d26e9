//! Copies of a store: a backup is taken from a running one, a restore puts one in its place.
//!
//! A backup is one SQLite file, compact and checked. A restore is done by name: the new database is made ready
//! beside the old one, and from the moment that it has its last-but-one name the restore is carried to its end,
//! by [`restore`] itself or, if it was killed, by whoever opens the directory next.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::store::identity::{self, Here, Recorded, RoomsOf};
use crate::store::{DATABASE, DirectoryLock, OpenError, file, migrations, private, random_id};

/// By how much fencing tokens leap at a restore. Tokens given out after the backup was taken are not in it, and
/// must not come again: nobody takes this many between a backup and its restore.
const TOKEN_LEAP: u64 = 1 << 32;

#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("there is no store in {}", .directory.display())]
    NoStore { directory: PathBuf },
    #[error("{} exists already; a backup overwrites nothing", .file.display())]
    Exists { file: PathBuf },
    #[error("there is no file {}", .file.display())]
    NoBackup { file: PathBuf },
    #[error("the backup {} is damaged: {why}. Nothing was changed; take another one", .file.display())]
    Damaged { file: PathBuf, why: String },
    #[error(transparent)]
    Store(#[from] OpenError),
}

/// Which id a restored store gets. Two stores with the same id would stop each other's rooms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Identity {
    /// The backup's, in the data directory that it was taken from; a new one anywhere else.
    #[default]
    ByDirectory,
    Same,
    New,
}

#[derive(Debug, Clone, Default)]
pub struct RestoreOptions {
    pub identity: Identity,
    /// Asked before a directory is taken over from another store. `None`: nobody looks.
    pub rooms_of: Option<RoomsOf>,
}

/// What a restore did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// Where the database is that was in use before; `None`: there was none.
    pub kept: Option<PathBuf>,
    pub store_id: String,
    /// Whether that is the backup's id, so that rooms which run now are found again.
    pub is_same_store: bool,
    /// The data directory that the backup was taken from, if it says so.
    pub taken_from: Option<PathBuf>,
}

/// Writes the store as it is at this moment into a new file. The store may be in use, by this process or another.
pub fn backup(directory: &Path, to: &Path) -> Result<(), BackupError> {
    let database = directory.join(DATABASE);
    if !file::exists(&database)? {
        return Err(BackupError::NoStore { directory: directory.into() });
    }
    let taken = || BackupError::Exists { file: to.into() };
    if file::exists(to)? {
        return Err(taken());
    }
    // Under another name until it is whole: what is called a backup is one.
    let partial = file::companion(to, ".partial");
    let named = copy(&database, &partial)
        .and_then(|()| record_home(&partial, directory))
        .and_then(|()| file::sync(&partial))
        .map_err(BackupError::from)
        .and_then(|()| if rename_to_new(&partial, to)? { Ok(file::sync_parent(to)?) } else { Err(taken()) });
    if named.is_err() {
        // What went wrong first is what one wants to hear of.
        let _ = file::remove_database(&partial);
    }
    named
}

/// Puts a backup in the place of the store, which must not be in use. The database that was there stays beside it
/// as `maestro.db.before-restore`, what an earlier restore kept under the next free number. Nothing is touched if the backup is not sound.
///
/// In the directory that the backup was taken from the store keeps its id, so rooms that run now are found again.
/// Anywhere else it gets a new one, and the rooms of the backup stay with the original. Ownerships and leases are
/// dropped, and fencing tokens leap: what was owned after the backup was taken is not owned any more. Named locks are
/// those of the backup: the operations and rollouts that hold them go on.
pub fn restore(directory: &Path, from: &Path, options: &RestoreOptions) -> Result<Restored, BackupError> {
    if !file::exists(from)? {
        return Err(BackupError::NoBackup { file: from.into() });
    }
    private::make_directory(directory)?;
    let _lock = DirectoryLock::take(directory)?;
    // One that was killed comes first: what it made ready would otherwise be lost.
    finish_restore(directory)?;

    let database = directory.join(DATABASE);
    let unready = file::companion(&database, ".restoring");
    let prepared = copy(from, &unready)
        .and_then(|()| prepare(&unready, directory, options.identity))
        .and_then(|restored| {
            identity::check_left_behind(directory, Some(&restored.store_id), options.rooms_of)?;
            Ok(restored)
        });
    let mut restored = match prepared {
        Ok(restored) => restored,
        Err(error) => {
            let _ = file::remove_database(&unready);
            return Err(match error {
                OpenError::Damaged { file, why } => BackupError::Damaged { file, why },
                other => other.into(),
            });
        }
    };
    let kept = before_restore(&database);
    set_aside(&kept)?;
    restored.kept = file::exists(&database)?.then_some(kept);
    file::rename_durably(&unready, &ready(&database))?;
    finish_restore(directory)?;
    identity::write_id(directory, &restored.store_id)?;
    Ok(restored)
}

/// What an earlier restore kept may be the only good one there is.
fn set_aside(kept: &Path) -> Result<(), OpenError> {
    if !file::exists(kept)? {
        return Ok(());
    }
    for number in 2.. {
        let aside = file::companion(kept, &format!("-{number}"));
        if file::exists(&aside)? {
            continue;
        }
        return keep(kept, &aside);
    }
    Ok(())
}

/// Renames a database with its log, without which it would not be whole, and which must not stay: SQLite would take it for
/// that of the database that comes next.
fn keep(database: &Path, kept: &Path) -> Result<(), OpenError> {
    for suffix in ["-wal", ""] {
        let (old, new) = (file::companion(database, suffix), file::companion(kept, suffix));
        if file::exists(&old)? {
            std::fs::rename(&old, &new).map_err(OpenError::io("keep the old database", &old))?;
        }
    }
    Ok(())
}

/// Carries a restore to its end that had begun to replace the database. Each step may be repeated.
pub(crate) fn finish_restore(directory: &Path) -> Result<(), OpenError> {
    let database = directory.join(DATABASE);
    let ready = ready(&database);
    if !file::exists(&ready)? {
        return Ok(());
    }
    tracing::info!(database = %database.display(), "restored database takes its place");
    keep(&database, &before_restore(&database))?;
    file::remove_if_there(&file::companion(&database, "-shm"))?;
    // Gone on the disk too before the new one comes.
    file::sync(directory)?;
    file::rename_durably(&ready, &database)
}

/// A sound copy of a sound database, whatever state its log is in. Overwrites `to`.
fn copy(from: &Path, to: &Path) -> Result<(), OpenError> {
    file::remove_database(to)?;
    let failed = OpenError::sqlite("copy the database", from);
    let connection = file::connect_to_read(from).map_err(failed)?;
    file::check(&connection, from)?;
    let path = to.to_str().ok_or_else(|| {
        let error = io::Error::new(io::ErrorKind::InvalidInput, "the path is not UTF-8");
        OpenError::io("write a copy of the database", to)(error)
    })?;
    private::create_file(to).map_err(OpenError::io("write a copy of the database", to))?;
    connection.execute("VACUUM INTO ?1", [path]).map_err(failed)?;
    Ok(())
}

/// A backup says where it was taken, for whoever restores it.
fn record_home(copy: &Path, directory: &Path) -> Result<(), OpenError> {
    let failed = OpenError::sqlite("finish the backup", copy);
    let mut connection = file::connect_to_write(copy).map_err(failed)?;
    migrations::apply(&mut connection).map_err(failed)?;
    identity::settle_if_unknown(&connection, &Here::new(directory)?).map_err(failed)?;
    connection.close().map_err(|(_, source)| failed(source))
}

/// Makes of a copy what will be the store of this directory.
fn prepare(database: &Path, directory: &Path, identity: Identity) -> Result<Restored, OpenError> {
    let failed = OpenError::sqlite("prepare the restored database", database);
    let mut connection = file::connect_to_write(database).map_err(failed)?;
    migrations::apply(&mut connection).map_err(failed)?;
    connection
        .execute_batch(&format!(
            "BEGIN;
             UPDATE store SET last_token = last_token + {TOKEN_LEAP};
             DELETE FROM ownerships;
             UPDATE operations SET lease_owner = NULL, lease_token = NULL, lease_expires_at = NULL
             WHERE ended_at IS NULL;
             COMMIT;"
        ))
        .map_err(failed)?;
    let recorded = Recorded::read(&connection).map_err(failed)?;
    let here = Here::new(directory)?;
    let is_same_store = match identity {
        Identity::Same => true,
        Identity::New => false,
        Identity::ByDirectory => {
            // The directory may have been moved since.
            let was_here = identity::read_id(directory).as_ref() == Some(&recorded.id);
            here.is_home_of(&recorded) || (was_here && !recorded.is_copy_in(&here))
        }
    };
    let store_id = if is_same_store {
        identity::settle(&connection, &here).map_err(failed)?;
        recorded.id
    } else {
        let id = random_id()?;
        identity::rename(&connection, &id, &here).map_err(failed)?;
        id
    };
    connection.close().map_err(|(_, source)| failed(source))?;
    let taken_from = recorded.directory.map(PathBuf::from);
    Ok(Restored { kept: None, store_id, is_same_store, taken_from })
}

/// Where a database waits that will take the place of the old one, whatever happens.
fn ready(database: &Path) -> PathBuf {
    file::companion(database, ".restored")
}

fn before_restore(database: &Path) -> PathBuf {
    file::companion(database, ".before-restore")
}

/// False: there is something of that name.
fn rename_to_new(from: &Path, to: &Path) -> Result<bool, OpenError> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::EXIST) => Ok(false),
        // Not every file system can do that (NFS): there the check at the beginning must do.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            std::fs::rename(from, to).map_err(OpenError::io("name the backup", to))?;
            Ok(true)
        }
        Err(errno) => Err(OpenError::io("name the backup", to)(errno.into())),
    }
}
