//! Allocations: changes.
//!
//! How many of a room's allocations are open is kept with the room, in `room_claims`, together with the last number that was
//! spent on it. So no other allocation has to be read to decide whether a room may be given away.

use maestro_core::allocation::{AllocationId, AllocationState, ClaimNumber};
use maestro_core::room::{Purpose, RoomId};
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::Timestamp;
use maestro_engine::documents::unknown_value;
use maestro_engine::ports::store::{ForgetAllocations, NewAllocation, Refusal, SchedulerState};

use crate::failure::Result;
use crate::schedulers;
use crate::session::{Session, Statement};
use crate::value::values;

/// Spends the number and counts the allocation, if the room can be given away, and writes the row, if it is new.
/// Matchmakers wait for this one: one statement if all is well. Why it is refused is found out only if it is.
pub(crate) fn allocate(new: &NewAllocation) -> Statement<'_> {
    let NewAllocation { id, scheduler, room, number, matches_max, request, created_at, expires_at, metadata } =
        new;
    let sql = "WITH taken AS (
            UPDATE room_claims SET claim_number = $4, holds = holds + 1
            WHERE room = $3 AND claim_number < $4 AND holds < $5
              AND EXISTS (SELECT 1 FROM rooms
                  WHERE id = $3 AND scheduler = $1 AND ended_at IS NULL AND purpose = $6 AND stop_operation IS NULL)
              AND EXISTS (SELECT 1 FROM schedulers WHERE name = $1 AND state <> $7)
            RETURNING 1),
        given AS (
            INSERT INTO allocations (scheduler, id, room, number, request_id, request_index, request_digest, state,
                created_at, expires_at, metadata)
            SELECT $1, $2, $3, $4, $8, $9, $10, $11, $12, $13, $14 FROM taken
            ON CONFLICT DO NOTHING RETURNING 1)
        SELECT EXISTS (SELECT 1 FROM given) AS done, EXISTS (SELECT 1 FROM taken) AS taken";
    Statement::new(
        sql,
        values![
            scheduler,
            *id,
            room,
            *number,
            *matches_max,
            Purpose::Fleet.as_str(),
            SchedulerState::Deleting.as_str(),
            request.as_ref().map(|request| &*request.id),
            request.as_ref().map(|request| request.index),
            request.as_ref().map(|request| request.digest.as_str()),
            AllocationState::Held.as_str(),
            *created_at,
            *expires_at,
            metadata.as_deref(),
        ],
    )
}

/// `taken`: the room could be given away, and the row could not be written.
pub(crate) async fn why_not_allocated(
    session: &Session,
    new: &NewAllocation,
    taken: bool,
) -> Result<Refusal> {
    if taken {
        return why_not_inserted(session, new).await;
    }
    if schedulers::state(session, &new.scheduler).await? == SchedulerState::Deleting {
        return Ok(Refusal::SchedulerBeingDeleted(new.scheduler.clone()));
    }
    let sql = "SELECT EXISTS (SELECT 1 FROM rooms
         WHERE id = $2 AND scheduler = $1 AND ended_at IS NULL AND purpose = $3)";
    let is_there = values![&new.scheduler, &new.room, Purpose::Fleet.as_str()];
    Ok(match session.value(sql, is_there).await? {
        true => Refusal::RoomClaimed(new.room.clone()),
        false => Refusal::RoomNotFound(new.room.clone()),
    })
}

async fn why_not_inserted(session: &Session, new: &NewAllocation) -> Result<Refusal> {
    let sql = "SELECT EXISTS (SELECT 1 FROM allocations WHERE scheduler = $1 AND id = $2)";
    let is_there: bool = session.value(sql, values![&new.scheduler, new.id]).await?;
    Ok(match &new.request {
        Some(request) if !is_there => Refusal::RequestExists(request.id.clone()),
        Some(_) | None => Refusal::AllocationExists(new.id),
    })
}

pub(crate) fn end<'a>(
    scheduler: &'a SchedulerName,
    id: AllocationId,
    state: AllocationState,
    cause: &'a str,
    at: Timestamp,
) -> Statement<'a> {
    let sql = "WITH ended AS (
            UPDATE allocations SET state = $3, cause = $4, ended_at = $5
            WHERE scheduler = $1 AND id = $2 AND ended_at IS NULL RETURNING room),
        freed AS (UPDATE room_claims SET holds = holds - 1 WHERE room IN (SELECT room FROM ended))
        SELECT EXISTS (SELECT 1 FROM ended) AS done";
    Statement::new(sql, values![scheduler, id, state.as_str(), cause, at])
}

pub(crate) async fn why_not_ended(
    session: &Session,
    scheduler: &SchedulerName,
    id: AllocationId,
) -> Result<Refusal> {
    let sql = "SELECT state FROM allocations WHERE scheduler = $1 AND id = $2";
    let Some(word) = session.find::<String>(sql, values![scheduler, id]).await? else {
        return Ok(Refusal::AllocationNotFound(id));
    };
    let is = AllocationState::parse(&word).ok_or_else(|| unknown_value("state", word))?;
    Ok(Refusal::AllocationOver { allocation: id, is })
}

