//! Recording who got which room: first the rows are written, then the claims are made firm, and only then is anybody
//! answered.

use maestro_core::allocation::{AllocationRequest, AllocationState, HoldStage};
use maestro_core::time::{Timestamp, after};

use crate::ports::room_table::{HeldRoom, HoldKey};
use crate::ports::store::{
    AllocationRecord, Change, NewAllocation, Refusal, RequestRecord, StoreError, Transaction,
};
use crate::{Engine, Error, Result, with_sources};

use super::AllocationView;
use super::queue::WaitingRequest;

const MAY_BE_RECORDED: &str = "the room may or may not have been handed over: ask again with the same requestId, or wait until \
                               its hold is over";

/// A request, and the rooms that are claimed for it.
pub(super) struct ClaimedRequest {
    pub(super) waiting: WaitingRequest,
    pub(super) rooms: Vec<HeldRoom>,
}

pub(super) enum RecordedRequest {
    Answered {
        waiting: WaitingRequest,
        answer: Result<Vec<AllocationView>>,
    },
    /// Its rooms were taken away meanwhile.
    TryAgain(WaitingRequest),
}

/// All of them in one commit, each refused or accepted by itself.
pub(super) async fn record(
    engine: &Engine,
    claimed: Vec<ClaimedRequest>,
    now: Timestamp,
) -> Vec<RecordedRequest> {
    if claimed.is_empty() {
        return Vec::new();
    }
    let transactions = claimed.iter().map(|one| transaction(engine, one, now)).collect();
    let outcomes = match engine.commit_each(transactions).await {
        Ok(outcomes) => outcomes,
        Err(error) => {
            tracing::error!(error = with_sources(&error), "allocations could not be written");
            return not_recorded(engine, claimed, &error).await;
        }
    };
    let mut recorded = Vec::new();
    let mut answers = Vec::new();
    for (one, outcome) in claimed.into_iter().zip(outcomes) {
        match outcome {
            Ok(()) => recorded.push(one),
            Err(refusal) => answers.push(refused(engine, one, refusal).await),
        }
    }
    answers.extend(confirm(engine, recorded, now).await);
    answers
}

/// To the microsecond, as the store gives it back: the same request again gets the same answer.
pub(super) fn as_stored(at: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(at.as_microsecond()).unwrap_or(at)
}

fn transaction(engine: &Engine, claimed: &ClaimedRequest, now: Timestamp) -> Transaction {
    let WaitingRequest { scheduler, request, .. } = &claimed.waiting;
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
    Transaction::new("allocate", scheduler, claimed.rooms.iter().enumerate().map(row).collect())
}

/// If the rows may be there, the claims stay provisional, and are settled later.
async fn not_recorded(
    engine: &Engine,
    claimed: Vec<ClaimedRequest>,
    error: &StoreError,
) -> Vec<RecordedRequest> {
    let is_unknown = matches!(error, StoreError::Unknown { .. });
    let mut answers = Vec::with_capacity(claimed.len());
    for ClaimedRequest { waiting, rooms } in claimed {
        answers.push(if is_unknown {
            unavailable(waiting, error, MAY_BE_RECORDED)
        } else {
            release(engine, &waiting, &rooms).await;
            unavailable(waiting, error, "no room was handed over: ask again")
        });
    }
    answers
}

fn unavailable(waiting: WaitingRequest, error: &StoreError, advice: &str) -> RecordedRequest {
    let what = format!("{}; {advice}", with_sources(error));
    RecordedRequest::Answered { waiting, answer: Err(Error::Unavailable { what, source: None }) }
}

async fn refused(engine: &Engine, claimed: ClaimedRequest, refusal: Refusal) -> RecordedRequest {
    let ClaimedRequest { waiting, rooms } = claimed;
    release(engine, &waiting, &rooms).await;
    match refusal {
        Refusal::RequestExists(_) => {
            let answer = match engine.answered_before(&waiting).await {
                Ok(Some(answer)) => Ok(answer),
                // Its row was forgotten in this very moment.
                Ok(None) => return RecordedRequest::TryAgain(waiting),
                Err(error) => Err(error),
            };
            RecordedRequest::Answered { waiting, answer }
        }
        refusal @ (Refusal::SchedulerNotFound(_) | Refusal::SchedulerBeingDeleted(_)) => {
            RecordedRequest::Answered { waiting, answer: Err(refusal.into()) }
        }
        refusal => {
            tracing::debug!(scheduler_name = %waiting.scheduler, %refusal, "a claimed room was taken away");
            RecordedRequest::TryAgain(waiting)
        }
    }
}

