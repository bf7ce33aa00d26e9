//! Where the files of rooms are: `rooms/<scheduler>/<room>/<container>.log`, its pipe and `room.json` beside it, and
//! `secrets/<name>/<key>`.

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use maestro_core::room::RoomId;
use maestro_core::scheduler::SchedulerName;

use rustix::fs::OFlags;

use crate::log_keeper::PIPE;
use crate::options::RoomUser;

#[derive(Debug, Clone)]
pub(crate) struct Directory {
    root: PathBuf,
    data: PathBuf,
    homes: PathBuf,
}

impl Directory {
    /// `data`: where secrets are. `homes`: of rooms, if not here.
    pub(crate) fn new(root: &Path, data: &Path, homes: Option<PathBuf>) -> Self {
        let homes = homes.unwrap_or_else(|| root.join("homes"));
        Self { root: root.to_owned(), data: data.to_owned(), homes }
    }

    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    pub(crate) fn homes(&self, scheduler: &SchedulerName) -> PathBuf {
        self.homes.join(scheduler.as_str())
    }

    /// The room's own directory, which it runs in.
    pub(crate) fn home(&self, scheduler: &SchedulerName, room: &RoomId) -> Option<PathBuf> {
        Some(self.homes(scheduler).join(file_name(room.as_str())?))
    }

    /// Earlier versions let everybody read these files. Sets directories to 0700 and files to 0600, without following links.
    pub(crate) fn tighten(&self) -> io::Result<()> {
        set_mode(&self.root, 0o700)?;
        set_mode(&self.rooms(), 0o700)?;
        for scheduler in std::fs::read_dir(self.rooms())? {
            tighten_all(&scheduler?.path(), 2)?;
        }
        Ok(())
    }

    pub(crate) fn rooms(&self) -> PathBuf {
        self.root.join("rooms")
    }

    pub(crate) fn scheduler(&self, scheduler: &SchedulerName) -> PathBuf {
        self.rooms().join(scheduler.as_str())
    }

    /// `None`: such a room cannot be; ids come from outside too.
    pub(crate) fn room(&self, scheduler: &SchedulerName, room: &RoomId) -> Option<PathBuf> {
        Some(self.scheduler(scheduler).join(file_name(room.as_str())?))
    }

    /// Held by the log keeper that works here.
    pub(crate) fn log_keeper_lock(&self) -> PathBuf {
        self.root.join("log-keeper.lock")
    }

    /// A place beneath [`Self::rooms`], which itself is not made again: where it is gone, so is the region.
    pub(crate) fn make(&self, place: &Path) -> io::Result<()> {
        std::fs::metadata(self.rooms())?;
        make_private(place)
    }

    /// Makes the room's own directory. Another user has to pass through those above it, and sees nothing there.
    pub(crate) fn make_home(&self, home: &Path, user: Option<&RoomUser>) -> io::Result<()> {
        let mode = if user.is_some() { 0o711 } else { 0o700 };
        if let Some(above) = home.parent() {
            DirBuilder::new().recursive(true).mode(mode).create(above)?;
        }
        match DirBuilder::new().mode(0o700).create(home) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
        match user {
            Some(user) => std::os::unix::fs::lchown(home, Some(user.user_id), Some(user.group_id)),
            None => Ok(()),
        }
    }

    /// The file of a secret, and how to name it to a person: from the data directory on.
    pub(crate) fn secret(&self, name: &str, key: &str) -> Option<(PathBuf, String)> {
        let shown = format!("secrets/{}/{}", file_name(name)?, file_name(key)?);
        Some((self.data.join(&shown), shown))
    }
}

/// Makes a directory, and those above it, for nobody but us.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn tighten_all(path: &Path, depth: u32) -> io::Result<()> {
    let kind = path.symlink_metadata()?.file_type();
    if kind.is_file() || kind.is_fifo() {
        return set_mode(path, 0o600);
    }
    if kind.is_dir() {
        set_mode(path, 0o700)?;
        for entry in std::fs::read_dir(path)?.take_while(|_| depth > 0) {
            tighten_all(&entry?.path(), depth - 1)?;
        }
    }
    Ok(())
}

/// Refuses links.
fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    let file = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
        .open(path)?;
    if file.metadata()?.permissions().mode() & 0o7777 == mode {
        return Ok(());
    }
    file.set_permissions(Permissions::from_mode(mode))
}

/// The pipe of a container, through which what it writes goes to its log. `room`: the directory of its room.
pub(crate) fn pipe(room: &Path, container: &str) -> Option<PathBuf> {
    Some(room.join(format!("{}.{PIPE}", file_name(container)?)))
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
        let directory = Directory::new(region.path(), region.path(), None);
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
