//! Log files. A room may be able to write to the directory of its logs, and whoever cuts a file there must not cut
//! another one that a link leads to: nothing here follows links beneath the directory of rooms.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fstat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

use super::budget::{LogFile, to_drop};
use super::pipe::open_reader;
use super::{PIPE, Source};

const LOG: &str = "log";
const OLDER: &str = "log.1";

/// The directory of a region's rooms.
pub(super) struct Rooms {
    directory: OwnedFd,
    half_bytes: u64,
}

impl Rooms {
    /// The way to the directory itself is the operator's, and may lead over links.
    pub(super) fn open(path: &Path, container_bytes: u64) -> io::Result<Self> {
        let directory =
            openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { directory, half_bytes: (container_bytes / 2).max(1) })
    }

    /// Appends to a container's log.
    pub(super) fn append(&self, source: &Source, bytes: &[u8]) -> io::Result<()> {
        let room = self.room(&source.scheduler, &source.room)?;
        let log = format!("{}.{LOG}", source.container);
        let (mut file, mut length) = open_log(&room, &log)?;
        let half = usize::try_from(self.half_bytes).unwrap_or(usize::MAX);
        for piece in bytes.chunks(half) {
            if length + piece.len() as u64 > self.half_bytes {
                renameat(&room, &log, &room, format!("{}.{OLDER}", source.container))?;
                (file, length) = open_log(&room, &log)?;
            }
            file.write_all(piece)?;
            length += piece.len() as u64;
        }
        Ok(())
    }

    fn room(&self, scheduler: &str, room: &str) -> io::Result<OwnedFd> {
        Ok(subdirectory(&subdirectory(&self.directory, scheduler)?, room)?)
    }

    /// Reading ends of all pipes that somebody might write to.
    pub(super) fn pipes(&self) -> io::Result<Vec<(Source, OwnedFd)>> {
        let mut pipes = Vec::new();
        for scheduler in names(&self.directory)? {
            let Ok(of_scheduler) = subdirectory(&self.directory, &scheduler) else { continue };
            for room in names(&of_scheduler)? {
                // Removed meanwhile, or none of ours.
                let Ok(directory) = subdirectory(&of_scheduler, &room) else { continue };
                for name in names(&directory)? {
                    let Some(container) = name.strip_suffix(PIPE).and_then(|name| name.strip_suffix('.'))
                    else {
                        continue;
                    };
                    if let Some(pipe) = open_reader(&directory, Path::new(&name))? {
                        let (scheduler, room) = (scheduler.clone(), room.clone());
                        pipes.push((Source { scheduler, room, container: container.to_owned() }, pipe));
                    }
                }
            }
        }
        Ok(pipes)
    }

    /// Drops logs of a scheduler until it is within its limit, and says how much is left.
    pub(super) fn hold_within(
        &self,
        scheduler: &str,
        limit_bytes: u64,
        live: &HashSet<String>,
    ) -> io::Result<u64> {
        let of_scheduler = subdirectory(&self.directory, scheduler)?;
        let mut files = Vec::new();
        for room in names(&of_scheduler)? {
            if let Ok(directory) = subdirectory(&of_scheduler, &room) {
                files.extend(log_files(&directory, &room, live.contains(&room))?);
            }
        }
        let total: u64 = files.iter().map(|file| file.bytes).sum();
        let mut left = total;
        for file in to_drop(files, limit_bytes) {
            let dropped = subdirectory(&of_scheduler, &file.room)
                .and_then(|room| unlinkat(&room, &file.name, AtFlags::empty()));
            match dropped {
                Ok(()) | Err(Errno::NOENT) => left -= file.bytes,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(left)
    }
}

fn log_files(directory: &OwnedFd, room: &str, is_live: bool) -> io::Result<Vec<LogFile>> {
    let mut files = Vec::new();
    for name in names(directory)? {
        let is_older = name.ends_with(&format!(".{OLDER}"));
        if !is_older && !name.ends_with(&format!(".{LOG}")) {
            continue;
        }
        let Ok(stat) = statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            continue;
        }
        let written_at =
            SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(stat.st_mtime).unwrap_or(0));
        let bytes = u64::try_from(stat.st_size).unwrap_or(0);
        files.push(LogFile { room: room.to_owned(), name, bytes, written_at, is_live, is_older });
    }
    Ok(files)
}

