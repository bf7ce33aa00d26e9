//! Whether the files of the store are still the ones that were opened. If somebody deletes or replaces them under a running
//! server, the server is left with files that have no name: it could write for days, and all of it would be lost.
//!
//! Each write checks before and after; a thread checks in between, so that an idle server notices too.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use maestro_engine::Health;
use parking_lot::Mutex;
use rusqlite::ffi;

/// The component of [`Health`] that stands for the store's files.
const COMPONENT: &str = "store files";

const LOOK_EVERY: Duration = Duration::from_secs(1);

pub(super) struct Presence {
    files: Vec<(PathBuf, FileId)>,
    is_gone: AtomicBool,
    why: Mutex<Option<String>>,
    health: OnceLock<Health>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

impl Presence {
    /// Of those files that are there: SQLite does not use all of its companions in every mode.
    pub(super) fn of(files: impl IntoIterator<Item = PathBuf>) -> Self {
        let present = |path: PathBuf| file_id(&path).ok().map(|id| (path, id));
        Self {
            files: files.into_iter().filter_map(present).collect(),
            is_gone: AtomicBool::new(false),
            why: Mutex::default(),
            health: OnceLock::new(),
        }
    }

    /// Says there from now on when something is wrong.
    pub(super) fn report_to(&self, health: Health) {
        let why = self.why.lock();
        if self.health.set(health).is_ok()
            && let (Some(why), Some(health)) = (&*why, self.health.get())
        {
            health.not_ready(COMPONENT, why.clone());
        }
    }

    /// What the last look found. Costs nothing.
    pub(super) fn remembered(&self) -> Result<(), rusqlite::Error> {
        match self.is_gone.load(Ordering::Acquire) {
            false => Ok(()),
            true => Err(moved(self.why.lock().clone().unwrap_or_default())),
        }
    }

    /// Looks now. Files that are back are as good as ever: nothing was written meanwhile.
    pub(super) fn look(&self) -> Result<(), rusqlite::Error> {
        let found = self.files.iter().find_map(|(path, id)| what_is_wrong(path, *id));
        let is_gone = found.is_some();
        if is_gone || self.is_gone.load(Ordering::Acquire) {
            self.remember(found.clone());
        }
        found.map_or(Ok(()), |why| Err(moved(why)))
    }

    fn remember(&self, found: Option<String>) {
        let mut why = self.why.lock();
        if *why == found {
            return;
        }
        self.is_gone.store(found.is_some(), Ordering::Release);
        match (&found, self.health.get()) {
            (Some(why), health) => {
                tracing::error!(
                    why,
                    "the store's files are gone: nothing is written, and no room is touched"
                );
                if let Some(health) = health {
                    health.not_ready(COMPONENT, why.clone());
                }
            }
            (None, health) => {
                tracing::info!("the store's files are back");
                if let Some(health) = health {
                    health.clear(COMPONENT);
                }
            }
        }
        *why = found;
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
            while stopped.recv_timeout(LOOK_EVERY) == Err(mpsc::RecvTimeoutError::Timeout) {
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

fn file_id(path: &Path) -> io::Result<FileId> {
    let metadata = std::fs::metadata(path)?;
    Ok(FileId { device: metadata.dev(), inode: metadata.ino() })
}

fn moved(why: String) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_READONLY_DBMOVED), Some(why))
}
