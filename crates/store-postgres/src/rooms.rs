//! The room registry: changes.

use maestro_core::operation::RemovalReason;
use maestro_core::room::{Region, RoomId};
use maestro_core::scheduler::SchedulerName;
use maestro_engine::documents;
use maestro_engine::ports::runtime::Handle;
use maestro_engine::ports::store::{ClaimedSince, Ended, NewRoomRecord, Refusal, StopIntent};
use serde_json::json;

use crate::columns::read_rows;
use crate::failure::Result;
use crate::schedulers;
use crate::session::{Session, Statement};
use crate::value::values;

/// A port that is taken in a region beside is a row of that region, so that two rooms of one host cannot both have it,
/// whichever is written first.
const INTEND: &str = "WITH room AS (
        INSERT INTO rooms (id, scheduler, version, region, purpose, ports, operation, token, created_at)
        SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9 WHERE EXISTS (SELECT 1 FROM schedulers WHERE name = $2)
        ON CONFLICT (id) DO NOTHING RETURNING id),
    claims AS (INSERT INTO room_claims (room) SELECT id FROM room),
    ports AS (
        INSERT INTO ports_taken (region, port, room, room_in)
        SELECT region, port, room.id, $4 FROM room, unnest($10) AS region, unnest($11) AS port
        ORDER BY region, port ON CONFLICT DO NOTHING RETURNING 1)
    SELECT EXISTS (SELECT 1 FROM room)
        AND (SELECT count(*) FROM ports) = cardinality($10) * cardinality($11) AS done,
        EXISTS (SELECT 1 FROM room) AS is_new";

pub(crate) fn intend(new: &NewRoomRecord) -> Statement<'_> {
    let NewRoomRecord { id, scheduler, version, region, regions_beside, purpose, ports, .. } = new;
    let regions: Vec<_> = regions_beside.iter().chain([region]).map(|region| region.as_str()).collect();
    let ports_taken: Vec<i64> = ports.iter().map(|port| port.host_port.into()).collect();
    Statement::new(
        INTEND,
        values![
            id,
            scheduler,
            *version,
            region,
            purpose.as_str(),
            documents::room_ports_to_json(ports),
            new.operation,
            new.token,
            new.created_at,
            regions,
            ports_taken,
        ],
    )
}

/// `is_new`: there was no room of that id.
pub(crate) async fn why_not_intended(
    session: &Session,
    new: &NewRoomRecord,
    is_new: bool,
) -> Result<Refusal> {
    schedulers::require(session, &new.scheduler).await?;
    if !is_new {
        return Ok(Refusal::RoomExists(new.id.clone()));
    }
    let regions: Vec<_> =
        new.regions_beside.iter().chain([&new.region]).map(|region| region.as_str()).collect();
    let sql = "SELECT region, port, room_in FROM ports_taken WHERE region = ANY ($1) AND room <> $2";
    let rows = session.rows(sql, values![regions, &new.id]).await?;
    let taken =
        read_rows(&rows, |columns| Ok((columns.number::<u16>("port")?, columns.get::<String>("room_in")?)))?;
    let conflict = new.ports.iter().find_map(|wanted| {
        let (port, room_in) = taken.iter().find(|(port, _)| *port == wanted.host_port)?;
        Some((*port, Region(room_in.as_str().into())))
    });
    // Otherwise the room wants one port twice.
    let (port, region) = conflict.unwrap_or_else(|| {
        let first = new.ports.first().map_or(0, |port| port.host_port);
        (twice(new).unwrap_or(first), new.region.clone())
    });
    Ok(Refusal::PortTaken { region, port })
}

fn twice(new: &NewRoomRecord) -> Option<u16> {
    let mut ports: Vec<_> = new.ports.iter().map(|port| port.host_port).collect();
    ports.sort_unstable();
    ports.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

pub(crate) fn started<'a>(scheduler: &'a SchedulerName, room: &'a RoomId, handle: &Handle) -> Statement<'a> {
    let sql = "WITH started AS (UPDATE rooms SET handle = $3 WHERE id = $2 AND scheduler = $1 RETURNING 1)
        SELECT EXISTS (SELECT 1 FROM started) AS done";
    Statement::new(sql, values![scheduler, room, json!(handle).to_string()])
}

pub(crate) fn intend_stop<'a>(
    scheduler: &'a SchedulerName,
    room: &'a RoomId,
    stop: &'a StopIntent,
    unless: ClaimedSince,
) -> Statement<'a> {
    let StopIntent { operation, cause, matches, reason, at } = stop;
    let ClaimedSince { number, takes_held } = unless;
    let sql = "WITH stopped AS (
            UPDATE rooms SET stop_operation = $3, stop_cause = $4, stop_matches = $5, stop_reason = $6, stop_at = $7
            FROM room_claims AS claims
            WHERE id = $2 AND scheduler = $1 AND ended_at IS NULL AND stop_operation IS NULL
              AND claims.room = id AND claims.claim_number = $8 AND (claims.holds = 0 OR $9)
            RETURNING id),
        lost AS (
            UPDATE allocations SET state = 'lost', cause = $6, ended_at = $7
            WHERE scheduler = $1 AND room = $2 AND ended_at IS NULL AND EXISTS (SELECT 1 FROM stopped)),
        freed AS (
            UPDATE room_claims SET holds = 0 WHERE room IN (SELECT id FROM stopped) AND holds > 0)
        SELECT EXISTS (SELECT 1 FROM stopped) AS done";
    Statement::new(
        sql,
        values![
            scheduler,
            room,
            *operation,
            cause.map(RemovalReason::as_str),
            *matches,
            reason,
            *at,
            number,
            takes_held,
        ],
    )
}

