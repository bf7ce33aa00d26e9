//! What must be true of a world that has come to rest.

use std::collections::BTreeMap;

use maestro_core::invariant::{Invariant, InvariantViolation, fleet_size_told};
use maestro_core::lock::{Holder, Locks};
use maestro_core::operation::{Operation, OperationStatus};
use maestro_core::room::RoomId;
use maestro_core::time::{Millis, Timestamp};
use maestro_engine::ports::store::{Intent, RoomRecord, SchedulerRecord, Store, StoreError};

use crate::host::{Phase, RoomOnHost};

use super::Inspector;
use super::memory::is_clockwork;

impl Inspector {
    /// After everything had time to settle; `rooms` are those that really run, whatever anybody believes.
    pub async fn at_rest(&self, store: &dyn Store, rooms: &[RoomOnHost], ping_timeout: Millis) {
        let outcome = async {
            for record in store.schedulers().await? {
                let unfinished = store.unfinished(&record.name).await?;
                self.note_all(unfinished.iter().filter_map(in_progress));
                let locks = store.locks(&record.name).await?;
                self.note_all(locks_left(&record, &unfinished, &locks));
                self.note_all(places_left(&record, &locks, self.trace.now()));
                let told = self.state.lock().known(&record.name).size;
                self.note_all(told.and_then(|told| fleet_size_told(record.fleet_size, told)));
            }
            self.note_all(unwanted(rooms, &store.all_live_rooms().await?));
            self.judge_holds(store, ping_timeout).await?;
            self.judge_arrivals(store).await?;
            self.judge_accepted(store).await
        };
        if let Err(error) = outcome.await {
            self.trace.note(format_args!("the world at rest could not be read: {error}"));
        }
    }

    /// Whatever people were told will be done has ended, or is still there.
    async fn judge_accepted(&self, store: &dyn Store) -> Result<(), StoreError> {
        let accepted = self.state.lock().accepted.clone();
        for (id, scheduler) in accepted {
            let was_written = self.state.lock().enqueued.contains_key(&id);
            let has_ended = {
                let mut state = self.state.lock();
                let known = state.known(&scheduler).operations.get(&id);
                known.is_none_or(|operation| operation.status.is_final())
            };
            let is_there = store.operation(&scheduler, id).await?.is_some();
            let was_done = was_written && has_ended;
            if !is_there && !was_done {
                let what =
                    format!("operation {id} of {scheduler} was accepted, and nobody knows of it any more");
                self.note_all([InvariantViolation::new(Invariant::AcceptedWorkSurvives, what)]);
            }
        }
        Ok(())
    }
}

fn in_progress(operation: &Operation) -> Option<InvariantViolation> {
    let is_left =
        operation.status == OperationStatus::InProgress && !is_clockwork(operation.definition.kind());
    is_left.then(|| {
        let Operation { id, scheduler, definition, .. } = operation;
        let what = format!("{} {id} of {scheduler} is in progress", definition.name());
        InvariantViolation::new(Invariant::NothingInProgress, what)
    })
}

/// Locks of the clockwork come and go; those of a rollout that someone paused or that halted stay with it.
fn locks_left(record: &SchedulerRecord, unfinished: &[Operation], locks: &Locks) -> Vec<InvariantViolation> {
    let is_in_use = |holder: Holder| match holder {
        Holder::Operation { id, kind } => {
            is_clockwork(kind) && unfinished.iter().any(|operation| operation.id == id)
        }
        Holder::Rollout(_) => record.rollout.is_some(),
        Holder::HealthController => true,
    };
    let left = locks.held.iter().filter(|lock| !is_in_use(lock.holder));
    left.map(|lock| {
        let what = format!("{} of {} is held by {}", lock.kind, record.name, lock.holder);
        InvariantViolation::new(Invariant::NoLockLeft, what)
    })
    .collect()
}

/// Nobody waits for a lock when nobody has anything to do; who still has a place keeps others from it.
fn places_left(record: &SchedulerRecord, locks: &Locks, now: Timestamp) -> Vec<InvariantViolation> {
    let left = locks.waiters.iter().filter(|waiter| waiter.until > now);
    left.map(|waiter| {
        let what = format!("{} of {} is waited for by {}", waiter.kind, record.name, waiter.holder);
        InvariantViolation::new(Invariant::NoLockLeft, what)
    })
    .collect()
}

fn unwanted(rooms: &[RoomOnHost], rows: &[RoomRecord]) -> Vec<InvariantViolation> {
    let wanted: BTreeMap<&RoomId, &RoomRecord> =
        rows.iter().filter(|row| row.intent == Intent::Run).map(|row| (&row.id, row)).collect();
    let is_wanted = |room: &&RoomOnHost| {
        let row = wanted.get(&room.id);
        row.is_some_and(|row| row.scheduler == room.scheduler && row.region == room.region)
    };
    let unwanted = rooms.iter().filter(|room| room.phase != Phase::GoingDown && !is_wanted(room));
    unwanted
        .map(|room| {
            let what = format!("room {} of {} runs and is not wanted", room.id, room.scheduler);
            InvariantViolation::new(Invariant::NoUnwantedRoom, what)
        })
        .collect()
}
