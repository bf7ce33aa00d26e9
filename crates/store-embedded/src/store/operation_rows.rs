//! Queries about operations.

use maestro_core::operation::{
    Activity, CancelRequest, Definition, HistoryEvent, Lease, Operation, OperationId, OperationStatus,
    Origin, Rollback, RollbackEnd, Stage, Wait,
};
use maestro_core::scheduler::SchedulerName;
use maestro_engine::documents::{self, unknown_value};
use maestro_engine::ports::store::{OperationFilter, OperationPage, PageRequest};
use rusqlite::{Connection, Params, params_from_iter};

use super::columns::{Columns, Condition, from_id, from_time, read_rows};
use super::failure::Result;
use super::no_action;

/// All columns but `progress`, which lists leave out.
const COLUMNS: &str =
    "sequence, id, scheduler, definition, input, origin, person, priority, status, executing,
    wait_what, wait_until, wait_unanswered, rollback_then, rollback_why, data, reason, fleet_delta, lease_owner, lease_token,
    lease_expires_at, cancel_by, cancel_at, took_action, created_at, ended_at";

pub(super) fn one(
    connection: &Connection,
    scheduler: &SchedulerName,
    id: OperationId,
) -> Result<Option<Operation>> {
    let sql = format!("SELECT {COLUMNS}, progress FROM operations WHERE id = ?1 AND scheduler = ?2");
    match whole(connection, &sql, (from_id(id), scheduler.as_str()), Definitions::Shown)?.pop() {
        Some(found) => Ok(Some(found)),
        None => no_action::one(connection, scheduler, id),
    }
}

pub(super) fn unfinished(connection: &Connection, scheduler: &SchedulerName) -> Result<Vec<Operation>> {
    whole(connection, &unfinished_sql(), [scheduler.as_str()], Definitions::Executed)
}

/// The same without their histories.
pub(super) fn unfinished_in_short(
    connection: &Connection,
    scheduler: &SchedulerName,
) -> Result<Vec<Operation>> {
    let found = select(connection, &unfinished_sql(), [scheduler.as_str()], Definitions::Executed)?;
    Ok(found.into_iter().map(|(_, operation)| operation).collect())
}

fn unfinished_sql() -> String {
    format!(
        "SELECT {COLUMNS}, progress FROM operations WHERE scheduler = ?1 AND ended_at IS NULL ORDER BY sequence"
    )
}

/// Written as its index is, so that it is found along it.
pub(super) fn of_versions(
    connection: &Connection,
    scheduler: &SchedulerName,
    operations_max: u32,
) -> Result<Vec<Operation>> {
    let sql = format!(
        "SELECT {COLUMNS}, progress FROM operations
         WHERE scheduler = ?1 AND definition IN ('create_new_scheduler_version', 'switch_active_version')
         ORDER BY sequence DESC LIMIT ?2"
    );
    whole(connection, &sql, (scheduler.as_str(), operations_max), Definitions::Shown)
}

pub(super) fn page(
    connection: &Connection,
    scheduler: &SchedulerName,
    stage: Stage,
    request: PageRequest,
) -> Result<OperationPage> {
    let PageRequest { page, page_size, newest_first, no_action, only } = request;
    let mut condition = condition(scheduler, stage, only);
    if !no_action {
        condition.sql.push_str(" AND took_action = 1");
    }
    let mut total = condition.count(connection, "operations")?;
    // An operation comes before those that were recorded after it: nothing is less than any id.
    let mut sql = format!("SELECT sequence, NULL AS id FROM operations WHERE {}", condition.sql);
    let mut values = condition.values;
    if no_action && stage == Stage::Final {
        let recorded = no_action::condition(scheduler, only);
        total += recorded.count(connection, "no_action_operations")?;
        sql.push_str(" UNION ALL SELECT after, id FROM no_action_operations WHERE ");
        sql.push_str(&recorded.sql);
        values.extend(recorded.values);
    }
    let direction = if newest_first { "DESC" } else { "ASC" };
    sql.push_str(&format!(" ORDER BY 1 {direction}, 2 {direction} LIMIT ? OFFSET ?"));
    let offset = i64::from(page.saturating_sub(1)).saturating_mul(page_size.into());
    values.extend([i64::from(page_size).into(), offset.into()]);
    let places = read_rows(connection, &sql, params_from_iter(values), |columns| {
        let recorded: Option<[u8; 16]> = columns.get("id")?;
        Ok((columns.get::<i64>("sequence")?, recorded.map(no_action::to_id)))
    })?;
    let mut operations = Vec::with_capacity(places.len());
    let sql = format!("SELECT {COLUMNS}, 'null' AS progress FROM operations WHERE sequence = ?1");
    for (sequence, recorded) in places {
        let found = match recorded {
            None => select(connection, &sql, [sequence], Definitions::Shown)?.pop().map(|(_, found)| found),
            Some(id) => no_action::one(connection, scheduler, id)?,
        };
        operations.extend(found.map(|found| Operation { history: Vec::new(), ..found }));
    }
    Ok(OperationPage { total, operations })
}

