//! Resyncs: what rooms say by pings, told to every enabled forwarder.
//!
//! A ping hands over what it says and goes on. One task takes it from there: of each room and forwarder one call is under way
//! at a time, and what a room says meanwhile waits, the newest of each status. A receiver that is slow or down delays nothing
//! but what is for itself, and what cannot be delivered is dropped: the next ping says it again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use maestro_core::event::{Addressee, EventKind, RoomFacts, WaitingResyncs, compose};
use maestro_core::room::{PingStatus, RoomId};
use maestro_core::scheduler::{Forwarder, SchedulerName};
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::ports::room_table::Ping;
use crate::ports::store::SchedulerRecord;
use crate::tasks::interval;
use crate::{Engine, with_sources};

use super::{enabled, facts_of, timeout_of};

/// Calls that are under way for one forwarder.
const CALLS_MAX: usize = 64;
/// Addresses of rooms that are remembered: reading one with every ping would cost more than the ping.
const FACTS_MAX: usize = 100_000;

/// A receiver that has just heard exactly this of a room is not told again: rooms that ping many times a second would keep the
/// server busy with what everybody knows.
const REPEATED_AFTER: Duration = Duration::from_secs(1);
/// Rooms of which it is remembered what a receiver has heard.
const HEARD_MAX: usize = 100_000;

/// What came with a status, as JSON.
type Metadata = Option<Box<str>>;
type Waiting = WaitingResyncs<Metadata>;

#[derive(Default)]
pub(crate) struct Resyncs {
    /// Whether any scheduler has forwarders: all that a ping asks where none has.
    any: AtomicBool,
    fleets: RwLock<BTreeMap<SchedulerName, Arc<Fleet>>>,
    bell: Notify,
    state: Mutex<State>,
    /// A call has ended.
    ended: Notify,
}

/// A scheduler that has forwarders.
struct Fleet {
    game: String,
    /// Those that are enabled.
    forwarders: Vec<Forwarder>,
    /// What pings handed over and the task has not seen yet, by room.
    inbox: Mutex<BTreeMap<Box<str>, Waiting>>,
}

#[derive(Default)]
struct State {
    lanes: BTreeMap<LaneKey, Lane>,
    facts: BTreeMap<RoomId, Arc<RoomFacts>>,
}

type LaneKey = (SchedulerName, String);

/// One forwarder's.
#[derive(Default)]
struct Lane {
    waiting: BTreeMap<RoomId, Waiting>,
    /// Rooms of which something waits and no call is under way, each once, in the order in which they came.
    ready: VecDeque<RoomId>,
    calling: BTreeSet<RoomId>,
    /// What the receiver took last of each room, and when.
    heard: BTreeMap<RoomId, (PingStatus, Metadata, Instant)>,
}

/// One call to make.
struct Call {
    key: LaneKey,
    fleet: Arc<Fleet>,
    room: RoomId,
    status: PingStatus,
    metadata: Metadata,
}

impl Resyncs {
    /// A room of the fleet pinged. Called with every such ping.
    pub(crate) fn pinged(&self, ping: &Ping<'_>) {
        if !self.any.load(Ordering::Relaxed) {
            return;
        }
        let Some(fleet) = self.fleets.read().get(ping.scheduler).cloned() else { return };
        let mut inbox = fleet.inbox.lock();
        let was_empty = inbox.is_empty();
        let content = ping.metadata.map(Box::from);
        match inbox.get_mut(ping.room) {
            Some(waiting) => waiting.push(ping.status, content),
            None => inbox.entry(ping.room.into()).or_default().push(ping.status, content),
        }
        drop(inbox);
        if was_empty {
            self.bell.notify_one();
        }
    }

