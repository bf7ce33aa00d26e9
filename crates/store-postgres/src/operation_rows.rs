//! Queries about operations.

use std::collections::HashMap;

use maestro_core::operation::{
    Activity, CancelRequest, Definition, HistoryEvent, Lease, Operation, OperationId, OperationStatus,
    Origin, Rollback, RollbackEnd, Stage, Wait,
};
use maestro_core::scheduler::SchedulerName;
use maestro_engine::documents::{self, unknown_value};
use maestro_engine::ports::store::{OperationFilter, OperationPage, PageRequest};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::columns::{Columns, read_first, read_rows, to_operation, to_time};
use crate::failure::Result;
use crate::no_action;
use crate::query::Query;
use crate::session::{Session, Statement};
use crate::value::values;

/// All columns but `progress` and the history, which lists leave out.
macro_rules! columns {
    () => {
        "sequence, id, scheduler, definition, input, origin, person, priority, status, executing, wait_what, wait_until,
            wait_unanswered, rollback_then, rollback_why, data, reason, fleet_delta, lease_owner, lease_token,
            lease_expires_at, cancel_by, cancel_at, took_action, created_at, ended_at"
    };
}

/// Operations with their histories, as JSON.
macro_rules! select_whole {
    ($rest:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            ", progress, (SELECT json_agg(json_build_array(at, event) ORDER BY position)
                FROM operation_history WHERE operation = sequence)::TEXT AS history FROM operations ",
            $rest
        )
    };
}

macro_rules! select_without_history {
    ($rest:literal) => {
        concat!("SELECT ", columns!(), ", progress, NULL::TEXT AS history FROM operations ", $rest)
    };
}

pub(crate) async fn one(
    session: &Session,
    scheduler: &SchedulerName,
    id: OperationId,
) -> Result<Option<Operation>> {
    let sql = select_whole!("WHERE id = $1 AND scheduler = $2");
    let rows = session.rows(sql, values![id, scheduler]).await?;
    match read_first(&rows, |columns| operation(columns, Definitions::Shown))? {
        Some(found) => Ok(Some(found)),
        None => no_action::one(session, scheduler, id).await,
    }
}

pub(crate) fn unfinished(scheduler: &SchedulerName) -> Statement<'_> {
    let sql = select_whole!("WHERE scheduler = $1 AND ended_at IS NULL ORDER BY sequence");
    Statement::new(sql, values![scheduler])
}

pub(crate) fn unfinished_without_history(scheduler: &SchedulerName) -> Statement<'_> {
    let sql = select_without_history!("WHERE scheduler = $1 AND ended_at IS NULL ORDER BY sequence");
    Statement::new(sql, values![scheduler])
}

/// What is to be executed: one that cannot be read must not be skipped.
pub(crate) fn read_queue(rows: &[Row]) -> Result<Vec<Operation>> {
    read_rows(rows, |columns| operation(columns, Definitions::Executed))
}

/// Written as its index is, so that it is found along it.
pub(crate) async fn of_versions(
    session: &Session,
    scheduler: &SchedulerName,
    operations_max: u32,
) -> Result<Vec<Operation>> {
    let sql = select_whole!(
        "WHERE scheduler = $1 AND definition IN ('create_new_scheduler_version', 'switch_active_version')
         ORDER BY sequence DESC LIMIT $2"
    );
    let rows = session.rows(sql, values![scheduler, operations_max]).await?;
    read_rows(&rows, |columns| operation(columns, Definitions::Shown))
}

/// `session`: a snapshot.
pub(crate) async fn page(
    session: &Session,
    scheduler: &SchedulerName,
    stage: Stage,
    request: PageRequest,
) -> Result<OperationPage> {
    let PageRequest { no_action, .. } = request;
    let with_recorded = no_action && stage == Stage::Final;
    let mut count = Query::new("SELECT (SELECT count(*) FROM operations WHERE ");
    push_condition(&mut count, scheduler, stage, request);
    count.push(")");
    if with_recorded {
        count.push(" + (SELECT count(*) FROM no_action_operations AS n WHERE ");
        no_action::push_condition(&mut count, scheduler, request.only);
        count.push(")");
    }
    let total: i64 = session.ask_one(&count.into()).await?.value()?.unwrap_or_default();
    let places = session.ask_one(&places(scheduler, stage, request, with_recorded)).await?.rows;
    let places = read_rows(&places, |columns| {
        Ok((columns.get::<i64>("sequence")?, columns.get::<Option<Uuid>>("id")?))
    })?;
    let operations = at_places(session, scheduler, &places).await?;
    Ok(OperationPage { total: u32::try_from(total).unwrap_or(u32::MAX), operations })
}

/// Where the operations of a page are: their sequence or, of those that were recorded, that of the operation that was
/// enqueued last before them, and their id. An operation comes before those that were recorded after it.
fn places(
    scheduler: &SchedulerName,
    stage: Stage,
    request: PageRequest,
    with_recorded: bool,
) -> Statement<'static> {
    let PageRequest { page, page_size, newest_first, no_action: _, only } = request;
    let mut query = Query::new("SELECT sequence, NULL::UUID AS id FROM operations WHERE ");
    push_condition(&mut query, scheduler, stage, request);
    if with_recorded {
        query.push(" UNION ALL SELECT after, n.id FROM no_action_operations AS n WHERE ");
        no_action::push_condition(&mut query, scheduler, only);
    }
    query.push(match newest_first {
        true => " ORDER BY 1 DESC, 2 DESC NULLS LAST",
        false => " ORDER BY 1, 2 NULLS FIRST",
    });
    let offset = i64::from(page.saturating_sub(1)).saturating_mul(page_size.into());
    query.push(" LIMIT ").bind(page_size).push(" OFFSET ").bind(offset);
    query.into()
}

