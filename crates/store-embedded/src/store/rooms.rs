//! The room registry: changes, queries, and the documents in its rows.

use maestro_core::operation::{OperationId, RemovalReason};
use maestro_core::room::{EndCause, Purpose, Region, RoomId};
use maestro_core::scheduler::{SchedulerName, Version};
use maestro_core::time::Timestamp;
use maestro_engine::documents::{self, Unreadable};
use maestro_engine::ports::runtime::Handle;
use maestro_engine::ports::store::{
    ClaimedSince, Ended, EndedRoom, Intent, NewRoomRecord, Refusal, RoomCount, RoomRecord, StopIntent,
};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Params};
use serde_json::json;

use super::columns::{
    Columns, execute, execute_counted, find, from_claim_number, from_id, from_time, from_token, insert,
    or_unreadable, read_rows, to_claim_number, to_time, to_token,
};
use super::failure::{Failure, Result};
use super::{allocations, schedulers};

pub(super) fn intend(connection: &Connection, new: &NewRoomRecord) -> Result {
    schedulers::require(connection, &new.scheduler)?;
    let inserted = insert(
        connection,
        "INSERT OR IGNORE INTO rooms",
        &[
            ("id", &new.id.as_str()),
            ("scheduler", &new.scheduler.as_str()),
            ("version", &new.version.to_string()),
            ("region", &new.region.as_str()),
            ("purpose", &new.purpose.as_str()),
            ("ports", &documents::room_ports_to_json(&new.ports)),
            ("operation", &from_id(new.operation)),
            ("token", &from_token(new.token)),
            ("created_at", &from_time(new.created_at)),
        ],
    )?;
    if inserted == 0 {
        return Err(Refusal::RoomExists(new.id.clone()).into());
    }
    execute(connection, "INSERT INTO room_claims (room) VALUES (?1)", [new.id.as_str()])?;
    let mut find = connection.prepare_cached("SELECT 1 FROM ports_taken WHERE region = ?1 AND port = ?2")?;
    let mut take = connection.prepare_cached(
        "INSERT INTO ports_taken (region, port, room) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
    )?;
    for port in new.ports.iter().map(|port| port.host_port) {
        for region in &new.regions_beside {
            if find.exists((region.as_str(), port))? {
                let region = region.clone();
                return Err(Refusal::PortTaken { region, port }.into());
            }
        }
        if take.execute((&*new.region.0, port, new.id.as_str()))? == 0 {
            let region = new.region.clone();
            return Err(Refusal::PortTaken { region, port }.into());
        }
    }
    Ok(())
}

pub(super) fn started(
    connection: &Connection,
    scheduler: &SchedulerName,
    room: &RoomId,
    handle: &Handle,
) -> Result {
    let handle = json!(handle).to_string();
    let sql = "UPDATE rooms SET handle = ?3 WHERE id = ?2 AND scheduler = ?1";
    let changed = execute_counted(connection, sql, (scheduler.as_str(), room.as_str(), handle))?;
    match changed {
        0 => Err(Refusal::RoomNotFound(room.clone()).into()),
        _ => Ok(()),
    }
}

pub(super) fn intend_stop(
    connection: &Connection,
    scheduler: &SchedulerName,
    room: &RoomId,
    stop: &StopIntent,
    unless: ClaimedSince,
) -> Result {
    let StopIntent { operation, cause, matches, reason, at } = stop;
    let ClaimedSince { number, takes_held } = unless;
    let sql = "UPDATE rooms
         SET stop_operation = ?3, stop_cause = ?4, stop_matches = ?5, stop_reason = ?6, stop_at = ?7
         WHERE id = ?2 AND scheduler = ?1 AND ended_at IS NULL AND stop_operation IS NULL
           AND EXISTS (SELECT 1 FROM room_claims WHERE room = ?2 AND claim_number = ?8 AND (holds = 0 OR ?9))
         RETURNING (SELECT holds FROM room_claims WHERE room = ?2)";
    let holds = find(
        connection,
        sql,
        (
            scheduler.as_str(),
            room.as_str(),
            from_id(*operation),
            cause.map(RemovalReason::as_str),
            matches,
            reason,
            from_time(*at),
            from_claim_number(number),
            takes_held,
        ),
    )?;
    match holds {
        Some(holds) => allocations::end_as_lost(connection, scheduler, room, holds, reason, *at),
        None => match is_to_stop(connection, scheduler, room)? {
            // Only the first one counts: who asks again changes nothing.
            Some(true) => Ok(()),
            Some(false) => Err(Refusal::RoomClaimed(room.clone()).into()),
            None => Err(Refusal::RoomNotFound(room.clone()).into()),
        },
    }
}

