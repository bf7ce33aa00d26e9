//! Named locks, and who waits for them. `maestro_core::lock` decides who may take one; here are the rows.

use maestro_core::lock::{Holder, Lock, LockKind, Locks, Waiter};
use maestro_core::operation::Token;
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::after;
use maestro_engine::ports::store::{NewLock, Refusal};

use crate::columns::{Columns, read_rows};
use crate::failure::{Failure, Result};
use crate::schedulers;
use crate::session::{Answer, Session, Statement};
use crate::time;
use crate::value::values;

/// What [`read`] reads: all locks of a scheduler, and all who wait for one.
pub(crate) fn of(scheduler: &SchedulerName) -> [Statement<'_>; 2] {
    let held = "SELECT kind, holder, reason, token, acquired_at, expires_at FROM locks WHERE scheduler = $1";
    let waiters =
        "SELECT kind, holder, since, until FROM lock_waiters WHERE scheduler = $1 ORDER BY sequence";
    [held, waiters].map(|sql| Statement::new(sql, values![scheduler]))
}

/// `session`: a snapshot.
pub(crate) async fn all(session: &Session, scheduler: &SchedulerName) -> Result<Locks> {
    let answers = session.ask_all(&of(scheduler)).await?;
    let [held, waiters] = &answers[..] else { return Ok(Locks::default()) };
    read(held, waiters)
}

pub(crate) fn read(held: &Answer, waiters: &Answer) -> Result<Locks> {
    let mut held = read_rows(&held.rows, lock)?;
    held.sort_by_key(|lock| lock.kind);
    Ok(Locks { held, waiters: read_rows(&waiters.rows, waiter)? })
}

/// Whether the lock is held by this token; one that has expired and that nobody took is still held.
pub(crate) fn is_held(scheduler: &SchedulerName, kind: LockKind, token: Token) -> Statement<'_> {
    let sql = "SELECT EXISTS (SELECT 1 FROM locks WHERE scheduler = $1 AND kind = $2 AND token = $3) AS done";
    Statement::new(sql, values![scheduler, kind.as_str(), token])
}

pub(crate) async fn take(session: &Session, new: &NewLock) -> Result {
    let NewLock { scheduler, kind, taker, reason, ttl } = new;
    schedulers::require(session, scheduler).await?;
    let [held, waiters] = of(scheduler);
    let answers = session.ask_all(&[held, waiters, time::now()]).await?;
    let [held, waiters, now] = &answers[..] else { return Err(lost(scheduler, *kind)) };
    let (locks, now) = (read(held, waiters)?, time::read(now)?);
    locks.may_take(*kind, *taker, now).map_err(|obstacle| Refusal::LockHeld(Box::new(obstacle)))?;
    let own = locks.held_by(*kind, taker.holder);
    let (token, acquired_at) = (own.map(|own| own.token), own.map_or(now, |own| own.acquired_at));
    let sql = "INSERT INTO locks (scheduler, kind, holder, operation, reason, token, acquired_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, coalesce($6, nextval('tokens')), $7, $8)
         ON CONFLICT (scheduler, kind) DO UPDATE SET holder = excluded.holder, operation = excluded.operation,
             reason = excluded.reason, token = excluded.token, acquired_at = excluded.acquired_at,
             expires_at = excluded.expires_at";
    let row = values![
        scheduler,
        kind.as_str(),
        taker.holder.to_string(),
        taker.holder.operation(),
        reason,
        token,
        acquired_at,
        ttl.map(|ttl| after(now, ttl)),
    ];
    let mut statements = vec![Statement::new(sql, row)];
    let served = [Some(taker.holder), taker.instead_of].into_iter().flatten();
    statements.extend(served.map(|holder| stop_awaiting(scheduler, *kind, holder)));
    session.ask_all(&statements).await.map(drop)
}

/// A place that is too old is left for one at the end.
pub(crate) async fn take_place(session: &Session, scheduler: &SchedulerName, waiter: &Waiter) -> Result {
    let Waiter { kind, holder, since, until } = waiter;
    schedulers::require(session, scheduler).await?;
    let old = concat!(
        "DELETE FROM lock_waiters WHERE scheduler = $1 AND kind = $2 AND holder = $3 AND until <= ",
        time::now_sql!()
    );
    let new = "INSERT INTO lock_waiters (scheduler, kind, holder, operation, since, until)
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (scheduler, kind, holder) DO NOTHING";
    let name = holder.to_string();
    let place = values![scheduler, kind.as_str(), name.clone(), holder.operation(), *since, *until];
    let statements =
        [Statement::new(old, values![scheduler, kind.as_str(), name]), Statement::new(new, place)];
    session.ask_all(&statements).await.map(drop)
}

pub(crate) fn stop_awaiting(scheduler: &SchedulerName, kind: LockKind, holder: Holder) -> Statement<'_> {
    let sql = "WITH gone AS (DELETE FROM lock_waiters WHERE scheduler = $1 AND kind = $2 AND holder = $3)
        SELECT TRUE AS done";
    Statement::new(sql, values![scheduler, kind.as_str(), holder.to_string()])
}

pub(crate) fn release(scheduler: &SchedulerName, kind: LockKind, holder: Holder) -> Statement<'_> {
    let sql = "WITH gone AS (DELETE FROM locks WHERE scheduler = $1 AND kind = $2 AND holder = $3)
        SELECT TRUE AS done";
    Statement::new(sql, values![scheduler, kind.as_str(), holder.to_string()])
}

pub(crate) fn revoke(scheduler: &SchedulerName, kind: LockKind, token: Token) -> Statement<'_> {
    let sql = "WITH gone AS (
            DELETE FROM locks WHERE scheduler = $1 AND kind = $2 AND token = $3 RETURNING 1)
        SELECT EXISTS (SELECT 1 FROM gone) AS done";
    Statement::new(sql, values![scheduler, kind.as_str(), token])
}

pub(crate) fn lost(scheduler: &SchedulerName, kind: LockKind) -> Failure {
    let refusal = Refusal::LockLost { scheduler: scheduler.clone(), kind };
    refusal.into()
}

fn lock(columns: &Columns<'_>) -> Result<Lock> {
    Ok(Lock {
        kind: columns.parsed("kind", LockKind::parse)?,
        holder: columns.parsed("holder", Holder::parse)?,
        reason: columns.get("reason")?,
        token: columns.token("token")?,
        acquired_at: columns.time("acquired_at")?,
        expires_at: columns.optional_time("expires_at")?,
    })
}

fn waiter(columns: &Columns<'_>) -> Result<Waiter> {
    Ok(Waiter {
        kind: columns.parsed("kind", LockKind::parse)?,
        holder: columns.parsed("holder", Holder::parse)?,
        since: columns.time("since")?,
        until: columns.time("until")?,
    })
}
