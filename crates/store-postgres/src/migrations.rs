//! The database's way from one version of Maestro to the next. A migration is never changed once it is released:
//! its checksum is kept with it. Only [`migrate`] changes a schema.

use maestro_core::hash::{BASIS, fnv1a};

use crate::columns::read_rows;
use crate::error::OpenError;
use crate::failure::Result;
use crate::options::Options;
use crate::server::Server;
use crate::session::Session;
use crate::value::values;

/// Names and statements, numbered from 1 on.
const MIGRATIONS: [(&str, &str); 1] = [("initial", include_str!("../migrations/0001_initial.sql"))];

/// The newest migration that this Maestro knows, and the one that it needs.
pub const SCHEMA_VERSION: u32 = MIGRATIONS.len() as u32;

/// How a database is told from those of others: this table is in it.
pub(crate) const MARKER: &str = "maestro_migrations";

/// Held by whoever changes the schema, in whichever schema of the database: `MAES`, as the embedded store's files begin.
const ADVISORY_LOCK: i64 = 1_296_123_219;

/// A migration, as people know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migration {
    pub number: u32,
    pub name: &'static str,
}

impl std::fmt::Display for Migration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:04} {}", self.number, self.name)
    }
}

/// Brings the database up to this Maestro's schema, and says what that took; with `dry_run`, what it would take. Each
/// migration is a transaction of its own: killed between two, the next call goes on from there. Several may call it at once.
pub async fn migrate(options: &Options, dry_run: bool) -> Result<Vec<Migration>, OpenError> {
    let server = Server::new(options)?;
    let session = server.connect().await?;
    server.check_server(&session).await?;
    check(&session, false).await?;
    let mut applied = Vec::new();
    for (number, (name, sql)) in (1..).zip(MIGRATIONS) {
        let migration = Migration { number, name };
        let is_missing = match dry_run {
            true => number > last(&session).await.map_err(OpenError::of("read the migrations"))?,
            false => apply(&session, migration, sql).await.map_err(OpenError::of("migrate"))?,
        };
        if is_missing {
            applied.push(migration);
        }
    }
    Ok(applied)
}

/// False: it was there already.
async fn apply(session: &Session, migration: Migration, sql: &str) -> Result<bool> {
    session.begin(&[]).await?;
    session.ask("SELECT pg_advisory_xact_lock($1)", values![ADVISORY_LOCK]).await?;
    if last(session).await? >= migration.number {
        session.roll_back().await;
        return Ok(false);
    }
    // Building indexes on a large database takes longer than any statement of a running server.
    session.run("SET LOCAL statement_timeout = 0").await?;
    session.run(sql).await?;
    let sql = "INSERT INTO maestro_migrations (number, name, checksum, applied_by) VALUES ($1, $2, $3, $4)";
    let row =
        values![migration.number, migration.name, checksum(migration.number), env!("CARGO_PKG_VERSION")];
    session.ask(sql, row).await?;
    session.commit().await?;
    Ok(true)
}

/// The last one that was applied; 0 if there is nothing.
async fn last(session: &Session) -> Result<u32> {
    if !has_marker(session).await? {
        return Ok(0);
    }
    let sql = "SELECT max(number) FROM maestro_migrations";
    let last: Option<i64> = session.find(sql, values![]).await?.flatten();
    Ok(u32::try_from(last.unwrap_or_default()).unwrap_or(u32::MAX))
}

async fn has_marker(session: &Session) -> Result<bool> {
    let sql =
        "SELECT EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = $1)";
    session.value(sql, values![MARKER]).await
}

/// Refuses a database of somebody else, and one that a newer Maestro, or another one, has migrated. `is_current`: also one
/// that lacks migrations.
pub(crate) async fn check(session: &Session, is_current: bool) -> Result<(), OpenError> {
    let failed = OpenError::of("read the migrations");
    if !has_marker(session).await.map_err(failed)? {
        let sql =
            "SELECT tablename::TEXT FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1 LIMIT 1";
        return match session.find(sql, values![]).await.map_err(failed)? {
            Some(table) => Err(OpenError::NotOurs { table }),
            None if is_current => Err(OpenError::Empty),
            None => Ok(()),
        };
    }
    let sql = "SELECT number, name, checksum, applied_by FROM maestro_migrations ORDER BY number";
    let rows = session.rows(sql, values![]).await.map_err(failed)?;
    let applied = read_rows(&rows, |columns| {
        Ok((
            columns.number::<u32>("number")?,
            columns.get::<String>("name")?,
            columns.get::<String>("checksum")?,
            columns.get::<String>("applied_by")?,
        ))
    });
    let applied = applied.map_err(failed)?;
    for (number, name, found, applied_by) in &applied {
        if *number > SCHEMA_VERSION {
            return Err(OpenError::Newer { applied_by: applied_by.clone() });
        }
        if checksum(*number) != *found {
            return Err(OpenError::OtherMigration { name: name.clone() });
        }
    }
    let has = applied.len();
    if is_current && has < MIGRATIONS.len() {
        return Err(OpenError::Older { has: has as u32 });
    }
    Ok(())
}

/// Against slips, not against people.
fn checksum(number: u32) -> String {
    let sql = (1..).zip(MIGRATIONS).find(|(ours, _)| *ours == number).map_or("", |(_, (_, sql))| sql);
    format!("{:016x}", fnv1a(BASIS, sql.bytes()))
}
