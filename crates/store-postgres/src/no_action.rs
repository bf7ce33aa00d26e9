//! Operations that changed nothing: one short row each, beside the content that they share with those before them.

use std::collections::HashMap;

use maestro_core::operation::{Operation, OperationId, OperationStatus};
use maestro_core::scheduler::{SchedulerName, SchedulerState};
use maestro_core::time::Timestamp;
use maestro_engine::ports::store::{NoAction, OperationFilter, Refusal, Routine};
use uuid::Uuid;

use crate::columns::{Columns, read_first, read_rows};
use crate::failure::Result;
use crate::query::Query;
use crate::schedulers;
use crate::session::{Session, Statement};
use crate::value::values;

/// The latest content of the scheduler is used again if it is the same. Older ones are not, so they can go as soon as the
/// next one is old.
pub(crate) fn record(new: &NoAction) -> Statement<'_> {
    let sql = "WITH asked AS (
            SELECT 1 FROM schedulers WHERE name = $2 AND state <> $3
              AND NOT EXISTS (SELECT 1 FROM operations WHERE id = $1)
              AND NOT EXISTS (SELECT 1 FROM no_action_operations WHERE id = $1)),
        latest AS (
            SELECT number, reason = $5 AND data = $6 AND events = $7 AS is_same FROM no_action_contents
            WHERE scheduler = $2 AND definition = $4 ORDER BY number DESC LIMIT 1),
        fresh AS (
            INSERT INTO no_action_contents (scheduler, definition, reason, data, events, since)
            SELECT $2, $4, $5, $6, $7, $8 FROM asked WHERE NOT EXISTS (SELECT 1 FROM latest WHERE is_same)
            RETURNING number),
        recorded AS (
            INSERT INTO no_action_operations (id, content, after, at)
            SELECT $1, coalesce((SELECT number FROM fresh), (SELECT number FROM latest)),
                (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM operation_sequence), $8
            FROM asked RETURNING 1)
        SELECT EXISTS (SELECT 1 FROM recorded) AS done";
    let NoAction { id, scheduler, routine, reason, data, events, at } = new;
    let events = serde_json::Value::from(events.clone()).to_string();
    Statement::new(
        sql,
        values![
            *id,
            scheduler,
            SchedulerState::Deleting.as_str(),
            routine.definition().name().to_owned(),
            reason,
            data.to_string(),
            events,
            *at,
        ],
    )
}

pub(crate) async fn why_not_recorded(session: &Session, new: &NoAction) -> Result<Refusal> {
    Ok(match schedulers::state(session, &new.scheduler).await? {
        SchedulerState::Deleting => Refusal::SchedulerBeingDeleted(new.scheduler.clone()),
        SchedulerState::Creating | SchedulerState::InSync => Refusal::OperationExists(new.id),
    })
}

/// What is old is found by its id, which begins with its time, and then by the time, because the clock may have been set.
pub(crate) async fn forget(session: &Session, before: Timestamp) -> Result {
    // The first ten bytes of an id that is made at that time or later are not smaller than these.
    let first_kept = OperationId::new(before, [0; 10]);
    let sql = "DELETE FROM no_action_operations WHERE id < $1 AND at < $2";
    session.ask(sql, values![first_kept, before]).await?;
    let sql = "DELETE FROM no_action_contents AS old WHERE EXISTS (
         SELECT 1 FROM no_action_contents AS next
         WHERE next.scheduler = old.scheduler AND next.definition = old.definition
           AND next.number > old.number AND next.since < $1)";
    session.ask(sql, values![before]).await.map(drop)
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT o.id, o.at, c.scheduler, c.definition, c.reason, c.data, c.events
             FROM no_action_operations AS o JOIN no_action_contents AS c ON c.number = o.content ",
            $rest
        )
    };
}

pub(crate) async fn one(
    session: &Session,
    scheduler: &SchedulerName,
    id: OperationId,
) -> Result<Option<Operation>> {
    let sql = select!("WHERE o.id = $1 AND c.scheduler = $2");
    let rows = session.rows(sql, values![id, scheduler]).await?;
    read_first(&rows, operation)
}

pub(crate) async fn several(
    session: &Session,
    scheduler: &SchedulerName,
    ids: Vec<Uuid>,
) -> Result<HashMap<OperationId, Operation>> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let sql = select!("WHERE o.id = ANY ($1) AND c.scheduler = $2");
    let rows = session.rows(sql, values![ids, scheduler]).await?;
    let found = read_rows(&rows, operation)?;
    Ok(found.into_iter().map(|operation| (operation.id, operation)).collect())
}

/// Which rows of `no_action_operations AS n` are asked for.
pub(crate) fn push_condition(query: &mut Query<'static>, scheduler: &SchedulerName, only: OperationFilter) {
    let OperationFilter { kind, status, since, id } = only;
    query.push("content IN (SELECT number FROM no_action_contents WHERE scheduler = ");
    query.bind(scheduler.as_str().to_owned());
    query.and("definition = ", kind.map(|kind| kind.as_str()));
    query.push(")");
    let ids = id.map(|prefix| prefix.bounds());
    // All of them have finished.
    query.and("", status.map(|status| status == OperationStatus::Finished));
    query.and("n.at >= ", since);
    query.and("n.id >= ", ids.map(|(first, _)| first));
    query.and("n.id <= ", ids.map(|(_, last)| last));
}

fn operation(columns: &Columns<'_>) -> Result<Operation> {
    let record = NoAction {
        id: columns.operation("id")?,
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
