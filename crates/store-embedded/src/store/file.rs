//! The database file: how it comes into being, what is checked before it is trusted, how it is connected to.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::error::OpenError;
use super::{migrations, private};

pub(crate) const DATABASE: &str = "maestro.db";

/// Set by the first migration.
const APPLICATION_ID: i32 = 1_296_123_219;

/// Only another process that reads (a backup, someone with `sqlite3`) can be in the way, and not for long.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Allocations touch pages all over the rooms and their own indexes: with SQLite's 2 MiB, most of them are read again for
/// every commit once there are a hundred thousand. Memory is taken only for pages that are used.
const PAGES_CACHED_KIB: u32 = 32 * 1024;

/// More than there are statements.
const STATEMENTS_CACHED: usize = 128;

/// What a burst of writes may leave behind of the log file.
const LOG_BYTES_KEPT: u32 = 64 * 1024 * 1024;

/// SQLite's companions of a database file, `-wal` and `-shm`.
pub(crate) fn companion(database: &Path, suffix: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// Makes the database under another name and gives it its own when it is whole. So a file of that name is never
/// half made: one that is empty or cut off is damaged, and nobody mistakes it for a new one.
pub(super) fn create(database: &Path, store_id: &str) -> Result<(), OpenError> {
    let unfinished = companion(database, ".new");
    remove_database(&unfinished)?;
    private::create_file(&unfinished).map_err(OpenError::io("create the database", &unfinished))?;
    let failed = OpenError::sqlite("create the database", &unfinished);
    let mut connection = Connection::open(&unfinished).map_err(failed)?;
    // What is killed half way is thrown away, so one sync at the end is enough: a first start should feel quick.
    connection.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;").map_err(failed)?;
    make_tables(&mut connection, store_id).map_err(failed)?;
    connection.close().map_err(|(_, source)| failed(source))?;
    rename_durably(&unfinished, database)
}

/// A database that nobody else can reach.
pub(super) fn make_in_memory(store_id: &str) -> Result<Connection, rusqlite::Error> {
    let mut connection = Connection::open_in_memory()?;
    configure(&connection)?;
    make_tables(&mut connection, store_id)?;
    connection.execute_batch("PRAGMA foreign_keys = ON")?;
    Ok(connection)
}

fn make_tables(connection: &mut Connection, store_id: &str) -> Result<(), rusqlite::Error> {
    migrations::apply(connection)?;
    connection.execute("INSERT INTO store (only_row, id, last_token) VALUES (1, ?1, 0)", [store_id])?;
    Ok(())
}

/// Refuses what is not a sound database of a Maestro that is not newer. Changes nothing.
pub(crate) fn check(connection: &Connection, database: &Path) -> Result<(), OpenError> {
    let failed = OpenError::sqlite("check the database", database);
    check_header(database)?;
    let application_id: i32 =
        connection.query_row("PRAGMA application_id", [], |row| row.get(0)).map_err(failed)?;
    if application_id != APPLICATION_ID {
        return Err(OpenError::NotOurs { file: database.into() });
    }
    let verdict: String =
        connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(failed)?;
    if verdict != "ok" {
        return Err(OpenError::Damaged { file: database.into(), why: verdict });
    }
    migrations::check(connection, database)
}

/// SQLite takes an empty file for a new database, and says little about others that are none.
fn check_header(database: &Path) -> Result<(), OpenError> {
    const MAGIC: &[u8; 16] = b"SQLite format 3\0";
    let mut header = [0; MAGIC.len()];
    let read = File::open(database).and_then(|mut file| file.read_exact(&mut header));
    let damaged = |why: &str| OpenError::Damaged { file: database.into(), why: why.into() };
    match read {
        Ok(()) if &header == MAGIC => Ok(()),
        Ok(()) => Err(damaged("it is not an SQLite database")),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Err(damaged("it is empty or cut off at the beginning"))
        }
        Err(error) => Err(OpenError::io("read the database", database)(error)),
    }
}

/// Not before the file is checked: the journal's mode is written into it.
pub(super) fn prepare_to_write(connection: &Connection) -> Result<(), rusqlite::Error> {
    // FULL: a commit is on the disk when it is answered, also if the power fails then.
    connection.execute_batch(&format!(
        "PRAGMA journal_mode = WAL;
         PRAGMA synchronous = FULL;
         PRAGMA foreign_keys = ON;
         PRAGMA cache_size = -{PAGES_CACHED_KIB};
         PRAGMA journal_size_limit = {LOG_BYTES_KEPT};"
    ))
}

pub(crate) fn connect_to_write(database: &Path) -> Result<Connection, rusqlite::Error> {
    connect(database, OpenFlags::SQLITE_OPEN_READ_WRITE)
}

pub(crate) fn connect_to_read(database: &Path) -> Result<Connection, rusqlite::Error> {
    connect(database, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

/// Without `SQLITE_OPEN_CREATE`: a file that is not there is an error, not a new database. Each connection is used
/// by one thread at a time, so SQLite's own mutexes are left out.
fn connect(database: &Path, access: OpenFlags) -> Result<Connection, rusqlite::Error> {
    let connection = Connection::open_with_flags(database, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    configure(&connection)?;
    Ok(connection)
}

fn configure(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED);
    // Otherwise every statement is prepared anew whenever another value is bound to it, because a plan may depend on
    // values: that costs ten times what most of these statements do.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

/// The file with its companions; not being there is fine.
pub(crate) fn remove_database(database: &Path) -> Result<(), OpenError> {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        remove_if_there(&companion(database, suffix))?;
    }
    Ok(())
}

pub(crate) fn exists(path: &Path) -> Result<bool, OpenError> {
    path.try_exists().map_err(OpenError::io("look for a file", path))
}

pub(crate) fn remove_if_there(path: &Path) -> Result<(), OpenError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(OpenError::io("remove a file", path)(error))
        }
        _ => Ok(()),
    }
}

/// The content, then the name: after a power failure there is the whole file under the new name, or none.
pub(crate) fn rename_durably(from: &Path, to: &Path) -> Result<(), OpenError> {
    sync(from)?;
    std::fs::rename(from, to).map_err(OpenError::io("put a file in its place", to))?;
    sync_parent(to)
}

pub(crate) fn sync_parent(path: &Path) -> Result<(), OpenError> {
    match path.parent() {
        Some(parent) if parent != Path::new("") => sync(parent),
        _ => sync(Path::new(".")),
    }
}

/// A file's content, or a directory's names.
pub(crate) fn sync(path: &Path) -> Result<(), OpenError> {
    File::open(path).and_then(|file| file.sync_all()).map_err(OpenError::io("write a file to the disk", path))
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;

    #[test]
    fn a_statement_is_prepared_once_for_all_values() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("test.db");
        File::create(&database).unwrap();
        let connection = connect_to_write(&database).unwrap();
        connection
            .execute_batch(
                "CREATE TABLE rooms (scheduler TEXT, ended_at INTEGER);
                 CREATE INDEX ended ON rooms (scheduler, ended_at) WHERE ended_at IS NOT NULL;",
            )
            .unwrap();
        let mut statement = connection
            .prepare(
                "SELECT count(*) FROM rooms WHERE scheduler = ?1 AND ended_at < ?2 AND ended_at IS NOT NULL",
            )
            .unwrap();
        for number in 0..10 {
            statement.query_row((format!("arena-{number}"), number), |row| row.get::<_, u32>(0)).unwrap();
        }
        assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
    }
}
