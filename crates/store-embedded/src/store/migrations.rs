//! The database's way from one version of Maestro to the next. A migration is never changed once it is released:
//! its checksum is kept with it.

use std::path::Path;

use maestro_core::hash::{BASIS, fnv1a};
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior};

use super::error::OpenError;

/// Names and statements, numbered from 1 on.
const MIGRATIONS: [(&str, &str); 19] = [
    ("initial", include_str!("../../migrations/0001_initial.sql")),
    ("rollouts", include_str!("../../migrations/0002_rollouts.sql")),
    ("locks", include_str!("../../migrations/0003_locks.sql")),
    ("origins", include_str!("../../migrations/0004_origins.sql")),
    ("regions", include_str!("../../migrations/0005_regions.sql")),
    ("version_numbers", include_str!("../../migrations/0006_version_numbers.sql")),
    ("unanswered", include_str!("../../migrations/0007_unanswered.sql")),
    ("stop_causes", include_str!("../../migrations/0008_stop_causes.sql")),
    ("identity", include_str!("../../migrations/0009_identity.sql")),
    ("version_causes", include_str!("../../migrations/0010_version_causes.sql")),
    ("rollout_sizes", include_str!("../../migrations/0011_rollout_sizes.sql")),
    ("lost_regions", include_str!("../../migrations/0012_lost_regions.sql")),
    ("no_action", include_str!("../../migrations/0013_no_action.sql")),
    ("schedulers_in_hand", include_str!("../../migrations/0014_schedulers_in_hand.sql")),
    ("derived_locks", include_str!("../../migrations/0015_derived_locks.sql")),
    ("revisions", include_str!("../../migrations/0016_revisions.sql")),
    ("events", include_str!("../../migrations/0017_events.sql")),
    ("allocations", include_str!("../../migrations/0018_allocations.sql")),
    ("room_claims", include_str!("../../migrations/0019_room_claims.sql")),
];

/// The newest migration that this Maestro knows: what a store has after it was opened.
pub const SCHEMA_VERSION: u32 = MIGRATIONS.len() as u32;

/// Applies what is missing, each migration in a transaction of its own: killed between two, it goes on from there.
pub(crate) fn apply(connection: &mut Connection) -> Result<(), rusqlite::Error> {
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS migrations (
             number     INTEGER PRIMARY KEY,
             name       TEXT NOT NULL,
             checksum   TEXT NOT NULL,
             applied_by TEXT NOT NULL
         ) STRICT",
    )?;
    let last: u32 =
        connection.query_row("SELECT coalesce(max(number), 0) FROM migrations", [], |row| row.get(0))?;
    for (number, (name, sql)) in (1..).zip(MIGRATIONS).filter(|(number, _)| *number > last) {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(sql)?;
        transaction.execute(
            "INSERT INTO migrations (number, name, checksum, applied_by) VALUES (?1, ?2, ?3, ?4)",
            (number, name, checksum(sql), env!("CARGO_PKG_VERSION")),
        )?;
        transaction.commit()?;
    }
    Ok(())
}

/// Refuses a file if what was applied to it is not the beginning of what this Maestro knows.
pub(crate) fn check(connection: &Connection, file: &Path) -> Result<(), OpenError> {
    let failed = OpenError::sqlite("check the database", file);
    let newer = connection
        .query_row(
            "SELECT applied_by FROM migrations WHERE number > ?1 ORDER BY number DESC LIMIT 1",
            [SCHEMA_VERSION],
            |row| row.get(0),
        )
        .optional()
        .map_err(failed)?;
    if let Some(written_by) = newer {
        return Err(OpenError::Newer { file: file.into(), written_by });
    }
    let mut statement = connection
        .prepare("SELECT number, name, checksum FROM migrations ORDER BY number")
        .map_err(failed)?;
    let read = |row: &Row<'_>| Ok((row.get("number")?, row.get("name")?, row.get("checksum")?));
    for applied in statement.query_map([], read).map_err(failed)? {
        let (number, name, applied): (u32, String, String) = applied.map_err(failed)?;
        let ours = (1..).zip(MIGRATIONS).find(|(ours, _)| *ours == number);
        if ours.is_none_or(|(_, (_, sql))| checksum(sql) != applied) {
            return Err(OpenError::OtherMigration { file: file.into(), name });
        }
    }
    Ok(())
}

/// Against slips, not against people.
fn checksum(sql: &str) -> String {
    format!("{:016x}", fnv1a(BASIS, sql.bytes()))
}
