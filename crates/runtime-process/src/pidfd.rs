//! A file descriptor that holds one process: it becomes readable when the process ends, and names that process and no
//! other, whoever gets its pid later.
//!
//! The only `unsafe` of this crate is here: two calls that have no safe wrapper yet.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

pub(crate) struct Pidfd(AsyncFd<OwnedFd>);

impl Pidfd {
    /// `None`: there is no process with this pid. Must be called within a tokio runtime.
    pub(crate) fn open(pid: Pid) -> io::Result<Option<Self>> {
        let descriptor = match pidfd_open(pid, PidfdFlags::NONBLOCK) {
            Ok(descriptor) => descriptor,
            Err(Errno::SRCH) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // SAFETY: an `OwnedFd` is open, and stays open and the same until it is dropped; it is moved in here and never
        // handed out but by shared reference.
        let registered = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) };
        Ok(Some(Self(registered?)))
    }

    /// Returns when the process has ended. Can be dropped and called again.
    pub(crate) async fn ended(&self) {
        if self.0.readable().await.is_err() {
            // Only while the tokio runtime goes down: nobody is left to tell.
            std::future::pending::<()>().await;
        }
    }

    /// The wait status of a process that has been reaped, by whomever: Linux keeps it, from 6.15 on, for those who hold
    /// a pidfd. `None`: it has not been reaped, or this kernel does not tell.
    pub(crate) fn wait_status(&self) -> Option<i32> {
        let mut info = PidfdInfo { mask: PIDFD_INFO_EXIT, ..PidfdInfo::default() };
        // SAFETY: for this opcode the kernel reads and writes at most as many bytes as the opcode encodes, which is the
        // size of `PidfdInfo`; all of its fields are integers, valid for any bytes; the reference outlives the call. A
        // kernel that does not know the opcode answers with an error.
        unsafe { ioctl(self, Updater::<PIDFD_GET_INFO, PidfdInfo>::new(&mut info)) }.ok()?;
        (info.mask & PIDFD_INFO_EXIT != 0).then_some(info.exit_code)
    }
}

impl AsFd for Pidfd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// `struct pidfd_info` in its first published size, which every later kernel accepts.
#[repr(C)]
#[derive(Default)]
struct PidfdInfo {
    /// What is asked for, and after the call what was answered.
    mask: u64,
    cgroup_id: u64,
    ids: [u32; 11],
    exit_code: i32,
}

const PIDFS_IOCTL_MAGIC: u8 = 0xff;
const PIDFD_GET_INFO: Opcode = opcode::read_write::<PidfdInfo>(PIDFS_IOCTL_MAGIC, 11);
const PIDFD_INFO_EXIT: u64 = 1 << 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structure_has_the_size_that_the_kernel_published() {
        assert_eq!(size_of::<PidfdInfo>(), 64);
    }

    #[tokio::test]
    async fn a_running_process_has_no_wait_status() {
        let me = Pidfd::open(rustix::process::getpid()).unwrap().unwrap();
        assert_eq!(me.wait_status(), None);
    }
}