fn condition(scheduler: &SchedulerName, stage: Stage, only: OperationFilter) -> Condition {
    let OperationFilter { kind, status, since, id } = only;
    // Written so that each combination is answered along an index of its own.
    let mut condition = Condition::new(match stage {
        Stage::Pending => "ended_at IS NULL AND status = 'pending'",
        Stage::Active => "ended_at IS NULL AND status = 'in_progress'",
        Stage::Final => "ended_at IS NOT NULL",
    });
    let ids = id.map(|prefix| prefix.bounds());
    condition.and("scheduler = ?", Some(scheduler.as_str().to_owned()));
    condition.and("definition = ?", kind.map(|kind| kind.as_str().to_owned()));
    condition.and("status = ?", status.map(|status| status.as_str().to_owned()));
    condition.and("created_at >= ?", since.map(from_time));
    condition.and("id >= ?", ids.map(|(first, _)| from_id(first)));
    condition.and("id <= ?", ids.map(|(_, last)| from_id(last)));
    condition
}

/// What definitions are read for.
#[derive(Clone, Copy)]
enum Definitions {
    /// One that cannot be read is shown as it is stored: a list has others.
    Shown,
    /// One that cannot be read must not be skipped: the order of a queue means something.
    Executed,
}

/// Reads operations with their histories.
fn whole(
    connection: &Connection,
    sql: &str,
    parameters: impl Params,
    definitions: Definitions,
) -> Result<Vec<Operation>> {
    let mut found = select(connection, sql, parameters, definitions)?;
    for (sequence, operation) in &mut found {
        operation.history = history(connection, *sequence)?;
    }
    Ok(found.into_iter().map(|(_, operation)| operation).collect())
}

fn select(
    connection: &Connection,
    sql: &str,
    parameters: impl Params,
    definitions: Definitions,
) -> Result<Vec<(i64, Operation)>> {
    read_rows(connection, sql, parameters, |columns| {
        Ok((columns.get("sequence")?, operation(columns, definitions)?))
    })
}

fn history(connection: &Connection, sequence: i64) -> Result<Vec<HistoryEvent>> {
    let sql = "SELECT at, event FROM operation_history WHERE operation = ?1 ORDER BY position";
    read_rows(connection, sql, [sequence], |columns| {
        Ok(HistoryEvent { at: columns.time("at")?, event: columns.get("event")? })
    })
}

fn definition(columns: &Columns<'_, '_>, definitions: Definitions) -> Result<Definition> {
    let (name, input): (String, _) = (columns.get("definition")?, columns.json("input")?);
    match (documents::definition_from_json(&name, &input), definitions) {
        (Ok(definition), _) => Ok(definition),
        (Err(_), Definitions::Shown) => Ok(Definition::Unknown { name, input }),
        (Err(unreadable), Definitions::Executed) => Err(unreadable.into()),
    }
}

fn operation(columns: &Columns<'_, '_>, definitions: Definitions) -> Result<Operation> {
    let status = columns.parsed("status", OperationStatus::parse)?;
    Ok(Operation {
        id: columns.id("id")?,
        scheduler: columns.scheduler("scheduler")?,
        definition: definition(columns, definitions)?,
        origin: origin(columns)?,
        priority: columns.get("priority")?,
        status,
        activity: activity(columns, status)?,
        rollback: rollback(columns)?,
        progress: columns.json("progress")?,
        data: columns.json("data")?,
        reason: columns.get("reason")?,
        fleet_delta: columns.get("fleet_delta")?,
        created_at: columns.time("created_at")?,
        ended_at: columns.optional_time("ended_at")?,
        lease: lease(columns)?,
        cancel: cancel(columns)?,
        took_action: columns.get("took_action")?,
        history: Vec::new(),
    })
}

fn origin(columns: &Columns<'_, '_>) -> Result<Origin> {
    let origin: String = columns.get("origin")?;
    Ok(match origin.as_str() {
        "person" => Origin::Person(columns.get("person")?),
        "controller" => Origin::Controller,
        "panic" => Origin::Panic,
        "engine" => Origin::Engine,
        other => return Err(unknown_value("origin", other).into()),
    })
}

fn activity(columns: &Columns<'_, '_>, status: OperationStatus) -> Result<Activity> {
    let executing: bool = columns.get("executing")?;
    if executing || status != OperationStatus::InProgress {
        return Ok(Activity::Executing);
    }
    Ok(Activity::Parked(Wait {
        what: columns.get("wait_what")?,
        until: columns.time("wait_until")?,
        unanswered: columns.get("wait_unanswered")?,
    }))
}

fn rollback(columns: &Columns<'_, '_>) -> Result<Option<Rollback>> {
    let then: Option<String> = columns.get("rollback_then")?;
    let then = match then.as_deref() {
        None => return Ok(None),
        Some("error") => RollbackEnd::Error,
        Some("canceled") => RollbackEnd::Canceled,
        Some(other) => return Err(unknown_value("rollback_then", other).into()),
    };
    let why = columns.get("rollback_why")?;
    Ok(Some(Rollback { then, why }))
}

fn lease(columns: &Columns<'_, '_>) -> Result<Option<Lease>> {
    let owner: Option<String> = columns.get("lease_owner")?;
    owner
        .map(|owner| {
            Ok(Lease {
                owner,
                token: columns.token("lease_token")?,
                expires_at: columns.time("lease_expires_at")?,
            })
        })
        .transpose()
}

fn cancel(columns: &Columns<'_, '_>) -> Result<Option<CancelRequest>> {
    let by: Option<String> = columns.get("cancel_by")?;
    by.map(|by| {
        let at = columns.time("cancel_at")?;
        Ok(CancelRequest { by, at })
    })
    .transpose()
}
