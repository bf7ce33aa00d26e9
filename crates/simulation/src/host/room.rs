//! One simulated room: what it is doing, and what it does when something happens to it.

use std::time::Duration;

use maestro_core::room::{HostPort, PingStatus, RoomId};
use maestro_core::scheduler::SchedulerName;
use maestro_engine::ports::runtime::{Handle, Observation, RoomEvent};
use serde_json::json;

use super::habits::Habits;

/// Where all simulated rooms are reached: an address that is for documentation and belongs to nobody.
const ADDRESS: &str = "203.0.113.1";

#[derive(Debug)]
pub(crate) struct Room {
    pub(crate) id: RoomId,
    pub(crate) scheduler: SchedulerName,
    /// Never used twice on a host, so it also says which instance of the room this is.
    pub(crate) pid: u32,
    pub(crate) ports: Vec<HostPort>,
    pub(crate) grace: Duration,
    /// Nobody asked for it.
    pub(crate) is_invented: bool,
    pub(crate) phase: Phase,
    pub(crate) habits: Habits,
    pub(crate) has_pinged: bool,
    pub(crate) is_silent: bool,
    pub(crate) matches: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Starting,
    Up,
    GoingDown,
}

/// A ping as a game sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GamePing {
    pub scheduler: SchedulerName,
    pub room: RoomId,
    pub status: PingStatus,
    pub matches: u32,
}

impl Phase {
    pub(crate) fn event(self) -> RoomEvent {
        match self {
            Self::Starting => RoomEvent::Pending,
            Self::Up => RoomEvent::Up,
            Self::GoingDown => RoomEvent::GoingDown,
        }
    }
}

fn handle(pid: u32) -> Handle {
    Handle { host: ADDRESS.into(), pids: vec![pid], detail: json!({ "pid": pid }) }
}

impl Room {
    pub(crate) fn handle(&self) -> Handle {
        handle(self.pid)
    }

    pub(crate) fn observation(&self, event: RoomEvent) -> Observation {
        self.observation_of(self.pid, event)
    }

    /// Of the instance that has, or had, this pid.
    pub(crate) fn observation_of(&self, pid: u32, event: RoomEvent) -> Observation {
        let instance = Some(handle(pid));
        Observation { scheduler: self.scheduler.clone(), room: self.id.clone(), instance, event }
    }

    pub(crate) fn is(&self, handle: &Handle) -> bool {
        handle.pids == [self.pid]
    }

    /// What it says about itself now; `None`: it keeps silent.
    pub(crate) fn ping(&self) -> Option<GamePing> {
        let status = match (self.phase, self.matches) {
            (Phase::Starting, _) => return None,
            (Phase::Up, 0) => PingStatus::Ready,
            (Phase::Up, _) => PingStatus::Occupied,
            (Phase::GoingDown, _) => PingStatus::Terminating,
        };
        (!self.is_silent).then(|| GamePing {
            scheduler: self.scheduler.clone(),
            room: self.id.clone(),
            status,
            matches: self.matches,
        })
    }
}
