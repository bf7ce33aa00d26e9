//! Whose rooms are whose. The store's id is in the environment of each of its rooms, so two stores with the same id would
//! stop each other's. The id therefore belongs to one data directory, which is written down beside it.
//!
//! | the database says it belongs to | what is there | so it is | its id |
//! |---|---|---|---|
//! | this directory, or none yet | | at home | kept |
//! | another directory | the same store, or what was it | a copy | a new one |
//! | another directory | no store, or another one | moved | kept |
//!
//! Paths count, not inodes: a directory that was brought back from an archive is in the original's place.

use std::io::Write;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension};

use super::error::{AbandonedRooms, Lost, OpenError};
use super::file::{self, DATABASE};
use super::presence::file_id;
use super::private;

/// The id once more, beside the database: when that is gone, it tells whose rooms still run.
const ID_FILE: &str = "store.id";

/// Which rooms of a store run on this host, in words for people. The store does not know runtimes, so it has to be told.
pub type RoomsOf = fn(store_id: &str) -> std::io::Result<Vec<String>>;

/// What a database says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Recorded {
    pub(crate) id: String,
    /// `None`: it was written by a Maestro that did not record it.
    pub(crate) directory: Option<String>,
}

impl Recorded {
    /// The database must have all migrations.
    pub(crate) fn read(connection: &Connection) -> Result<Self, rusqlite::Error> {
        let read =
            |row: &rusqlite::Row<'_>| Ok(Self { id: row.get("id")?, directory: row.get("directory")? });
        connection.query_row("SELECT id, directory FROM store", [], read)
    }

    /// A copy, in this directory, of a store that is still where it was.
    pub(crate) fn is_copy_in(&self, here: &Here) -> bool {
        let Some(home) = self.directory.as_deref().filter(|home| *home != here.name) else {
            return false;
        };
        let home = Path::new(home);
        let is_here = file_id(home).is_ok_and(|id| file_id(&here.path).is_ok_and(|here| here == id));
        if is_here || !home.join(DATABASE).exists() {
            return false;
        }
        // If there is no id beside the database there, the record is believed.
        read_id(home).is_none_or(|id| id == self.id)
    }
}

/// A data directory by the name that is recorded.
pub(crate) struct Here {
    path: PathBuf,
    name: String,
}

impl Here {
    /// The directory must exist.
    pub(crate) fn new(directory: &Path) -> Result<Self, OpenError> {
        let path = directory.canonicalize().map_err(OpenError::io("find the data directory", directory))?;
        let name = path.to_string_lossy().into_owned();
        Ok(Self { path, name })
    }

    pub(crate) fn is_home_of(&self, recorded: &Recorded) -> bool {
        recorded.directory.as_deref() == Some(&*self.name)
    }
}

/// Makes this directory the home of the store.
pub(crate) fn settle(connection: &Connection, here: &Here) -> Result<(), rusqlite::Error> {
    connection.execute("UPDATE store SET directory = ?1 WHERE directory IS NOT ?1", [&here.name]).map(drop)
}

/// For a backup: a store that does not know its home is at home where it is.
pub(crate) fn settle_if_unknown(connection: &Connection, here: &Here) -> Result<(), rusqlite::Error> {
    connection.execute("UPDATE store SET directory = ?1 WHERE directory IS NULL", [&here.name]).map(drop)
}

/// Makes another store of a copy. Rooms that run are the original's: this one has none of them.
pub(crate) fn rename(connection: &Connection, id: &str, here: &Here) -> Result<(), rusqlite::Error> {
    let transaction = connection.unchecked_transaction()?;
    transaction.execute("UPDATE store SET id = ?1, directory = ?2", [id, &here.name])?;
    // A row without a handle is of an operation that has not started the room yet, and will, as this store's.
    transaction.execute_batch(
        "DELETE FROM ports_taken
         WHERE room IN (SELECT id FROM rooms WHERE ended_at IS NULL AND handle IS NOT NULL);
         UPDATE rooms
         SET ended_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER), ended_cause = 'asked', was_ready = 1,
             ended_how = 'stayed with the store that this one is a copy of'
         WHERE ended_at IS NULL AND handle IS NOT NULL;",
    )?;
    transaction.commit()
}

/// The id that was last used in this directory; `None` if there is none that could be read.
pub(crate) fn read_id(directory: &Path) -> Option<String> {
    let text = std::fs::read_to_string(directory.join(ID_FILE)).ok()?;
    let id = text.trim();
    (!id.is_empty()).then(|| id.to_owned())
}

pub(crate) fn write_id(directory: &Path, id: &str) -> Result<(), OpenError> {
    if read_id(directory).as_deref() == Some(id) {
        return Ok(());
    }
    let path = directory.join(ID_FILE);
    let unfinished = file::companion(&path, ".new");
    file::remove_if_there(&unfinished)?;
    private::create_file(&unfinished)
        .and_then(|mut file| writeln!(file, "{id}"))
        .map_err(OpenError::io("write the store's id", &unfinished))?;
    file::rename_durably(&unfinished, &path)
}

/// The id of a database of any age, before anything is done to it.
pub(crate) fn id_of(connection: &Connection) -> Result<Option<String>, rusqlite::Error> {
    connection.query_row("SELECT id FROM store", [], |row| row.get(0)).optional()
}

/// Refuses to take a directory over from a store whose rooms still run: nobody would look after them.
pub(crate) fn check_left_behind(
    directory: &Path,
    next: Option<&str>,
    rooms_of: Option<RoomsOf>,
) -> Result<(), OpenError> {
    let Some((left, rooms_of)) = read_id(directory).zip(rooms_of) else {
        return Ok(());
    };
    if next == Some(&*left) {
        return Ok(());
    }
    let rooms = rooms_of(&left).map_err(OpenError::io("look for running rooms", Path::new("/proc")))?;
    if rooms.is_empty() {
        return Ok(());
    }
    let lost = if next.is_some() { Lost::Replaced } else { Lost::Gone };
    Err(OpenError::Abandoned(AbandonedRooms { directory: directory.into(), store_id: left, lost, rooms }))
}
