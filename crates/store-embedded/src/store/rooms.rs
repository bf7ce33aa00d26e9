//! Changes of the room registry.

use maestro_core::operation::RemovalReason;
use maestro_core::room::RoomId;
use maestro_core::scheduler::SchedulerName;
use maestro_engine::ports::runtime::Handle;
use maestro_engine::ports::store::{Ended, NewRoomRecord, Refusal, StopIntent};
use rusqlite::Connection;

use super::columns::{execute, execute_counted, from_id, from_time, from_token, insert, value};
use super::failure::Failure;
use super::room_rows;
use super::schedulers;

pub(super) fn intend(connection: &Connection, new: &NewRoomRecord) -> Result<(), Failure> {
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
            ("ports", &room_rows::ports_to_json(&new.ports).to_string()),
            ("operation", &from_id(new.operation)),
            ("token", &from_token(new.token)),
            ("created_at", &from_time(new.created_at)),
        ],
    )?;
    if inserted == 0 {
        return Err(Refusal::RoomExists(new.id.clone()).into());
    }
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
) -> Result<(), Failure> {
    let handle = room_rows::handle_to_json(handle).to_string();
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
) -> Result<(), Failure> {
    let StopIntent { operation, cause, matches, reason, at } = stop;
    // Only the first one counts: who asks again changes nothing.
    let sql = "UPDATE rooms
         SET stop_operation = ?3, stop_cause = ?4, stop_matches = ?5, stop_reason = ?6, stop_at = ?7
         WHERE id = ?2 AND scheduler = ?1 AND ended_at IS NULL AND stop_operation IS NULL";
    let found = execute_counted(
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
        ),
    )?;
    match found {
        0 if !is_live(connection, scheduler, room)? => Err(Refusal::RoomNotFound(room.clone()).into()),
        _ => Ok(()),
    }
}

fn is_live(connection: &Connection, scheduler: &SchedulerName, room: &RoomId) -> Result<bool, Failure> {
    let sql = "SELECT EXISTS (SELECT 1 FROM rooms WHERE id = ?2 AND scheduler = ?1 AND ended_at IS NULL)";
    value(connection, sql, (scheduler.as_str(), room.as_str()))
}

pub(super) fn end(
    connection: &Connection,
    scheduler: &SchedulerName,
    room: &RoomId,
    ended: &Ended,
) -> Result<(), Failure> {
    let Ended { at, how, cause, was_ready } = ended;
    let sql = "UPDATE rooms SET ended_at = ?3, ended_how = ?4, ended_cause = ?5, was_ready = ?6
         WHERE id = ?2 AND scheduler = ?1 AND ended_at IS NULL";
    let changed = execute_counted(
        connection,
        sql,
        (scheduler.as_str(), room.as_str(), from_time(*at), how, cause.as_str(), was_ready),
    )?;
    if changed > 0 {
        execute(connection, "DELETE FROM ports_taken WHERE room = ?1", [room.as_str()])?;
    }
    Ok(())
}

pub(super) fn forget(
    connection: &Connection,
    scheduler: &SchedulerName,
    rooms: &[RoomId],
) -> Result<(), Failure> {
    let mut statement = connection
        .prepare_cached("DELETE FROM rooms WHERE id = ?2 AND scheduler = ?1 AND ended_at IS NOT NULL")?;
    for room in rooms {
        statement.execute((scheduler.as_str(), room.as_str()))?;
    }
    Ok(())
}
