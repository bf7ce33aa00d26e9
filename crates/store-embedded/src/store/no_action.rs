//! Operations that changed nothing: one short row each, beside the content that they share with those before them.

use maestro_core::operation::{Operation, OperationId, OperationStatus};
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::Timestamp;
use maestro_engine::ports::store::{
    NoAction, OperationFilter, PageRequest, Refusal, Routine, SchedulerState,
};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::columns::{Columns, execute, find, from_time, read_rows, value};
use super::failure::Failure;
use super::{operations, schedulers};

const SELECT: &str =
    "SELECT o.id AS id, o.at AS at, c.scheduler AS scheduler, c.definition AS definition, c.reason AS reason,
    c.data AS data, c.events AS events
    FROM no_action_operations o JOIN no_action_contents c ON c.number = o.content";

pub(super) fn record(connection: &Connection, new: &NoAction) -> Result<(), Failure> {
    if schedulers::state(connection, &new.scheduler)? == SchedulerState::Deleting {
        return Err(Refusal::SchedulerBeingDeleted(new.scheduler.clone()).into());
    }
    if operations::exists(connection, new.id)? || exists(connection, new.id)? {
        return Err(Refusal::OperationExists(new.id).into());
    }
    let content = content(connection, new)?;
    let sql = "INSERT INTO no_action_operations (id, content, after, at)
         VALUES (?1, ?2, coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'operations'), 0), ?3)";
    execute(connection, sql, (new.id.as_bytes(), content, from_time(new.at)))
}

pub(super) fn exists(connection: &Connection, id: OperationId) -> Result<bool, Failure> {
    value(connection, "SELECT EXISTS (SELECT 1 FROM no_action_operations WHERE id = ?1)", [id.as_bytes()])
}

/// The latest one of the scheduler if it is the same, and a new one if not. Older ones are never used again, so they can
/// go as soon as the next one is old.
fn content(connection: &Connection, new: &NoAction) -> Result<i64, Failure> {
    let (data, events) = (new.data.to_string(), serde_json::Value::from(new.events.clone()).to_string());
    let definition = new.routine.definition();
    let name = definition.name();
    let sql = "SELECT CASE WHEN reason = ?3 AND data = ?4 AND events = ?5 THEN number END
         FROM no_action_contents WHERE scheduler = ?1 AND definition = ?2 ORDER BY number DESC LIMIT 1";
    let latest: Option<i64> =
        find(connection, sql, (new.scheduler.as_str(), name, &new.reason, &data, &events))?.flatten();
    if let Some(number) = latest {
        return Ok(number);
    }
    let sql = "INSERT INTO no_action_contents (scheduler, definition, reason, data, events, since)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    execute(connection, sql, (new.scheduler.as_str(), name, &new.reason, data, events, from_time(new.at)))?;
    Ok(connection.last_insert_rowid())
}

/// Rows are in the order of time, unless the clock was set: what is old is at the beginning.
pub(super) fn forget(connection: &Connection, before: Timestamp) -> Result<(), Failure> {
    // The first ten bytes of an id that is made at that time or later are not smaller than these.
    let first_kept = OperationId::new(before, [0; 10]);
    let sql = "DELETE FROM no_action_operations WHERE id < ?1 AND at < ?2";
    execute(connection, sql, (first_kept.as_bytes(), from_time(before)))?;
    let sql = "DELETE FROM no_action_contents AS old WHERE EXISTS (
         SELECT 1 FROM no_action_contents AS next
         WHERE next.scheduler = old.scheduler AND next.definition = old.definition
           AND next.number > old.number AND next.since < ?1)";
    execute(connection, sql, [from_time(before)])
}

/// Their rows say nothing without it, and go when they are old.
pub(super) fn forget_scheduler(connection: &Connection, scheduler: &SchedulerName) -> Result<(), Failure> {
    execute(connection, "DELETE FROM no_action_contents WHERE scheduler = ?1", [scheduler.as_str()])
}

