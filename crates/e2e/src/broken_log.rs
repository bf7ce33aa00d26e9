//! Logs that cannot be written.

use std::fs::OpenOptions;
use std::io::{PipeReader, pipe};
use std::os::fd::{AsFd, OwnedFd};
use std::process::Stdio;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrokenLog {
    ReaderGone,
    PipeFull,
    DiskFull,
}

impl BrokenLog {
    pub const ALL: [Self; 3] = [Self::ReaderGone, Self::PipeFull, Self::DiskFull];

    /// Where a server is to write, and a reader that does not read: for as long as it is kept, the pipe stays full.
    pub fn open(self) -> anyhow::Result<(Stdio, Option<PipeReader>)> {
        Ok(match self {
            Self::ReaderGone => (OwnedFd::from(pipe()?.1).into(), None),
            Self::PipeFull => {
                let (reader, writer) = full_pipe()?;
                (writer.into(), Some(reader))
            }
            Self::DiskFull => (OpenOptions::new().write(true).open("/dev/full")?.into(), None),
        })
    }
}

/// Filled without blocking; whoever writes to it next waits.
fn full_pipe() -> anyhow::Result<(PipeReader, OwnedFd)> {
    let (reader, writer) = pipe()?;
    let flags = fcntl_getfl(&writer)?;
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK)?;
    while rustix::io::write(writer.as_fd(), b"x").map_or_else(|error| error != Errno::AGAIN, |_| true) {}
    fcntl_setfl(&writer, flags)?;
    Ok((reader, writer.into()))
}
