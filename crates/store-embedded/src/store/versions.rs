//! Versions of schedulers: changes and queries.

use std::cmp::Reverse;

use maestro_core::scheduler::{Recipe, SchedulerName, Version, VersionStatus};
use maestro_core::time::Timestamp;
use maestro_engine::documents;
use maestro_engine::ports::store::{Refusal, UnreadableVersion, VersionRecord};
use rusqlite::Connection;

use super::columns::{
    Columns, Values, execute, execute_counted, from_time, has_row, insert, read_each, read_rows, value,
};
use super::failure::{Failure, Result};
use super::recipes::RecipeCache;
use super::schedulers;

pub(super) fn create(
    connection: &Connection,
    scheduler: &SchedulerName,
    recipe: &Recipe,
    version: Version,
    status: VersionStatus,
    at: Timestamp,
) -> Result {
    schedulers::require(connection, scheduler)?;
    let sql = "INSERT INTO version_numbers (scheduler, version) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
    let given = execute_counted(connection, sql, (scheduler.as_str(), version.to_string()))?;
    if given == 0 {
        let scheduler = scheduler.clone();
        return Err(Refusal::VersionExists { scheduler, version }.into());
    }
    let row: Values<'_> = &[
        ("scheduler", &scheduler.as_str()),
        ("version", &version.to_string()),
        ("recipe", &documents::recipe_to_json(recipe).to_string()),
        ("status", &status.as_str()),
        ("created_at", &from_time(at)),
    ];
    insert(connection, "INSERT INTO versions", row).map(drop)
}

/// Its number is not given again.
pub(super) fn delete(connection: &Connection, scheduler: &SchedulerName, version: Version) -> Result {
    // Active versions are there, and nothing that is not there is active.
    let sql = "SELECT EXISTS (SELECT 1 FROM schedulers WHERE name = ?1 AND active_version = ?2)";
    let is_active: bool = value(connection, sql, (scheduler.as_str(), version.to_string()))?;
    if is_active {
        let scheduler = scheduler.clone();
        return Err(Refusal::VersionIsActive { scheduler, version }.into());
    }
    let sql = "DELETE FROM versions WHERE scheduler = ?1 AND version = ?2";
    execute(connection, sql, (scheduler.as_str(), version.to_string()))
}

pub(super) fn set_status(
    connection: &Connection,
    scheduler: &SchedulerName,
    version: Version,
    status: VersionStatus,
    cause: &str,
) -> Result {
    schedulers::require(connection, scheduler)?;
    let sql = "UPDATE versions SET status = ?3, cause = ?4 WHERE scheduler = ?1 AND version = ?2";
    let changed =
        execute_counted(connection, sql, (scheduler.as_str(), version.to_string(), status.as_str(), cause))?;
    if changed == 0 {
        return Err(not_found(scheduler, version));
    }
    Ok(())
}

/// [`Refusal::VersionNotFound`] if there is none.
pub(super) fn require(connection: &Connection, scheduler: &SchedulerName, version: Version) -> Result {
    let row: Values<'_> = &[("scheduler", &scheduler.as_str()), ("version", &version.to_string())];
    if has_row(connection, "versions", row)? { Ok(()) } else { Err(not_found(scheduler, version)) }
}

fn not_found(scheduler: &SchedulerName, version: Version) -> Failure {
    let scheduler = scheduler.clone();
    Refusal::VersionNotFound { scheduler, version }.into()
}

const SELECT: &str =
    "SELECT versions.number, versions.version, versions.recipe, versions.status, versions.cause,
            versions.created_at,
            versions.version = schedulers.active_version AS is_active
     FROM versions JOIN schedulers ON schedulers.name = versions.scheduler
     WHERE versions.scheduler = ?1";

pub(super) fn all(
    connection: &Connection,
    recipes: &RecipeCache,
    scheduler: &SchedulerName,
) -> Result<(Vec<VersionRecord>, Vec<UnreadableVersion>)> {
    let read = |columns: &Columns<'_, '_>| version(columns, recipes);
    let (mut readable, mut unreadable) =
        read_each(connection, "version", SELECT, [scheduler.as_str()], read, |columns, why| {
            Ok(UnreadableVersion {
                version: columns.version("version")?,
                is_active: columns.get("is_active")?,
                created_at: columns.time("created_at")?,
                why,
            })
        })?;
    readable.sort_by_key(|record| Reverse(record.version));
    unreadable.sort_by_key(|version| Reverse(version.version));
    Ok((readable, unreadable))
}

pub(super) fn numbers(connection: &Connection, scheduler: &SchedulerName) -> Result<Vec<Version>> {
    let sql = "SELECT version FROM version_numbers WHERE scheduler = ?1";
    let mut numbers = read_rows(connection, sql, [scheduler.as_str()], |columns| columns.version("version"))?;
    numbers.sort_unstable();
    Ok(numbers)
}

pub(super) fn one(
    connection: &Connection,
    recipes: &RecipeCache,
    scheduler: &SchedulerName,
    number: Version,
) -> Result<Option<VersionRecord>> {
    let sql = format!("{SELECT} AND versions.version = ?2");
    let parameters = (scheduler.as_str(), number.to_string());
    Ok(read_rows(connection, &sql, parameters, |columns| version(columns, recipes))?.pop())
}

fn version(columns: &Columns<'_, '_>, recipes: &RecipeCache) -> Result<VersionRecord> {
    Ok(VersionRecord {
        version: columns.version("version")?,
        recipe: recipes.recipe(columns)?,
        status: columns.parsed("status", VersionStatus::parse)?,
        cause: columns.get("cause")?,
        is_active: columns.get("is_active")?,
        created_at: columns.time("created_at")?,
    })
}
