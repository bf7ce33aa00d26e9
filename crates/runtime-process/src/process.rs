//! One process that is watched, whether it is our child or was adopted.
//!
//! Both are watched in the same way, through a pidfd; they differ in who is told how they ended.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process_group, waitid,
};
use tokio::time::{Instant, sleep};

use crate::members::ProcessId;
use crate::pidfd::Pidfd;
use crate::process_table;

/// How long to wait until the rest of a killed group is gone. Nobody announces it, so it is asked for, and not for long: a zombie that
/// its parent is slow to reap is no reason to keep the news of an end back.
const GROUP_GONE_WITHIN: Duration = Duration::from_millis(50);
const GROUP_POLL_EVERY: Duration = Duration::from_millis(2);

pub(crate) struct Process {
    pub(crate) id: ProcessId,
    pidfd: Pidfd,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Code(i32),
    Signal(i32),
    /// The kernel told nobody who was there to hear it.
    Unknown,
}

impl Process {
    /// `None`: it does not exist any more. Must be called within a tokio runtime.
    ///
    /// The start time is read after the pidfd is open, so it is that of the process that the pidfd holds, or of a later
    /// one with the same pid; a process that ended before and left its pid to another is recognised either way.
    pub(crate) fn open(id: ProcessId) -> io::Result<Option<Self>> {
        let Some(pid) = to_pid(id.pid) else {
            return Ok(None);
        };
        let pidfd = Pidfd::open(pid)?;
        Ok(pidfd.filter(|_| id.stat().is_some()).map(|pidfd| Self { id, pidfd }))
    }

    /// Returns when it has ended. Can be dropped and called again.
    pub(crate) async fn ended(&self) {
        self.pidfd.ended().await;
    }

    /// Signals the process and all that it started and that did not leave its group.
    ///
    /// A pid is not given away while it is the number of a group with members, so if another process has it now, the
    /// group is empty and there is nobody to signal. Of a child that was not reaped yet it cannot happen at all.
    pub(crate) fn signal_group(&self, signal: Signal) {
        let Some(pid) = to_pid(self.id.pid) else { return };
        let is_taken =
            process_table::stat(self.id.pid).is_ok_and(|stat| stat.start_time != self.id.start_time);
        if is_taken {
            return;
        }
        match kill_process_group(pid, signal) {
            Ok(()) | Err(Errno::SRCH) => {}
            Err(error) => {
                tracing::warn!(pid = self.id.pid, ?signal, %error, "a process group could not be signalled");
            }
        }
    }

    /// To be called when it has ended: kills what is left of its group, waits for that to be gone, and says how the
    /// process ended.
    ///
    /// In this order, because until a child is reaped its pid, and so its group's number, is nobody else's.
    pub(crate) async fn bury(self) -> Exit {
        self.signal_group(Signal::KILL);
        let exit = self
            .reap()
            .or_else(|| self.zombie_status())
            .or_else(|| self.pidfd.wait_status().map(Exit::from_wait_status))
            .unwrap_or(Exit::Unknown);
        // What was killed may hold a port for a moment longer; whoever hears of the end must find it free.
        let deadline = Instant::now() + GROUP_GONE_WITHIN;
        while self.has_group() && Instant::now() < deadline {
            sleep(GROUP_POLL_EVERY).await;
        }
        exit
    }

    fn has_group(&self) -> bool {
        to_pid(self.id.pid).is_some_and(|pid| test_kill_process_group(pid).is_ok())
    }

    /// Works for children, also for those that another runtime of this process started.
    fn reap(&self) -> Option<Exit> {
        let status = waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG)
            .ok()??;
        let code = status.exit_status().map(Exit::Code);
        code.or_else(|| status.terminating_signal().map(Exit::Signal))
    }

    /// Works for others while their parent has not reaped them, on any kernel.
    fn zombie_status(&self) -> Option<Exit> {
        let zombie = self.id.stat().filter(|stat| stat.is_zombie)?;
        Some(Exit::from_wait_status(zombie.wait_status))
    }
}

impl Exit {
    /// `wait(2)`: the signal in the low seven bits, or else the exit code in the next byte.
    fn from_wait_status(status: i32) -> Self {
        match status & 0x7f {
            0 => Self::Code((status >> 8) & 0xff),
            signal => Self::Signal(signal),
        }
    }
}

pub(crate) fn to_pid(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

    use super::*;

    #[test]
    fn wait_statuses() {
        for (status, exit) in [
            (0, Exit::Code(0)),
            (3 << 8, Exit::Code(3)),
            (255 << 8, Exit::Code(255)),
            (9, Exit::Signal(9)),
            (11 | 0x80, Exit::Signal(11)),
        ] {
            assert_eq!(Exit::from_wait_status(status), exit);
        }
    }

    #[tokio::test]
    async fn another_process_with_the_same_pid_is_not_it() {
        let pid = std::process::id();
        let start_time = process_table::stat(pid).unwrap().start_time;
        let open = |pid, start_time| Process::open(ProcessId { pid, start_time }).unwrap();
        assert!(open(pid, start_time).is_some());
        assert!(open(pid, start_time + 1).is_none());
        assert!(open(0, 0).is_none());
        assert!(open(u32::MAX, 0).is_none());
    }

    /// A grandchild that its own parent reaps, as an adopted room is: we never could wait for it.
    #[tokio::test]
    async fn the_kernel_tells_how_a_stranger_ended() {
        let script = "exec 3<&0; (read line <&3; exit 9) & echo $!; wait $!; echo reaped; cat";
        let mut parent = tokio::process::Command::new("/bin/sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(parent.stdout.take().unwrap()).lines();
        let pid = lines.next_line().await.unwrap().unwrap().parse().unwrap();
        let start_time = process_table::stat(pid).unwrap().start_time;
        let stranger = Process::open(ProcessId { pid, start_time }).unwrap().unwrap();
        assert!(stranger.id.is_running());
        parent.stdin.as_mut().unwrap().write_all(b"end\n").await.unwrap();
        assert_eq!(lines.next_line().await.unwrap().unwrap(), "reaped");
        stranger.ended().await;
        let told = if kernel() >= (6, 15) { Exit::Code(9) } else { Exit::Unknown };
        assert_eq!(stranger.bury().await, told);
    }

    fn kernel() -> (u32, u32) {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        let mut numbers = release.split('.').map(|number| number.parse().unwrap());
        (numbers.next().unwrap(), numbers.next().unwrap())
    }
}