    /// What a scheduler's recipe says now.
    pub(crate) fn learn(&self, record: &SchedulerRecord) {
        let mut forwarders = enabled(record).peekable();
        let is_known = |fleet: &Arc<Fleet>| {
            fleet.game == record.recipe.game && fleet.forwarders.iter().eq(enabled(record))
        };
        let (is_wanted, known) =
            (forwarders.peek().is_some(), self.fleets.read().get(&record.name).map(is_known));
        if known == is_wanted.then_some(true) {
            return;
        }
        let mut fleets = self.fleets.write();
        let before = fleets.remove(&record.name);
        if is_wanted {
            let inbox = before.map(|fleet| std::mem::take(&mut *fleet.inbox.lock())).unwrap_or_default();
            let (game, forwarders) = (record.recipe.game.clone(), forwarders.cloned().collect());
            let fleet = Fleet { game, forwarders, inbox: Mutex::new(inbox) };
            fleets.insert(record.name.clone(), Arc::new(fleet));
        }
        self.any.store(!fleets.is_empty(), Ordering::Relaxed);
    }

    fn learn_all(&self, records: &[SchedulerRecord]) {
        records.iter().for_each(|record| self.learn(record));
        let names: BTreeSet<&SchedulerName> = records.iter().map(|record| &record.name).collect();
        let mut fleets = self.fleets.write();
        fleets.retain(|name, _| names.contains(name));
        self.any.store(!fleets.is_empty(), Ordering::Relaxed);
        let has = |(scheduler, forwarder): &LaneKey| {
            let fleet = fleets.get(scheduler);
            fleet.is_some_and(|fleet| fleet.forwarders.iter().any(|known| known.name == *forwarder))
        };
        self.state.lock().lanes.retain(|key, lane| has(key) || !lane.calling.is_empty());
    }

    /// The room is gone, and that is told now: what it said and nobody has heard is dropped, and a call that is under way
    /// comes first. It is over after `timeout` in any case.
    pub(super) async fn close(
        &self,
        scheduler: &SchedulerName,
        forwarder: &str,
        room: &RoomId,
        timeout: Duration,
    ) {
        let fleet = self.fleets.read().get(scheduler).cloned();
        if let Some(fleet) = fleet {
            fleet.inbox.lock().remove(room.as_str());
        }
        let key = (scheduler.clone(), forwarder.to_owned());
        let deadline = Instant::now() + timeout;
        loop {
            let ended = self.ended.notified();
            if !self.drop_waiting(&key, room) || tokio::time::timeout_at(deadline, ended).await.is_err() {
                return;
            }
        }
    }

    /// True: a call is under way.
    fn drop_waiting(&self, key: &LaneKey, room: &RoomId) -> bool {
        let mut state = self.state.lock();
        // Read anew, the room's row says that it has ended.
        state.facts.remove(room);
        let Some(lane) = state.lanes.get_mut(key) else { return false };
        lane.waiting.remove(room);
        lane.heard.remove(room);
        lane.calling.contains(room)
    }

    /// Moves what pings handed over to the lanes of their forwarders.
    fn take_in(&self) {
        let fleets: Vec<_> =
            self.fleets.read().iter().map(|(name, fleet)| (name.clone(), fleet.clone())).collect();
        for (name, fleet) in fleets {
            let inbox = std::mem::take(&mut *fleet.inbox.lock());
            if inbox.is_empty() {
                continue;
            }
            let mut state = self.state.lock();
            for forwarder in &fleet.forwarders {
                let lane = state.lanes.entry((name.clone(), forwarder.name.clone())).or_default();
                for (room, said) in &inbox {
                    lane.add(RoomId::new(room), said.clone());
                }
            }
        }
    }

    /// The calls that may begin now.
    fn begin(&self) -> Vec<Call> {
        let fleets = self.fleets.read();
        let (mut calls, now) = (Vec::new(), Instant::now());
        for (key, lane) in &mut self.state.lock().lanes {
            let Some(fleet) = fleets.get(&key.0) else { continue };
            while lane.calling.len() < CALLS_MAX
                && let Some((room, status, metadata)) = lane.next(now)
            {
                calls.push(Call { key: key.clone(), fleet: fleet.clone(), room, status, metadata });
            }
        }
        calls
    }

    fn done(&self, call: Call, taken: bool) {
        let Call { key, fleet: _, room, status, metadata } = call;
        if let Some(lane) = self.state.lock().lanes.get_mut(&key) {
            lane.done(room, taken.then_some((status, metadata)), Instant::now());
        }
        self.ended.notify_waiters();
    }

