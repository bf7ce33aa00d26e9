//! Changes of operations: the queue, the slot, status and history.

use maestro_core::operation::queue::UNFINISHED_MAX;
use maestro_core::operation::{
    Activity, CancelRequest, Definition, DefinitionKind, HistoryEvent, Lease, OperationId, OperationStatus,
    Origin, Rollback,
};
use maestro_core::scheduler::{SchedulerName, SchedulerState};
use maestro_core::time::Timestamp;
use maestro_engine::documents;
use maestro_engine::ports::store::{NewOperation, OperationUpdate, Refusal, VERSION_OPERATIONS};
use uuid::Uuid;

use crate::columns::{Columns, read_first, to_number, to_operation};
use crate::failure::{Failure, Result};
use crate::session::{Session, Statement};
use crate::value::{Value, values};

/// Changes the operation that `$1` names as far as the condition allows, appends to its history (`$2` and `$3`), and answers
/// whether it was changed.
macro_rules! change {
    (SET $set:literal WHERE $condition:literal $(, $beside:literal)?) => {
        concat!(
            "WITH changed AS (UPDATE operations AS o SET ", $set, " WHERE o.id = $1 AND ", $condition,
            " RETURNING o.sequence, o.scheduler, o.id), told AS (
                INSERT INTO operation_history (operation, position, at, event)
                SELECT sequence, position + coalesce(
                    (SELECT max(h.position) FROM operation_history AS h WHERE h.operation = sequence), 0), at, event
                FROM changed, unnest($2, $3) WITH ORDINALITY AS history (at, event, position))",
            $(", ", $beside,)?
            " SELECT EXISTS (SELECT 1 FROM changed) AS done"
        )
    };
}

/// `$1` to `$3` of [`change!`].
fn told<'a>(operation: OperationId, history: &'a [HistoryEvent]) -> Vec<Value<'a>> {
    let times: Vec<_> = history.iter().map(|event| event.at.as_microsecond()).collect();
    let events: Vec<_> = history.iter().map(|event| event.event.as_str()).collect();
    values![operation, times, events].into()
}

pub(crate) async fn enqueue(session: &Session, new: &NewOperation) -> Result {
    check_new(session, new).await?;
    let sql = "WITH new AS (
            INSERT INTO operations
                (id, scheduler, definition, input, origin, person, priority, status, progress, reason, fleet_delta,
                 created_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) RETURNING sequence)
        INSERT INTO operation_history (operation, position, at, event) SELECT sequence, 1, $12, 'Created' FROM new";
    let (origin, person) = match &new.origin {
        Origin::Person(person) => ("person", Some(person.as_str())),
        Origin::Controller => ("controller", None),
        Origin::Panic => ("panic", None),
        Origin::Engine => ("engine", None),
    };
    let row = values![
        new.id,
        &new.scheduler,
        new.definition.name(),
        documents::definition_to_json(&new.definition).to_string(),
        origin,
        person,
        new.priority,
        OperationStatus::Pending.as_str(),
        new.progress.to_string(),
        &new.reason,
        new.fleet_delta,
        new.created_at,
    ];
    session.ask(sql, row).await.map(drop)
}

/// All that may be in the way of a new operation, in one question.
async fn check_new(session: &Session, new: &NewOperation) -> Result {
    let sql = "SELECT state,
            EXISTS (SELECT 1 FROM operations WHERE id = $2)
                OR EXISTS (SELECT 1 FROM no_action_operations WHERE id = $2) AS is_known,
            (SELECT count(*) FROM operations WHERE scheduler = $1 AND ended_at IS NULL) AS unfinished,
            (SELECT id FROM operations WHERE scheduler = $1 AND ended_at IS NULL AND definition = $3
             ORDER BY sequence LIMIT 1) AS deletion,
            (SELECT id FROM operations WHERE scheduler = $1 AND ended_at IS NULL AND definition IN ($4, $5)
             ORDER BY sequence LIMIT 1) AS of_versions
         FROM schedulers WHERE name = $1";
    let [one, other] = VERSION_OPERATIONS.map(DefinitionKind::as_str);
    let kinds = values![&new.scheduler, new.id, DefinitionKind::DeleteScheduler.as_str(), one, other];
    let rows = session.rows(sql, kinds).await?;
    let refused = read_first(&rows, |columns| why_not_enqueued(columns, new))?;
    match refused.unwrap_or_else(|| Some(Refusal::SchedulerNotFound(new.scheduler.clone()))) {
        Some(refusal) => Err(refusal.into()),
        None => Ok(()),
    }
}

