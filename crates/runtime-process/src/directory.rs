//! Where the files of rooms are: `rooms/<scheduler>/<room>/<container>.log`, its pipe and `room.json` beside
//! it, and
//! `secrets/<name>/<key>`.

use std::io;
use std::path::{Path, PathBuf};

use maestro_core::room::RoomId;
use maestro_core::scheduler::SchedulerName;

use crate::log_keeper::PIPE;

#[derive(Debug, Clone)]
pub(crate) struct Directory {
    root: PathBuf,
    data: PathBuf,
}

impl Directory {
    /// `data`: where secrets are.
    pub(crate) fn new(root: &Path, data: &Path) -> Self {
        Self { root: root.to_owned(), data: data.to_owned() }
    }

    pub(crate) fn rooms(&self) -> PathBuf {
        self.root.join("rooms")
    }

    pub(crate) fn scheduler(&self, scheduler: &SchedulerName) -> PathBuf {
        self.rooms().join(scheduler.as_str())
    }

    /// `None`: such a room cannot be; ids come from outside too.
    pub(crate) fn room(&self, scheduler: &SchedulerName, room: &RoomId) -> Option<RoomDirectory> {
        let path = self.scheduler(scheduler).join(file_name(room.as_str())?);
        Some(RoomDirectory { path })
    }

    /// Held by the log keeper that works here.
    pub(crate) fn log_keeper_lock(&self) -> PathBuf {
        self.root.join("log-keeper.lock")
    }

    /// A place beneath [`Self::rooms`], which itself is not made again: where it is gone, so is the region.
    pub(crate) fn make(&self, place: &Path) -> io::Result<()> {
        std::fs::metadata(self.rooms())?;
        std::fs::create_dir_all(place)
    }

    /// The file of a secret, and how to name it to a person: from the data directory on.
    pub(crate) fn secret(&self, name: &str, key: &str) -> Option<(PathBuf, String)> {
        let shown = format!("secrets/{}/{}", file_name(name)?, file_name(key)?);
        Some((self.data.join(&shown), shown))
    }
}

/// The place of one room.
#[derive(Debug, Clone)]
pub(crate) struct RoomDirectory {
    pub(crate) path: PathBuf,
}

impl RoomDirectory {
    pub(crate) fn plan(&self) -> PathBuf {
        self.path.join("room.json")
    }

    pub(crate) fn log(&self, container: &str) -> Option<PathBuf> {
        Some(self.path.join(format!("{}.log", file_name(container)?)))
    }

    /// What a container writes goes through this to its log.
    pub(crate) fn pipe(&self, container: &str) -> Option<PathBuf> {
        Some(self.path.join(format!("{}.{PIPE}", file_name(container)?)))
    }
}

/// May be repeated: what is not there is removed already.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// A name that stays where it is put: no way up or down, nothing hidden.
fn file_name(text: &str) -> Option<&str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let fits = !text.is_empty() && !text.starts_with('.') && text.chars().all(allowed);
    fits.then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_that_is_gone_is_not_made_again() {
        let region = tempfile::tempdir().unwrap();
        let directory = Directory::new(region.path(), region.path());
        let arena = directory.scheduler(&SchedulerName::parse("arena").unwrap());
        assert!(directory.make(&arena).is_err());
        assert!(!directory.rooms().exists());
        std::fs::create_dir(directory.rooms()).unwrap();
        directory.make(&arena).unwrap();
        assert!(arena.is_dir());
    }

    #[test]
    fn a_name_from_outside_leads_nowhere_else() {
        for text in ["", ".", "..", "../x", "a/b", "/etc", ".hidden", "a\0b", "a b"] {
            assert_eq!(file_name(text), None, "{text:?}");
        }
        for text in ["arena-9b4c", "game_1", "tls.key"] {
            assert_eq!(file_name(text), Some(text));
        }
    }
}
