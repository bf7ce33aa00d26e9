//! The durable store: one SQLite file in a data directory, one thread that writes, a few connections that read.

mod access;
mod allocation_rows;
mod allocations;
mod columns;
mod directory_lock;
mod error;
mod failure;
pub(crate) mod file;
pub(crate) mod identity;
mod locks;
pub(crate) mod migrations;
mod no_action;
mod operation_rows;
mod operations;
mod outbox;
mod ports;
mod presence;
pub(crate) mod private;
mod readers;
mod recipes;
mod regions;
mod rooms;
mod schedulers;
mod transaction;
mod versions;
mod workers;
mod writer;

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use maestro_engine::ports::Clock;
use maestro_engine::ports::store::{CarriedOut, ObservedRegions};
use maestro_engine::{Health, Tasks};
use parking_lot::Mutex;
use rusqlite::Connection;

use crate::backup;
use crate::clock::{MachineClock, MicrosecondClock};
use crate::failpoints::{Armed, Failpoints};

pub use directory_lock::server_of;
pub use error::{AbandonedRooms, Lost, OpenError};
pub use identity::RoomsOf;
pub use migrations::SCHEMA_VERSION;
pub use writer::WriteCounts;

pub(crate) use directory_lock::DirectoryLock;
pub(crate) use file::DATABASE;

use access::Access;
use identity::{Here, Recorded};
use presence::{Presence, Watch};
use readers::Readers;
use recipes::RecipeCache;
use writer::Writer;

pub struct EmbeddedStore {
    store_id: String,
    recipes: Arc<RecipeCache>,
    carried_out: Arc<Mutex<CarriedOut>>,
    clock: MicrosecondClock,
    observed_regions: Mutex<ObservedRegions>,
    access: Access,
}

/// What can be chosen when a store is opened.
pub struct Options {
    /// Tells the store's time. By default it is the time of day of this machine.
    pub clock: Arc<dyn Clock>,
    /// The id of a store that is made now; one that is there keeps its own. `None`: a random one.
    pub store_id: Option<String>,
    /// Asked before a directory is taken over from a store whose rooms may still run. `None`: nobody looks.
    pub rooms_of: Option<RoomsOf>,
    pub failpoints: Failpoints,
    /// Where the store's thread is supervised, and problems of the store are reported.
    pub tasks: Tasks,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            clock: Arc::new(MachineClock),
            store_id: None,
            rooms_of: None,
            failpoints: Failpoints::default(),
            tasks: Tasks::default(),
        }
    }
}

impl EmbeddedStore {
    /// Opens the store in this directory, and makes it if there is none. Fails if another process has it open, and
    /// on anything that is not a sound database of this Maestro's or an older one's.
    ///
    /// Workers and ownerships that are left in the file are dropped: the lock on the directory proves that the process
    /// that held them is dead, so nobody has to wait for them to expire. Their tokens are stale from then on. Named
    /// locks stay: the operations and rollouts that hold them go on.
    pub fn open(directory: &Path) -> Result<Self, OpenError> {
        Self::open_with(directory, Options::default())
    }

    pub fn open_with(directory: &Path, options: Options) -> Result<Self, OpenError> {
        let Options { clock, store_id, rooms_of, failpoints, tasks } = options;
        private::make_directory(directory)?;
        let lock = DirectoryLock::take(directory)?;

        backup::finish_restore(directory)?;
        let database = directory.join(DATABASE);
        if !is_there(&database)? {
            identity::check_left_behind(directory, None, rooms_of)?;
            let store_id = store_id.map_or_else(random_id, Ok)?;
            // First the name, then the store: killed in between, the next start makes another one.
            identity::write_id(directory, &store_id)?;
            file::create(&database, &store_id)?;
        }
        let failed = OpenError::sqlite("open the database", &database);
        let mut connection = file::connect_to_write(&database).map_err(failed)?;
        file::check(&connection, &database)?;
        let found = identity::id_of(&connection).map_err(failed)?;
        identity::check_left_behind(directory, found.as_deref(), rooms_of)?;
        file::prepare_to_write(&connection).map_err(failed)?;
        migrations::apply(&mut connection).map_err(failed)?;
        take_over(&connection).map_err(failed)?;
        let store_id = settle(&connection, directory)?;

        let files = ["", "-wal", "-shm"].map(|suffix| file::companion(&database, suffix));
        let presence = Arc::new(Presence::of(files.into_iter().chain([lock.path().to_owned()])));
        let armed =
            Armed::new(failpoints).map_err(OpenError::io("open the log of the failpoints", directory))?;
        let writer = Writer::start(connection, armed, presence.clone(), tasks)
            .map_err(OpenError::io("start the store's thread", directory))?;
        let access = Access::File {
            readers: Readers::open(&database, presence.clone()).map_err(failed)?,
            _watch: Watch::start(presence.clone())
                .map_err(OpenError::io("start the store's watch", directory))?,
            presence,
            writer,
            _lock: lock,
        };
        Ok(Self::of(store_id, clock, access))
    }