fn why_not_enqueued(columns: &Columns<'_>, new: &NewOperation) -> Result<Option<Refusal>> {
    let scheduler = || new.scheduler.clone();
    let first = |column| Ok::<_, Failure>(columns.get::<Option<Uuid>>(column)?.map(to_operation));
    let state = columns.parsed("state", SchedulerState::parse)?;
    let is_deletion = matches!(new.definition, Definition::DeleteScheduler);
    if state == SchedulerState::Deleting && !is_deletion {
        return Ok(Some(Refusal::SchedulerBeingDeleted(scheduler())));
    }
    if columns.get("is_known")? {
        return Ok(Some(Refusal::OperationExists(new.id)));
    }
    if is_deletion {
        if let Some(operation) = first("deletion")? {
            return Ok(Some(Refusal::DeletionUnderWay { scheduler: scheduler(), operation }));
        }
    } else if new.origin.is_person()
        && !new.priority
        && columns.get::<i64>("unfinished")? >= i64::from(UNFINISHED_MAX)
    {
        return Ok(Some(Refusal::QueueFull(scheduler())));
    }
    if new.only_version_operation
        && let Some(operation) = first("of_versions")?
    {
        return Ok(Some(Refusal::VersionOperationUnderWay { scheduler: scheduler(), operation }));
    }
    Ok(None)
}

pub(crate) fn start<'a>(
    operation: OperationId,
    lease: &'a Lease,
    history: &'a [HistoryEvent],
) -> Statement<'a> {
    let sql = change!(
        SET "status = 'in_progress', executing = TRUE, lease_owner = $4, lease_token = $5, lease_expires_at = $6"
        WHERE "o.status = 'pending' AND NOT EXISTS (SELECT 1 FROM operations AS other
            WHERE other.scheduler = o.scheduler AND other.executing AND other.sequence <> o.sequence)"
    );
    let Lease { owner, token, expires_at } = lease;
    let mut values = told(operation, history);
    values.extend(values![owner, *token, *expires_at]);
    Statement::new(sql, values)
}

pub(crate) fn update(update: &OperationUpdate) -> Statement<'_> {
    let OperationUpdate { operation, activity, progress, data, lease, history } = update;
    let sql = change!(
        SET "executing = coalesce($4, o.executing),
            wait_what = CASE WHEN $4 IS NULL THEN o.wait_what ELSE $5 END,
            wait_until = CASE WHEN $4 IS NULL THEN o.wait_until ELSE $6 END,
            wait_unanswered = CASE WHEN $4 IS NULL THEN o.wait_unanswered ELSE $7 END,
            progress = coalesce($8, o.progress), data = coalesce($9, o.data),
            lease_owner = coalesce($10, o.lease_owner), lease_token = coalesce($11, o.lease_token),
            lease_expires_at = coalesce($12, o.lease_expires_at)"
        WHERE "o.status = 'in_progress' AND (NOT coalesce($4, FALSE)
            OR NOT EXISTS (SELECT 1 FROM operations AS other
                WHERE other.scheduler = o.scheduler AND other.executing AND other.sequence <> o.sequence))"
    );
    let executes = activity.as_ref().map(|activity| match activity {
        Activity::Executing => true,
        Activity::Parked(_) => false,
    });
    let wait = match activity {
        Some(Activity::Parked(wait)) => Some(wait),
        Some(Activity::Executing) | None => None,
    };
    let mut values = told(*operation, history);
    values.extend(values![
        executes,
        wait.map(|wait| wait.what.as_str()),
        wait.map(|wait| wait.until),
        wait.is_some_and(|wait| wait.unanswered),
        progress.as_ref().map(ToString::to_string),
        data.as_ref().map(ToString::to_string),
        lease.as_ref().map(|lease| lease.owner.as_str()),
        lease.as_ref().map(|lease| lease.token),
        lease.as_ref().map(|lease| lease.expires_at),
    ]);
    Statement::new(sql, values)
}

pub(crate) fn roll_back<'a>(
    operation: OperationId,
    rollback: &'a Rollback,
    history: &'a [HistoryEvent],
) -> Statement<'a> {
    let sql = change!(
        SET "rollback_then = coalesce(o.rollback_then, $4),
            rollback_why = CASE WHEN o.rollback_then IS NULL THEN $5 ELSE o.rollback_why END,
            wait_until = CASE WHEN o.rollback_then IS NULL AND o.wait_until IS NOT NULL THEN 0 ELSE o.wait_until END"
        WHERE "o.ended_at IS NULL"
    );
    let Rollback { then, why } = rollback;
    let mut values = told(operation, history);
    values.extend(values![then.status().as_str(), why]);
    Statement::new(sql, values)
}

pub(crate) fn end(
    operation: OperationId,
    status: OperationStatus,
    took_action: bool,
    at: Timestamp,
    history: &[HistoryEvent],
) -> Statement<'_> {
    let may_end = |current: &OperationStatus| status.is_final() && current.become_(status).is_ok();
    let from = OperationStatus::ALL.into_iter().filter(may_end).collect();
    end_from(operation, from, status, took_action, at, history)
}

/// One that has begun is not canceled so: what it has done would not be undone.
pub(crate) fn cancel_pending(
    operation: OperationId,
    at: Timestamp,
    history: &[HistoryEvent],
) -> Statement<'_> {
    let from = vec![OperationStatus::Pending];
    end_from(operation, from, OperationStatus::Canceled, true, at, history)
}

