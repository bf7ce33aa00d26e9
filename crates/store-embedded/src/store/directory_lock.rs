//! One process per data directory.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use super::error::OpenError;

const FILE: &str = "maestro.lock";

/// Held as long as the value lives, and given back by the kernel when the process ends, however it ends. The file
/// stays: removing it would let two processes lock two different files of the same name.
pub(crate) struct DirectoryLock {
    _file: File,
}

impl DirectoryLock {
    pub(crate) fn take(directory: &Path) -> Result<Self, OpenError> {
        let path = directory.join(FILE);
        let failed = |source| OpenError::io("lock the data directory", &path, source);
        // Not truncated: whose it is stands in it.
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(OpenError::InUse { directory: directory.into(), pid: holder(&mut file) });
            }
            Err(errno) => return Err(failed(errno.into())),
        }
        write_pid(&mut file).map_err(failed)?;
        Ok(Self { _file: file })
    }
}

fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
