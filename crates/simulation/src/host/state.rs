//! What a host knows and what is to happen on it: a state machine over events in time. Nothing in here waits; what is
//! to be said to others is put into the outbox, in order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use maestro_core::room::{Ending, HostPort, Region, RoomId};
use maestro_core::scheduler::SchedulerName;
use maestro_engine::ports::runtime::{Observation, RoomEvent};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::trace::Trace;

use super::habits::{Exit, Habits, HostFaults};
use super::outage::Outage;
use super::room::{GamePing, Phase, Room};

/// What a room has written, line by line.
type Log = Vec<String>;

pub(crate) struct State {
    region: Region,
    trace: Trace,
    pub(crate) random: fastrand::Rng,
    pub(crate) habits: Habits,
    /// Of single rooms, instead of those of all.
    pub(crate) habits_of: BTreeMap<RoomId, Habits>,
    /// Of rooms that are started with this flag, instead of those of all.
    pub(crate) habits_by_flag: BTreeMap<String, Habits>,
    /// Every watcher sees every room, as in a cluster; otherwise those that it started, stopped or adopted.
    pub(crate) seen_by_all: bool,
    pub(crate) host_faults: HostFaults,
    pub(crate) outage: Option<Outage>,
    pub(crate) rooms: BTreeMap<RoomId, Room>,
    agenda: BTreeMap<(Instant, u64), Due>,
    pub(crate) outbox: VecDeque<Said>,
    /// Observations that an outage keeps from getting out, in order.
    pub(crate) held_back: Vec<Said>,
    pub(crate) places: BTreeSet<SchedulerName>,
    pub(crate) logs: BTreeMap<(SchedulerName, RoomId), Log>,
    /// Ports that other programs listen to.
    pub(crate) foreign_ports: BTreeSet<u16>,
    pub(crate) watchers: BTreeMap<u64, Watcher>,
    pub(crate) violations: Vec<String>,
    /// The most rooms that a scheduler had at once, those aside that were going down or that nobody asked for.
    pub(crate) most_rooms: BTreeMap<SchedulerName, usize>,
    last_number: u64,
    last_pid: u32,
}

/// A runtime that is connected to the host.
pub(crate) struct Watcher {
    pub(crate) observations: mpsc::Sender<Observation>,
    pub(crate) watched: BTreeSet<RoomId>,
}

/// What is to happen to an instance of a room. If it is gone by then, nothing happens.
struct Due {
    room: RoomId,
    pid: u32,
    event: Event,
}

enum Event {
    Up,
    Ping,
    End(Ending),
}

/// What the host has to say to someone.
pub(crate) enum Said {
    Observation(mpsc::Sender<Observation>, Observation),
    Ping(GamePing),
}

/// What a room is started with.
pub(crate) struct NewRoom {
    pub(crate) id: RoomId,
    pub(crate) scheduler: SchedulerName,
    pub(crate) ports: Vec<HostPort>,
    pub(crate) grace: Duration,
    /// What its command says.
    pub(crate) flags: Vec<String>,
    pub(crate) is_invented: bool,
}

impl State {
    pub(crate) fn new(region: Region, seed: u64, trace: Trace) -> Self {
        Self {
            region,
            trace,
            random: fastrand::Rng::with_seed(seed),
            habits: Habits::default(),
            habits_of: BTreeMap::new(),
            habits_by_flag: BTreeMap::new(),
            seen_by_all: false,
            host_faults: HostFaults::default(),
            outage: None,
            rooms: BTreeMap::new(),
            agenda: BTreeMap::new(),
            outbox: VecDeque::new(),
            held_back: Vec::new(),
            places: BTreeSet::new(),
            logs: BTreeMap::new(),
            foreign_ports: BTreeSet::new(),
            watchers: BTreeMap::new(),
            violations: Vec::new(),
            most_rooms: BTreeMap::new(),
            last_number: 0,
            last_pid: 1000,
        }
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// A new watcher, and the number that it is known by.
    pub(crate) fn connect(&mut self, observations: mpsc::Sender<Observation>) -> u64 {
        let number = self.number();
        let watched = match self.seen_by_all {
            true => self.rooms.keys().cloned().collect(),
            false => BTreeSet::new(),
        };
        self.watchers.insert(number, Watcher { observations, watched });
        number
    }

    /// When something is to happen next.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.agenda.keys().next().map(|(at, _)| *at)
    }

