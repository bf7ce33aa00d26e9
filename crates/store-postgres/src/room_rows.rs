//! The room registry: queries.

use maestro_core::allocation::ClaimNumber;
use maestro_core::operation::{OperationId, RemovalReason, Token};
use maestro_core::room::{EndCause, Purpose, Region, RoomId};
use maestro_core::scheduler::{SchedulerName, Version};
use maestro_core::time::Timestamp;
use maestro_engine::documents;
use maestro_engine::ports::store::{Ended, EndedRoom, Intent, RoomCount, RoomRecord, StopIntent};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::columns::{Columns, read_readable, read_rows, to_number, to_operation, to_time};
use crate::failure::Result;
use crate::session::{Session, Statement};
use crate::value::values;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, scheduler, version, region, purpose, ports, handle, stop_operation, stop_cause, stop_matches,
                stop_reason, stop_at, operation, token, created_at, ended_at, ended_how, ended_cause, was_ready,
                claim_number, holds
             FROM rooms JOIN room_claims ON room = id ",
            $rest
        )
    };
}

pub(crate) async fn one(
    session: &Session,
    scheduler: &SchedulerName,
    id: &RoomId,
) -> Result<Option<RoomRecord>> {
    let rows = session.rows(select!("WHERE id = $1 AND scheduler = $2"), values![id, scheduler]).await?;
    Ok(read(&rows)?.pop())
}

pub(crate) async fn several(session: &Session, question: Statement<'_>) -> Result<Vec<RoomRecord>> {
    read(&session.ask_one(&question).await?.rows)
}

/// Those that have not ended, ordered by id.
pub(crate) fn live(scheduler: &SchedulerName) -> Statement<'_> {
    let sql = select!("WHERE scheduler = $1 AND ended_at IS NULL ORDER BY id");
    Statement::new(sql, values![scheduler])
}

pub(crate) fn ended(scheduler: &SchedulerName, rooms_max: usize) -> Statement<'_> {
    let sql =
        select!("WHERE scheduler = $1 AND ended_at IS NOT NULL ORDER BY ended_at DESC, id DESC LIMIT $2");
    Statement::new(sql, values![scheduler, rooms_max])
}

pub(crate) fn leaving(scheduler: &SchedulerName, operation: OperationId) -> Statement<'_> {
    let sql = select!("WHERE scheduler = $1 AND stop_operation = $2 AND ended_at IS NULL ORDER BY id");
    Statement::new(sql, values![scheduler, operation])
}

pub(crate) fn made_by(scheduler: &SchedulerName, operation: OperationId) -> Statement<'_> {
    let sql = select!("WHERE scheduler = $1 AND operation = $2 ORDER BY id");
    Statement::new(sql, values![scheduler, operation])
}

/// One that cannot be read is left alone: its scheduler's own reads fail, so nobody touches the room. The others must be
/// found all the same.
pub(crate) async fn all_live(session: &Session) -> Result<Vec<RoomRecord>> {
    let sql = select!("WHERE ended_at IS NULL ORDER BY scheduler, id");
    let rows = session.rows(sql, values![]).await?;
    let mut beside = None;
    read_readable("room", &rows, |columns| room(columns, &mut beside))
}

/// How many rooms of the fleet there are, by version and region.
pub(crate) async fn counts(session: &Session, scheduler: &SchedulerName) -> Result<Vec<RoomCount>> {
    let sql = "SELECT version, region, count(*) AS rooms FROM rooms
         WHERE scheduler = $1 AND ended_at IS NULL AND purpose = $2 GROUP BY version, region ORDER BY version, region";
    let rows = session.rows(sql, values![scheduler, Purpose::Fleet.as_str()]).await?;
    read_rows(&rows, |columns| {
        Ok(RoomCount {
            version: columns.version("version")?,
            region: columns.parsed("region", |text| Some(Region(text.into())))?,
            rooms: columns.number("rooms")?,
        })
    })
}

