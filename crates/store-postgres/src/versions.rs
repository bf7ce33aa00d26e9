//! Versions of schedulers: changes and queries.

use std::cmp::Reverse;

use maestro_core::scheduler::{Recipe, SchedulerName, Version, VersionStatus};
use maestro_core::time::Timestamp;
use maestro_engine::documents;
use maestro_engine::ports::store::{Refusal, UnreadableVersion, VersionRecord};

use crate::columns::{Columns, read_each, read_first, read_rows};
use crate::failure::{Failure, Result};
use crate::recipes::RecipeCache;
use crate::schedulers;
use crate::session::Session;
use crate::value::values;

pub(crate) async fn create(
    session: &Session,
    scheduler: &SchedulerName,
    recipe: &Recipe,
    version: Version,
    status: VersionStatus,
    at: Timestamp,
) -> Result {
    schedulers::require(session, scheduler).await?;
    let sql = "WITH given AS (
            INSERT INTO version_numbers (scheduler, version) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING 1)
        INSERT INTO versions (scheduler, version, recipe, status, created_at)
        SELECT $1, $2, $3, $4, $5 FROM given";
    let recipe = documents::recipe_to_json(recipe).to_string();
    let answer = session.ask(sql, values![scheduler, version, recipe, status.as_str(), at]).await?;
    if answer.affected == 0 {
        let scheduler = scheduler.clone();
        return Err(Refusal::VersionExists { scheduler, version }.into());
    }
    Ok(())
}

/// Its number is not given again.
pub(crate) async fn delete(session: &Session, scheduler: &SchedulerName, version: Version) -> Result {
    // Active versions are there, and nothing that is not there is active.
    let sql = "SELECT EXISTS (SELECT 1 FROM schedulers WHERE name = $1 AND active_version = $2)";
    if session.value(sql, values![scheduler, version]).await? {
        let scheduler = scheduler.clone();
        return Err(Refusal::VersionIsActive { scheduler, version }.into());
    }
    let sql = "DELETE FROM versions WHERE scheduler = $1 AND version = $2";
    session.ask(sql, values![scheduler, version]).await.map(drop)
}

pub(crate) async fn set_status(
    session: &Session,
    scheduler: &SchedulerName,
    version: Version,
    status: VersionStatus,
    cause: &str,
) -> Result {
    schedulers::require(session, scheduler).await?;
    let sql = "UPDATE versions SET status = $3, cause = $4 WHERE scheduler = $1 AND version = $2";
    let changed = session.ask(sql, values![scheduler, version, status.as_str(), cause]).await?.affected;
    if changed == 0 { Err(not_found(scheduler, version)) } else { Ok(()) }
}

/// [`Refusal::VersionNotFound`] if there is none.
pub(crate) async fn require(session: &Session, scheduler: &SchedulerName, version: Version) -> Result {
    let sql = "SELECT EXISTS (SELECT 1 FROM versions WHERE scheduler = $1 AND version = $2)";
    let is_there: bool = session.value(sql, values![scheduler, version]).await?;
    if is_there { Ok(()) } else { Err(not_found(scheduler, version)) }
}

fn not_found(scheduler: &SchedulerName, version: Version) -> Failure {
    let scheduler = scheduler.clone();
    Refusal::VersionNotFound { scheduler, version }.into()
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT v.number, v.version, v.recipe, v.status, v.cause, v.created_at,
                v.version = s.active_version AS is_active
             FROM versions AS v JOIN schedulers AS s ON s.name = v.scheduler WHERE v.scheduler = $1",
            $rest
        )
    };
}

pub(crate) async fn all(
    session: &Session,
    recipes: &RecipeCache,
    scheduler: &SchedulerName,
) -> Result<(Vec<VersionRecord>, Vec<UnreadableVersion>)> {
    let rows = session.rows(select!(""), values![scheduler]).await?;
    let read = |columns: &Columns<'_>| version(columns, recipes);
    let (mut readable, mut unreadable) = read_each("version", &rows, read, |columns, why| {
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

pub(crate) async fn numbers(session: &Session, scheduler: &SchedulerName) -> Result<Vec<Version>> {
    let sql = "SELECT version FROM version_numbers WHERE scheduler = $1";
    let rows = session.rows(sql, values![scheduler]).await?;
    let mut numbers = read_rows(&rows, |columns| columns.version("version"))?;
    numbers.sort_unstable();
    Ok(numbers)
}

pub(crate) async fn one(
    session: &Session,
    recipes: &RecipeCache,
    scheduler: &SchedulerName,
    number: Version,
) -> Result<Option<VersionRecord>> {
    let rows = session.rows(select!(" AND v.version = $2"), values![scheduler, number]).await?;
    read_first(&rows, |columns| version(columns, recipes))
}

fn version(columns: &Columns<'_>, recipes: &RecipeCache) -> Result<VersionRecord> {
    Ok(VersionRecord {
        version: columns.version("version")?,
        recipe: recipes.recipe(columns)?,
        status: columns.parsed("status", VersionStatus::parse)?,
        cause: columns.get("cause")?,
        is_active: columns.get("is_active")?,
        created_at: columns.time("created_at")?,
    })
}