    fn facts(&self, room: &RoomId) -> Option<Arc<RoomFacts>> {
        self.state.lock().facts.get(room).cloned()
    }

    fn remember(&self, facts: &Arc<RoomFacts>) {
        let known = &mut self.state.lock().facts;
        if known.len() >= FACTS_MAX {
            known.clear();
        }
        known.insert(facts.id.clone(), facts.clone());
    }
}

impl Lane {
    fn add(&mut self, room: RoomId, said: Waiting) {
        match self.waiting.get_mut(&room) {
            Some(waiting) => waiting.append(said),
            None => {
                if !self.calling.contains(&room) {
                    self.ready.push_back(room.clone());
                }
                self.waiting.insert(room, said);
            }
        }
    }

    /// What the next room said first and the receiver has not just heard. A call for it is under way from now on.
    fn next(&mut self, now: Instant) -> Option<(RoomId, PingStatus, Metadata)> {
        loop {
            let room = self.ready.pop_front()?;
            // It may be gone, or be there twice because it was dropped meanwhile and has come again.
            if self.calling.contains(&room) {
                continue;
            }
            let Some(waiting) = self.waiting.get_mut(&room) else { continue };
            let first = waiting.pop();
            if waiting.is_empty() {
                self.waiting.remove(&room);
            }
            let Some((status, metadata)) = first else { continue };
            if !self.has_heard(&room, status, &metadata, now) {
                self.calling.insert(room.clone());
                return Some((room, status, metadata));
            }
            if self.waiting.contains_key(&room) {
                self.ready.push_front(room);
            }
        }
    }

    fn has_heard(&self, room: &RoomId, status: PingStatus, metadata: &Metadata, now: Instant) -> bool {
        self.heard.get(room).is_some_and(|(heard, with, at)| {
            *heard == status && with == metadata && now < *at + REPEATED_AFTER
        })
    }

    /// `taken`: what the receiver has heard; `None` if it has not.
    fn done(&mut self, room: RoomId, taken: Option<(PingStatus, Metadata)>, now: Instant) {
        self.calling.remove(&room);
        if self.waiting.contains_key(&room) {
            self.ready.push_back(room.clone());
        }
        if self.heard.len() >= HEARD_MAX {
            self.heard.clear();
        }
        match taken {
            Some((status, metadata)) => drop(self.heard.insert(room, (status, metadata, now))),
            None => drop(self.heard.remove(&room)),
        }
    }
}

/// Tells what pings say, for as long as the engine is up.
pub(crate) async fn forward(engine: Arc<Engine>) {
    let engine = &*engine;
    let resyncs = &engine.events.resyncs;
    // Calls of an earlier run of this task are lost with it.
    resyncs.state.lock().lanes.clear();
    let mut sync = interval(engine.settings.sync_interval);
    let mut calls = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            Some((call, taken)) = calls.next() => resyncs.done(call, taken),
            () = resyncs.bell.notified() => resyncs.take_in(),
            _ = sync.tick() => match engine.ports.store.schedulers().await {
                Ok(records) => resyncs.learn_all(&records),
                Err(error) => {
                    tracing::warn!(error = with_sources(&error), "cannot read which schedulers have forwarders");
                }
            },
        }
        calls.extend(resyncs.begin().into_iter().map(|call| make(engine, call)));
    }
}

/// With whether the receiver took it.
async fn make(engine: &Engine, call: Call) -> (Call, bool) {
    let outcome = try_make(engine, &call).await;
    if let Err(error) = &outcome {
        let Call { key: (scheduler, forwarder), room, .. } = &call;
        tracing::debug!(scheduler_name = %scheduler, forwarder, room_id = %room, error, "ping not forwarded");
        engine.metrics.ping_not_forwarded(scheduler);
    }
    (call, outcome.is_ok())
}