/// Opens a log to append to it. If a link or something else is in its place, that is removed first: writing to a link
/// would change another file.
fn open_log(room: &OwnedFd, name: &str) -> io::Result<(File, u64)> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    match openat(room, name, flags | OFlags::CREATE, mode) {
        Ok(file) => {
            let stat = fstat(&file)?;
            if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_nlink == 1 {
                return Ok((File::from(file), u64::try_from(stat.st_size).unwrap_or(0)));
            }
        }
        Err(Errno::LOOP | Errno::NXIO | Errno::ISDIR) => {}
        Err(error) => return Err(error.into()),
    }
    unlinkat(room, name, AtFlags::empty())?;
    Ok((File::from(openat(room, name, flags | OFlags::CREATE | OFlags::EXCL, mode)?), 0))
}

fn subdirectory(directory: &OwnedFd, name: &str) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(directory, name, flags, Mode::empty())
}

fn names(directory: &OwnedFd) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        // What is not text was not named by us.
        if let Ok(name) = entry?.file_name().to_str()
            && !name.starts_with('.')
        {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct World {
        directory: tempfile::TempDir,
    }

    impl World {
        fn new() -> Self {
            let world = Self { directory: tempfile::tempdir().unwrap() };
            std::fs::create_dir_all(world.path("arena/room-1")).unwrap();
            world
        }

        fn path(&self, name: &str) -> std::path::PathBuf {
            self.directory.path().join(name)
        }

        fn append(&self, bytes: &[u8]) {
            let rooms = Rooms::open(self.directory.path(), 100).unwrap();
            let source =
                Source { scheduler: "arena".into(), room: "room-1".into(), container: "game".into() };
            rooms.append(&source, bytes).unwrap();
        }

        fn read(&self, name: &str) -> String {
            std::fs::read_to_string(self.path(name)).unwrap()
        }
    }

    #[test]
    fn a_log_never_holds_more_than_its_limit() {
        let world = World::new();
        let mut written = String::new();
        for number in 0..50 {
            let line = format!("line {number}\n");
            world.append(line.as_bytes());
            written.push_str(&line);
            let older = std::fs::read_to_string(world.path("arena/room-1/game.log.1")).unwrap_or_default();
            let kept = older + &world.read("arena/room-1/game.log");
            assert!(kept.len() <= 100 && written.ends_with(&kept), "{kept:?}");
            assert!(written.len() <= 50 || kept.len() > 50 - line.len(), "{kept:?}");
        }
        world.append(&[b'x'; 1000]);
        assert_eq!(world.read("arena/room-1/game.log").len(), 50);
        assert_eq!(world.read("arena/room-1/game.log.1").len(), 50);
    }

    #[test]
    fn nothing_is_written_or_cut_through_a_link() {
        let world = World::new();
        let (log, precious) = (world.path("arena/room-1/game.log"), world.path("precious"));
        let links: [&dyn Fn(); 2] = [&|| std::os::unix::fs::symlink(&precious, &log).unwrap(), &|| {
            std::fs::hard_link(&precious, &log).unwrap();
        }];
        for link in links {
            std::fs::write(&precious, "precious").unwrap();
            let _ = std::fs::remove_file(&log);
            link();
            world.append(b"mine");
            assert_eq!(world.read("precious"), "precious");
            assert_eq!(world.read("arena/room-1/game.log"), "mine");
        }
        std::fs::create_dir_all(world.path("elsewhere/room-1")).unwrap();
        std::os::unix::fs::symlink(world.path("elsewhere"), world.path("linked")).unwrap();
        let rooms = Rooms::open(world.directory.path(), 100).unwrap();
        let source = Source { scheduler: "linked".into(), room: "room-1".into(), container: "game".into() };
        rooms.append(&source, b"x").unwrap_err();
        assert!(!world.path("elsewhere/room-1/game.log").exists());
    }

    #[test]
    fn a_scheduler_is_held_within_its_limit() {
        let world = World::new();
        for room in ["ended", "live"] {
            let directory = world.path(&format!("arena/{room}"));
            std::fs::create_dir(&directory).unwrap();
            std::fs::write(directory.join("game.log"), [b'x'; 60]).unwrap();
        }
        let rooms = Rooms::open(world.directory.path(), 100).unwrap();
        let live = HashSet::from(["live".to_owned()]);
        assert_eq!(rooms.hold_within("arena", 100, &live).unwrap(), 60);
        assert!(!world.path("arena/ended/game.log").exists());
        assert!(world.path("arena/live/game.log").exists());
    }
}
