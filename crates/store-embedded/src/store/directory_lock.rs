//! One process per data directory.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::error::OpenError;
use super::private;

const FILE: &str = "maestro.lock";

/// While a process starts another, both have its files: if it dies just then, the other one still holds the lock, until it
/// becomes the program that it is to be.
const ATTEMPTS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(20);

/// Held as long as the value lives, and given back by the kernel when the process ends, however it ends. The file
/// stays: removing it would let two processes lock two different files of the same name.
pub(crate) struct DirectoryLock {
    file: File,
    path: PathBuf,
}

impl DirectoryLock {
    pub(crate) fn take(directory: &Path) -> Result<Self, OpenError> {
        let path = directory.join(FILE);
        let failed = OpenError::io("lock the data directory", &path);
        // Not truncated: whose it is stands in it.
        let mut file = private::open_options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed)?;
        for attempt in 1.. {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::WOULDBLOCK) => {
                    let pid = holder(&mut file);
                    if attempt == ATTEMPTS || pid.is_none_or(is_alive) {
                        return Err(OpenError::InUse { directory: directory.into(), pid });
                    }
                    std::thread::sleep(PAUSE);
                }
                Err(errno) => return Err(failed(errno.into())),
            }
        }
        write_pid(&mut file).map_err(failed)?;
        Ok(Self { file, path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for DirectoryLock {
    /// Closing the file is not enough while a process that is just being started has it, too.
    fn drop(&mut self) {
        // It cannot fail; if it did, the kernel would give the lock back a moment later.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// The process that has the store of a data directory open, if one has. Looks without taking the lock, which whoever starts
/// there would be in the way of.
pub fn server_of(directory: &Path) -> Option<u32> {
    let mut file = File::open(directory.join(FILE)).ok()?;
    let pid = holder(&mut file)?;
    let inode = file.metadata().ok()?.ino();
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    locks.lines().any(|line| is_lock_of(line, pid, inode)).then_some(pid)
}

/// `1: FLOCK  ADVISORY  WRITE 4711 00:2d:1234 0 EOF`. The device is not compared: file systems in layers show another one.
fn is_lock_of(line: &str, pid: u32, inode: u64) -> bool {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let [_, "FLOCK", _, _, holder, file, ..] = fields[..] else { return false };
    let is_file = file.rsplit(':').next().and_then(|text| text.parse().ok()) == Some(inode);
    holder.parse() == Ok(pid) && is_file
}

fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_given_back_is_free_whoever_else_has_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let held = DirectoryLock::take(directory.path()).unwrap();
        let inherited = held.file.try_clone().unwrap();
        drop(held);
        DirectoryLock::take(directory.path()).unwrap();
        drop(inherited);
    }

    #[test]
    fn who_serves_a_directory_can_be_seen_from_outside() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(server_of(directory.path()), None);
        let held = DirectoryLock::take(directory.path()).unwrap();
        assert_eq!(server_of(directory.path()), Some(std::process::id()));
        drop(held);
        assert_eq!(server_of(directory.path()), None, "its file stays");
    }

    #[test]
    fn a_lock_that_a_dead_process_left_to_its_child_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let held = DirectoryLock::take(directory.path()).unwrap();
        let mut dead = std::process::Command::new("true").spawn().unwrap();
        dead.wait().unwrap();
        std::fs::write(directory.path().join(FILE), format!("{}\n", dead.id())).unwrap();
        let child = std::thread::spawn(move || {
            std::thread::sleep(3 * PAUSE);
            drop(held);
        });
        DirectoryLock::take(directory.path()).unwrap();
        child.join().unwrap();
    }
}