async fn try_make(engine: &Engine, call: &Call) -> Result<(), String> {
    let Call { key: (scheduler, name), fleet, room, status, metadata } = call;
    let Some(forwarder) = fleet.forwarders.iter().find(|forwarder| forwarder.name == *name) else {
        return Ok(());
    };
    let Some(facts) = facts(engine, scheduler, room).await? else { return Ok(()) };
    // It was an object when the room sent it.
    let metadata = metadata.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let to = Addressee { scheduler, game: &fleet.game, forwarder };
    let message =
        compose(&EventKind::Resync(*status), &metadata, &facts, to).map_err(|error| error.to_string())?;
    let id = engine.ports.random.event_id(engine.now());
    let attempt = engine.attempt(&forwarder.address, timeout_of(forwarder.timeout_ms), id, &message);
    attempt.await.map(drop).map_err(|error| error.to_string())
}

/// `None`: the room has ended, and that is all that there is to say.
async fn facts(
    engine: &Engine,
    scheduler: &SchedulerName,
    room: &RoomId,
) -> Result<Option<Arc<RoomFacts>>, String> {
    let resyncs = &engine.events.resyncs;
    if let Some(known) = resyncs.facts(room) {
        return Ok(Some(known));
    }
    let row = engine.ports.store.room(scheduler, room).await.map_err(|error| with_sources(&error))?;
    let Some(row) = row.filter(|row| row.ended.is_none()) else { return Ok(None) };
    let facts = Arc::new(facts_of(&row, false));
    // Where it is may be written down a moment after its first ping.
    if row.handle.is_some() {
        resyncs.remember(&facts);
    }
    Ok(Some(facts))
}

#[cfg(test)]
mod tests {
    use PingStatus::{Occupied, Ready, Terminating};

    use super::*;

    fn room(number: u32) -> RoomId {
        RoomId::new(&format!("arena-{number}"))
    }

    fn say(lane: &mut Lane, number: u32, said: &[PingStatus]) {
        let mut waiting = Waiting::default();
        said.iter().for_each(|status| waiting.push(*status, None));
        lane.add(room(number), waiting);
    }

    fn next(lane: &mut Lane, now: Instant) -> Option<(RoomId, PingStatus)> {
        lane.next(now).map(|(room, status, _)| (room, status))
    }

    #[tokio::test(start_paused = true)]
    async fn a_room_has_one_call_at_a_time_and_rooms_do_not_wait_for_each_other() {
        let (mut lane, now) = (Lane::default(), Instant::now());
        say(&mut lane, 1, &[Ready, Occupied]);
        say(&mut lane, 2, &[Ready]);
        assert_eq!(next(&mut lane, now), Some((room(1), Ready)));
        assert_eq!(next(&mut lane, now), Some((room(2), Ready)));
        assert_eq!(next(&mut lane, now), None);
        say(&mut lane, 1, &[Occupied, Terminating]);
        assert_eq!(next(&mut lane, now), None, "its call is under way");
        lane.done(room(1), None, now);
        assert_eq!(next(&mut lane, now), Some((room(1), Occupied)));
        lane.done(room(1), None, now);
        assert_eq!(next(&mut lane, now), Some((room(1), Terminating)));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_just_heard_is_not_repeated() {
        let (mut lane, now) = (Lane::default(), Instant::now());
        for (after, said, expected) in [
            (0, &[Ready][..], Some(Ready)),
            (500, &[Ready], None),
            (600, &[Ready, Occupied], Some(Occupied)),
            (700, &[Ready], Some(Ready)),
            (1600, &[Ready], None),
            (1700, &[Ready], Some(Ready)),
        ] {
            let now = now + Duration::from_millis(after);
            say(&mut lane, 1, said);
            assert_eq!(next(&mut lane, now).map(|(_, status)| status), expected, "after {after} ms");
            if let Some(status) = expected {
                lane.done(room(1), Some((status, None)), now);
            }
        }
        // Not heard, it is said again at once.
        say(&mut lane, 1, &[Occupied]);
        assert!(next(&mut lane, now).is_some());
        lane.done(room(1), None, now);
        say(&mut lane, 1, &[Occupied]);
        assert!(next(&mut lane, now).is_some());
    }
}
