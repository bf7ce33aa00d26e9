//! Changes of operations: the queue, the slot, status and history.

use maestro_core::operation::queue::UNFINISHED_MAX;
use maestro_core::operation::{
    Activity, CancelRequest, Definition, DefinitionKind, HistoryEvent, Lease, OperationId, OperationStatus,
    Origin, Rollback,
};
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::Timestamp;
use maestro_engine::documents;
use maestro_engine::ports::store::{
    NewOperation, OperationUpdate, Refusal, SchedulerState, VERSION_OPERATIONS,
};
use rusqlite::types::ToSql;
use rusqlite::{Connection, params_from_iter};

use super::columns::{Values, execute, find, from_id, from_time, from_token, insert, read_rows, value};
use super::failure::{Failure, Result};
use super::{locks, no_action, schedulers};

pub(super) fn enqueue(connection: &Connection, new: &NewOperation) -> Result {
    let state = schedulers::state(connection, &new.scheduler)?;
    if state == SchedulerState::Deleting && !matches!(new.definition, Definition::DeleteScheduler) {
        return Err(Refusal::SchedulerBeingDeleted(new.scheduler.clone()).into());
    }
    if exists(connection, new.id)? || no_action::exists(connection, new.id)? {
        return Err(Refusal::OperationExists(new.id).into());
    }
    match new.definition {
        Definition::DeleteScheduler => {
            let kinds = [DefinitionKind::DeleteScheduler; 2];
            refuse_second(connection, &new.scheduler, kinds, |scheduler, operation| {
                Refusal::DeletionUnderWay { scheduler, operation }
            })?;
        }
        _ if new.origin.is_person() && !new.priority => refuse_too_many(connection, &new.scheduler)?,
        _ => {}
    }
    if new.only_version_operation {
        refuse_second(connection, &new.scheduler, VERSION_OPERATIONS, |scheduler, operation| {
            Refusal::VersionOperationUnderWay { scheduler, operation }
        })?;
    }
    let (origin, person) = match &new.origin {
        Origin::Person(person) => ("person", Some(person)),
        Origin::Controller => ("controller", None),
        Origin::Panic => ("panic", None),
        Origin::Engine => ("engine", None),
    };
    insert(
        connection,
        "INSERT INTO operations",
        &[
            ("id", &from_id(new.id)),
            ("scheduler", &new.scheduler.as_str()),
            ("definition", &new.definition.name()),
            ("input", &documents::definition_to_json(&new.definition).to_string()),
            ("origin", &origin),
            ("person", &person),
            ("priority", &new.priority),
            ("status", &OperationStatus::Pending.as_str()),
            ("progress", &new.progress.to_string()),
            ("data", &"null"),
            ("reason", &new.reason),
            ("fleet_delta", &new.fleet_delta),
            ("created_at", &from_time(new.created_at)),
        ],
    )?;
    let created = HistoryEvent { at: new.created_at, event: "Created".into() };
    append_history(connection, connection.last_insert_rowid(), &[created])
}

pub(super) fn exists(connection: &Connection, id: OperationId) -> Result<bool> {
    value(connection, "SELECT EXISTS (SELECT 1 FROM operations WHERE id = ?1)", [from_id(id)])
}

fn refuse_too_many(connection: &Connection, scheduler: &SchedulerName) -> Result {
    let sql = "SELECT count(*) FROM operations WHERE scheduler = ?1 AND ended_at IS NULL";
    match value::<u32>(connection, sql, [scheduler.as_str()])? {
        UNFINISHED_MAX.. => Err(Refusal::QueueFull(scheduler.clone()).into()),
        _ => Ok(()),
    }
}

/// `refusal`: what to say if an operation of one of these kinds is unfinished.
fn refuse_second(
    connection: &Connection,
    scheduler: &SchedulerName,
    kinds: [DefinitionKind; 2],
    refusal: impl FnOnce(SchedulerName, OperationId) -> Refusal,
) -> Result {
    let sql = "SELECT id FROM operations
         WHERE scheduler = ?1 AND ended_at IS NULL AND definition IN (?2, ?3) ORDER BY sequence LIMIT 1";
    let [one, other] = kinds.map(DefinitionKind::as_str);
    let first =
        read_rows(connection, sql, (scheduler.as_str(), one, other), |columns| columns.id("id"))?.pop();
    first.map_or(Ok(()), |operation| Err(refusal(scheduler.clone(), operation).into()))
}

pub(super) fn start(
    connection: &Connection,
    operation: OperationId,
    lease: &Lease,
    history: &[HistoryEvent],
) -> Result {
    let current = Current::of(connection, operation)?.in_status(OperationStatus::Pending)?;
    current.require_slot(connection)?;
    current.set(connection, &[("status", &OperationStatus::InProgress.as_str()), ("executing", &true)])?;
    current.set_lease(connection, lease)?;
    append_history(connection, current.sequence, history)
}

