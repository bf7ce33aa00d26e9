//! The named pipe that a container writes to.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, mkfifoat, openat, unlinkat};
use rustix::io::Errno;

/// Both ends of a container's pipe.
#[derive(Debug)]
pub(crate) struct Output {
    /// For the log keeper.
    pub(crate) reader: OwnedFd,
    /// For the container. It can be read from too: so there is a reader as long as the container lives.
    pub(crate) writer: OwnedFd,
}

impl Output {
    /// Makes the pipe, or opens the one that an earlier process of the container had. Blocking.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        match mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        match Self::open_existing(path)? {
            Some(output) => Ok(output),
            None => {
                unlinkat(CWD, path, AtFlags::empty())?;
                mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR)?;
                Self::open_existing(path)?.ok_or_else(|| io::Error::other("it is not a pipe"))
            }
        }
    }

    /// `None`: what is there is not a pipe.
    fn open_existing(path: &Path) -> io::Result<Option<Self>> {
        let Some(reader) = open_reader(CWD, path)? else { return Ok(None) };
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Some(Self { reader, writer: openat(CWD, path, flags, Mode::empty())? }))
    }
}

/// The reading end of a pipe. `None`: there is none, or what is there is not a pipe.
pub(super) fn open_reader(directory: impl AsFd, path: &Path) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(directory, path, flags, Mode::empty()) {
        Ok(pipe) if FileType::from_raw_mode(fstat(&pipe)?.st_mode) == FileType::Fifo => Ok(Some(pipe)),
        Ok(_) | Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
