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
use rusqlite::Connection;

use super::columns::{execute, execute_counted, find, from_claim_number, from_time, value};
use super::failure::Result;
use super::schedulers;

/// Matchmakers wait for this one: two statements if all is well. Why it is refused is found out only if it is.
pub(super) fn allocate(connection: &Connection, new: &NewAllocation) -> Result {
    if !take_slot(connection, new)? {
        return Err(why_not_taken(connection, new)?.into());
    }
    if !insert(connection, new)? {
        return Err(why_not_inserted(connection, new)?.into());
    }
    Ok(())
}

/// Spends the number and counts the allocation, if the room can be given away.
fn take_slot(connection: &Connection, new: &NewAllocation) -> Result<bool> {
    let sql = "UPDATE room_claims SET claim_number = ?3, holds = holds + 1
         WHERE room = ?2 AND claim_number < ?3 AND holds < ?4
           AND EXISTS (SELECT 1 FROM rooms
               WHERE id = ?2 AND scheduler = ?1 AND ended_at IS NULL AND purpose = ?5 AND stop_operation IS NULL)
           AND EXISTS (SELECT 1 FROM schedulers WHERE name = ?1 AND state <> ?6)";
    let parameters = (
        new.scheduler.as_str(),
        new.room.as_str(),
        from_claim_number(new.number),
        new.matches_max,
        Purpose::Fleet.as_str(),
        SchedulerState::Deleting.as_str(),
    );
    Ok(execute_counted(connection, sql, parameters)? > 0)
}

fn why_not_taken(connection: &Connection, new: &NewAllocation) -> Result<Refusal> {
    if schedulers::state(connection, &new.scheduler)? == SchedulerState::Deleting {
        return Ok(Refusal::SchedulerBeingDeleted(new.scheduler.clone()));
    }
    let sql = "SELECT EXISTS (SELECT 1 FROM rooms
         WHERE id = ?2 AND scheduler = ?1 AND ended_at IS NULL AND purpose = ?3)";
    let parameters = (new.scheduler.as_str(), new.room.as_str(), Purpose::Fleet.as_str());
    Ok(match value(connection, sql, parameters)? {
        true => Refusal::RoomClaimed(new.room.clone()),
        false => Refusal::RoomNotFound(new.room.clone()),
    })
}

fn insert(connection: &Connection, new: &NewAllocation) -> Result<bool> {
    let NewAllocation {
        id,
        scheduler,
        room,
        number,
        matches_max: _,
        request,
        created_at,
        expires_at,
        metadata,
    } = new;
    let sql = "INSERT INTO allocations (scheduler, id, room, number, request_id, request_index, request_digest, state,
             created_at, expires_at, metadata)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT DO NOTHING";
    let parameters = (
        scheduler.as_str(),
        id.as_bytes(),
        room.as_str(),
        from_claim_number(*number),
        request.as_ref().map(|request| &*request.id),
        request.as_ref().map(|request| request.index),
        request.as_ref().map(|request| request.digest.as_str()),
        AllocationState::Held.as_str(),
        from_time(*created_at),
        from_time(*expires_at),
        metadata.as_deref(),
    );
    Ok(execute_counted(connection, sql, parameters)? > 0)
}

fn why_not_inserted(connection: &Connection, new: &NewAllocation) -> Result<Refusal> {
    Ok(match &new.request {
        Some(request) if !exists(connection, &new.scheduler, new.id)? => {
            Refusal::RequestExists(request.id.clone())
        }
        Some(_) | None => Refusal::AllocationExists(new.id),
    })
}

pub(super) fn end(
    connection: &Connection,
    scheduler: &SchedulerName,
    id: AllocationId,
    state: AllocationState,
    cause: &str,
    at: Timestamp,
) -> Result {
    let sql = "UPDATE allocations SET state = ?3, cause = ?4, ended_at = ?5
         WHERE scheduler = ?1 AND id = ?2 AND ended_at IS NULL RETURNING room";
    let parameters = (scheduler.as_str(), id.as_bytes(), state.as_str(), cause, from_time(at));
    match find::<String>(connection, sql, parameters)? {
        Some(room) => free_slot(connection, &room),
        None => Err(why_not_ended(connection, scheduler, id)?.into()),
    }
}

pub(super) fn withdraw(
    connection: &Connection,
    scheduler: &SchedulerName,
    id: AllocationId,
    cause: &str,
    at: Timestamp,
) -> Result {
    let sql = "UPDATE allocations SET state = ?3, cause = ?4, ended_at = ?5, request_id = NULL, request_index = NULL,
             request_digest = NULL
         WHERE scheduler = ?1 AND id = ?2 AND ended_at IS NULL RETURNING room";
    let lost = AllocationState::Lost.as_str();
    let parameters = (scheduler.as_str(), id.as_bytes(), lost, cause, from_time(at));
    match find::<String>(connection, sql, parameters)? {
        Some(room) => free_slot(connection, &room),
        None => detach_lost(connection, scheduler, id),
    }
}

/// From its request. It ended with its room, before anybody was told of it.
fn detach_lost(connection: &Connection, scheduler: &SchedulerName, id: AllocationId) -> Result {
    let sql = "UPDATE allocations SET request_id = NULL, request_index = NULL, request_digest = NULL
         WHERE scheduler = ?1 AND id = ?2 AND state = ?3";
    let lost = AllocationState::Lost.as_str();
    execute(connection, sql, (scheduler.as_str(), id.as_bytes(), lost))
}

fn free_slot(connection: &Connection, room: &str) -> Result {
    execute(connection, "UPDATE room_claims SET holds = holds - 1 WHERE room = ?1", [room])
}

