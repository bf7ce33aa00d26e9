//! Allocations: queries.

use std::sync::Arc;

use maestro_core::allocation::{AllocationId, AllocationState};
use maestro_core::room::{Region, RoomId};
use maestro_core::scheduler::SchedulerName;
use maestro_engine::documents::{self, Unreadable};
use maestro_engine::ports::room_table::RoomAddress;
use maestro_engine::ports::runtime::Handle;
use maestro_engine::ports::store::{
    AllocatedPlace, AllocationPage, AllocationPageRequest, AllocationRecord, RequestRecord,
};
use rusqlite::{Connection, Params, params_from_iter};

use super::columns::{Columns, Condition, or_unreadable, read_rows, to_claim_number};
use super::failure::Result;

/// SQLite does not know how many rows a state or a room has, and would rather walk through all of them in some order.
const BY_STATE: &str = "allocations INDEXED BY allocations_by_state";
const BY_ROOM: &str = "allocations INDEXED BY allocations_by_room";

const OF_REQUEST: &str = "allocations.scheduler = ?1 AND request_id = ?2 ORDER BY request_index";

/// Rows with the places of their rooms, as far as those are not forgotten. `table`: `allocations`, and how it is read.
fn select_from(table: &str, condition: &str) -> String {
    format!(
        "SELECT allocations.id AS id, allocations.scheduler AS scheduler, allocations.room AS room, number, request_id,
             request_index, request_digest, state, cause, allocations.created_at AS created_at, expires_at,
             allocations.ended_at AS ended_at, metadata, version, region, ports, handle
         FROM {table} LEFT JOIN rooms ON rooms.id = allocations.room AND rooms.scheduler = allocations.scheduler
         WHERE {condition}"
    )
}

pub(super) fn one(
    connection: &Connection,
    scheduler: &SchedulerName,
    id: AllocationId,
) -> Result<Option<AllocationRecord>> {
    let sql = select_from("allocations", "allocations.scheduler = ?1 AND allocations.id = ?2");
    Ok(select(connection, &sql, (scheduler.as_str(), id.as_bytes()))?.pop())
}

pub(super) fn of_request(
    connection: &Connection,
    scheduler: &SchedulerName,
    request: &str,
) -> Result<Vec<AllocationRecord>> {
    select(connection, &select_from("allocations", OF_REQUEST), (scheduler.as_str(), request))
}

pub(super) fn open(connection: &Connection, scheduler: &SchedulerName) -> Result<Vec<AllocationRecord>> {
    let parameters = (AllocationState::Held.as_str(), scheduler.as_str());
    select(connection, &open_of("?2"), parameters)
}

pub(super) fn all_open(connection: &Connection) -> Result<Vec<AllocationRecord>> {
    let sql = open_of("SELECT name FROM schedulers");
    let held = AllocationState::Held.as_str();
    let rows = read_rows(connection, &sql, [held], |columns| or_unreadable(allocation(columns)))?;
    // It counts in its room's row, so its slot is given to nobody. The others must be found all the same.
    let warn = |why: &Unreadable| tracing::warn!(%why, "a stored allocation is left alone");
    Ok(rows.into_iter().filter_map(|read| read.inspect_err(warn).ok()).collect())
}

/// Also for all schedulers: the index by state has a part for each of them.
fn open_of(schedulers: &str) -> String {
    let condition = format!("allocations.scheduler IN ({schedulers}) AND state = ?1");
    select_from(BY_STATE, &format!("{condition} ORDER BY allocations.room, number"))
}

pub(super) fn page(
    connection: &Connection,
    scheduler: &SchedulerName,
    request: &AllocationPageRequest,
) -> Result<AllocationPage> {
    let (table, condition) = (table(request), condition(scheduler, request));
    let total = condition.count(connection, table)?;
    let ids = ids_of_page(table, &condition);
    let shown =
        format!("allocations.scheduler = ? AND allocations.id IN ({ids}) ORDER BY allocations.id DESC");
    let sql = select_from("allocations", &shown);
    let AllocationPageRequest { page, page_size, .. } = request;
    let offset = i64::from(page.saturating_sub(1)).saturating_mul((*page_size).into());
    let mut values = vec![scheduler.as_str().to_owned().into()];
    values.extend(condition.values);
    values.extend([i64::from(*page_size).into(), offset.into()]);
    Ok(AllocationPage { total, allocations: select(connection, &sql, params_from_iter(values))? })
}

fn table(request: &AllocationPageRequest) -> &'static str {
    match (&request.room, request.state) {
        (Some(_), _) => BY_ROOM,
        (None, Some(_)) => BY_STATE,
        (None, None) => "allocations",
    }
}

fn condition(scheduler: &SchedulerName, request: &AllocationPageRequest) -> Condition {
    let AllocationPageRequest { page: _, page_size: _, state, room } = request;
    let mut condition = Condition::new("TRUE");
    condition.and("scheduler = ?", Some(scheduler.as_str().to_owned()));
    condition.and("room = ?", room.as_ref().map(|room| room.as_str().to_owned()));
    condition.and("state = ?", state.map(|state| state.as_str().to_owned()));
    condition
}