pub(super) fn update(connection: &Connection, update: &OperationUpdate) -> Result {
    let OperationUpdate { operation, activity, progress, data, lease, history } = update;
    let current = Current::of(connection, *operation)?.in_status(OperationStatus::InProgress)?;
    if let Some(activity) = activity {
        current.set_activity(connection, activity)?;
    }
    if let Some(progress) = progress {
        current.set(connection, &[("progress", &progress.to_string())])?;
    }
    if let Some(data) = data {
        current.set(connection, &[("data", &data.to_string())])?;
    }
    if let Some(lease) = lease {
        current.set_lease(connection, lease)?;
    }
    append_history(connection, current.sequence, history)
}

/// Refuses a step forward of an operation that rolls back.
pub(super) fn require_forward(connection: &Connection, operation: OperationId) -> Result {
    let sql = "SELECT EXISTS (SELECT 1 FROM operations WHERE id = ?1 AND rollback_then IS NOT NULL)";
    let rolls_back: bool = value(connection, sql, [from_id(operation)])?;
    if rolls_back { Err(Refusal::RollsBack(operation).into()) } else { Ok(()) }
}

pub(super) fn roll_back(
    connection: &Connection,
    operation: OperationId,
    rollback: &Rollback,
    history: &[HistoryEvent],
) -> Result {
    let current = Current::of(connection, operation)?;
    if current.status.is_final() {
        return Err(current.wrong_status());
    }
    let Rollback { then, why } = rollback;
    let sql = "UPDATE operations SET rollback_then = ?2, rollback_why = ?3,
             wait_until = CASE WHEN wait_until IS NULL THEN NULL ELSE 0 END
         WHERE sequence = ?1 AND rollback_then IS NULL";
    execute(connection, sql, (current.sequence, then.status().as_str(), why))?;
    append_history(connection, current.sequence, history)
}

pub(super) fn end(
    connection: &Connection,
    operation: OperationId,
    status: OperationStatus,
    took_action: bool,
    at: Timestamp,
    history: &[HistoryEvent],
) -> Result {
    let current = Current::of(connection, operation)?;
    if !status.is_final() || current.status.become_(status).is_err() {
        return Err(current.wrong_status());
    }
    let sql = "UPDATE operations
         SET status = ?2, took_action = ?3, ended_at = ?4, executing = 0, wait_what = NULL, wait_until = NULL,
             lease_owner = NULL, lease_token = NULL, lease_expires_at = NULL
         WHERE sequence = ?1";
    execute(connection, sql, (current.sequence, status.as_str(), took_action, from_time(at)))?;
    locks::free_all_of(connection, &current.scheduler, operation)?;
    append_history(connection, current.sequence, history)
}

pub(super) fn cancel_pending(
    connection: &Connection,
    operation: OperationId,
    at: Timestamp,
    history: &[HistoryEvent],
) -> Result {
    Current::of(connection, operation)?.in_status(OperationStatus::Pending)?;
    end(connection, operation, OperationStatus::Canceled, true, at, history)
}

/// What asking for it added to the fleet size, as far as that still stands.
pub(super) fn fleet_delta(connection: &Connection, operation: OperationId) -> Result<i64> {
    let sql = "SELECT fleet_delta FROM operations WHERE id = ?1";
    Ok(find(connection, sql, [from_id(operation)])?.unwrap_or(0))
}

pub(super) fn forget_fleet_deltas(
    connection: &Connection,
    scheduler: &SchedulerName,
    before: Option<OperationId>,
) -> Result {
    let sql = "UPDATE operations SET fleet_delta = 0
         WHERE scheduler = ?1 AND ended_at IS NULL
           AND (?2 IS NULL OR sequence < (SELECT sequence FROM operations WHERE id = ?2))";
    execute(connection, sql, (scheduler.as_str(), before.map(from_id)))
}

pub(super) fn request_cancel(
    connection: &Connection,
    operation: OperationId,
    request: &CancelRequest,
    history: &[HistoryEvent],
) -> Result {
    let current = Current::of(connection, operation)?.in_status(OperationStatus::InProgress)?;
    let sql =
        "UPDATE operations SET cancel_by = ?2, cancel_at = ?3 WHERE sequence = ?1 AND cancel_by IS NULL";
    execute(connection, sql, (current.sequence, &request.by, from_time(request.at)))?;
    append_history(connection, current.sequence, history)
}

pub(super) fn forget(
    connection: &Connection,
    scheduler: Option<&SchedulerName>,
    ended_before: Timestamp,
    no_action_before: Timestamp,
) -> Result {
    let (ended_before, no_action_before) = (from_time(ended_before), from_time(no_action_before));
    match scheduler {
        Some(scheduler) => {
            let sql = format!("DELETE FROM operations WHERE scheduler = ?3 AND {TO_FORGET}");
            execute(connection, &sql, (ended_before, no_action_before, scheduler.as_str()))
        }
        None => {
            let sql = format!(
                "DELETE FROM operations WHERE scheduler NOT IN (SELECT name FROM schedulers) AND {TO_FORGET}"
            );
            execute(connection, &sql, (ended_before, no_action_before))
        }
    }
}

