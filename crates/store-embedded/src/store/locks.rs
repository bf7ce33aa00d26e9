//! Named locks, and who waits for them. `maestro_core::lock` decides who may take one; here are the rows.

use maestro_core::lock::{Holder, Lock, LockKind, Locks, Waiter};
use maestro_core::operation::{OperationId, Token};
use maestro_core::scheduler::SchedulerName;
use maestro_engine::ports::store::{NewLock, Refusal};
use rusqlite::{Connection, named_params};

use super::columns::{from_id, from_time, from_token, read_rows};
use super::failure::Failure;
use super::{schedulers, workers};

/// All locks of a scheduler, and all who wait for one.
pub(super) fn of(connection: &Connection, scheduler: &SchedulerName) -> Result<Locks, Failure> {
    Ok(Locks { held: held(connection, scheduler)?, waiters: waiters(connection, scheduler)? })
}

/// Refuses who believes to hold a lock by another token than the current one. An expired lock that nobody took is
/// still held.
pub(super) fn require(
    connection: &Connection,
    scheduler: &SchedulerName,
    kind: LockKind,
    token: Token,
) -> Result<(), Failure> {
    let holds: bool = connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM locks WHERE scheduler = ?1 AND kind = ?2 AND token = ?3)",
        )?
        .query_row((scheduler.as_str(), kind.as_str(), from_token(token)), |row| row.get(0))?;
    if holds { Ok(()) } else { Err(lost(scheduler, kind)) }
}

pub(super) fn take(connection: &Connection, new: &NewLock) -> Result<(), Failure> {
    let NewLock { scheduler, kind, taker, reason, at, expires_at } = new;
    schedulers::require(connection, scheduler)?;
    let locks = of(connection, scheduler)?;
    locks.may_take(*kind, *taker, *at).map_err(|obstacle| Refusal::LockHeld(Box::new(obstacle)))?;
    let (token, acquired_at) = match locks.held_by(*kind, taker.holder) {
        Some(own) => (own.token, own.acquired_at),
        None => (workers::next_token(connection)?, *at),
    };
    let lock = Lock {
        kind: *kind,
        holder: taker.holder,
        reason: reason.clone(),
        token,
        acquired_at,
        expires_at: *expires_at,
    };
    write(connection, scheduler, &lock)?;
    for holder in [Some(taker.holder), taker.instead_of].into_iter().flatten() {
        stop_awaiting(connection, scheduler, *kind, holder)?;
    }
    Ok(())
}

/// A place that is too old by now is left for one at the end.
pub(super) fn take_place(
    connection: &Connection,
    scheduler: &SchedulerName,
    waiter: &Waiter,
) -> Result<(), Failure> {
    let Waiter { kind, holder, since, until } = waiter;
    schedulers::require(connection, scheduler)?;
    connection
        .prepare_cached(
            "DELETE FROM lock_waiters WHERE scheduler = ?1 AND kind = ?2 AND holder = ?3 AND until <= ?4",
        )?
        .execute((scheduler.as_str(), kind.as_str(), holder.to_string(), from_time(*since)))?;
    connection
        .prepare_cached(
            "INSERT INTO lock_waiters (scheduler, kind, holder, operation, since, until)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (scheduler, kind, holder) DO NOTHING",
        )?
        .execute((
            scheduler.as_str(),
            kind.as_str(),
            holder.to_string(),
            holder.operation().map(from_id),
            from_time(*since),
            from_time(*until),
        ))?;
    Ok(())
}

pub(super) fn stop_awaiting(
    connection: &Connection,
    scheduler: &SchedulerName,
    kind: LockKind,
    holder: Holder,
) -> Result<(), Failure> {
    connection
        .prepare_cached("DELETE FROM lock_waiters WHERE scheduler = ?1 AND kind = ?2 AND holder = ?3")?
        .execute((scheduler.as_str(), kind.as_str(), holder.to_string()))?;
    Ok(())
}

pub(super) fn release(
    connection: &Connection,
    scheduler: &SchedulerName,
    kind: LockKind,
    holder: Holder,
) -> Result<(), Failure> {
    connection
        .prepare_cached("DELETE FROM locks WHERE scheduler = ?1 AND kind = ?2 AND holder = ?3")?
        .execute((scheduler.as_str(), kind.as_str(), holder.to_string()))?;
    Ok(())
}

pub(super) fn revoke(
    connection: &Connection,
    scheduler: &SchedulerName,
    kind: LockKind,
    token: Token,
) -> Result<(), Failure> {
    let revoked = connection
        .prepare_cached("DELETE FROM locks WHERE scheduler = ?1 AND kind = ?2 AND token = ?3")?
        .execute((scheduler.as_str(), kind.as_str(), from_token(token)))?;
    if revoked == 0 { Err(lost(scheduler, kind)) } else { Ok(()) }
}

/// An operation that ended holds nothing and waits for nothing.
pub(super) fn free_all_of(
    connection: &Connection,
    scheduler: &str,
    operation: OperationId,
) -> Result<(), Failure> {
    for statement in [
        "DELETE FROM locks WHERE scheduler = ?1 AND operation = ?2",
        "DELETE FROM lock_waiters WHERE scheduler = ?1 AND operation = ?2",
    ] {
        connection.prepare_cached(statement)?.execute((scheduler, from_id(operation)))?;
    }
    Ok(())
}

fn lost(scheduler: &SchedulerName, kind: LockKind) -> Failure {
    let refusal = Refusal::LockLost { scheduler: scheduler.clone(), kind };
    refusal.into()
}

fn write(connection: &Connection, scheduler: &SchedulerName, lock: &Lock) -> Result<(), Failure> {
    let Lock { kind, holder, reason, token, acquired_at, expires_at } = lock;
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO locks
                 (scheduler, kind, holder, operation, reason, token, acquired_at, expires_at)
             VALUES
                 (:scheduler, :kind, :holder, :operation, :reason, :token, :acquired_at, :expires_at)",
        )?
        .execute(named_params! {
            ":scheduler": scheduler.as_str(),
            ":kind": kind.as_str(),
            ":holder": holder.to_string(),
            ":operation": holder.operation().map(from_id),
            ":reason": reason,
            ":token": from_token(*token),
            ":acquired_at": from_time(*acquired_at),
            ":expires_at": expires_at.map(from_time),
        })?;
    Ok(())
}

fn held(connection: &Connection, scheduler: &SchedulerName) -> Result<Vec<Lock>, Failure> {
    let sql = "SELECT kind, holder, reason, token, acquired_at, expires_at FROM locks WHERE scheduler = ?1";
    let mut held = read_rows(connection, sql, [scheduler.as_str()], |columns| {
        Ok(Lock {
            kind: columns.parsed("kind", LockKind::parse)?,
            holder: columns.parsed("holder", Holder::parse)?,
            reason: columns.get("reason")?,
            token: columns.token("token")?,
            acquired_at: columns.time("acquired_at")?,
            expires_at: columns.optional_time("expires_at")?,
        })
    })?;
    held.sort_by_key(|lock| lock.kind);
    Ok(held)
}

fn waiters(connection: &Connection, scheduler: &SchedulerName) -> Result<Vec<Waiter>, Failure> {
    let sql = "SELECT kind, holder, since, until FROM lock_waiters WHERE scheduler = ?1 ORDER BY sequence";
    read_rows(connection, sql, [scheduler.as_str()], |columns| {
        Ok(Waiter {
            kind: columns.parsed("kind", LockKind::parse)?,
            holder: columns.parsed("holder", Holder::parse)?,
            since: columns.time("since")?,
            until: columns.time("until")?,
        })
    })
}
