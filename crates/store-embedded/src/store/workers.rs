//! Workers, what they own, and the one sequence that tokens come from.

use maestro_core::operation::Token;
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::{Millis, Timestamp, after};
use maestro_engine::ports::store::{OwnershipRecord, Renewal, WorkerRecord, Workforce};
use rusqlite::Connection;

use super::columns::{execute, find, from_time, from_token, read_rows, to_token, value};
use super::failure::Result;
use super::schedulers;

/// When ownerships run out. They last as long as their worker's sign of life, which is renewed for all of them at once; only
/// one that was given since then has a time of its own, which is not 0.
const EXPIRIES: &str = "SELECT scheduler, owner, token,
    CASE ownerships.expires_at WHEN 0 THEN coalesce(workers.expires_at, 0) ELSE ownerships.expires_at END AS expires_at
    FROM ownerships LEFT JOIN workers ON workers.name = ownerships.owner";

/// An expired ownership that nobody took is still current: what counts is that no other token was given out.
pub(super) fn current_token(connection: &Connection, scheduler: &SchedulerName) -> Result<Option<Token>> {
    let token = find(connection, "SELECT token FROM ownerships WHERE scheduler = ?1", [scheduler.as_str()])?;
    token.map(to_token).transpose()
}

pub(super) fn own_all(
    connection: &Connection,
    schedulers: &[SchedulerName],
    owner: &str,
    now: Timestamp,
    ttl: Millis,
) -> Result<Vec<(SchedulerName, Token)>> {
    let mut owned = Vec::with_capacity(schedulers.len());
    for scheduler in schedulers {
        if let Some(token) = own(connection, scheduler, owner, now, ttl)? {
            owned.push((scheduler.clone(), token));
        }
    }
    Ok(owned)
}

fn own(
    connection: &Connection,
    scheduler: &SchedulerName,
    owner: &str,
    now: Timestamp,
    ttl: Millis,
) -> Result<Option<Token>> {
    if !schedulers::exists(connection, scheduler)? {
        return Ok(None);
    }
    let expires_at = from_time(after(now, ttl));
    let sql = "UPDATE ownerships SET expires_at = ?3 WHERE scheduler = ?1 AND owner = ?2 RETURNING token";
    let kept: Option<i64> = find(connection, sql, (scheduler.as_str(), owner, expires_at))?;
    if let Some(token) = kept {
        return to_token(token).map(Some);
    }
    let taken_by_another: bool = value(
        connection,
        &format!("SELECT EXISTS (SELECT 1 FROM ({EXPIRIES}) WHERE scheduler = ?1 AND expires_at > ?2)"),
        (scheduler.as_str(), from_time(now)),
    )?;
    if taken_by_another {
        return Ok(None);
    }
    let token = next_token(connection)?;
    let sql = "INSERT INTO ownerships (scheduler, owner, token, expires_at) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (scheduler) DO UPDATE
         SET owner = excluded.owner, token = excluded.token, expires_at = excluded.expires_at";
    execute(connection, sql, (scheduler.as_str(), owner, from_token(token), expires_at))?;
    Ok(Some(token))
}

/// Greater than any before, of ownerships and of locks.
pub(super) fn next_token(connection: &Connection) -> Result<Token> {
    let token = value(connection, "UPDATE store SET last_token = last_token + 1 RETURNING last_token", [])?;
    to_token(token)
}

/// One statement for each kind of thing, however many schedulers there are; and a row for each only if it has changed.
pub(super) fn renew(
    connection: &Connection,
    renewal: Renewal<'_>,
    now: Timestamp,
) -> Result<Vec<(SchedulerName, Token)>> {
    let Renewal { worker, ownership_ttl, operation_ttl, lock_ttl } = renewal;
    let until = |ttl| from_time(after(now, ttl));
    // Before the clock was set back: nothing is given for so long.
    let too_late = from_time(after(after(now, ownership_ttl), ownership_ttl));
    for shorten in [
        "UPDATE ownerships SET expires_at = ?1 WHERE expires_at > ?2",
        "UPDATE workers SET expires_at = ?1 WHERE expires_at > ?2",
    ] {
        execute(connection, shorten, (until(ownership_ttl), too_late))?;
    }
    let sql = "INSERT INTO workers (name, expires_at) VALUES (?1, ?2)
         ON CONFLICT (name) DO UPDATE SET expires_at = excluded.expires_at";
    execute(connection, sql, (worker, until(ownership_ttl)))?;
    // From now on they last as long as their worker: the next renewal has nothing to write for them.
    let sql = "UPDATE ownerships SET expires_at = 0 WHERE owner = ?1 AND expires_at <> 0";
    execute(connection, sql, [worker])?;
    let sql = "UPDATE operations SET lease_expires_at = ?2
         FROM ownerships
         WHERE ownerships.owner = ?1
           AND operations.scheduler = ownerships.scheduler
           AND operations.lease_token = ownerships.token
           AND operations.ended_at IS NULL AND operations.status = 'in_progress'";
    execute(connection, sql, (worker, until(operation_ttl)))?;
    let sql = "UPDATE locks SET expires_at = ?2
         FROM ownerships, operations
         WHERE ownerships.owner = ?1
           AND locks.scheduler = ownerships.scheduler
           AND locks.expires_at IS NOT NULL
           AND operations.id = locks.operation AND operations.ended_at IS NULL";
    execute(connection, sql, (worker, until(lock_ttl)))?;
    owned_by(connection, worker)
}

fn owned_by(connection: &Connection, worker: &str) -> Result<Vec<(SchedulerName, Token)>> {
    let sql = "SELECT scheduler, token FROM ownerships WHERE owner = ?1 ORDER BY scheduler";
    read_rows(connection, sql, [worker], |columns| {
        Ok((columns.scheduler("scheduler")?, columns.token("token")?))
    })
}

pub(super) fn disown(connection: &Connection, scheduler: &SchedulerName, token: Token) -> Result {
    let sql = "DELETE FROM ownerships WHERE scheduler = ?1 AND token = ?2";
    execute(connection, sql, (scheduler.as_str(), from_token(token)))
}

pub(super) fn retire(connection: &Connection, worker: &str) -> Result {
    for statement in ["DELETE FROM workers WHERE name = ?1", "DELETE FROM ownerships WHERE owner = ?1"] {
        execute(connection, statement, [worker])?;
    }
    Ok(())
}

/// All workers and all ownerships, by name.
pub(super) fn workforce(connection: &Connection) -> Result<Workforce> {
    let workers =
        read_rows(connection, "SELECT name, expires_at FROM workers ORDER BY name", [], |columns| {
            Ok(WorkerRecord { name: columns.get("name")?, expires_at: columns.time("expires_at")? })
        })?;
    let ownerships = read_rows(connection, &format!("{EXPIRIES} ORDER BY scheduler"), [], |columns| {
        Ok(OwnershipRecord {
            scheduler: columns.scheduler("scheduler")?,
            owner: columns.get("owner")?,
            token: columns.token("token")?,
            expires_at: columns.time("expires_at")?,
        })
    })?;
    Ok(Workforce { workers, ownerships })
}
