//! A simulated host: rooms that start, ping, take matches, crash and end, in virtual time and by a seed. It lives
//! longer than any engine: a [`SimulatedRuntime`](crate::SimulatedRuntime) is an engine's view of it, and there may be
//! several, or none while the engine is down.

mod habits;
mod outage;
mod room;
mod state;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use maestro_core::room::{Ending, HostPort, Region, RoomId};
use maestro_core::scheduler::SchedulerName;
use maestro_engine::Tasks;
use maestro_engine::ports::runtime::Handle;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};

use crate::broken;
use crate::trace::Trace;

pub use habits::{Exit, Habits, HostFaults, Span};
pub use outage::Outage;
pub(crate) use room::Room;
pub use room::{GamePing, Phase};
pub(crate) use state::{NewRoom, Said, State};

/// Where rooms send their pings. It may be down: then nobody hears them.
#[async_trait]
pub trait RoomsApi: Send + Sync {
    async fn ping(&self, ping: GamePing);
}

/// A room as it really is, whatever anybody believes about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomOnHost {
    pub id: RoomId,
    pub region: Region,
    pub scheduler: SchedulerName,
    pub phase: Phase,
    pub ports: Vec<u16>,
    pub matches: u32,
    /// It has said that it can take players.
    pub has_pinged: bool,
    /// It will never say anything again.
    pub is_silent: bool,
}

pub struct Host {
    region: Region,
    state: Mutex<State>,
    /// There is something new on the agenda or in the outbox.
    changed: Notify,
}

impl Host {
    /// Begins its life: rooms that will be started ping `rooms_api`.
    pub fn open(
        region: Region,
        seed: u64,
        tasks: &Tasks,
        rooms_api: Arc<dyn RoomsApi>,
        trace: Trace,
    ) -> Arc<Self> {
        let state = Mutex::new(State::new(region.clone(), seed, trace));
        let host = Arc::new(Self { region, state, changed: Notify::new() });
        tasks.spawn("host", live(host.clone(), rooms_api));
        host
    }

    pub fn region(&self) -> &Region {
        &self.region
    }

    // What a test can look at.

    /// By id.
    pub fn rooms(&self) -> Vec<RoomOnHost> {
        let on_host = |room: &Room| RoomOnHost {
            id: room.id.clone(),
            region: self.region.clone(),
            scheduler: room.scheduler.clone(),
            phase: room.phase,
            ports: room.ports.iter().map(|port| port.host_port).collect(),
            matches: room.matches,
            has_pinged: room.has_pinged,
            is_silent: room.is_silent,
        };
        self.state.lock().rooms.values().map(on_host).collect()
    }

    /// Schedulers that have a place here.
    pub fn schedulers(&self) -> BTreeSet<SchedulerName> {
        self.state.lock().places.clone()
    }

    /// The most rooms that the scheduler had at once, those aside that were going down or that nobody asked for.
    pub fn most_rooms(&self, scheduler: &SchedulerName) -> usize {
        self.state.lock().most_rooms.get(scheduler).copied().unwrap_or(0)
    }

    /// What should never have been asked of it, in words.
    pub fn violations(&self) -> Vec<String> {
        self.state.lock().violations.clone()
    }

    // What a test can let happen.

    /// How rooms behave that are started from now on.
    pub fn set_habits(&self, habits: Habits) {
        self.change(|state, _| state.habits = habits);
    }

    /// How one room behaves, whatever others do, if it is started from now on.
    pub fn set_habits_of(&self, room: &RoomId, habits: Habits) {
        self.change(|state, _| state.habits_of.insert(room.clone(), habits));
    }

    /// How rooms behave that are started from now on with this flag in their command.
    pub fn set_habits_of_flag(&self, flag: &str, habits: Habits) {
        self.change(|state, _| state.habits_by_flag.insert(flag.into(), habits));
    }

    /// From now on all rooms are as those of all others.
    pub fn forget_special_habits(&self) {
        self.change(|state, _| {
            state.habits_of.clear();
            state.habits_by_flag.clear();
        });
    }