pub(super) fn one(
    connection: &Connection,
    scheduler: &SchedulerName,
    id: OperationId,
) -> Result<Option<Operation>, Failure> {
    let sql = format!("{SELECT} WHERE o.id = ?1 AND c.scheduler = ?2");
    Ok(read_rows(connection, &sql, (id.as_bytes(), scheduler.as_str()), operation)?.pop())
}

pub(super) fn count(
    connection: &Connection,
    scheduler: &SchedulerName,
    only: OperationFilter,
) -> Result<u32, Failure> {
    let (condition, values) = filtered(scheduler, only);
    value(
        connection,
        &format!("SELECT count(*) FROM no_action_operations WHERE {condition}"),
        params_from_iter(values),
    )
}

/// A condition of SQL, and its values in order.
fn filtered(scheduler: &SchedulerName, only: OperationFilter) -> (String, Vec<Value>) {
    let OperationFilter { kind, status, since, id } = only;
    let mut contents = "SELECT number FROM no_action_contents WHERE scheduler = ?".to_owned();
    let mut values: Vec<Value> = vec![scheduler.as_str().to_owned().into()];
    if let Some(kind) = kind {
        contents.push_str(" AND definition = ?");
        values.push(kind.as_str().to_owned().into());
    }
    let mut condition = format!("content IN ({contents})");
    if status.is_some_and(|status| status != OperationStatus::Finished) {
        condition.push_str(" AND FALSE");
    }
    if let Some(since) = since {
        condition.push_str(" AND at >= ?");
        values.push(from_time(since).into());
    }
    if let Some(prefix) = id {
        let (first, last) = prefix.bounds();
        condition.push_str(" AND id >= ? AND id <= ?");
        values.extend([first, last].map(|id| Value::Blob(id.as_bytes().to_vec())));
    }
    (condition, values)
}

/// What stands at a place of a page that shows all ended operations of a scheduler.
pub(super) enum Place {
    /// One that changed something, or could have, by its sequence.
    Operation(i64),
    NoAction(OperationId),
}

/// All in the order in which they were enqueued, or the other way round. `enqueued`: the condition of those that were, and
/// its values.
pub(super) fn places(
    connection: &Connection,
    scheduler: &SchedulerName,
    request: PageRequest,
    enqueued: (&str, Vec<Value>),
) -> Result<Vec<Place>, Failure> {
    let PageRequest { page, page_size, newest_first, no_action: _, only } = request;
    let direction = if newest_first { "DESC" } else { "ASC" };
    let (enqueued, mut values) = enqueued;
    let (recorded, values_of_recorded) = filtered(scheduler, only);
    values.extend(values_of_recorded);
    // An operation comes before those that were recorded after it: nothing is less than any id.
    let sql = format!(
        "SELECT sequence, NULL AS id FROM operations WHERE {enqueued}
         UNION ALL SELECT after, id FROM no_action_operations WHERE {recorded}
         ORDER BY 1 {direction}, 2 {direction} LIMIT ? OFFSET ?"
    );
    let offset = i64::from(page.saturating_sub(1)).saturating_mul(page_size.into());
    values.extend([i64::from(page_size).into(), offset.into()]);
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut places = Vec::new();
    while let Some(row) = rows.next()? {
        let id: Option<[u8; 16]> = row.get(1)?;
        places.push(match id {
            None => Place::Operation(row.get(0)?),
            Some(bytes) => Place::NoAction(OperationId::from_u128(u128::from_be_bytes(bytes))),
        });
    }
    Ok(places)
}

fn operation(columns: &Columns<'_, '_>) -> Result<Operation, Failure> {
    let id: [u8; 16] = columns.get("id")?;
    let record = NoAction {
        id: OperationId::from_u128(u128::from_be_bytes(id)),
        scheduler: columns.scheduler("scheduler")?,
        routine: columns.parsed("definition", routine)?,
        reason: columns.get("reason")?,
        data: columns.json("data")?,
        events: columns.parsed("events", |text| serde_json::from_str(text).ok())?,
        at: columns.time("at")?,
    };
    Ok(record.into_operation())
}

fn routine(name: &str) -> Option<Routine> {
    [Routine::HealthController, Routine::StorageCleanUp]
        .into_iter()
        .find(|routine| routine.definition().name() == name)
}