/// The ids first: what is skipped on the way to a late page is skipped along an index.
fn ids_of_page(table: &str, condition: &Condition) -> String {
    format!("SELECT id FROM {table} WHERE {} ORDER BY id DESC LIMIT ? OFFSET ?", condition.sql)
}

fn select(connection: &Connection, sql: &str, parameters: impl Params) -> Result<Vec<AllocationRecord>> {
    read_rows(connection, sql, parameters, allocation)
}

fn allocation(columns: &Columns<'_, '_>) -> Result<AllocationRecord> {
    Ok(AllocationRecord {
        id: AllocationId::from_u128(u128::from_be_bytes(columns.get("id")?)),
        scheduler: columns.scheduler("scheduler")?,
        room: columns.parsed("room", |id| Some(RoomId::new(id)))?,
        number: to_claim_number(columns.get("number")?)?,
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

fn request(columns: &Columns<'_, '_>) -> Result<Option<RequestRecord>> {
    let Some(id) = columns.optional("request_id", |text| Some(Arc::from(text)))? else { return Ok(None) };
    let (index, digest) = (columns.get("request_index")?, columns.get("request_digest")?);
    Ok(Some(RequestRecord { id, index, digest }))
}

fn place(columns: &Columns<'_, '_>) -> Result<Option<AllocatedPlace>> {
    let handle = columns.optional("handle", |text| serde_json::from_str::<Handle>(text).ok())?;
    let Some(handle) = handle else { return Ok(None) };
    let ports = columns.parsed("ports", documents::room_ports_from_json)?;
    Ok(Some(AllocatedPlace {
        version: columns.version("version")?,
        region: columns.parsed("region", |text| Some(Region(text.into())))?,
        address: RoomAddress::of(&handle, &ports),
    }))
}

#[cfg(test)]
mod tests {
    use maestro_engine::ports::contract::fixtures::{all_allocations, arena, room_id};

    use super::*;
    use crate::store::{allocations, file};

    /// What a question costs grows with the answer, not with what there is.
    #[test]
    fn questions_are_answered_along_indexes() {
        let connection = file::make_in_memory("test").unwrap();
        let check = |sql: &str, expected: &[&str]| {
            let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let parameters = params_from_iter(vec![0; statement.parameter_count()]);
            let steps = statement.query_map(parameters, |row| row.get("detail")).unwrap();
            let steps: Vec<String> = steps.map(Result::unwrap).collect();
            assert_eq!(steps, expected, "{sql}");
        };
        let (state, room) = (Some(AllocationState::Lost), Some(room_id(1)));
        for (state, room, plan) in [
            (None, None, "SEARCH allocations USING PRIMARY KEY (scheduler=?)"),
            (
                state,
                None,
                "SEARCH allocations USING COVERING INDEX allocations_by_state (scheduler=? AND state=?)",
            ),
            (
                None,
                room.clone(),
                "SEARCH allocations USING COVERING INDEX allocations_by_room (scheduler=? AND room=?)",
            ),
            (state, room, "SEARCH allocations USING INDEX allocations_by_room (scheduler=? AND room=?)"),
        ] {
            let request = AllocationPageRequest { state, room, ..all_allocations() };
            check(&ids_of_page(table(&request), &condition(&arena(), &request)), &[plan]);
        }
        check(
            &format!(
                "SELECT count(*) FROM allocations WHERE {}",
                condition(&arena(), &all_allocations()).sql
            ),
            &["SEARCH allocations USING COVERING INDEX allocations_by_state (scheduler=?)"],
        );
        let of_state = "SEARCH allocations USING INDEX allocations_by_state (scheduler=? AND state=?)";
        let of_room = "SEARCH rooms USING INDEX sqlite_autoindex_rooms_1 (id=?) LEFT-JOIN";
        let sorted = "USE TEMP B-TREE FOR ORDER BY";
        check(&open_of("?2"), &[of_state, of_room, sorted]);
        let of_request =
            "SEARCH allocations USING INDEX allocations_by_request (scheduler=? AND request_id=?)";
        check(&select_from("allocations", OF_REQUEST), &[of_request, of_room]);
        let ended = "SEARCH allocations USING COVERING INDEX allocations_ended (scheduler=? AND ended_at>? AND ended_at<?)";
        let requested = "SEARCH allocations USING COVERING INDEX allocations_ended_of_requests (scheduler=? AND ended_at>? AND ended_at<?)";
        check(allocations::OLDEST_ENDS, &["MERGE (UNION ALL)", "LEFT", ended, "RIGHT", requested]);
        let [ended, requested] = [ended, requested].map(|step| step.replace(" AND ended_at<?", ""));
        let counted = ["SCAN CONSTANT ROW", "SCALAR SUBQUERY 1", &ended, "SCALAR SUBQUERY 2", &requested];
        check(allocations::COUNT_ENDED, &counted);
    }
}