pub(super) fn is_live(connection: &Connection, scheduler: &SchedulerName, room: &RoomId) -> Result<bool> {
    Ok(is_to_stop(connection, scheduler, room)?.is_some())
}

/// `None`: it does not live.
fn is_to_stop(connection: &Connection, scheduler: &SchedulerName, room: &RoomId) -> Result<Option<bool>> {
    let sql =
        "SELECT stop_operation IS NOT NULL FROM rooms WHERE id = ?2 AND scheduler = ?1 AND ended_at IS NULL";
    find(connection, sql, (scheduler.as_str(), room.as_str()))
}

pub(super) fn end(
    connection: &Connection,
    scheduler: &SchedulerName,
    room: &RoomId,
    instance: Option<&Handle>,
    ended: &Ended,
) -> Result {
    if let Some(instance) = instance
        && is_other_instance(connection, scheduler, room, instance)?
    {
        return Err(Refusal::OtherInstance(room.clone()).into());
    }
    let Ended { at, how, cause, was_ready } = ended;
    let sql = "UPDATE rooms SET ended_at = ?3, ended_how = ?4, ended_cause = ?5, was_ready = ?6
         WHERE id = ?2 AND scheduler = ?1 AND ended_at IS NULL
         RETURNING (SELECT holds FROM room_claims WHERE room = ?2)";
    let holds = find(
        connection,
        sql,
        (scheduler.as_str(), room.as_str(), from_time(*at), how, cause.as_str(), was_ready),
    )?;
    let Some(holds) = holds else { return Ok(()) };
    allocations::end_as_lost(connection, scheduler, room, holds, how, *at)?;
    execute(connection, "DELETE FROM ports_taken WHERE room = ?1", [room.as_str()])
}

/// Whether the room lives as another one. Before its start is written down, nobody can tell.
fn is_other_instance(
    connection: &Connection,
    scheduler: &SchedulerName,
    room: &RoomId,
    instance: &Handle,
) -> Result<bool> {
    let sql = "SELECT handle FROM rooms
         WHERE id = ?1 AND scheduler = ?2 AND ended_at IS NULL AND handle IS NOT NULL";
    let handles = read_rows(connection, sql, (room.as_str(), scheduler.as_str()), |columns| {
        columns.parsed("handle", |text| serde_json::from_str::<Handle>(text).ok())
    })?;
    Ok(handles.iter().any(|handle| !handle.is_of_same_instance(instance)))
}

pub(super) fn forget(connection: &Connection, scheduler: &SchedulerName, rooms: &[RoomId]) -> Result {
    let mut statement = connection
        .prepare_cached("DELETE FROM rooms WHERE id = ?2 AND scheduler = ?1 AND ended_at IS NOT NULL")?;
    for room in rooms {
        statement.execute((scheduler.as_str(), room.as_str()))?;
    }
    Ok(())
}

/// `CROSS`: the rooms first, along an index, then what belongs to each.
const SELECT: &str =
    "SELECT id, scheduler, version, region, purpose, ports, handle, stop_operation, stop_cause, stop_matches, stop_reason,
    stop_at, operation, token, created_at, ended_at, ended_how, ended_cause, was_ready, claim_number, holds
    FROM rooms CROSS JOIN room_claims ON room = id";

pub(super) fn one(
    connection: &Connection,
    scheduler: &SchedulerName,
    id: &RoomId,
) -> Result<Option<RoomRecord>> {
    let sql = format!("{SELECT} WHERE id = ?1 AND scheduler = ?2");
    Ok(select(connection, &sql, (id.as_str(), scheduler.as_str()))?.pop())
}

