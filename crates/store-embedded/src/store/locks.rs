//! Named locks, and who waits for them. `maestro_core::lock` decides who may take one; here are the rows.

use maestro_core::lock::{Holder, Lock, LockKind, Locks, Waiter};
use maestro_core::operation::{OperationId, Token};
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::{Timestamp, after};
use maestro_engine::ports::store::{NewLock, Refusal};
use rusqlite::Connection;

use super::columns::{
    Values, execute, execute_counted, from_id, from_time, from_token, insert, read_rows, value,
};
use super::failure::{Failure, Result};
use super::{schedulers, workers};

/// All locks of a scheduler, and all who wait for one.
pub(super) fn of(connection: &Connection, scheduler: &SchedulerName) -> Result<Locks> {
    Ok(Locks { held: held(connection, scheduler)?, waiters: waiters(connection, scheduler)? })
}

/// Refuses who believes to hold a lock by another token than the current one. An expired lock that nobody took is
/// still held.
pub(super) fn require(
    connection: &Connection,
    scheduler: &SchedulerName,
    kind: LockKind,
    token: Token,
) -> Result {
    let sql = "SELECT EXISTS (SELECT 1 FROM locks WHERE scheduler = ?1 AND kind = ?2 AND token = ?3)";
    let holds: bool = value(connection, sql, (scheduler.as_str(), kind.as_str(), from_token(token)))?;
    if holds { Ok(()) } else { Err(lost(scheduler, kind)) }
}

pub(super) fn take(connection: &Connection, new: &NewLock, now: Timestamp) -> Result {
    let NewLock { scheduler, kind, taker, reason, ttl } = new;
    schedulers::require(connection, scheduler)?;
    let locks = of(connection, scheduler)?;
    locks.may_take(*kind, *taker, now).map_err(|obstacle| Refusal::LockHeld(Box::new(obstacle)))?;
    let (token, acquired_at) = match locks.held_by(*kind, taker.holder) {
        Some(own) => (own.token, own.acquired_at),
        None => (workers::next_token(connection)?, now),
    };
    let lock = Lock {
        kind: *kind,
        holder: taker.holder,
        reason: reason.clone(),
        token,
        acquired_at,
        expires_at: ttl.map(|ttl| after(now, ttl)),
    };
    write(connection, scheduler, &lock)?;
    for holder in [Some(taker.holder), taker.instead_of].into_iter().flatten() {
        remove(connection, "lock_waiters", scheduler, *kind, holder)?;
    }
    Ok(())
}

/// A place that is too old by now is left for one at the end.
pub(super) fn take_place(
    connection: &Connection,
    scheduler: &SchedulerName,
    waiter: &Waiter,
    now: Timestamp,
) -> Result {
    let Waiter { kind, holder, since, until } = waiter;
    schedulers::require(connection, scheduler)?;
    let sql = "DELETE FROM lock_waiters WHERE scheduler = ?1 AND kind = ?2 AND holder = ?3 AND until <= ?4";
    execute(connection, sql, (scheduler.as_str(), kind.as_str(), holder.to_string(), from_time(now)))?;
    let row: Values<'_> = &[
        ("scheduler", &scheduler.as_str()),
        ("kind", &kind.as_str()),
        ("holder", &holder.to_string()),
        ("operation", &holder.operation().map(from_id)),
        ("since", &from_time(*since)),
        ("until", &from_time(*until)),
    ];
    insert(connection, "INSERT OR IGNORE INTO lock_waiters", row).map(drop)
}

/// `table`: `locks`, or `lock_waiters` for those who wait for one.
pub(super) fn remove(
    connection: &Connection,
    table: &'static str,
    scheduler: &SchedulerName,
    kind: LockKind,
    holder: Holder,
) -> Result {
    let sql = format!("DELETE FROM {table} WHERE scheduler = ?1 AND kind = ?2 AND holder = ?3");
    execute(connection, &sql, (scheduler.as_str(), kind.as_str(), holder.to_string()))
}

pub(super) fn revoke(
    connection: &Connection,
    scheduler: &SchedulerName,
    kind: LockKind,
    token: Token,
) -> Result {
    let sql = "DELETE FROM locks WHERE scheduler = ?1 AND kind = ?2 AND token = ?3";
    let revoked = execute_counted(connection, sql, (scheduler.as_str(), kind.as_str(), from_token(token)))?;
    if revoked == 0 { Err(lost(scheduler, kind)) } else { Ok(()) }
}

/// An operation that ended holds nothing and waits for nothing.
pub(super) fn free_all_of(connection: &Connection, scheduler: &str, operation: OperationId) -> Result {
    for statement in [
        "DELETE FROM locks WHERE scheduler = ?1 AND operation = ?2",
        "DELETE FROM lock_waiters WHERE scheduler = ?1 AND operation = ?2",
    ] {
        execute(connection, statement, (scheduler, from_id(operation)))?;
    }
    Ok(())
}

fn lost(scheduler: &SchedulerName, kind: LockKind) -> Failure {
    let refusal = Refusal::LockLost { scheduler: scheduler.clone(), kind };
    refusal.into()
}

fn write(connection: &Connection, scheduler: &SchedulerName, lock: &Lock) -> Result {
    let Lock { kind, holder, reason, token, acquired_at, expires_at } = lock;
    let row: Values<'_> = &[
        ("scheduler", &scheduler.as_str()),
        ("kind", &kind.as_str()),
        ("holder", &holder.to_string()),
        ("operation", &holder.operation().map(from_id)),
        ("reason", reason),
        ("token", &from_token(*token)),
        ("acquired_at", &from_time(*acquired_at)),
        ("expires_at", &expires_at.map(from_time)),
    ];
    insert(connection, "INSERT OR REPLACE INTO locks", row).map(drop)
}

fn held(connection: &Connection, scheduler: &SchedulerName) -> Result<Vec<Lock>> {
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

fn waiters(connection: &Connection, scheduler: &SchedulerName) -> Result<Vec<Waiter>> {
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
