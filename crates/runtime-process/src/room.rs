//! One room, as all but its own task see it: who it is, which processes it has, and that it was asked to end.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use maestro_core::room::RoomId;
use maestro_core::scheduler::SchedulerName;
use maestro_engine::ports::runtime::{Handle, RunningRoom};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::members::{self, Member, ProcessId};
use crate::plan::Plan;

/// A restart gives a container another process, while a store may still hold the handle of an earlier one. So many
/// earlier processes are remembered, besides those that the room began with.
const EARLIER_PROCESSES_MAX: usize = 64;

/// No grace period is longer: it keeps every moment within what the clock can say.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

pub(crate) struct Room {
    pub(crate) id: RoomId,
    pub(crate) scheduler: SchedulerName,
    pub(crate) plan: Plan,
    host: String,
    processes: Mutex<Processes>,
    /// The handle by which the engine knows it. Restarts of its containers change its processes, and not this.
    known_as: Mutex<Handle>,
    /// When it will be killed; `None` as long as nobody asked it to end.
    kill_at: watch::Sender<Option<Instant>>,
    /// Somebody wants to hear how it is, again.
    pub(crate) asked_how_it_is: Notify,
    /// Canceled when the last process has ended.
    pub(crate) gone: CancellationToken,
}

struct Processes {
    /// A container that waits for its restart is listed with the process that ended.
    now: Vec<Member>,
    first: Vec<ProcessId>,
    earlier: VecDeque<ProcessId>,
}

impl Room {
    pub(crate) fn new(
        id: RoomId,
        scheduler: SchedulerName,
        plan: Plan,
        host: String,
        members: Vec<Member>,
        first: Vec<ProcessId>,
        known_as: Handle,
    ) -> Self {
        Self {
            id,
            scheduler,
            plan,
            host,
            known_as: Mutex::new(known_as),
            processes: Mutex::new(Processes { now: members, first, earlier: VecDeque::new() }),
            kill_at: watch::Sender::new(None),
            asked_how_it_is: Notify::new(),
            gone: CancellationToken::new(),
        }
    }

    pub(crate) fn handle(&self) -> Handle {
        members::to_handle(&self.host, &lock(&self.processes).now)
    }

    /// From now on the engine knows it by what it has now.
    pub(crate) fn hand_out(&self) -> Handle {
        let handle = self.handle();
        self.be_known_as(handle.clone());
        handle
    }

    pub(crate) fn known_as(&self) -> Handle {
        lock(&self.known_as).clone()
    }

    pub(crate) fn be_known_as(&self, handle: Handle) {
        *lock(&self.known_as) = handle;
    }

    pub(crate) fn as_running(&self) -> RunningRoom {
        RunningRoom { id: self.id.clone(), scheduler: self.scheduler.clone(), handle: self.handle() }
    }

    /// Whether the handle is, or was at some time, that of this very room.
    pub(crate) fn is(&self, handle: &Handle) -> bool {
        let processes = lock(&self.processes);
        members::from_handle(handle).iter().any(|member| {
            processes.now.contains(member)
                || processes.first.contains(&member.process)
                || processes.earlier.contains(&member.process)
        })
    }

    /// Asks the room to end, and to be killed after the grace period. The earliest such moment counts.
    pub(crate) fn ask_to_end(&self, grace: Duration) {
        let at = after(grace);
        self.kill_at.send_if_modified(|kill_at| {
            let is_earlier = kill_at.is_none_or(|earlier| at < earlier);
            if is_earlier {
                *kill_at = Some(at);
            }
            is_earlier
        });
    }

    pub(crate) fn asked_to_end(&self) -> watch::Receiver<Option<Instant>> {
        self.kill_at.subscribe()
    }

    /// A container runs as another process now.
    pub(crate) fn replace(&self, member: Member) {
        let mut processes = lock(&self.processes);
        let Some(position) = processes.now.iter().position(|old| old.container == member.container) else {
            processes.now.push(member);
            return;
        };
        let old = std::mem::replace(&mut processes.now[position], member);
        if processes.earlier.len() == EARLIER_PROCESSES_MAX {
            processes.earlier.pop_front();
        }
        processes.earlier.push_back(old.process);
    }
}

/// The moment at which a grace period that begins now is over.
pub(crate) fn after(grace: Duration) -> Instant {
    Instant::now() + grace.min(FOR_EVER)
}

/// How long to wait before what has failed so often in a row is tried again: it doubles from `min` to `max`.
pub(crate) fn back_off(failures: u32, min: Duration, max: Duration) -> Duration {
    min.saturating_mul(2_u32.saturating_pow(failures)).min(max)
}

/// What is behind our locks is changed in single steps, so a panic elsewhere leaves it whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Restart;

    fn member(pid: u32) -> Member {
        Member { container: "game".into(), process: ProcessId { pid, start_time: 1 } }
    }

    fn room() -> Room {
        let plan = Plan { restart: Restart::Always, grace_period_ms: 1, containers: vec![], ports: vec![] };
        let scheduler = SchedulerName::parse("arena").unwrap();
        let first = member(1);
        let handle = members::to_handle("h", std::slice::from_ref(&first));
        Room::new(
            RoomId::new("arena-1"),
            scheduler,
            plan,
            "h".into(),
            vec![first.clone()],
            vec![first.process],
            handle,
        )
    }

    #[test]
    fn a_handle_stays_valid_over_restarts() {
        let room = room();
        let first = room.handle();
        room.replace(member(2));
        let second = room.handle();
        for pid in 3..100 {
            room.replace(member(pid));
        }
        assert!(room.is(&first), "the one that start returned, however long ago");
        assert!(!room.is(&second), "forgotten: the memory is bounded");
        assert!(room.is(&members::to_handle("h", &[member(90)])));
        assert!(room.is(&room.handle()));
        assert!(!room.is(&members::to_handle("h", &[member(100)])));
        assert_eq!(room.known_as(), first, "it is the same room");
        assert_eq!((room.hand_out(), room.known_as()), (room.handle(), room.handle()));
    }

    #[test]
    fn a_shorter_grace_counts_and_a_longer_one_does_not() {
        let room = room();
        let mut kill_at = None;
        for (grace_s, counts) in [(10, true), (60, false), (5, true), (u64::MAX, false)] {
            room.ask_to_end(Duration::from_secs(grace_s));
            let before = std::mem::replace(&mut kill_at, *room.asked_to_end().borrow());
            assert_eq!(before != kill_at, counts, "{grace_s} s");
        }
    }
}