pub(super) fn live(connection: &Connection, scheduler: &SchedulerName) -> Result<Vec<RoomRecord>> {
    let sql = format!("{SELECT} WHERE scheduler = ?1 AND ended_at IS NULL ORDER BY id");
    select(connection, &sql, [scheduler.as_str()])
}

pub(super) fn leaving(
    connection: &Connection,
    scheduler: &SchedulerName,
    operation: OperationId,
) -> Result<Vec<RoomRecord>> {
    let sql = format!(
        "{SELECT} WHERE scheduler = ?1 AND stop_operation = ?2 AND ended_at IS NULL
         AND stop_operation IS NOT NULL ORDER BY id"
    );
    select(connection, &sql, (scheduler.as_str(), from_id(operation)))
}

pub(super) fn all_live(connection: &Connection) -> Result<Vec<RoomRecord>> {
    let sql = format!("{SELECT} WHERE ended_at IS NULL ORDER BY scheduler, id");
    let mut beside = None;
    let rows = read_rows(connection, &sql, [], |columns| or_unreadable(room(columns, &mut beside)))?;
    // Its scheduler's own reads fail: nobody touches the room. The others must be found all the same.
    let warn = |why: &Unreadable| tracing::warn!(%why, "a stored room is left alone");
    Ok(rows.into_iter().filter_map(|read| read.inspect_err(warn).ok()).collect())
}

pub(super) fn made_by(
    connection: &Connection,
    scheduler: &SchedulerName,
    operation: OperationId,
) -> Result<Vec<RoomRecord>> {
    let sql = format!("{SELECT} WHERE scheduler = ?1 AND operation = ?2 ORDER BY id");
    select(connection, &sql, (scheduler.as_str(), from_id(operation)))
}

/// How many rooms of the fleet there are, by version and region.
pub(super) fn counts(connection: &Connection, scheduler: &SchedulerName) -> Result<Vec<RoomCount>> {
    let sql = "SELECT version, region, count(*) AS rooms FROM rooms
         WHERE scheduler = ?1 AND ended_at IS NULL AND purpose = ?2 GROUP BY version, region ORDER BY version, region";
    read_rows(connection, sql, (scheduler.as_str(), Purpose::Fleet.as_str()), |columns| {
        Ok(RoomCount {
            version: columns.version("version")?,
            region: columns.parsed("region", |text| Some(Region(text.into())))?,
            rooms: columns.get("rooms")?,
        })
    })
}

pub(super) fn ended(
    connection: &Connection,
    scheduler: &SchedulerName,
    rooms_max: usize,
) -> Result<Vec<RoomRecord>> {
    let sql = format!(
        "{SELECT} WHERE scheduler = ?1 AND ended_at IS NOT NULL ORDER BY ended_at DESC, id DESC LIMIT ?2"
    );
    select(connection, &sql, (scheduler.as_str(), limit(rooms_max)))
}

pub(super) fn ended_before(
    connection: &Connection,
    scheduler: &SchedulerName,
    before: Timestamp,
    after: Option<&EndedRoom>,
    rooms_max: usize,
) -> Result<Vec<EndedRoom>> {
    let sql = "SELECT id, region, ended_at FROM rooms
         WHERE scheduler = ?1 AND ended_at < ?2 AND (ended_at, id) > (?3, ?4)
         ORDER BY ended_at, id LIMIT ?5";
    let (after_at, after_id) = after.map_or((i64::MIN, ""), |room| (from_time(room.at), room.id.as_str()));
    let parameters = (scheduler.as_str(), from_time(before), after_at, after_id, limit(rooms_max));
    read_rows(connection, sql, parameters, |columns| {
        Ok(EndedRoom {
            id: columns.parsed("id", |id| Some(RoomId::new(id)))?,
            region: columns.parsed("region", |region| Some(Region(region.into())))?,
            at: columns.time("ended_at")?,
        })
    })
}

pub(super) fn ports_in_use(connection: &Connection, region: &Region) -> Result<Vec<u16>> {
    let sql = "SELECT port FROM ports_taken WHERE region = ?1 ORDER BY port";
    read_rows(connection, sql, [region.as_str()], |columns| columns.get("port"))
}