pub(crate) async fn ended_before(
    session: &Session,
    scheduler: &SchedulerName,
    before: Timestamp,
    after: Option<&EndedRoom>,
    rooms_max: usize,
) -> Result<Vec<EndedRoom>> {
    let sql = "SELECT id, region, ended_at FROM rooms
         WHERE scheduler = $1 AND ended_at IS NOT NULL AND ended_at < $2 AND (ended_at, id) > ($3, $4)
         ORDER BY ended_at, id LIMIT $5";
    let (after_at, after_id) =
        after.map_or((i64::MIN, ""), |room| (room.at.as_microsecond(), room.id.as_str()));
    let rows = session.rows(sql, values![scheduler, before, after_at, after_id, rooms_max]).await?;
    read_rows(&rows, |columns| {
        Ok(EndedRoom {
            id: columns.parsed("id", |id| Some(RoomId::new(id)))?,
            region: columns.parsed("region", |region| Some(Region(region.into())))?,
            at: columns.time("ended_at")?,
        })
    })
}

pub(crate) async fn ports_in_use(session: &Session, region: &Region) -> Result<Vec<u16>> {
    let sql = "SELECT port FROM ports_taken WHERE region = $1 AND room_in = $1 ORDER BY port";
    let rows = session.rows(sql, values![region]).await?;
    read_rows(&rows, |columns| columns.number("port"))
}

pub(crate) fn read(rows: &[Row]) -> Result<Vec<RoomRecord>> {
    let mut beside = None;
    read_rows(rows, |columns| room(columns, &mut beside))
}

/// Positions of columns in `select`, for what every row has. A plan reads thousands of rows, and looking up names would
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
fn room(columns: &Columns<'_>, beside: &mut Option<(SchedulerName, Region)>) -> Result<RoomRecord> {
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
    let handle: Option<&str> = row.try_get(at::HANDLE)?;
    let stop_operation: Option<Uuid> = row.try_get(at::STOP_OPERATION)?;
    let ended_at: Option<i64> = row.try_get(at::ENDED_AT)?;
    Ok(RoomRecord {
        id: columns.parsed_at(at::ID, "id", |id| Some(RoomId::new(id)))?,
        scheduler,
        version: columns.parsed_at(at::VERSION, "version", |text| Version::parse(text).ok())?,
        region,
        purpose: columns.parsed_at(at::PURPOSE, "purpose", Purpose::parse)?,
        ports: columns.parsed_at(at::PORTS, "ports", documents::room_ports_from_json)?,
        handle: match handle {
            None => None,
            Some(_) => columns.optional("handle", |text| serde_json::from_str(text).ok())?,
        },
        intent: match stop_operation {
            None => Intent::Run,
            Some(operation) => intent(columns, to_operation(operation))?,
        },
        operation: to_operation(row.try_get(at::OPERATION)?),
        token: Token(to_number(row.try_get(at::TOKEN)?, "token")?),
        created_at: to_time(row.try_get(at::CREATED_AT)?, "created_at")?,
        ended: match ended_at {
            None => None,
            Some(at) => Some(ended_from(columns, to_time(at, "ended_at")?)?),
        },
        claim_number: ClaimNumber(to_number(row.try_get(at::CLAIM_NUMBER)?, "claim_number")?),
        holds: to_number(row.try_get(at::HOLDS)?, "holds")?,
    })
}

fn intent(columns: &Columns<'_>, operation: OperationId) -> Result<Intent> {
    Ok(Intent::Stop(StopIntent {
        operation,
        cause: columns.optional("stop_cause", RemovalReason::parse)?,
        matches: columns.number("stop_matches")?,
        reason: columns.get("stop_reason")?,
        at: columns.time("stop_at")?,
    }))
}

fn ended_from(columns: &Columns<'_>, at: Timestamp) -> Result<Ended> {
    Ok(Ended {
        at,
        how: columns.get("ended_how")?,
        cause: columns.parsed("ended_cause", EndCause::parse)?,
        was_ready: columns.get("was_ready")?,
    })
}