/// Makes the claims firm. If one of a request's rooms was taken away meanwhile, none of them is handed over.
async fn confirm(engine: &Engine, recorded: Vec<ClaimedRequest>, now: Timestamp) -> Vec<RecordedRequest> {
    let keys: Vec<HoldKey> =
        recorded.iter().flat_map(|one| one.rooms.iter().map(|held| key(&one.waiting, held))).collect();
    let stages = engine.ports.table.confirm(&keys).await;
    let mut stages = match stages {
        Ok(stages) => stages.into_iter(),
        Err(error) => {
            let unavailable = |one: ClaimedRequest| RecordedRequest::Answered {
                waiting: one.waiting,
                answer: Err(error.clone().into()),
            };
            return recorded.into_iter().map(unavailable).collect();
        }
    };
    let mut outcomes = Vec::with_capacity(recorded.len());
    for one in recorded {
        let of_this: Vec<_> = stages.by_ref().take(one.rooms.len()).collect();
        if of_this.iter().all(|stage| *stage == Some(HoldStage::Firm)) {
            let expires_at = after(now, engine.hold_for(&one.waiting.request));
            let view = |held| AllocationView::of(&one.waiting, held, now, expires_at);
            let answer = one.rooms.iter().map(view).collect();
            // A plan and a panic may depend on it, and no ping tells of it.
            engine.ports.wake.room_changed(one.waiting.scheduler.as_str());
            engine.panics.occupied(one.waiting.scheduler.as_str());
            outcomes.push(RecordedRequest::Answered { waiting: one.waiting, answer: Ok(answer) });
        } else {
            outcomes.push(withdraw(engine, one, now).await);
        }
    }
    outcomes
}

/// Ends rows that no caller has seen. They are not taken for an answer to the same request.
async fn withdraw(engine: &Engine, claimed: ClaimedRequest, now: Timestamp) -> RecordedRequest {
    let ClaimedRequest { waiting, rooms } = claimed;
    let end = |held: &HeldRoom| {
        let change = Change::WithdrawAllocation {
            scheduler: waiting.scheduler.clone(),
            allocation: held.allocation,
            cause: "the room was taken away before it could be handed over".into(),
            at: now,
        };
        Transaction::new("withdraw allocation", &waiting.scheduler, vec![change])
    };
    match engine.commit_each(rooms.iter().map(end).collect()).await {
        Ok(_) => {
            release(engine, &waiting, &rooms).await;
            RecordedRequest::TryAgain(waiting)
        }
        // Their holds end by themselves.
        Err(error) => unavailable(waiting, &error, MAY_BE_RECORDED),
    }
}

/// What cannot be released now is settled later.
async fn release(engine: &Engine, waiting: &WaitingRequest, rooms: &[HeldRoom]) {
    let keys: Vec<HoldKey> = rooms.iter().map(|held| key(waiting, held)).collect();
    if let Err(error) = engine.ports.table.release(&keys).await {
        tracing::warn!(scheduler_name = %waiting.scheduler, error = with_sources(&error), "claimed rooms could not be released; they are later");
    }
}

fn key(waiting: &WaitingRequest, held: &HeldRoom) -> HoldKey {
    HoldKey { scheduler: waiting.scheduler.clone(), room: held.room.clone(), number: held.number }
}

/// As it is stored: `count=…,wishes=…`.
fn digest_text(request: &AllocationRequest) -> String {
    request.digest().map(|(field, hash)| format!("{field}={hash:016x}")).join(",")
}

impl Engine {
    /// The answer to the same request, if it was given before. Refused if that request was another one, or is over.
    pub(super) async fn answered_before(
        &self,
        waiting: &WaitingRequest,
    ) -> Result<Option<Vec<AllocationView>>> {
        let Some(request_id) = &waiting.request.request_id else { return Ok(None) };
        let rows = self.ports.store.allocations_of_request(&waiting.scheduler, request_id).await?;
        let Some(first) = rows.first() else { return Ok(None) };
        let digest = digest_text(&waiting.request);
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