    /// Every engine sees what happens to every room, as in a cluster. To be said before the first one connects.
    pub fn let_all_see(&self) {
        self.change(|state, _| state.seen_by_all = true);
    }

    /// How the host answers from now on.
    pub fn set_host_faults(&self, host_faults: HostFaults) {
        self.change(|state, _| state.host_faults = host_faults);
    }

    /// The room ends by itself, with an error.
    pub fn crash(&self, room: &RoomId) {
        self.end(room, state::exit(1));
    }

    pub fn end(&self, room: &RoomId, ending: Ending) {
        self.change(|state, _| state.end(room, ending));
    }

    /// Someone else kills that very instance, with a signal that nothing survives.
    pub fn kill(&self, instance: &Handle) {
        let ending = Ending::Killed { container: "game".into(), signal: 9 };
        self.change(|state, _| {
            let killed = state.rooms.values().find(|room| room.is(instance));
            if let Some(id) = killed.map(|room| room.id.clone()) {
                state.end(&id, ending);
            }
        });
    }

    /// The room runs on and says nothing any more.
    pub fn silence(&self, room: &RoomId) {
        self.change(|state, _| {
            if let Some(room) = state.rooms.get_mut(room) {
                room.is_silent = true;
            }
        });
    }

    /// The room is gone, and nobody is told.
    pub fn lose(&self, room: &RoomId) {
        self.change(|state, _| state.rooms.remove(room));
    }

    /// Somebody tells late, or once more, what he saw of an earlier instance of the room: all of it.
    pub fn recall_earlier_instance(&self, room: &RoomId) {
        self.change(|state, _| state.recall_earlier_instance(room));
    }

    /// Whether that very instance is there.
    pub(crate) fn runs(&self, instance: &Handle) -> bool {
        self.state.lock().rooms.values().any(|room| room.is(instance))
    }

    /// A room of ours runs that nobody asked for.
    pub fn invent(&self, scheduler: &SchedulerName, room: &RoomId, ports: Vec<HostPort>) {
        let invented = NewRoom {
            id: room.clone(),
            scheduler: scheduler.clone(),
            ports,
            grace: Duration::from_secs(30),
            flags: Vec::new(),
            is_invented: true,
        };
        self.change(|state, now| state.start(invented, now));
    }

    /// Another program listens to the port from now on.
    pub fn occupy_port(&self, port: u16) {
        self.change(|state, _| state.foreign_ports.insert(port));
    }

    pub fn begin_match(&self, room: &RoomId) {
        self.change(|state, _| state.change_matches(room, |matches| matches + 1));
    }

    pub fn end_match(&self, room: &RoomId) {
        self.change(|state, _| state.change_matches(room, |matches| matches.saturating_sub(1)));
    }

    // For the runtimes.

    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State, Instant) -> T) -> T {
        let result = change(&mut self.state.lock(), Instant::now());
        self.changed.notify_one();
        result
    }

    /// Half of the time that a call takes.
    pub(crate) async fn dawdle(&self) {
        let latency = {
            let mut state = self.state.lock();
            let latency = state.host_faults.latency;
            latency.draw(&mut state.random)
        };
        sleep(latency).await;
    }
}

/// Lets time pass on the host, and says what is to be said, one after the other: the order is part of the seed.
async fn live(host: Arc<Host>, rooms_api: Arc<dyn RoomsApi>) {
    loop {
        let (said, next_due) = {
            let mut state = host.state.lock();
            state.pass_time(Instant::now());
            (state.next_said(), state.next_due())
        };
        match said {
            Some(Said::Ping(ping)) => rooms_api.ping(ping).await,
            Some(Said::Observation(observations, mut observation)) => {
                broken::observed(&mut observation);
                // Not heard by who is gone, or has not listened for a very long time: a host waits for nobody.
                let _ = observations.try_send(observation);
            }
            None => {
                // Either wakes it to look at both: neither can starve the other.
                tokio::select! {
                    biased;
                    () = host.changed.notified() => {}
                    () = until(next_due) => {}
                }
            }
        }
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
