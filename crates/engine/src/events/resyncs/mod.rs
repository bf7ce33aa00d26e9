//! Resyncs: what rooms say by pings, sent to every enabled forwarder.
//!
//! A ping hands over what it says and goes on. One task takes it from there. One call is in flight at a time for each room
//! and forwarder; what the room says meanwhile waits, the newest of each status. A receiver that is slow or down delays
//! only its own events. What cannot be delivered is dropped: the next ping says it again.

mod lane;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use maestro_core::event::{Addressee, EventKind, RoomFacts, compose};
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

use lane::{Lane, Metadata, WaitingPings};

/// What pings say within this time is taken over together: waking the task with every ping would cost the ping more than all
/// else that it does for forwarders.
const PINGS_DEBOUNCE: Duration = Duration::from_millis(5);
/// Calls that may be in flight for one forwarder.
const CALLS_MAX: usize = 64;
/// Rooms whose facts are cached: reading them with every ping would cost more than the ping.
const FACTS_MAX: usize = 100_000;

#[derive(Default)]
pub(crate) struct Resyncs {
    /// Whether any scheduler has forwarders: all that a ping asks where none has.
    any: AtomicBool,
    fleets: RwLock<BTreeMap<SchedulerName, Arc<ForwardedFleet>>>,
    bell: Notify,
    state: Mutex<State>,
    call_ended: Notify,
}

/// A scheduler that has forwarders.
struct ForwardedFleet {
    game: String,
    /// Those that are enabled.
    forwarders: Vec<Forwarder>,
    /// What pings handed over and the task has not taken yet, by room.
    inbox: Mutex<BTreeMap<Box<str>, WaitingPings>>,
}

#[derive(Default)]
struct State {
    lanes: BTreeMap<LaneKey, Lane>,
    facts: BTreeMap<RoomId, Arc<RoomFacts>>,
}

type LaneKey = (SchedulerName, String);

/// One call to make.
struct Call {
    key: LaneKey,
    fleet: Arc<ForwardedFleet>,
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

    /// Takes note of the forwarders in a scheduler's recipe.
    pub(crate) fn update(&self, record: &SchedulerRecord) {
        let mut forwarders = enabled(record).peekable();
        let is_known = |fleet: &Arc<ForwardedFleet>| {
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
            let fleet = ForwardedFleet { game, forwarders, inbox: Mutex::new(inbox) };
            fleets.insert(record.name.clone(), Arc::new(fleet));
        }
        self.any.store(!fleets.is_empty(), Ordering::Relaxed);
    }

    fn update_all(&self, records: &[SchedulerRecord]) {
        records.iter().for_each(|record| self.update(record));
        let names: BTreeSet<&SchedulerName> = records.iter().map(|record| &record.name).collect();
        let mut fleets = self.fleets.write();
        fleets.retain(|name, _| names.contains(name));
        self.any.store(!fleets.is_empty(), Ordering::Relaxed);
        let has = |(scheduler, forwarder): &LaneKey| {
            let fleet = fleets.get(scheduler);
            fleet.is_some_and(|fleet| fleet.forwarders.iter().any(|known| known.name == *forwarder))
        };
        self.state.lock().lanes.retain(|key, lane| has(key) || lane.calls_in_flight() > 0);
    }

    /// Before the receiver is told that the room is gone: drops what waits of the room, and waits for a call in flight, for
    /// at most `timeout`.
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
            let ended = self.call_ended.notified();
            if !self.drop_waiting(&key, room) || tokio::time::timeout_at(deadline, ended).await.is_err() {
                return;
            }
        }
    }

    /// True: a call of the room is in flight.
    fn drop_waiting(&self, key: &LaneKey, room: &RoomId) -> bool {
        let mut state = self.state.lock();
        // When it is read again, the room's row says that it has ended.
        state.facts.remove(room);
        state.lanes.get_mut(key).is_some_and(|lane| lane.forget(room))
    }

    /// Moves what pings handed over to the lanes of their forwarders.
    fn drain_inboxes(&self) {
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
    fn next_calls(&self) -> Vec<Call> {
        let fleets = self.fleets.read();
        let (mut calls, now) = (Vec::new(), Instant::now());
        for (key, lane) in &mut self.state.lock().lanes {
            let Some(fleet) = fleets.get(&key.0) else { continue };
            while lane.calls_in_flight() < CALLS_MAX
                && let Some((room, status, metadata)) = lane.next(now)
            {
                calls.push(Call { key: key.clone(), fleet: fleet.clone(), room, status, metadata });
            }
        }
        calls
    }

    fn finish(&self, call: Call, taken: bool) {
        let Call { key, fleet: _, room, status, metadata } = call;
        if let Some(lane) = self.state.lock().lanes.get_mut(&key) {
            lane.finish(room, taken.then_some((status, metadata)), Instant::now());
        }
        self.call_ended.notify_waiters();
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

/// Forwards what pings say, for as long as the engine is up.
pub(crate) async fn forward(engine: Arc<Engine>) {
    let engine = &*engine;
    let resyncs = &engine.events.resyncs;
    // Calls of an earlier run of this task are lost with it.
    resyncs.state.lock().lanes.clear();
    let mut sync = interval(engine.settings.sync_interval);
    let mut calls = FuturesUnordered::new();
    let mut last_drain = Instant::now();
    loop {
        let pinged = async {
            tokio::time::sleep_until(last_drain + PINGS_DEBOUNCE).await;
            resyncs.bell.notified().await;
        };
        tokio::select! {
            biased;
            Some((call, taken)) = calls.next() => resyncs.finish(call, taken),
            () = pinged => {
                resyncs.drain_inboxes();
                last_drain = Instant::now();
            }
            _ = sync.tick() => match engine.ports.store.schedulers().await {
                Ok(records) => resyncs.update_all(&records),
                Err(error) => {
                    tracing::warn!(error = with_sources(&error), "cannot read which schedulers have forwarders");
                }
            },
        }
        calls.extend(resyncs.next_calls().into_iter().map(|call| send(engine, call)));
    }
}

/// Answers the call, and whether the receiver took it.
async fn send(engine: &Engine, call: Call) -> (Call, bool) {
    let outcome = try_send(engine, &call).await;
    if let Err(error) = &outcome {
        let Call { key: (scheduler, forwarder), room, .. } = &call;
        tracing::debug!(scheduler_name = %scheduler, forwarder, room_id = %room, error, "ping not forwarded");
        engine.metrics.ping_not_forwarded(scheduler);
    }
    (call, outcome.is_ok())
}

async fn try_send(engine: &Engine, call: &Call) -> Result<(), String> {
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
    // Its address may be written a moment after its first ping.
    if row.handle.is_some() {
        resyncs.remember(&facts);
    }
    Ok(Some(facts))
}