fn why_not_ended(connection: &Connection, scheduler: &SchedulerName, id: AllocationId) -> Result<Refusal> {
    let sql = "SELECT state FROM allocations WHERE scheduler = ?1 AND id = ?2";
    let Some(word) = find::<String>(connection, sql, (scheduler.as_str(), id.as_bytes()))? else {
        return Ok(Refusal::AllocationNotFound(id));
    };
    let is = AllocationState::parse(&word).ok_or_else(|| unknown_value("state", word))?;
    Ok(Refusal::AllocationOver { allocation: id, is })
}

/// Ends the open allocations of a room that ends or is taken away. `holds`: how many there are, as counted with the room.
pub(super) fn end_as_lost(
    connection: &Connection,
    scheduler: &SchedulerName,
    room: &RoomId,
    holds: u32,
    cause: &str,
    at: Timestamp,
) -> Result {
    // Most rooms that go have none, and the rows of a room are all that it ever had.
    if holds == 0 {
        return Ok(());
    }
    let sql = "UPDATE allocations INDEXED BY allocations_by_room SET state = ?3, cause = ?4, ended_at = ?5
         WHERE scheduler = ?1 AND room = ?2 AND ended_at IS NULL";
    let lost = AllocationState::Lost.as_str();
    execute(connection, sql, (scheduler.as_str(), room.as_str(), lost, cause, from_time(at)))?;
    execute(connection, "UPDATE room_claims SET holds = 0 WHERE room = ?1", [room.as_str()])
}

pub(super) fn spend(
    connection: &Connection,
    scheduler: &SchedulerName,
    room: &RoomId,
    number: ClaimNumber,
    allocation: AllocationId,
) -> Result {
    if exists(connection, scheduler, allocation)? {
        return Err(Refusal::AllocationExists(allocation).into());
    }
    let sql = "UPDATE room_claims SET claim_number = ?3
         WHERE room = ?2 AND claim_number < ?3 AND EXISTS (SELECT 1 FROM rooms WHERE id = ?2 AND scheduler = ?1)";
    execute(connection, sql, (scheduler.as_str(), room.as_str(), from_claim_number(number)))
}

fn exists(connection: &Connection, scheduler: &SchedulerName, id: AllocationId) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM allocations WHERE scheduler = ?1 AND id = ?2)";
    value(connection, sql, (scheduler.as_str(), id.as_bytes()))
}

pub(super) fn forget(connection: &Connection, forget: &ForgetAllocations) -> Result {
    let ForgetAllocations { scheduler, ended_before, requested_ended_before, keep_max, allocations_max } =
        forget;
    let old = (from_time(*ended_before), from_time(*requested_ended_before));
    let dropped = forget_ended(connection, scheduler, old, (*allocations_max).into())?;
    let left = i64::from(*allocations_max) - dropped;
    if left == 0 {
        return Ok(());
    }
    let surplus = value::<i64>(connection, COUNT_ENDED, [scheduler.as_str()])? - i64::from(*keep_max);
    if surplus > 0 {
        forget_ended(connection, scheduler, (i64::MAX, i64::MAX), surplus.min(left))?;
    }
    Ok(())
}

/// How many there are to forget. Of old ones, no more are counted than show that there are too many for one time.
pub(super) fn to_forget(connection: &Connection, forget: &ForgetAllocations) -> Result<u32> {
    let ForgetAllocations { scheduler, ended_before, requested_ended_before, keep_max, allocations_max } =
        forget;
    let sql = format!("SELECT count(*) FROM ({OLDEST_ENDS})");
    let (before, requested_before) = (from_time(*ended_before), from_time(*requested_ended_before));
    let parameters = (scheduler.as_str(), before, requested_before, i64::from(*allocations_max) + 1);
    let old: i64 = value(connection, &sql, parameters)?;
    if old > i64::from(*allocations_max) {
        return Ok(allocations_max.saturating_add(1));
    }
    let ended: i64 = value(connection, COUNT_ENDED, [scheduler.as_str()])?;
    let surplus = (ended - old - i64::from(*keep_max)).max(0);
    Ok(u32::try_from(old + surplus).unwrap_or(u32::MAX))
}

/// Each part along its index.
pub(super) const COUNT_ENDED: &str = "SELECT
    (SELECT count(*) FROM allocations WHERE scheduler = ?1 AND ended_at IS NOT NULL AND request_index IS NULL) +
    (SELECT count(*) FROM allocations WHERE scheduler = ?1 AND ended_at IS NOT NULL AND request_index IS NOT NULL)";

/// Both parts are read in the order of their indexes, and no further than needed.
pub(super) const OLDEST_ENDS: &str = "SELECT ended_at, id FROM allocations
    WHERE scheduler = ?1 AND ended_at < ?2 AND ended_at IS NOT NULL AND request_index IS NULL
    UNION ALL
    SELECT ended_at, id FROM allocations
    WHERE scheduler = ?1 AND ended_at < ?3 AND ended_at IS NOT NULL AND request_index IS NOT NULL
    ORDER BY 1, 2 LIMIT ?4";

/// Drops at most `rows_max` of those that ended before a time, the earliest ends first: the first time is for those
/// without a request id, the second one for the others. How many it dropped.
fn forget_ended(
    connection: &Connection,
    scheduler: &SchedulerName,
    (before, requested_before): (i64, i64),
    rows_max: i64,
) -> Result<i64> {
    let sql =
        format!("DELETE FROM allocations WHERE scheduler = ?1 AND id IN (SELECT id FROM ({OLDEST_ENDS}))");
    let parameters = (scheduler.as_str(), before, requested_before, rows_max);
    let dropped = execute_counted(connection, &sql, parameters)?;
    Ok(i64::try_from(dropped).unwrap_or(i64::MAX))
}