/// An operation that ended holds nothing and waits for nothing.
fn end_from(
    operation: OperationId,
    from: Vec<OperationStatus>,
    status: OperationStatus,
    took_action: bool,
    at: Timestamp,
    history: &[HistoryEvent],
) -> Statement<'_> {
    let sql = change!(
        SET "status = $5, took_action = $6, ended_at = $7, executing = FALSE, wait_what = NULL, wait_until = NULL,
            lease_owner = NULL, lease_token = NULL, lease_expires_at = NULL"
        WHERE "o.status = ANY ($4)",
        "freed AS (DELETE FROM locks USING changed
            WHERE locks.scheduler = changed.scheduler AND locks.operation = changed.id),
        left_line AS (DELETE FROM lock_waiters USING changed
            WHERE lock_waiters.scheduler = changed.scheduler AND lock_waiters.operation = changed.id)"
    );
    let from: Vec<_> = from.into_iter().map(OperationStatus::as_str).collect();
    let mut values = told(operation, history);
    values.extend(values![from, status.as_str(), took_action, at]);
    Statement::new(sql, values)
}

pub(crate) fn request_cancel<'a>(
    operation: OperationId,
    request: &'a CancelRequest,
    history: &'a [HistoryEvent],
) -> Statement<'a> {
    let sql = change!(
        SET "cancel_by = coalesce(o.cancel_by, $4),
            cancel_at = CASE WHEN o.cancel_by IS NULL THEN $5 ELSE o.cancel_at END"
        WHERE "o.status = 'in_progress'"
    );
    let mut values = told(operation, history);
    values.extend(values![&request.by, request.at]);
    Statement::new(sql, values)
}

/// A step forward is not one of an operation that rolls back.
pub(crate) fn goes_forward(operation: OperationId) -> Statement<'static> {
    let sql =
        "SELECT NOT EXISTS (SELECT 1 FROM operations WHERE id = $1 AND rollback_then IS NOT NULL) AS done";
    Statement::new(sql, values![operation])
}

/// `wanted`: the status in which the change would be possible but for the slot. `None`: in no status that it has.
pub(crate) async fn why_not_changed(
    session: &Session,
    operation: OperationId,
    wanted: Option<OperationStatus>,
) -> Result<Refusal> {
    let sql = "SELECT status, (SELECT other.id FROM operations AS other
             WHERE other.scheduler = o.scheduler AND other.executing AND other.sequence <> o.sequence) AS holder
         FROM operations AS o WHERE id = $1";
    let rows = session.rows(sql, values![operation]).await?;
    let found = read_first(&rows, |columns| {
        Ok((columns.parsed("status", OperationStatus::parse)?, columns.get::<Option<Uuid>>("holder")?))
    })?;
    Ok(match found {
        None => Refusal::OperationNotFound(operation),
        Some((is, Some(holder))) if wanted == Some(is) => Refusal::SlotTaken { by: to_operation(holder) },
        Some((is, _)) => Refusal::WrongStatus { operation, is },
    })
}

pub(crate) fn forget_fleet_deltas(scheduler: &SchedulerName, before: Option<OperationId>) -> Statement<'_> {
    let sql = "WITH forgotten AS (
            UPDATE operations SET fleet_delta = 0
            WHERE scheduler = $1 AND ended_at IS NULL AND fleet_delta <> 0
              AND ($2::UUID IS NULL OR sequence < (SELECT sequence FROM operations WHERE id = $2)))
        SELECT TRUE AS done";
    Statement::new(sql, values![scheduler, before])
}

/// What is older than the first time, and what changed nothing and is older than the second.
macro_rules! to_forget {
    () => {
        "ended_at IS NOT NULL AND (ended_at < $1 OR (NOT took_action AND ended_at < $2))"
    };
}

pub(crate) fn forget(
    scheduler: Option<&SchedulerName>,
    ended_before: Timestamp,
    no_action_before: Timestamp,
) -> Statement<'_> {
    let sql = concat!(
        "WITH forgotten AS (DELETE FROM operations WHERE ",
        to_forget!(),
        " AND CASE WHEN $3::TEXT IS NULL THEN scheduler NOT IN (SELECT name FROM schedulers) ELSE scheduler = $3 END)
        SELECT TRUE AS done"
    );
    Statement::new(sql, values![ended_before, no_action_before, scheduler])
}

pub(crate) async fn has_any_to_forget(
    session: &Session,
    scheduler: &SchedulerName,
    ended_before: Timestamp,
    no_action_before: Timestamp,
) -> Result<bool> {
    let sql = concat!("SELECT EXISTS (SELECT 1 FROM operations WHERE scheduler = $3 AND ", to_forget!(), ")");
    session.value(sql, values![ended_before, no_action_before, scheduler]).await
}

pub(crate) async fn schedulers_in_hand(session: &Session) -> Result<u32> {
    let sql = "SELECT count(*) FROM operations
         WHERE ended_at IS NULL AND definition IN ('create_scheduler', 'delete_scheduler')
           AND (status = 'pending' OR executing)";
    to_number(session.value(sql, values![]).await?, "count")
}
