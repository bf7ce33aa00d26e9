//! Writing down who got which room. First the rows, then the claims are made firm; only then is anybody answered.

use maestro_core::allocation::{AllocationRequest, AllocationState, HoldStage};
use maestro_core::time::{Timestamp, after};

use crate::ports::room_table::{HeldRoom, HoldKey};
use crate::ports::store::{
    AllocationRecord, Change, NewAllocation, Refusal, RequestRecord, StoreError, Transaction,
};
use crate::{Engine, Error, Result, with_sources};

use super::line::Waiting;
use super::{AllocationView, Order};

/// A request, and the rooms that are claimed for it.
pub(super) struct Taken {
    pub(super) waiting: Waiting,
    pub(super) rooms: Vec<HeldRoom>,
}

pub(super) enum Outcome {
    Answered {
        waiting: Waiting,
        answer: Result<Vec<AllocationView>>,
    },
    /// The rooms turned out to be somebody else's.
    TryAgain(Waiting),
}

impl Waiting {
    /// False: nobody hears it any more.
    pub(super) fn answer(self, answer: Result<Vec<AllocationView>>) -> bool {
        self.order.reply.send(answer).is_ok()
    }
}

/// All of them in one commit, each refused or accepted by itself.
pub(super) async fn record(engine: &Engine, taken: Vec<Taken>) -> Vec<Outcome> {
    if taken.is_empty() {
        return Vec::new();
    }
    let now = as_stored(engine.now());
    let transactions = taken.iter().map(|taken| transaction(engine, taken, now)).collect();
    let outcomes = match engine.ports.store.commit_each(transactions).await {
        Ok(outcomes) => outcomes,
        Err(error) => {
            // Nobody knows whether the rows are there. The claims stay provisional, and are settled later.
            tracing::error!(error = with_sources(&error), "allocations could not be written");
            return taken.into_iter().map(|taken| not_written(taken.waiting, &error)).collect();
        }
    };
    let mut recorded = Vec::new();
    let mut answers = Vec::new();
    for (taken, outcome) in taken.into_iter().zip(outcomes) {
        match outcome {
            Ok(()) => recorded.push(taken),
            Err(refusal) => answers.push(refused(engine, taken, refusal).await),
        }
    }
    answers.extend(confirm(engine, recorded, now).await);
    answers
}

/// To the microsecond, as the store gives it back: the same request again gets the same answer.
pub(super) fn as_stored(at: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(at.as_microsecond()).unwrap_or(at)
}

fn transaction(engine: &Engine, taken: &Taken, now: Timestamp) -> Transaction {
    let Order { scheduler, request, .. } = &taken.waiting.order;
    let expires_at = after(now, engine.hold_for(request));
    let row = |(index, held): (usize, &HeldRoom)| {
        let request_record = request.request_id.as_ref().map(|id| RequestRecord {
            id: id.clone(),
            index: u32::try_from(index).unwrap_or(u32::MAX),
            digest: digest_text(request),
        });
        Change::Allocate(NewAllocation {
            id: held.allocation,
            scheduler: scheduler.clone(),
            room: held.room.clone(),
            number: held.number,
            matches_max: held.matches_max,
            request: request_record,
            created_at: now,
            expires_at,
            metadata: request.metadata.clone(),
        })
    };
    Transaction::new("allocate", taken.rooms.iter().enumerate().map(row).collect())
}

fn not_written(waiting: Waiting, error: &StoreError) -> Outcome {
    let what = format!(
        "{}; the room may or may not have been handed over: ask again with the same requestId, or wait until its hold \
         is over",
        with_sources(error)
    );
    Outcome::Answered { waiting, answer: Err(Error::Unavailable { what, source: None }) }
}

async fn refused(engine: &Engine, taken: Taken, refusal: Refusal) -> Outcome {
    let Taken { waiting, rooms } = taken;
    release(engine, &waiting.order, &rooms).await;
    match refusal {
        Refusal::RequestExists(_) => {
            let answer = match engine.answered_before(&waiting.order).await {
                Ok(Some(answer)) => Ok(answer),
                // It was forgotten in this very moment.
                Ok(None) => return Outcome::TryAgain(waiting),
                Err(error) => Err(error),
            };
            Outcome::Answered { waiting, answer }
        }
        refusal @ (Refusal::SchedulerNotFound(_) | Refusal::SchedulerBeingDeleted(_)) => {
            Outcome::Answered { waiting, answer: Err(refusal.into()) }
        }
        refusal => {
            tracing::debug!(scheduler_name = %waiting.order.scheduler, %refusal, "a claimed room is somebody else's");
            Outcome::TryAgain(waiting)
        }
    }
}

