//! Workers, what they own, and the one sequence that tokens come from.

use std::collections::HashMap;

use maestro_core::operation::Token;
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::Millis;
use maestro_engine::ports::store::{OwnershipRecord, Renewal, WorkerRecord, Workforce};

use crate::columns::read_rows;
use crate::failure::Result;
use crate::session::{Answer, Session, Statement};
use crate::time::now_sql;
use crate::value::values;
use crate::writes::{Pace, Write};

/// When ownerships run out. They last as long as their worker's sign of life, which is renewed for all of them at once; only
/// one that was given since then has a time of its own, which is not 0.
macro_rules! expiries {
    () => {
        "SELECT o.scheduler, o.owner, o.token,
            CASE o.expires_at WHEN 0 THEN coalesce(w.expires_at, 0) ELSE o.expires_at END AS expires_at
         FROM ownerships AS o LEFT JOIN workers AS w ON w.name = o.owner"
    };
}

/// An expired ownership that nobody took is still current: what counts is that no other token was given out.
pub(crate) fn is_current(scheduler: &SchedulerName, token: Token) -> Statement<'_> {
    let sql = "SELECT EXISTS (SELECT 1 FROM ownerships WHERE scheduler = $1 AND token = $2) AS done";
    Statement::new(sql, values![scheduler, token])
}

/// Takes what is free of these schedulers, and renews what `owner` has of them.
pub(crate) struct Own {
    pub(crate) schedulers: Vec<SchedulerName>,
    pub(crate) owner: String,
    pub(crate) ttl: Millis,
}

/// Those of `$1` that `$2` may own now. On a new timeline, only what is its own already: an ownership that was given just
/// before a failover may be missing, and whoever has it has to learn that before another gets the same.
macro_rules! free {
    () => {
        concat!(
            "name = ANY ($1) AND (
                EXISTS (SELECT 1 FROM ownerships WHERE scheduler = name AND owner = $2)
                OR (SELECT timeline_since + $3 <= ",
            now_sql!(),
            " FROM store) AND NOT EXISTS (SELECT 1 FROM (",
            expiries!(),
            ") AS taken WHERE taken.scheduler = name AND taken.owner <> $2 AND taken.expires_at > ",
            now_sql!(),
            "))"
        )
    };
}

/// The first part of the name of the file that is being written is the timeline.
const NOTE_TIMELINE: &str = concat!(
    "UPDATE store SET timeline = left(pg_walfile_name(pg_current_wal_lsn()), 8), timeline_since = ",
    now_sql!(),
    " WHERE timeline <> left(pg_walfile_name(pg_current_wal_lsn()), 8)"
);

impl Write for Own {
    type Answer = Vec<(SchedulerName, Token)>;

    /// A guard is checked under the same lock: a token is never current for a transaction whose scheduler is just being
    /// taken. Those that others own are not locked, so that workers that look for free ones hold up nobody.
    fn begin(&self, _: Pace) -> Vec<Statement<'_>> {
        let sql = concat!("SELECT name FROM schedulers WHERE ", free!(), " ORDER BY name FOR NO KEY UPDATE");
        let asked: Vec<_> = self.schedulers.iter().map(SchedulerName::as_str).collect();
        vec![
            Statement::new(NOTE_TIMELINE, values![]),
            Statement::new(sql, values![asked, &self.owner, self.ttl]),
        ]
    }

    async fn carry_out(&self, session: &Session, begun: &[Answer], _: Pace) -> Result<Self::Answer> {
        let locked = begun.last().map_or(&[] as &[_], |answer| &answer.rows);
        let locked = read_rows(locked, |columns| columns.get::<String>("name"))?;
        if locked.is_empty() {
            return Ok(Vec::new());
        }
        let sql = concat!(
            "INSERT INTO ownerships (scheduler, owner, token, expires_at)
             SELECT name, $2, coalesce(own.token, nextval('tokens')), $3 + ",
            now_sql!(),
            " FROM schedulers LEFT JOIN ownerships AS own ON own.scheduler = name AND own.owner = $2 WHERE ",
            free!(),
            " ORDER BY name
             ON CONFLICT (scheduler) DO UPDATE
             SET owner = excluded.owner, token = excluded.token, expires_at = excluded.expires_at
             RETURNING scheduler, token"
        );
        let rows = session.rows(sql, values![locked, &self.owner, self.ttl]).await?;
        let owned =
            read_rows(&rows, |columns| Ok((columns.scheduler("scheduler")?, columns.token("token")?)))?;
        let owned: HashMap<_, _> = owned.into_iter().collect();
        let owned = |name: &SchedulerName| owned.get(name).map(|token| (name.clone(), *token));
        Ok(self.schedulers.iter().filter_map(owned).collect())
    }
}

/// A worker's sign of life, and what lasts as long.
pub(crate) struct Renew {
    pub(crate) worker: String,
    pub(crate) ownership_ttl: Millis,
    pub(crate) operation_ttl: Millis,
    pub(crate) lock_ttl: Millis,
}

