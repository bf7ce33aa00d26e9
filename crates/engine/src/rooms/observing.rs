//! Receives what runtimes observe, and records how rooms end. An end is a fact: recording it needs no ownership, and
//! recording it twice changes nothing.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use maestro_core::room::{Ending, InstanceStatus, RoomId};
use tokio::sync::{Mutex, mpsc, watch};

use crate::engine::Parts;
use crate::events::room_gone::room_gone_events;
use crate::ports::Runtime;
use crate::ports::room_table::{OrIfLost, TableError, was_ready};
use crate::ports::runtime::{Observation, RoomEvent};
use crate::ports::store::{Change, Ended, Intent, Refusal, RoomRecord, StoreError, Transaction};
use crate::rooms::recovery;
use crate::{Engine, Error, Result, with_sources};

/// How long it waits before an observation that could not be written is tried again: longer each time, up to the most.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MOST: Duration = Duration::from_secs(15);

/// Observations taken out of the channel at once.
const BATCH: usize = 64;
/// Observations that wait to be written. Beyond this runtimes wait: the store fails as a whole then.
const WAITING_MAX: usize = 1024;

/// Hears one runtime, for as long as the engine is up.
pub(crate) struct Observer {
    engine: Arc<Engine>,
    parts: Parts,
    runtime: Arc<dyn Runtime>,
    /// There is only one stream: it outlives a crash of who reads it.
    observations: Mutex<mpsc::Receiver<Observation>>,
    has_begun: AtomicBool,
}

impl Observer {
    pub(crate) fn new(
        engine: Arc<Engine>,
        parts: Parts,
        runtime: Arc<dyn Runtime>,
        observations: mpsc::Receiver<Observation>,
    ) -> Self {
        let (observations, has_begun) = (Mutex::new(observations), AtomicBool::new(false));
        Self { engine, parts, runtime, observations, has_begun }
    }

    /// Runs until it is stopped and nothing is left to be written. Called again after a crash, it has the runtime say
    /// again how all rooms are: what was heard and not written is lost.
    pub(crate) async fn run(self: Arc<Self>, stop: watch::Receiver<bool>) {
        let mut observations = self.observations.lock().await;
        let observe = observe(&self.engine, &mut observations, stop);
        if !self.has_begun.swap(true, Ordering::Relaxed) {
            return observe.await;
        }
        // Both at once: what is said again comes through the same channel.
        tokio::select! {
            biased;
            () = observe => {}
            () = async { self.hear_again().await; std::future::pending().await } => {}
        }
    }

    async fn hear_again(&self) {
        let (engine, region) = (&self.engine, self.runtime.region());
        loop {
            // One that cannot be reached is adopted when it is back.
            if !engine.regions.is_reachable(region) {
                break;
            }
            match recovery::adopt(engine, self.parts, region, &self.runtime).await {
                Ok(()) => break,
                Err(error) => {
                    tracing::warn!(%region, error = with_sources(&error), "rooms not looked at again, trying again");
                    tokio::time::sleep(RETRY_FIRST).await;
                }
            }
        }
        engine.reconciled.forget();
        engine.ports.wake.rooms_changed();
    }
}

/// What was seen of rooms and is not written yet. Of each room one observation at a time is being written, in the order
/// in which they were seen; rooms do not wait for each other.
#[derive(Default)]
struct Waiting {
    /// A room is in here while one of its observations is being written.
    by_room: BTreeMap<RoomId, VecDeque<Observation>>,
    observations: usize,
}

impl Waiting {
    /// The observation, if it is to be written now.
    fn add(&mut self, observation: Observation) -> Option<Observation> {
        self.observations += 1;
        match self.by_room.get_mut(&observation.room) {
            Some(queue) => {
                queue.push_back(observation);
                None
            }
            None => {
                self.by_room.insert(observation.room.clone(), VecDeque::new());
                Some(observation)
            }
        }
    }

    /// One is written. What comes next of that room.
    fn done(&mut self, room: &RoomId) -> Option<Observation> {
        self.observations -= 1;
        let next = self.by_room.get_mut(room).and_then(VecDeque::pop_front);
        if next.is_none() {
            self.by_room.remove(room);
        }
        next
    }

    fn has_place(&self) -> bool {
        self.observations < WAITING_MAX
    }
}

