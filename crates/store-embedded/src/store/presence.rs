//! Whether the files of the store are still the ones that were opened. If somebody deletes or replaces them under a running
//! server, the server is left with files that have no name: it could write for days, and all of it would be lost.
//!
//! Each write checks before and after; a thread checks in between, so that an idle server notices too.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use maestro_engine::Health;
use parking_lot::Mutex;
use rusqlite::ffi;

/// The component of [`Health`] that stands for the store's files.
const COMPONENT: &str = "store files";

const CHECK_INTERVAL: Duration = Duration::from_secs(1);

pub(super) struct Presence {
    files: Vec<(PathBuf, FileId)>,
    /// What the last look found wrong.
    problem: Mutex<Option<String>>,
    health: OnceLock<Health>,
}

/// Device and inode.
type FileId = (u64, u64);

impl Presence {
    /// Remembers the files that are there: SQLite does not use all of its companions in every mode.
    pub(super) fn of(files: impl IntoIterator<Item = PathBuf>) -> Self {
        let present = |path: PathBuf| file_id(&path).ok().map(|id| (path, id));
        Self {
            files: files.into_iter().filter_map(present).collect(),
            problem: Mutex::default(),
            health: OnceLock::new(),
        }
    }

    /// Says there from now on when something is wrong.
    pub(super) fn report_to(&self, health: Health) {
        let problem = self.problem.lock();
        if self.health.set(health).is_ok() {
            self.report(problem.as_deref());
        }
    }

    /// What the last look found. Costs next to nothing.
    pub(super) fn remembered(&self) -> Result<(), rusqlite::Error> {
        self.problem.lock().clone().map_or(Ok(()), |why| Err(moved(why)))
    }

    /// Looks now. Files that are back are as good as ever: nothing was written meanwhile.
    pub(super) fn look(&self) -> Result<(), rusqlite::Error> {
        let found = self.files.iter().find_map(|(path, id)| what_is_wrong(path, *id));
        self.remember(found.as_deref());
        found.map_or(Ok(()), |why| Err(moved(why)))
    }

    fn remember(&self, found: Option<&str>) {
        let mut problem = self.problem.lock();
        if problem.as_deref() == found {
            return;
        }
        match found {
            Some(why) => {
                tracing::error!(
                    why,
                    "the store's files are gone: nothing is written, and no room is touched"
                );
            }
            None => tracing::info!("the store's files are back"),
        }
        self.report(found);
        *problem = found.map(str::to_owned);
    }

    fn report(&self, problem: Option<&str>) {
        match (self.health.get(), problem) {
            (Some(health), Some(why)) => health.not_ready(COMPONENT, why.to_owned()),
            (Some(health), None) => health.clear(COMPONENT),
            (None, _) => {}
        }
    }
}

/// Looks now and then until it is dropped.
pub(super) struct Watch {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    pub(super) fn start(presence: Arc<Presence>) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let watch = move || {
            while stopped.recv_timeout(CHECK_INTERVAL) == Err(mpsc::RecvTimeoutError::Timeout) {
                // What it finds is remembered.
                let _ = presence.look();
            }
        };
        let thread = std::thread::Builder::new().name("store-watch".into()).spawn(watch)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the watch over the store's files panicked");
        }
    }
}

fn what_is_wrong(path: &Path, opened: FileId) -> Option<String> {
    let path_shown = path.display();
    match file_id(path) {
        Ok(found) if found == opened => None,
        Ok(_) => Some(format!("{path_shown} was replaced by another file while this server uses it")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Some(format!("{path_shown} was deleted or moved while this server uses it"))
        }
        Err(error) => Some(format!("{path_shown} cannot be found any more: {error}")),
    }
}

pub(super) fn file_id(path: &Path) -> io::Result<FileId> {
    std::fs::metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

fn moved(why: String) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_READONLY_DBMOVED), Some(why))
}