fn select(connection: &Connection, sql: &str, parameters: impl Params) -> Result<Vec<RoomRecord>> {
    let mut beside = None;
    read_rows(connection, sql, parameters, |columns| room(columns, &mut beside))
}

/// Positions of columns in [`SELECT`], for what every row has. A plan reads thousands of rows, and looking up names would
/// be what that costs most.
mod at {
    pub(super) const ID: usize = 0;
    pub(super) const SCHEDULER: usize = 1;
    pub(super) const VERSION: usize = 2;
    pub(super) const REGION: usize = 3;
    pub(super) const PURPOSE: usize = 4;
    pub(super) const PORTS: usize = 5;
    pub(super) const HANDLE: usize = 6;
    pub(super) const STOP_OPERATION: usize = 7;
    pub(super) const OPERATION: usize = 12;
    pub(super) const TOKEN: usize = 13;
    pub(super) const CREATED_AT: usize = 14;
    pub(super) const ENDED_AT: usize = 15;
    pub(super) const CLAIM_NUMBER: usize = 19;
    pub(super) const HOLDS: usize = 20;
}

/// Rooms that stand beside each other mostly share scheduler and region: they then share the memory of the names.
fn room(columns: &Columns<'_, '_>, beside: &mut Option<(SchedulerName, Region)>) -> Result<RoomRecord> {
    let row = columns.0;
    let scheduler = columns.parsed_at(at::SCHEDULER, "scheduler", |text| match beside {
        Some((beside, _)) if beside.as_str() == text => Some(beside.clone()),
        _ => SchedulerName::parse(text).ok(),
    })?;
    let region = columns.parsed_at(at::REGION, "region", |text| match beside {
        Some((_, beside)) if beside.as_str() == text => Some(beside.clone()),
        _ => Some(Region(text.into())),
    })?;
    *beside = Some((scheduler.clone(), region.clone()));
    let is_null = |position| Ok::<_, Failure>(row.get_ref(position)? == ValueRef::Null);
    Ok(RoomRecord {
        id: columns.parsed_at(at::ID, "id", |id| Some(RoomId::new(id)))?,
        scheduler,
        version: columns.parsed_at(at::VERSION, "version", |text| Version::parse(text).ok())?,
        region,
        purpose: columns.parsed_at(at::PURPOSE, "purpose", Purpose::parse)?,
        ports: columns.parsed_at(at::PORTS, "ports", documents::room_ports_from_json)?,
        handle: match is_null(at::HANDLE)? {
            true => None,
            false => Some(columns.parsed_at(at::HANDLE, "handle", |text| serde_json::from_str(text).ok())?),
        },
        intent: match is_null(at::STOP_OPERATION)? {
            true => Intent::Run,
            false => intent(columns)?,
        },
        operation: columns.parsed_at(at::OPERATION, "operation", OperationId::parse)?,
        token: to_token(row.get(at::TOKEN)?)?,
        created_at: to_time(row.get(at::CREATED_AT)?, "created_at")?,
        ended: match is_null(at::ENDED_AT)? {
            true => None,
            false => Some(ended_from(columns)?),
        },
        claim_number: to_claim_number(row.get(at::CLAIM_NUMBER)?)?,
        holds: row.get(at::HOLDS)?,
    })
}

fn intent(columns: &Columns<'_, '_>) -> Result<Intent> {
    Ok(Intent::Stop(StopIntent {
        operation: columns.id("stop_operation")?,
        cause: columns.optional("stop_cause", RemovalReason::parse)?,
        matches: columns.get("stop_matches")?,
        reason: columns.get("stop_reason")?,
        at: columns.time("stop_at")?,
    }))
}

fn ended_from(columns: &Columns<'_, '_>) -> Result<Ended> {
    Ok(Ended {
        at: columns.time("ended_at")?,
        how: columns.get("ended_how")?,
        cause: columns.parsed("ended_cause", EndCause::parse)?,
        was_ready: columns.get("was_ready")?,
    })
}

fn limit(rooms_max: usize) -> i64 {
    i64::try_from(rooms_max).unwrap_or(i64::MAX)
}