    /// Lets happen what is due, in the order of time.
    pub(crate) fn pass_time(&mut self, now: Instant) {
        while let Some(entry) = self.agenda.first_entry()
            && entry.key().0 <= now
        {
            let Due { room, pid, event } = entry.remove();
            if self.rooms.get(&room).is_some_and(|there| there.pid == pid) {
                self.happen(&room, event, now);
            }
        }
    }

    fn happen(&mut self, id: &RoomId, event: Event, now: Instant) {
        match event {
            Event::Up => self.come_up(id, now),
            Event::Ping => self.ping(id, now),
            Event::End(ending) => self.end(id, ending),
        }
    }

    pub(crate) fn start(&mut self, new: NewRoom, now: Instant) {
        let NewRoom { id, scheduler, ports, grace, flags, is_invented } = new;
        self.last_pid += 1;
        let by_flag = flags.iter().find_map(|flag| self.habits_by_flag.get(flag));
        let habits = self.habits_of.get(&id).or(by_flag).unwrap_or(&self.habits).clone();
        let up_at = now + habits.up_after.draw(&mut self.random);
        let room = Room {
            id: id.clone(),
            scheduler: scheduler.clone(),
            pid: self.last_pid,
            ports,
            grace,
            is_invented,
            phase: Phase::Starting,
            habits,
            has_pinged: false,
            is_silent: false,
            matches: 0,
        };
        self.rooms.insert(id.clone(), room);
        self.count_rooms(scheduler);
        if self.seen_by_all {
            for watcher in self.watchers.values_mut() {
                watcher.watched.insert(id.clone());
            }
        }
        self.note(&id, "starting");
        self.plan(&id, up_at, Event::Up);
    }

    fn count_rooms(&mut self, scheduler: SchedulerName) {
        let stays =
            |room: &&Room| room.scheduler == scheduler && room.phase != Phase::GoingDown && !room.is_invented;
        let rooms = self.rooms.values().filter(stays).count();
        let most = self.most_rooms.entry(scheduler).or_default();
        *most = rooms.max(*most);
    }

    pub(crate) fn bound_ports(&self) -> BTreeSet<u16> {
        let of_rooms = self.rooms.values().flat_map(|room| &room.ports);
        let of_rooms = of_rooms.map(|port| port.host_port);
        of_rooms.chain(self.foreign_ports.iter().copied()).collect()
    }

    fn come_up(&mut self, id: &RoomId, now: Instant) {
        let Some(room) = self.rooms.get_mut(id) else {
            return;
        };
        if room.phase != Phase::Starting {
            return;
        }
        room.phase = Phase::Up;
        let Habits { ready_after, exits, lines_written, .. } = room.habits;
        let log = self.logs.entry((room.scheduler.clone(), id.clone())).or_default();
        log.extend((0..lines_written).map(|number| number.to_string()));
        log.push("started".into());
        self.note(id, "up");
        self.tell(id, RoomEvent::Up);
        if let Some(span) = ready_after {
            let at = now + span.draw(&mut self.random);
            self.plan(id, at, Event::Ping);
        }
        if let Some(Exit { after, code }) = exits {
            let at = now + after.draw(&mut self.random);
            self.plan(id, at, Event::End(exit(code)));
        }
    }

    /// A ping that is due by its interval.
    fn ping(&mut self, id: &RoomId, now: Instant) {
        let Some(room) = self.rooms.get_mut(id) else {
            return;
        };
        room.has_pinged = true;
        let every = room.habits.ping_every;
        self.say_ping(id);
        let at = now + every.draw(&mut self.random);
        self.plan(id, at, Event::Ping);
    }

    fn say_ping(&mut self, id: &RoomId) {
        let ping = self.rooms.get(id).and_then(Room::ping);
        self.outbox.extend(ping.map(Said::Ping));
    }