/// Makes the claims firm. If one of a request's rooms was taken away meanwhile, none of them is handed over.
async fn confirm(engine: &Engine, recorded: Vec<Taken>, now: Timestamp) -> Vec<Outcome> {
    let keys: Vec<HoldKey> = recorded
        .iter()
        .flat_map(|taken| taken.rooms.iter().map(|held| key(&taken.waiting.order, held)))
        .collect();
    let stages = engine.ports.table.confirm(&keys).await;
    let mut stages = match stages {
        Ok(stages) => stages.into_iter(),
        Err(error) => {
            let unavailable = |taken: Taken| Outcome::Answered {
                waiting: taken.waiting,
                answer: Err(error.clone().into()),
            };
            return recorded.into_iter().map(unavailable).collect();
        }
    };
    let mut outcomes = Vec::with_capacity(recorded.len());
    for taken in recorded {
        let of_this: Vec<_> = stages.by_ref().take(taken.rooms.len()).collect();
        if of_this.iter().all(|stage| *stage == Some(HoldStage::Firm)) {
            let expires_at = after(now, engine.hold_for(&taken.waiting.order.request));
            let view = |held| AllocationView::of(&taken.waiting.order, held, now, expires_at);
            let answer = taken.rooms.iter().map(view).collect();
            outcomes.push(Outcome::Answered { waiting: taken.waiting, answer: Ok(answer) });
        } else {
            outcomes.push(withdraw(engine, taken, now).await);
        }
    }
    outcomes
}

/// Nobody has heard of these rows, and nobody will: they do not stand in the way of the same request.
async fn withdraw(engine: &Engine, taken: Taken, now: Timestamp) -> Outcome {
    let Taken { waiting, rooms } = taken;
    let end = |held: &HeldRoom| {
        let change = Change::WithdrawAllocation {
            scheduler: waiting.order.scheduler.clone(),
            allocation: held.allocation,
            cause: "the room was taken away before it could be handed over".into(),
            at: now,
        };
        Transaction::new("withdraw allocation", vec![change])
    };
    match engine.ports.store.commit_each(rooms.iter().map(end).collect()).await {
        Ok(_) => {
            release(engine, &waiting.order, &rooms).await;
            Outcome::TryAgain(waiting)
        }
        // Their holds end by themselves.
        Err(error) => not_written(waiting, &error),
    }
}

/// What cannot be released now is settled later.
async fn release(engine: &Engine, order: &Order, rooms: &[HeldRoom]) {
    let keys: Vec<HoldKey> = rooms.iter().map(|held| key(order, held)).collect();
    if let Err(error) = engine.ports.table.release(&keys).await {
        tracing::warn!(scheduler_name = %order.scheduler, error = with_sources(&error), "claimed rooms are released later");
    }
}

fn key(order: &Order, held: &HeldRoom) -> HoldKey {
    HoldKey { scheduler: order.scheduler.clone(), room: held.room.clone(), number: held.number }
}

/// As it is stored: `count=…,wishes=…`.
fn digest_text(request: &AllocationRequest) -> String {
    request.digest().map(|(field, hash)| format!("{field}={hash:016x}")).join(",")
}

impl Engine {
    /// The answer to the same request, if it was given before. Refused if that request was another one, or is over.
    pub(super) async fn answered_before(&self, order: &Order) -> Result<Option<Vec<AllocationView>>> {
        let Some(request_id) = &order.request.request_id else { return Ok(None) };
        let rows = self.ports.store.allocations_of_request(&order.scheduler, request_id).await?;
        let Some(first) = rows.first() else { return Ok(None) };
        let digest = digest_text(&order.request);
        let stored = first.request.as_ref().map_or("", |request| &request.digest);
        if stored != digest {
            let differs: Vec<_> = digest
                .split(',')
                .zip(stored.split(','))
                .filter(|(now, before)| now != before)
                .filter_map(|(now, _)| now.split('=').next())
                .collect();
            return Err(Error::Conflict(format!(
                "requestId: {request_id:?} was used for another request, with other {}; use another id",
                differs.join(", ")
            )));
        }
        if let Some(over) = rows.iter().find(|row| row.state != AllocationState::Held) {
            let AllocationRecord { id, room, state, .. } = over;
            return Err(Error::Conflict(format!(
                "requestId: {request_id:?} was answered with allocation {id} of room {room}, which is {state}; use another id"
            )));
        }
        let keys: Vec<HoldKey> = rows.iter().map(AllocationRecord::key).collect();
        let stages = self.ports.table.confirm(&keys).await?;
        if stages.iter().any(|stage| *stage != Some(HoldStage::Firm)) {
            let what = format!(
                "the room of request {request_id:?} is not in the room table at the moment, or its hold is ending; try again"
            );
            return Err(Error::Unavailable { what, source: None });
        }
        Ok(Some(rows.into_iter().map(AllocationView::from).collect()))
    }
}