impl From<Renewal<'_>> for Renew {
    fn from(renewal: Renewal<'_>) -> Self {
        let Renewal { worker, ownership_ttl, operation_ttl, lock_ttl } = renewal;
        Self { worker: worker.to_owned(), ownership_ttl, operation_ttl, lock_ttl }
    }
}

impl Write for Renew {
    type Answer = Vec<(SchedulerName, Token)>;

    /// One statement for each kind of thing, however many schedulers there are; and a row for each only if it has changed.
    /// No scheduler is locked.
    fn begin(&self, _: Pace) -> Vec<Statement<'_>> {
        let Self { worker, ownership_ttl, operation_ttl, lock_ttl } = self;
        // From before the clock was set back: nothing is given for so long.
        let shorten = |sql| Statement::new(sql, values![*ownership_ttl]);
        vec![
            shorten(concat!(
                "UPDATE ownerships SET expires_at = $1 + ",
                now_sql!(),
                " WHERE expires_at > 2 * $1 + ",
                now_sql!()
            )),
            shorten(concat!(
                "UPDATE workers SET expires_at = $1 + ",
                now_sql!(),
                " WHERE expires_at > 2 * $1 + ",
                now_sql!()
            )),
            Statement::new(
                concat!(
                    "INSERT INTO workers (name, expires_at) VALUES ($1, $2 + ",
                    now_sql!(),
                    ") ON CONFLICT (name) DO UPDATE SET expires_at = excluded.expires_at"
                ),
                values![worker, *ownership_ttl],
            ),
            // From now on they last as long as their worker: the next renewal has nothing to write for them.
            Statement::new(
                "UPDATE ownerships SET expires_at = 0 WHERE owner = $1 AND expires_at <> 0",
                values![worker],
            ),
            Statement::new(
                concat!(
                    "UPDATE operations SET lease_expires_at = $2 + ",
                    now_sql!(),
                    " FROM ownerships AS own WHERE own.owner = $1 AND operations.scheduler = own.scheduler
                        AND operations.lease_token = own.token
                        AND operations.ended_at IS NULL AND operations.status = 'in_progress'"
                ),
                values![worker, *operation_ttl],
            ),
            Statement::new(
                concat!(
                    "UPDATE locks SET expires_at = $2 + ",
                    now_sql!(),
                    " FROM ownerships AS own, operations AS o WHERE own.owner = $1
                        AND locks.scheduler = own.scheduler AND locks.expires_at IS NOT NULL
                        AND o.id = locks.operation AND o.ended_at IS NULL"
                ),
                values![worker, *lock_ttl],
            ),
            Statement::new(
                "SELECT scheduler, token FROM ownerships WHERE owner = $1 ORDER BY scheduler",
                values![worker],
            ),
        ]
    }

    async fn carry_out(&self, _: &Session, begun: &[Answer], _: Pace) -> Result<Self::Answer> {
        let owned = begun.last().map_or(&[] as &[_], |answer| &answer.rows);
        read_rows(owned, |columns| Ok((columns.scheduler("scheduler")?, columns.token("token")?)))
    }
}

/// Statements whose answers nobody reads.
pub(crate) enum GiveUp {
    Scheduler(SchedulerName, Token),
    /// The worker is gone for good, and owns nothing any more.
    All(String),
}

impl Write for GiveUp {
    type Answer = ();

    fn begin(&self, _: Pace) -> Vec<Statement<'_>> {
        match self {
            Self::Scheduler(scheduler, token) => {
                let sql = "DELETE FROM ownerships WHERE scheduler = $1 AND token = $2";
                vec![Statement::new(sql, values![scheduler, *token])]
            }
            Self::All(worker) => {
                ["DELETE FROM workers WHERE name = $1", "DELETE FROM ownerships WHERE owner = $1"]
                    .map(|sql| Statement::new(sql, values![worker]))
                    .into()
            }
        }
    }

    async fn carry_out(&self, _: &Session, _: &[Answer], _: Pace) -> Result {
        Ok(())
    }
}

/// All workers and all ownerships, by name.
pub(crate) async fn workforce(session: &Session) -> Result<Workforce> {
    let workers = session.rows("SELECT name, expires_at FROM workers ORDER BY name", values![]).await?;
    let workers = read_rows(&workers, |columns| {
        Ok(WorkerRecord { name: columns.get("name")?, expires_at: columns.time("expires_at")? })
    })?;
    let ownerships = session.rows(concat!(expiries!(), " ORDER BY o.scheduler"), values![]).await?;
    let ownerships = read_rows(&ownerships, |columns| {
        Ok(OwnershipRecord {
            scheduler: columns.scheduler("scheduler")?,
            owner: columns.get("owner")?,
            token: columns.token("token")?,
            expires_at: columns.time("expires_at")?,
        })
    })?;
    Ok(Workforce { workers, ownerships })
}
