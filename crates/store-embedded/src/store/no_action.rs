//! Operations that changed nothing: one short row each, beside the content that they share with those before them.

use maestro_core::operation::{Operation, OperationId, OperationStatus};
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::Timestamp;
use maestro_engine::ports::store::{NoAction, OperationFilter, Refusal, Routine, SchedulerState};
use rusqlite::Connection;

use super::columns::{Columns, Condition, execute, find, from_time, read_rows, value};
use super::failure::Result;
use super::{operations, schedulers};

const SELECT: &str =
    "SELECT o.id AS id, o.at AS at, c.scheduler AS scheduler, c.definition AS definition, c.reason AS reason,
    c.data AS data, c.events AS events
    FROM no_action_operations o JOIN no_action_contents c ON c.number = o.content";

pub(super) fn record(connection: &Connection, new: &NoAction) -> Result {
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

pub(super) fn exists(connection: &Connection, id: OperationId) -> Result<bool> {
    value(connection, "SELECT EXISTS (SELECT 1 FROM no_action_operations WHERE id = ?1)", [id.as_bytes()])
}

/// The latest one of the scheduler if it is the same, and a new one if not. Older ones are never used again, so they can
/// go as soon as the next one is old.
fn content(connection: &Connection, new: &NoAction) -> Result<i64> {
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
pub(super) fn forget(connection: &Connection, before: Timestamp) -> Result {
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
pub(super) fn forget_scheduler(connection: &Connection, scheduler: &SchedulerName) -> Result {
    execute(connection, "DELETE FROM no_action_contents WHERE scheduler = ?1", [scheduler.as_str()])
}

pub(super) fn one(
    connection: &Connection,
    scheduler: &SchedulerName,
    id: OperationId,
) -> Result<Option<Operation>> {
    let sql = format!("{SELECT} WHERE o.id = ?1 AND c.scheduler = ?2");
    Ok(read_rows(connection, &sql, (id.as_bytes(), scheduler.as_str()), operation)?.pop())
}

/// Which rows of `no_action_operations` are asked for.
pub(super) fn condition(scheduler: &SchedulerName, only: OperationFilter) -> Condition {
    let OperationFilter { kind, status, since, id } = only;
    let mut contents = Condition::new("TRUE");
    contents.and("scheduler = ?", Some(scheduler.as_str().to_owned()));
    contents.and("definition = ?", kind.map(|kind| kind.as_str().to_owned()));
    let mut condition = Condition {
        sql: format!("content IN (SELECT number FROM no_action_contents WHERE {})", contents.sql),
        values: contents.values,
    };
    let ids = id.map(|prefix| prefix.bounds());
    // All of them have finished.
    condition.and("?", status.map(|status| status == OperationStatus::Finished));
    condition.and("at >= ?", since.map(from_time));
    condition.and("id >= ?", ids.map(|(first, _)| first.as_bytes().to_vec()));
    condition.and("id <= ?", ids.map(|(_, last)| last.as_bytes().to_vec()));
    condition
}

/// Ids are kept as bytes here.
pub(super) fn to_id(bytes: [u8; 16]) -> OperationId {
    OperationId::from_u128(u128::from_be_bytes(bytes))
}

fn operation(columns: &Columns<'_, '_>) -> Result<Operation> {
    let record = NoAction {
        id: to_id(columns.get("id")?),
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