/// Nothing that was observed is skipped: what cannot be written is tried again, and holds up nobody but its room.
async fn observe(
    engine: &Engine,
    observations: &mut mpsc::Receiver<Observation>,
    mut stop: watch::Receiver<bool>,
) {
    let mut waiting = Waiting::default();
    let mut writing = FuturesUnordered::new();
    let mut batch = Vec::with_capacity(BATCH);
    let mut is_open = true;
    while is_open || !writing.is_empty() {
        // Observations before the stop: stopped, it still takes in all that was seen before.
        tokio::select! {
            biased;
            Some(room) = writing.next() => {
                writing.extend(waiting.done(&room).map(|next| take_in_at_last(engine, next)));
            }
            taken = observations.recv_many(&mut batch, BATCH), if is_open && waiting.has_place() => {
                is_open = taken > 0;
                let now = batch.drain(..).filter_map(|observation| waiting.add(observation));
                writing.extend(now.map(|observation| take_in_at_last(engine, observation)));
            }
            _ = stop.wait_for(|stopped| *stopped), if is_open && waiting.has_place() => is_open = false,
        }
    }
}

/// Returns when it is written, or when the store has said that it cannot be: the next comparison of registry and
/// runtime finds what that means.
async fn take_in_at_last(engine: &Engine, observation: Observation) -> RoomId {
    let mut retry = RETRY_FIRST;
    while let Err(error) = take_in(engine, &observation).await {
        engine.metrics.observed(&observation.scheduler, &observation.event, false);
        let room_id = observation.room.as_str();
        let error_text = with_sources(&error);
        if !matches!(error, Error::Unavailable { .. }) {
            tracing::warn!(room_id, error = error_text, "observation refused");
            engine.reconciled.forget_one(&observation.scheduler);
            return observation.room;
        }
        tracing::warn!(room_id, error = error_text, retry_in = ?retry, "observation not written, trying again");
        tokio::time::sleep(retry).await;
        retry = (retry * 2).min(RETRY_MOST);
    }
    engine.metrics.observed(&observation.scheduler, &observation.event, true);
    observation.room
}

async fn take_in(engine: &Engine, observation: &Observation) -> Result {
    let Observation { scheduler, room, instance, event } = observation;
    let row = engine.ports.store.room(scheduler, room).await?;
    if row.as_ref().is_some_and(|row| row.is_another_than(instance.as_ref())) {
        tracing::debug!(scheduler_name = %scheduler, room_id = %room, ?event, "seen of another instance of the room");
        return Ok(());
    }
    let status = match event {
        RoomEvent::Pending => InstanceStatus::Pending,
        RoomEvent::Up => InstanceStatus::Ready,
        RoomEvent::GoingDown => InstanceStatus::Terminating,
        RoomEvent::Ended(ending) => return end_room(engine, observation, row, ending).await,
    };
    match engine.ports.table.observe(scheduler, room, status).await {
        Ok(Some(_)) => engine.ports.wake.room_changed(scheduler.as_str()),
        Ok(None) => {}
        // The next comparison has the runtime say it again.
        Err(TableError::Lost(_)) => engine.reconciled.forget_one(scheduler),
        Err(error @ TableError::Unavailable(_)) => return Err(error.into()),
    }
    Ok(())
}

async fn end_room(
    engine: &Engine,
    observation: &Observation,
    row: Option<RoomRecord>,
    ending: &Ending,
) -> Result {
    let Observation { scheduler, room, instance, event: _ } = observation;
    let view = engine.ports.table.room(scheduler, room).await.or_if_lost(None)?;
    if let Some(row) = row.filter(|row| row.ended.is_none()) {
        let mut ended = Ended::by(ending, engine.now(), was_ready(view.as_ref()));
        if let Intent::Stop(stop) = &row.intent {
            ended.how += &format!("; operation {}: {}", stop.operation, stop.reason);
        }
        tracing::info!(scheduler_name = %scheduler, room_id = %room, how = ended.how, "room ended");
        let record = match engine.ports.store.scheduler(scheduler).await {
            // Its forwarders are not known, but it has ended all the same.
            Err(StoreError::Unreadable(_)) => None,
            found => found?,
        };
        let mut changes = record.map(|record| room_gone_events(engine, &record, &row)).unwrap_or_default();
        let (scheduler_name, instance) = (scheduler.clone(), instance.clone());
        changes.push(Change::EndRoom { scheduler: scheduler_name, room: room.clone(), instance, ended });
        match engine.commit(Transaction::new("room ended", scheduler, changes)).await {
            Ok(()) => engine.event_queued(scheduler),
            // The start of another one was written meanwhile.
            Err(StoreError::Refused(Refusal::OtherInstance(_))) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    engine.ports.table.remove(scheduler, room).await.or_if_lost(None)?;
    engine.ports.wake.room_changed(scheduler.as_str());
    Ok(())
}
