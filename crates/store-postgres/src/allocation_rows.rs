//! Allocations: queries.

use std::sync::Arc;

use maestro_core::allocation::{AllocationId, AllocationState};
use maestro_core::room::{Region, RoomId};
use maestro_core::scheduler::SchedulerName;
use maestro_engine::documents;
use maestro_engine::ports::room_table::RoomAddress;
use maestro_engine::ports::runtime::Handle;
use maestro_engine::ports::store::{
    AllocatedPlace, AllocationPage, AllocationPageRequest, AllocationRecord, RequestRecord,
};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::columns::{Columns, read_readable, read_rows};
use crate::failure::Result;
use crate::query::Query;
use crate::session::{Session, Statement};
use crate::value::values;

/// Rows with the places of their rooms, as far as those are not forgotten.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT a.id, a.scheduler, a.room, a.number, a.request_id, a.request_index, a.request_digest, a.state,
                a.cause, a.created_at, a.expires_at, a.ended_at, a.metadata, r.version, r.region, r.ports, r.handle
             FROM allocations AS a LEFT JOIN rooms AS r ON r.id = a.room AND r.scheduler = a.scheduler ",
            $rest
        )
    };
}

pub(crate) async fn one(
    session: &Session,
    scheduler: &SchedulerName,
    id: AllocationId,
) -> Result<Option<AllocationRecord>> {
    let sql = select!("WHERE a.scheduler = $1 AND a.id = $2");
    Ok(read(&session.rows(sql, values![scheduler, id]).await?)?.pop())
}

pub(crate) async fn of_request(
    session: &Session,
    scheduler: &SchedulerName,
    request: &str,
) -> Result<Vec<AllocationRecord>> {
    let sql = select!("WHERE a.scheduler = $1 AND a.request_id = $2 ORDER BY a.request_index");
    read(&session.rows(sql, values![scheduler, request]).await?)
}

pub(crate) async fn open(session: &Session, scheduler: &SchedulerName) -> Result<Vec<AllocationRecord>> {
    let sql = select!("WHERE a.scheduler = $1 AND a.ended_at IS NULL ORDER BY a.room, a.number");
    read(&session.rows(sql, values![scheduler]).await?)
}

/// One that cannot be read counts in its room's row, so its slot is given to nobody. The others must be found all the same.
pub(crate) async fn all_open(session: &Session) -> Result<Vec<AllocationRecord>> {
    let sql = select!("WHERE a.ended_at IS NULL ORDER BY a.room, a.number");
    read_readable("allocation", &session.rows(sql, values![]).await?, allocation)
}

pub(crate) async fn page(
    session: &Session,
    scheduler: &SchedulerName,
    request: &AllocationPageRequest,
) -> Result<AllocationPage> {
    let AllocationPageRequest { page, page_size, state, room } = request;
    let condition = |query: &mut Query<'_>| {
        query.push("scheduler = ").bind(scheduler.as_str().to_owned());
        query.and("room = ", room.as_ref().map(|room| room.as_str().to_owned()));
        query.and("state = ", state.map(|state| state.as_str()));
    };
    let mut count = Query::new("SELECT count(*) FROM allocations WHERE ");
    condition(&mut count);
    // The ids first: what is skipped on the way to a late page is skipped along an index.
    let mut shown =
        Query::new(select!("JOIN (SELECT scheduler AS owner, id AS shown FROM allocations WHERE "));
    condition(&mut shown);
    let offset = i64::from(page.saturating_sub(1)).saturating_mul((*page_size).into());
    shown.push(" ORDER BY id DESC LIMIT ").bind(*page_size).push(" OFFSET ").bind(offset);
    shown.push(") AS page ON page.owner = a.scheduler AND page.shown = a.id ORDER BY a.id DESC");
    let statements: [Statement<'_>; 2] = [count.into(), shown.into()];
    let [count, shown] = &session.ask_all(&statements).await?[..] else { return Ok(nothing()) };
    let total = count.value::<i64>()?.unwrap_or_default();
    Ok(AllocationPage { total: u32::try_from(total).unwrap_or(u32::MAX), allocations: read(&shown.rows)? })
}

fn nothing() -> AllocationPage {
    AllocationPage { total: 0, allocations: Vec::new() }
}

fn read(rows: &[Row]) -> Result<Vec<AllocationRecord>> {
    read_rows(rows, allocation)
}

fn allocation(columns: &Columns<'_>) -> Result<AllocationRecord> {
    Ok(AllocationRecord {
        id: AllocationId::from_u128(columns.get::<Uuid>("id")?.as_u128()),
        scheduler: columns.scheduler("scheduler")?,
        room: columns.parsed("room", |id| Some(RoomId::new(id)))?,
        number: columns.claim_number("number")?,
        request: request(columns)?,
        state: columns.parsed("state", AllocationState::parse)?,
        cause: columns.get("cause")?,
        created_at: columns.time("created_at")?,
        expires_at: columns.time("expires_at")?,
        ended_at: columns.optional_time("ended_at")?,
        metadata: columns.optional("metadata", |text| Some(Arc::from(text)))?,
        place: place(columns)?,
    })
}

fn request(columns: &Columns<'_>) -> Result<Option<RequestRecord>> {
    let Some(id) = columns.optional("request_id", |text| Some(Arc::from(text)))? else { return Ok(None) };
    let (index, digest) = (columns.number("request_index")?, columns.get("request_digest")?);
    Ok(Some(RequestRecord { id, index, digest }))
}

fn place(columns: &Columns<'_>) -> Result<Option<AllocatedPlace>> {
    let handle = columns.optional("handle", |text| serde_json::from_str::<Handle>(text).ok())?;
    let Some(handle) = handle else { return Ok(None) };
    let ports = columns.parsed("ports", documents::room_ports_from_json)?;
    Ok(Some(AllocatedPlace {
        version: columns.version("version")?,
        region: columns.parsed("region", |text| Some(Region(text.into())))?,
        address: RoomAddress::of(&handle, &ports),
    }))
}
