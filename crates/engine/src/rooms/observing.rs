//! Hears what runtimes see, and writes down how rooms end. An end is a fact: it needs no ownership, and writing it
//! twice changes nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use maestro_core::room::{Ending, InstanceStatus, RoomId};
use maestro_core::scheduler::SchedulerName;
use tokio::sync::{mpsc, watch};

use crate::ports::runtime::{Observation, RoomEvent};
use crate::ports::store::{Change, Ended, Intent, Transaction};
use crate::{Engine, Error, with_sources};

/// How long it waits before an observation that could not be written is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Observations taken in at once: their writes go to the store side by side, which commits them together.
const BATCH: usize = 64;

/// Runs until it is stopped and nothing is left to be written. Nothing that was observed is skipped: what cannot be
/// written is tried again.
pub(crate) async fn observe(
    engine: &Engine,
    mut observations: mpsc::Receiver<Observation>,
    mut stop: watch::Receiver<bool>,
) {
    let mut batch = Vec::with_capacity(BATCH);
    loop {
        // Observations first: stopped, it still takes in all that was seen before.
        let taken = tokio::select! {
            biased;
            taken = observations.recv_many(&mut batch, BATCH) => taken,
            _ = stop.wait_for(|stopped| *stopped) => 0,
        };
        if taken == 0 {
            return;
        }
        // What was seen of one room is taken in in the order in which it was seen.
        let mut by_room: BTreeMap<RoomId, Vec<Observation>> = BTreeMap::new();
        for observation in batch.drain(..) {
            by_room.entry(observation.room.clone()).or_default().push(observation);
        }
        join_all(by_room.into_values().map(|observations| take_in_all(engine, observations))).await;
    }
}

async fn take_in_all(engine: &Engine, observations: Vec<Observation>) {
    for observation in observations {
        while let Err(error) = take_in(engine, &observation).await {
            let room_id = observation.room.as_str();
            tracing::warn!(room_id, error = with_sources(&error), "observation not written, trying again");
            tokio::time::sleep(RETRY_AFTER).await;
        }
    }
}

async fn take_in(engine: &Engine, observation: &Observation) -> Result<(), Error> {
    let Observation { scheduler, room, event } = observation;
    let instance = match event {
        RoomEvent::Pending => InstanceStatus::Pending,
        RoomEvent::Up => InstanceStatus::Ready,
        RoomEvent::GoingDown => InstanceStatus::Terminating,
        RoomEvent::Ended(ending) => return end_room(engine, scheduler, room, ending).await,
    };
    if engine.ports.table.observe(scheduler, room, instance).await?.is_some() {
        engine.ports.wake.room_changed(scheduler.as_str());
    }
    Ok(())
}

async fn end_room(
    engine: &Engine,
    scheduler: &SchedulerName,
    room: &RoomId,
    ending: &Ending,
) -> Result<(), Error> {
    let row = engine.ports.store.room(scheduler, room).await?.filter(|row| row.ended.is_none());
    let view = engine.ports.table.room(scheduler, room).await?;
    if let Some(row) = row {
        let how = match &row.intent {
            Intent::Run => ending.to_string(),
            Intent::Stop(stop) => format!("{ending}; operation {}: {}", stop.operation, stop.reason),
        };
        let ended = Ended {
            at: engine.now(),
            how,
            cause: ending.cause(),
            // Of a room that was not heard of since a restart nobody knows: it is no failed start.
            was_ready: view.is_none_or(|view| view.was_ready || !view.known),
        };
        tracing::info!(scheduler_name = %scheduler, room_id = %room, how = ended.how, "room ended");
        let change = Change::EndRoom { scheduler: scheduler.clone(), room: room.clone(), ended };
        engine.ports.store.commit(Transaction::new("room ended", vec![change])).await?;
    }
    engine.ports.table.remove(scheduler, room).await?;
    engine.ports.wake.room_changed(scheduler.as_str());
    Ok(())
}