/// What is older than the first time, and what changed nothing and is older than the second.
const TO_FORGET: &str = "ended_at IS NOT NULL AND (ended_at < ?1 OR (took_action = 0 AND ended_at < ?2))";

pub(super) fn schedulers_in_hand(connection: &Connection) -> Result<u32> {
    let sql = "SELECT count(*) FROM operations
         WHERE ended_at IS NULL AND definition IN ('create_scheduler', 'delete_scheduler')
           AND (status = 'pending' OR executing = 1)";
    value(connection, sql, [])
}

pub(super) fn has_any_to_forget(
    connection: &Connection,
    scheduler: &SchedulerName,
    ended_before: Timestamp,
    no_action_before: Timestamp,
) -> Result<bool> {
    let sql = format!("SELECT EXISTS (SELECT 1 FROM operations WHERE scheduler = ?3 AND {TO_FORGET})");
    value(connection, &sql, (from_time(ended_before), from_time(no_action_before), scheduler.as_str()))
}

/// An operation that a change is about.
struct Current {
    sequence: i64,
    id: OperationId,
    scheduler: String,
    status: OperationStatus,
}

impl Current {
    fn of(connection: &Connection, id: OperationId) -> Result<Self> {
        let sql = "SELECT sequence, scheduler, status FROM operations WHERE id = ?1";
        let current = read_rows(connection, sql, [from_id(id)], |columns| {
            Ok(Self {
                sequence: columns.get("sequence")?,
                id,
                scheduler: columns.get("scheduler")?,
                status: columns.parsed("status", OperationStatus::parse)?,
            })
        })?;
        current.into_iter().next().ok_or_else(|| Refusal::OperationNotFound(id).into())
    }

    fn in_status(self, status: OperationStatus) -> Result<Self> {
        if self.status == status { Ok(self) } else { Err(self.wrong_status()) }
    }

    fn wrong_status(&self) -> Failure {
        let refusal = Refusal::WrongStatus { operation: self.id, is: self.status };
        refusal.into()
    }

    /// The unique index would refuse it too, but could not say by whom the slot is held.
    fn require_slot(&self, connection: &Connection) -> Result {
        let sql = "SELECT id FROM operations WHERE scheduler = ?1 AND executing = 1 AND sequence <> ?2";
        let holder: Option<String> = find(connection, sql, (&self.scheduler, self.sequence))?;
        match holder.as_deref().and_then(OperationId::parse) {
            Some(by) => Err(Refusal::SlotTaken { by }.into()),
            None => Ok(()),
        }
    }

    fn set(&self, connection: &Connection, row: Values<'_>) -> Result {
        let columns: Vec<_> = row.iter().map(|(column, _)| format!("{column} = ?")).collect();
        let sql = format!("UPDATE operations SET {} WHERE sequence = ?", columns.join(", "));
        let sequence: &dyn ToSql = &self.sequence;
        let values = row.iter().map(|(_, value)| *value).chain([sequence]);
        execute(connection, &sql, params_from_iter(values))
    }

    fn set_activity(&self, connection: &Connection, activity: &Activity) -> Result {
        let wait = match activity {
            Activity::Executing => None,
            Activity::Parked(wait) => Some(wait),
        };
        if wait.is_none() {
            self.require_slot(connection)?;
        }
        let row: Values<'_> = &[
            ("executing", &wait.is_none()),
            ("wait_what", &wait.map(|wait| &wait.what)),
            ("wait_until", &wait.map(|wait| from_time(wait.until))),
            ("wait_unanswered", &wait.is_some_and(|wait| wait.unanswered)),
        ];
        self.set(connection, row)
    }

    fn set_lease(&self, connection: &Connection, lease: &Lease) -> Result {
        let Lease { owner, token, expires_at } = lease;
        let (token, expires_at) = (from_token(*token), from_time(*expires_at));
        let row: Values<'_> =
            &[("lease_owner", owner), ("lease_token", &token), ("lease_expires_at", &expires_at)];
        self.set(connection, row)
    }
}

fn append_history(connection: &Connection, sequence: i64, history: &[HistoryEvent]) -> Result {
    let mut statement = connection.prepare_cached(
        "INSERT INTO operation_history (operation, position, at, event)
         SELECT ?1, coalesce(max(position), 0) + 1, ?2, ?3 FROM operation_history WHERE operation = ?1",
    )?;
    for HistoryEvent { at, event } in history {
        statement.execute((sequence, from_time(*at), event))?;
    }
    Ok(())
}