async fn at_places(
    session: &Session,
    scheduler: &SchedulerName,
    places: &[(i64, Option<Uuid>)],
) -> Result<Vec<Operation>> {
    let is_enqueued = |(_, recorded): &&(i64, Option<Uuid>)| recorded.is_none();
    let sequences: Vec<_> = places.iter().filter(is_enqueued).map(|(sequence, _)| *sequence).collect();
    let sql = concat!(
        "SELECT ",
        columns!(),
        ", 'null' AS progress, NULL::TEXT AS history FROM operations WHERE sequence = ANY ($1)"
    );
    let rows = session.rows(sql, values![sequences]).await?;
    let mut enqueued: HashMap<i64, Operation> =
        read_rows(&rows, |columns| Ok((columns.get("sequence")?, operation(columns, Definitions::Shown)?)))?
            .into_iter()
            .collect();
    let recorded = places.iter().filter_map(|(_, recorded)| *recorded).collect();
    let mut recorded = no_action::several(session, scheduler, recorded).await?;
    let take = |(sequence, id): &(i64, Option<Uuid>)| match id {
        None => enqueued.remove(sequence),
        Some(id) => recorded.remove(&to_operation(*id)),
    };
    let found = places.iter().filter_map(take);
    Ok(found.map(|found| Operation { history: Vec::new(), ..found }).collect())
}

fn push_condition(query: &mut Query<'static>, scheduler: &SchedulerName, stage: Stage, request: PageRequest) {
    let PageRequest { no_action, only, .. } = request;
    let OperationFilter { kind, status, since, id } = only;
    // Written so that each combination is answered along an index of its own.
    query.push(match stage {
        Stage::Pending => "ended_at IS NULL AND status = 'pending'",
        Stage::Active => "ended_at IS NULL AND status = 'in_progress'",
        Stage::Final => "ended_at IS NOT NULL",
    });
    let ids = id.map(|prefix| prefix.bounds());
    query.push(" AND scheduler = ").bind(scheduler.as_str().to_owned());
    query.and("definition = ", kind.map(|kind| kind.as_str()));
    query.and("status = ", status.map(OperationStatus::as_str));
    query.and("created_at >= ", since);
    query.and("id >= ", ids.map(|(first, _)| first));
    query.and("id <= ", ids.map(|(_, last)| last));
    if !no_action {
        query.push(" AND took_action");
    }
}

/// What definitions are read for.
#[derive(Clone, Copy)]
enum Definitions {
    /// One that cannot be read is shown as it is stored: a list has others.
    Shown,
    /// One that cannot be read must not be skipped: the order of a queue means something.
    Executed,
}

fn operation(columns: &Columns<'_>, definitions: Definitions) -> Result<Operation> {
    let status = columns.parsed("status", OperationStatus::parse)?;
    Ok(Operation {
        id: columns.operation("id")?,
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
        history: history(columns)?,
    })
}

fn history(columns: &Columns<'_>) -> Result<Vec<HistoryEvent>> {
    let read = |text: &str| serde_json::from_str::<Vec<(i64, String)>>(text).ok();
    let events = columns.optional("history", read)?.unwrap_or_default();
    let event = |(at, event)| Ok(HistoryEvent { at: to_time(at, "at")?, event });
    events.into_iter().map(event).collect()
}

fn definition(columns: &Columns<'_>, definitions: Definitions) -> Result<Definition> {
    let (name, input): (String, _) = (columns.get("definition")?, columns.json("input")?);
    match (documents::definition_from_json(&name, &input), definitions) {
        (Ok(definition), _) => Ok(definition),
        (Err(_), Definitions::Shown) => Ok(Definition::Unknown { name, input }),
        (Err(unreadable), Definitions::Executed) => Err(unreadable.into()),
    }
}

fn origin(columns: &Columns<'_>) -> Result<Origin> {
    let origin: &str = columns.get("origin")?;
    Ok(match origin {
        "person" => Origin::Person(columns.get::<Option<String>>("person")?.unwrap_or_default()),
        "controller" => Origin::Controller,
        "panic" => Origin::Panic,
        "engine" => Origin::Engine,
        other => return Err(unknown_value("origin", other).into()),
    })
}

fn activity(columns: &Columns<'_>, status: OperationStatus) -> Result<Activity> {
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

fn rollback(columns: &Columns<'_>) -> Result<Option<Rollback>> {
    let then: Option<&str> = columns.get("rollback_then")?;
    let then = match then {
        None => return Ok(None),
        Some("error") => RollbackEnd::Error,
        Some("canceled") => RollbackEnd::Canceled,
        Some(other) => return Err(unknown_value("rollback_then", other).into()),
    };
    let why = columns.get("rollback_why")?;
    Ok(Some(Rollback { then, why }))
}

fn lease(columns: &Columns<'_>) -> Result<Option<Lease>> {
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

fn cancel(columns: &Columns<'_>) -> Result<Option<CancelRequest>> {
    let by: Option<String> = columns.get("cancel_by")?;
    by.map(|by| {
        let at = columns.time("cancel_at")?;
        Ok(CancelRequest { by, at })
    })
    .transpose()
}