    /// A repeated stop can only shorten the grace period: the first end that is due is the one that happens.
    pub(crate) fn stop(&mut self, id: &RoomId, grace: Duration, now: Instant) {
        let Some(room) = self.rooms.get_mut(id) else {
            return;
        };
        let was_asked = room.phase == Phase::GoingDown;
        room.phase = Phase::GoingDown;
        let (obeys_after, has_pinged) = (room.habits.obeys_after, room.has_pinged);
        self.plan(id, now + grace, Event::End(Ending::KilledAfterGrace));
        if was_asked {
            return;
        }
        self.note(id, "asked to end");
        self.tell(id, RoomEvent::GoingDown);
        if has_pinged {
            self.say_ping(id);
        }
        if let Some(span) = obeys_after {
            let at = now + span.draw(&mut self.random);
            self.plan(id, at, Event::End(Ending::Stopped));
        }
    }

    pub(crate) fn end(&mut self, id: &RoomId, ending: Ending) {
        self.note(id, &format!("ended: {ending}"));
        self.tell(id, RoomEvent::Ended(ending));
        for watcher in self.watchers.values_mut() {
            watcher.watched.remove(id);
        }
        self.rooms.remove(id);
    }

    pub(crate) fn change_matches(&mut self, id: &RoomId, change: impl FnOnce(u32) -> u32) {
        if let Some(room) = self.rooms.get_mut(id) {
            room.matches = change(room.matches);
            self.say_ping(id);
        }
    }

    /// Tells those who watch the room.
    fn tell(&mut self, id: &RoomId, event: RoomEvent) {
        let Some(room) = self.rooms.get(id) else {
            return;
        };
        let observation = room.observation(event);
        let watchers = self.watchers.values();
        let watching = watchers.filter(|watcher| watcher.watched.contains(id));
        self.outbox.extend(
            watching.map(|watcher| Said::Observation(watcher.observations.clone(), observation.clone())),
        );
    }

    /// To everybody, of an instance that was there before the one that is.
    pub(crate) fn recall_earlier_instance(&mut self, id: &RoomId) {
        self.last_pid += 1;
        let pid = self.last_pid;
        let Some(room) = self.rooms.get(id) else { return };
        let events = [RoomEvent::GoingDown, RoomEvent::Ended(exit(1))];
        let seen = events.map(|event| room.observation_of(pid, event));
        self.note(id, &format!("what was seen of an earlier instance (pid {pid}) is told now"));
        let watchers: Vec<_> = self.watchers.values().map(|watcher| watcher.observations.clone()).collect();
        for watcher in watchers {
            let said = seen.iter().map(|seen| Said::Observation(watcher.clone(), seen.clone()));
            self.outbox.extend(said);
        }
    }

    /// Tells one watcher about a room, whether it is there or not.
    pub(crate) fn tell_watcher(&mut self, watcher: u64, observation: Observation) {
        if let Some(watcher) = self.watchers.get(&watcher) {
            self.outbox.push_back(Said::Observation(watcher.observations.clone(), observation));
        }
    }

    /// From now on the watcher is told what happens to the room, beginning with how it is. False: there is none.
    pub(crate) fn watch(&mut self, watcher: u64, id: &RoomId) -> bool {
        let Some(room) = self.rooms.get(id) else {
            return false;
        };
        let observation = room.observation(room.phase.event());
        if let Some(watcher) = self.watchers.get_mut(&watcher) {
            watcher.watched.insert(id.clone());
        }
        self.tell_watcher(watcher, observation);
        true
    }

    fn plan(&mut self, id: &RoomId, at: Instant, event: Event) {
        let Some(pid) = self.rooms.get(id).map(|room| room.pid) else {
            return;
        };
        let number = self.number();
        let due = Due { room: id.clone(), pid, event };
        self.agenda.insert((at, number), due);
    }

    fn note(&self, id: &RoomId, what: &str) {
        let Some(Room { pid, .. }) = self.rooms.get(id) else { return };
        // Where there is one region, nobody speaks of it.
        match self.region.as_str() {
            Region::DEFAULT => self.trace.note(format_args!("room {id} (pid {pid}): {what}")),
            region => self.trace.note(format_args!("room {id} (pid {pid} in {region}): {what}")),
        }
    }
}

/// How a room ends by itself.
pub(crate) fn exit(code: i32) -> Ending {
    Ending::Exited { container: "game".into(), code }
}