/// One that was lost before, with its room, is detached from its request too: nobody was told of it.
pub(crate) fn withdraw<'a>(
    scheduler: &'a SchedulerName,
    id: AllocationId,
    cause: &'a str,
    at: Timestamp,
) -> Statement<'a> {
    let sql = "WITH ended AS (
            UPDATE allocations SET state = $3, cause = $4, ended_at = $5, request_id = NULL, request_index = NULL,
                request_digest = NULL
            WHERE scheduler = $1 AND id = $2 AND ended_at IS NULL RETURNING room),
        freed AS (UPDATE room_claims SET holds = holds - 1 WHERE room IN (SELECT room FROM ended)),
        detached AS (
            UPDATE allocations SET request_id = NULL, request_index = NULL, request_digest = NULL
            WHERE scheduler = $1 AND id = $2 AND state = $3)
        SELECT TRUE AS done";
    Statement::new(sql, values![scheduler, id, AllocationState::Lost.as_str(), cause, at])
}

pub(crate) fn spend<'a>(
    scheduler: &'a SchedulerName,
    room: &'a RoomId,
    number: ClaimNumber,
    allocation: AllocationId,
) -> Statement<'a> {
    let sql = "WITH given AS (SELECT 1 FROM allocations WHERE scheduler = $1 AND id = $4),
        spent AS (
            UPDATE room_claims SET claim_number = $3
            WHERE room = $2 AND claim_number < $3 AND NOT EXISTS (SELECT 1 FROM given)
              AND EXISTS (SELECT 1 FROM rooms WHERE id = $2 AND scheduler = $1))
        SELECT NOT EXISTS (SELECT 1 FROM given) AS done";
    Statement::new(sql, values![scheduler, room, number, allocation])
}

pub(crate) async fn forget(session: &Session, forget: &ForgetAllocations) -> Result {
    let ForgetAllocations { scheduler, ended_before, requested_ended_before, keep_max, allocations_max } =
        forget;
    let old = (ended_before.as_microsecond(), requested_ended_before.as_microsecond());
    let dropped = forget_ended(session, scheduler, old, (*allocations_max).into()).await?;
    let left = i64::from(*allocations_max) - dropped;
    if left == 0 {
        return Ok(());
    }
    let surplus = session.value::<i64>(COUNT_ENDED, values![scheduler]).await? - i64::from(*keep_max);
    if surplus > 0 {
        forget_ended(session, scheduler, (i64::MAX, i64::MAX), surplus.min(left)).await?;
    }
    Ok(())
}

/// How many there are to forget. Of old ones, no more are counted than show that there are too many for one time.
pub(crate) async fn to_forget(session: &Session, forget: &ForgetAllocations) -> Result<u32> {
    let ForgetAllocations { scheduler, ended_before, requested_ended_before, keep_max, allocations_max } =
        forget;
    let sql = format!("SELECT count(*) FROM ({OLDEST_ENDS}) AS old");
    let limit = i64::from(*allocations_max) + 1;
    let old: i64 =
        session.value(sql, values![scheduler, *ended_before, *requested_ended_before, limit]).await?;
    if old > i64::from(*allocations_max) {
        return Ok(allocations_max.saturating_add(1));
    }
    let ended: i64 = session.value(COUNT_ENDED, values![scheduler]).await?;
    let surplus = (ended - old - i64::from(*keep_max)).max(0);
    Ok(u32::try_from(old + surplus).unwrap_or(u32::MAX))
}

/// Each part along its index.
const COUNT_ENDED: &str = "SELECT
    (SELECT count(*) FROM allocations WHERE scheduler = $1 AND ended_at IS NOT NULL AND request_index IS NULL) +
    (SELECT count(*) FROM allocations WHERE scheduler = $1 AND ended_at IS NOT NULL AND request_index IS NOT NULL)";

/// Both parts are read in the order of their indexes, and no further than needed.
const OLDEST_ENDS: &str = "(SELECT ended_at, id FROM allocations
        WHERE scheduler = $1 AND ended_at < $2 AND ended_at IS NOT NULL AND request_index IS NULL
        ORDER BY ended_at, id LIMIT $4)
    UNION ALL
    (SELECT ended_at, id FROM allocations
        WHERE scheduler = $1 AND ended_at < $3 AND ended_at IS NOT NULL AND request_index IS NOT NULL
        ORDER BY ended_at, id LIMIT $4)
    ORDER BY 1, 2 LIMIT $4";

/// Drops at most `rows_max` of those that ended before a time, the earliest ends first: the first time is for those
/// without a request id, the second one for the others. How many it dropped.
async fn forget_ended(
    session: &Session,
    scheduler: &SchedulerName,
    (before, requested_before): (i64, i64),
    rows_max: i64,
) -> Result<i64> {
    let sql = format!(
        "DELETE FROM allocations WHERE scheduler = $1 AND id IN (SELECT id FROM ({OLDEST_ENDS}) AS old)"
    );
    let answer = session.ask(sql, values![scheduler, before, requested_before, rows_max]).await?;
    Ok(i64::try_from(answer.affected).unwrap_or(i64::MAX))
}
