//! Who owns a scheduler, and the one sequence that tokens come from.

use maestro_core::operation::Token;
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::{Millis, Timestamp, after};
use rusqlite::{Connection, OptionalExtension};

use super::columns::{Columns, from_time, from_token, to_token};
use super::failure::Failure;
use super::schedulers;

/// An expired ownership that nobody took is still current: what counts is that no other token was given out.
pub(super) fn current_token(
    connection: &Connection,
    scheduler: &SchedulerName,
) -> Result<Option<Token>, Failure> {
    let token = connection
        .prepare_cached("SELECT token FROM ownerships WHERE scheduler = ?1")?
        .query_row([scheduler.as_str()], |row| row.get(0))
        .optional()?;
    token.map(to_token).transpose()
}

pub(super) fn own(
    connection: &Connection,
    scheduler: &SchedulerName,
    owner: &str,
    now: Timestamp,
    ttl: Millis,
) -> Result<Option<Token>, Failure> {
    if !schedulers::exists(connection, scheduler)? {
        return Ok(None);
    }
    let expires_at = from_time(after(now, ttl));
    let kept: Option<i64> = connection
        .prepare_cached(
            "UPDATE ownerships SET expires_at = ?3 WHERE scheduler = ?1 AND owner = ?2 RETURNING token",
        )?
        .query_row((scheduler.as_str(), owner, expires_at), |row| row.get(0))
        .optional()?;
    if let Some(token) = kept {
        return to_token(token).map(Some);
    }
    let taken_by_another: bool = connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM ownerships WHERE scheduler = ?1 AND expires_at > ?2)")?
        .query_row((scheduler.as_str(), from_time(now)), |row| row.get(0))?;
    if taken_by_another {
        return Ok(None);
    }
    let token: i64 = connection
        .prepare_cached("UPDATE store SET last_token = last_token + 1 RETURNING last_token")?
        .query_row([], |row| row.get(0))?;
    connection
        .prepare_cached(
            "INSERT INTO ownerships (scheduler, owner, token, expires_at) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (scheduler) DO UPDATE
             SET owner = excluded.owner, token = excluded.token, expires_at = excluded.expires_at",
        )?
        .execute((scheduler.as_str(), owner, token, expires_at))?;
    to_token(token).map(Some)
}

pub(super) fn renew(
    connection: &Connection,
    owner: &str,
    ownership_expires_at: Timestamp,
    operation_expires_at: Timestamp,
) -> Result<Vec<(SchedulerName, Token)>, Failure> {
    connection
        .prepare_cached("UPDATE ownerships SET expires_at = ?2 WHERE owner = ?1")?
        .execute((owner, from_time(ownership_expires_at)))?;
    connection
        .prepare_cached(
            "UPDATE operations SET lease_expires_at = ?2
             FROM ownerships
             WHERE ownerships.owner = ?1
               AND operations.scheduler = ownerships.scheduler
               AND operations.lease_token = ownerships.token
               AND operations.ended_at IS NULL AND operations.status = 'in_progress'",
        )?
        .execute((owner, from_time(operation_expires_at)))?;
    let mut statement = connection
        .prepare_cached("SELECT scheduler, token FROM ownerships WHERE owner = ?1 ORDER BY scheduler")?;
    let mut rows = statement.query([owner])?;
    let mut owned = Vec::new();
    while let Some(row) = rows.next()? {
        let columns = Columns(row);
        owned.push((columns.scheduler("scheduler")?, columns.token("token")?));
    }
    Ok(owned)
}

pub(super) fn disown(
    connection: &Connection,
    scheduler: &SchedulerName,
    token: Token,
) -> Result<(), Failure> {
    connection
        .prepare_cached("DELETE FROM ownerships WHERE scheduler = ?1 AND token = ?2")?
        .execute((scheduler.as_str(), from_token(token)))?;
    Ok(())
}