    fn of(store_id: String, clock: Arc<dyn Clock>, access: Access) -> Self {
        Self {
            store_id,
            recipes: Arc::default(),
            carried_out: Arc::default(),
            observed_regions: Mutex::default(),
            clock: MicrosecondClock(clock),
            access,
        }
    }

    /// A store that is gone when it is dropped. It has no threads: each call is answered before it first waits, so it
    /// can be used where time is virtual.
    pub fn in_memory(clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let failed = OpenError::sqlite("make a database", Path::new(":memory:"));
        let store_id = "in-memory".to_owned();
        let connection = file::make_in_memory(&store_id).map_err(failed)?;
        let access = Access::Memory(Mutex::new(connection));
        Ok(Self::of(store_id, clock, access))
    }

    /// What marks rooms as this store's. A copy of a store gets another one when it is opened beside the original.
    pub fn store_id(&self) -> &str {
        &self.store_id
    }

    /// From now on, files that are deleted or replaced under the running store are a problem that is named there. Until
    /// they are back the store answers nothing.
    pub fn report_to(&self, health: Health) {
        match &self.access {
            Access::File { presence, .. } => presence.report_to(health),
            Access::Memory(_) => {}
        }
    }

    /// Nothing is counted of a store in memory.
    pub fn write_counts(&self) -> WriteCounts {
        match &self.access {
            Access::File { writer, .. } => writer.counts(),
            Access::Memory(_) => WriteCounts::default(),
        }
    }
}

fn is_there(database: &Path) -> Result<bool, OpenError> {
    if file::exists(database)? {
        return Ok(true);
    }
    // A new database beside an old one's log would have that log replayed into it.
    if file::exists(&file::companion(database, "-wal"))? {
        return Err(OpenError::Damaged {
            file: database.into(),
            why: "the file is missing, but its log (-wal) is there".into(),
        });
    }
    Ok(false)
}

/// Ends the time of the process before this one.
fn take_over(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.execute_batch("DELETE FROM ownerships; DELETE FROM workers;")
}

/// Finds out whose store this is, and answers its id.
fn settle(connection: &Connection, directory: &Path) -> Result<String, OpenError> {
    let failed = OpenError::sqlite("settle whose store this is", directory);
    let here = Here::new(directory)?;
    let recorded = Recorded::read(connection).map_err(failed)?;
    if recorded.is_copy_in(&here) {
        let original = recorded.directory.as_deref().unwrap_or_default();
        let id = random_id()?;
        tracing::warn!(
            original,
            store_id = id,
            "this data directory is a copy: it becomes a store of its own, and the original keeps its rooms"
        );
        identity::write_id(directory, &id)?;
        identity::rename(connection, &id, &here).map_err(failed)?;
        return Ok(id);
    }
    if let Some(from) = recorded.directory.as_deref().filter(|_| !here.is_home_of(&recorded)) {
        tracing::info!(from, to = %directory.display(), "the data directory was moved");
    }
    identity::write_id(directory, &recorded.id)?;
    identity::settle(connection, &here).map_err(failed)?;
    Ok(recorded.id)
}

/// Not from the engine's seeded randomness: two stores made from the same seed must not share an id.
pub(crate) fn random_id() -> Result<String, OpenError> {
    let source = Path::new("/dev/urandom");
    let mut bytes = [0; 16];
    File::open(source)
        .and_then(|mut random| random.read_exact(&mut bytes))
        .map_err(OpenError::io("draw a random id", source))?;
    Ok(uuid::Builder::from_random_bytes(bytes).into_uuid().to_string())
}