/// `None`: only the first one counts, and who asks again changes nothing.
pub(crate) async fn why_not_stopped(
    session: &Session,
    scheduler: &SchedulerName,
    room: &RoomId,
) -> Result<Option<Refusal>> {
    let sql =
        "SELECT stop_operation IS NOT NULL FROM rooms WHERE id = $2 AND scheduler = $1 AND ended_at IS NULL";
    Ok(match session.find(sql, values![scheduler, room]).await? {
        Some(true) => None,
        Some(false) => Some(Refusal::RoomClaimed(room.clone())),
        None => Some(Refusal::RoomNotFound(room.clone())),
    })
}

/// How a room ends, and which instance of it.
#[derive(Clone, Copy)]
pub(crate) struct RoomEnd<'a> {
    pub(crate) scheduler: &'a SchedulerName,
    pub(crate) room: &'a RoomId,
    pub(crate) instance: Option<&'a Handle>,
    pub(crate) ended: &'a Ended,
}

/// Done unless the room lives and its handle is not literally that of the instance that has ended.
pub(crate) fn end(end: RoomEnd<'_>) -> Statement<'_> {
    let RoomEnd { scheduler, room, instance, ended } = end;
    let Ended { at, how, cause, was_ready } = ended;
    let instance = instance.map(|handle| json!(handle).to_string());
    let sql = "WITH ended AS (
            UPDATE rooms SET ended_at = $3, ended_how = $4, ended_cause = $5, was_ready = $6
            WHERE id = $2 AND scheduler = $1 AND ended_at IS NULL
              AND (handle IS NULL OR $7::text IS NULL OR handle = $7) RETURNING id),
        lost AS (
            UPDATE allocations SET state = 'lost', cause = $4, ended_at = $3
            WHERE scheduler = $1 AND room = $2 AND ended_at IS NULL AND EXISTS (SELECT 1 FROM ended)),
        freed AS (UPDATE room_claims SET holds = 0 WHERE room IN (SELECT id FROM ended) AND holds > 0),
        ports AS (DELETE FROM ports_taken WHERE room IN (SELECT id FROM ended))
        SELECT EXISTS (SELECT 1 FROM ended) OR NOT EXISTS (
            SELECT 1 FROM rooms WHERE id = $2 AND scheduler = $1 AND ended_at IS NULL) AS done";
    Statement::new(sql, values![scheduler, room, *at, how, cause.as_str(), *was_ready, instance])
}

/// Ends a room after all that has another handle, if it is one of the same instance. `None`: it has ended.
pub(crate) async fn end_if_same(session: &Session, end_of: RoomEnd<'_>) -> Result<Option<Refusal>> {
    let RoomEnd { scheduler, room, instance, ended: _ } = end_of;
    let sql = "SELECT handle FROM rooms WHERE id = $2 AND scheduler = $1 AND handle IS NOT NULL";
    let stored = read_rows(&session.rows(sql, values![scheduler, room]).await?, |columns| {
        columns.parsed("handle", |text| serde_json::from_str::<Handle>(text).ok())
    })?;
    let is_another = |instance: &Handle| stored.iter().any(|handle| !handle.is_of_same_instance(instance));
    if instance.is_some_and(is_another) {
        return Ok(Some(Refusal::OtherInstance(room.clone())));
    }
    session.ask_one(&end(RoomEnd { instance: None, ..end_of })).await?;
    Ok(None)
}

pub(crate) fn forget<'a>(scheduler: &'a SchedulerName, rooms: &'a [RoomId]) -> Statement<'a> {
    let sql = "WITH forgotten AS (
            DELETE FROM rooms WHERE id = ANY ($2) AND scheduler = $1 AND ended_at IS NOT NULL)
        SELECT TRUE AS done";
    let rooms: Vec<_> = rooms.iter().map(RoomId::as_str).collect();
    Statement::new(sql, values![scheduler, rooms])
}
