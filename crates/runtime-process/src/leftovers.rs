//! Processes that a room leaves behind: daemons, and children that left its process group. They are ended before the end of
//! the room is reported, so that its ports are free by then.
//!
//! They are found by the room's variables in their environment and, if the room has a cgroup, by that, which also contains
//! processes that cleared their environment.

use std::sync::Arc;
use std::time::Duration;

use maestro_core::room::RoomId;
use maestro_core::scheduler::SchedulerName;
use tokio::time::{Instant, sleep};

use crate::directory;
use crate::process::{Process, to_pid};
use crate::runtime::Shared;
use rustix::process::{Signal, kill_process};

/// A killed process is gone within moments, unless the kernel holds it: then its room's end is told all the same.
const GONE_WITHIN: Duration = Duration::from_secs(5);
const CHECK_INTERVAL: Duration = Duration::from_millis(5);

impl Shared {
    /// To be called when the last container has ended. Rooms that end together share their looks at the process table.
    pub(crate) async fn clear_up_after(self: &Arc<Self>, scheduler: &SchedulerName, room: &RoomId) {
        self.end_leftovers(room).await;
        let Some(home) = self.directory.home(scheduler, room) else { return };
        if let Err(error) = self.blocking.run(move || directory::remove(&home)).await {
            tracing::warn!(%room, %error, "the own directory of a room that ended cannot be removed");
        }
    }

    async fn end_leftovers(&self, room: &RoomId) {
        let deadline = Instant::now() + GONE_WITHIN;
        loop {
            let in_cgroup = match &self.cgroups {
                Some(cgroups) => {
                    let (cgroups, room) = (cgroups.clone(), room.clone());
                    self.blocking.run(move || cgroups.end(&room)).await
                }
                None => 0,
            };
            let scanned = match self.scan().await {
                Ok(scanned) => scanned,
                Err(error) => {
                    tracing::warn!(%room, %error, "what a room left behind cannot be looked for");
                    return;
                }
            };
            let mut left = 0;
            for process in scanned.iter().filter(|process| process.room == *room) {
                left += 1;
                kill(process.member.process);
            }
            if left == 0 && in_cgroup == 0 {
                return;
            }
            if Instant::now() >= deadline {
                tracing::warn!(%room, processes = left.max(in_cgroup), "what a room left behind does not end");
                return;
            }
            sleep(CHECK_INTERVAL).await;
        }
    }
}

/// The process is held while it is looked at, so the signal reaches no other that got its pid.
fn kill(id: crate::members::ProcessId) {
    let (Ok(Some(_held)), Some(pid)) = (Process::open(id), to_pid(id.pid)) else { return };
    if let Err(error) = kill_process(pid, Signal::KILL)
        && error != rustix::io::Errno::SRCH
    {
        tracing::warn!(pid = id.pid, %error, "what a room left behind cannot be killed");
    }
}
