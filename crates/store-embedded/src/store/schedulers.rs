//! Schedulers and versions: changes and questions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use foldhash::fast::FixedState;
use maestro_core::operation::OperationId;
use maestro_core::scheduler::{Recipe, SchedulerName, Version, VersionStatus};
use maestro_engine::documents;
use maestro_engine::ports::store::{NewScheduler, Refusal, SchedulerRecord, SchedulerState, VersionRecord};
use rusqlite::{Connection, OptionalExtension, Params};

use super::columns::{Columns, from_id, from_time};
use super::failure::Failure;

pub(super) fn create(connection: &Connection, new: &NewScheduler) -> Result<(), Failure> {
    let name = &new.recipe.name;
    let created = connection
        .prepare_cached(
            "INSERT INTO schedulers (name, state, active_version, fleet_size, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING",
        )?
        .execute((
            name.as_str(),
            SchedulerState::Creating.as_str(),
            new.version.to_string(),
            new.recipe.rooms_replicas,
            from_time(new.at),
        ))?;
    if created == 0 {
        return Err(Refusal::SchedulerExists(name.clone()).into());
    }
    connection
        .prepare_cached(
            "INSERT INTO versions (scheduler, version, recipe, status, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute((
            name.as_str(),
            new.version.to_string(),
            documents::recipe_to_json(&new.recipe).to_string(),
            new.version_status.as_str(),
            from_time(new.at),
        ))?;
    Ok(())
}

pub(super) fn set_state(
    connection: &Connection,
    scheduler: &SchedulerName,
    from: &[SchedulerState],
    to: SchedulerState,
) -> Result<(), Failure> {
    let is = state(connection, scheduler)?;
    if !from.contains(&is) {
        let scheduler = scheduler.clone();
        return Err(Refusal::WrongState { scheduler, is }.into());
    }
    connection
        .prepare_cached("UPDATE schedulers SET state = ?2 WHERE name = ?1")?
        .execute((scheduler.as_str(), to.as_str()))?;
    Ok(())
}

pub(super) fn set_fleet_size(
    connection: &Connection,
    scheduler: &SchedulerName,
    from: u32,
    to: u32,
) -> Result<(), Failure> {
    let is = fleet_size(connection, scheduler)?;
    if is != from {
        let scheduler = scheduler.clone();
        return Err(Refusal::FleetSizeChanged { scheduler, is }.into());
    }
    write_fleet_size(connection, scheduler, to)
}

pub(super) fn adjust_fleet_size(
    connection: &Connection,
    scheduler: &SchedulerName,
    delta: i64,
) -> Result<(), Failure> {
    let size = i64::from(fleet_size(connection, scheduler)?).saturating_add(delta);
    let size = u32::try_from(size.max(0)).unwrap_or(u32::MAX);
    write_fleet_size(connection, scheduler, size)
}

pub(super) fn set_version_status(
    connection: &Connection,
    scheduler: &SchedulerName,
    version: Version,
    status: VersionStatus,
) -> Result<(), Failure> {
    connection
        .prepare_cached("UPDATE versions SET status = ?3 WHERE scheduler = ?1 AND version = ?2")?
        .execute((scheduler.as_str(), version.to_string(), status.as_str()))?;
    Ok(())
}

pub(super) fn delete(
    connection: &Connection,
    scheduler: &SchedulerName,
    keep: OperationId,
) -> Result<(), Failure> {
    state(connection, scheduler)?;
    let rooms: u32 = connection
        .prepare_cached("SELECT count(*) FROM rooms WHERE scheduler = ?1 AND ended_at IS NULL")?
        .query_row([scheduler.as_str()], |row| row.get(0))?;
    if rooms > 0 {
        let scheduler = scheduler.clone();
        return Err(Refusal::RoomsLeft { scheduler, rooms }.into());
    }
    for statement in [
        "DELETE FROM rooms WHERE scheduler = ?1",
        // Versions and the ownership go with it.
        "DELETE FROM schedulers WHERE name = ?1",
    ] {
        connection
            .prepare_cached(statement)?
            .execute([scheduler.as_str()])?;
    }
    // In two parts, each along an index.
    for statement in [
        "DELETE FROM operations WHERE scheduler = ?1 AND ended_at IS NULL AND id <> ?2",
        "DELETE FROM operations WHERE scheduler = ?1 AND ended_at IS NOT NULL AND id <> ?2",
    ] {
        connection
            .prepare_cached(statement)?
            .execute((scheduler.as_str(), from_id(keep)))?;
    }
    Ok(())
}

pub(super) fn exists(connection: &Connection, scheduler: &SchedulerName) -> Result<bool, Failure> {
    Ok(connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM schedulers WHERE name = ?1)")?
        .query_row([scheduler.as_str()], |row| row.get(0))?)
}

/// [`Refusal::SchedulerNotFound`] if there is none.
pub(super) fn state(connection: &Connection, scheduler: &SchedulerName) -> Result<SchedulerState, Failure> {
    let mut statement = connection.prepare_cached("SELECT state FROM schedulers WHERE name = ?1")?;
    let mut rows = statement.query([scheduler.as_str()])?;
    match rows.next()? {
        Some(row) => Columns(row).parsed("state", SchedulerState::parse),
        None => Err(Refusal::SchedulerNotFound(scheduler.clone()).into()),
    }
}

fn fleet_size(connection: &Connection, scheduler: &SchedulerName) -> Result<u32, Failure> {
    connection
        .prepare_cached("SELECT fleet_size FROM schedulers WHERE name = ?1")?
        .query_row([scheduler.as_str()], |row| row.get(0))
        .optional()?
        .ok_or_else(|| Refusal::SchedulerNotFound(scheduler.clone()).into())
}

fn write_fleet_size(connection: &Connection, scheduler: &SchedulerName, size: u32) -> Result<(), Failure> {
    connection
        .prepare_cached("UPDATE schedulers SET fleet_size = ?2 WHERE name = ?1")?
        .execute((scheduler.as_str(), size))?;
    Ok(())
}

/// Recipes are immutable and read all the time: each is parsed once.
#[derive(Default)]
pub(super) struct RecipeCache(Mutex<HashMap<i64, Arc<Recipe>, FixedState>>);

impl RecipeCache {
    /// Far more than there are versions in use. When it is full it begins anew, which costs some parsing.
    const RECIPES_MAX: usize = 4096;

    fn recipe(&self, columns: &Columns<'_, '_>) -> Result<Arc<Recipe>, Failure> {
        let number = columns.get("number")?;
        if let Some(recipe) = self.lock().get(&number) {
            return Ok(recipe.clone());
        }
        let recipe = Arc::new(documents::recipe_from_json(&columns.json("recipe")?)?);
        let mut recipes = self.lock();
        if recipes.len() >= Self::RECIPES_MAX {
            recipes.clear();
        }
        recipes.insert(number, recipe.clone());
        Ok(recipe)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<i64, Arc<Recipe>, FixedState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const SELECT_SCHEDULERS: &str =
    "SELECT schedulers.name, schedulers.state, schedulers.active_version, schedulers.fleet_size,
            schedulers.created_at, versions.number, versions.recipe,
            versions.created_at AS version_created_at
     FROM schedulers JOIN versions
       ON versions.scheduler = schedulers.name AND versions.version = schedulers.active_version";

const SELECT_VERSIONS: &str =
    "SELECT versions.number, versions.version, versions.recipe, versions.status, versions.created_at,
            versions.version = schedulers.active_version AS is_active
     FROM versions JOIN schedulers ON schedulers.name = versions.scheduler
     WHERE versions.scheduler = ?1";

pub(super) fn one(
    connection: &Connection,
    recipes: &RecipeCache,
    name: &SchedulerName,
) -> Result<Option<SchedulerRecord>, Failure> {
    let sql = format!("{SELECT_SCHEDULERS} WHERE schedulers.name = ?1");
    Ok(schedulers(connection, recipes, &sql, [name.as_str()])?.pop())
}

pub(super) fn all(connection: &Connection, recipes: &RecipeCache) -> Result<Vec<SchedulerRecord>, Failure> {
    let sql = format!("{SELECT_SCHEDULERS} ORDER BY schedulers.name");
    schedulers(connection, recipes, &sql, [])
}

fn schedulers(
    connection: &Connection,
    recipes: &RecipeCache,
    sql: &str,
    parameters: impl Params,
) -> Result<Vec<SchedulerRecord>, Failure> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(parameters)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let columns = Columns(row);
        found.push(SchedulerRecord {
            name: columns.scheduler("name")?,
            state: columns.parsed("state", SchedulerState::parse)?,
            active_version: columns.version("active_version")?,
            recipe: recipes.recipe(&columns)?,
            fleet_size: columns.get("fleet_size")?,
            created_at: columns.time("created_at")?,
            version_created_at: columns.time("version_created_at")?,
        });
    }
    Ok(found)
}

pub(super) fn versions(
    connection: &Connection,
    recipes: &RecipeCache,
    scheduler: &SchedulerName,
) -> Result<Vec<VersionRecord>, Failure> {
    let mut found = version_records(connection, recipes, SELECT_VERSIONS, [scheduler.as_str()])?;
    found.sort_by_key(|record| std::cmp::Reverse(record.version));
    Ok(found)
}

pub(super) fn version(
    connection: &Connection,
    recipes: &RecipeCache,
    scheduler: &SchedulerName,
    version: Version,
) -> Result<Option<VersionRecord>, Failure> {
    let sql = format!("{SELECT_VERSIONS} AND versions.version = ?2");
    let parameters = (scheduler.as_str(), version.to_string());
    Ok(version_records(connection, recipes, &sql, parameters)?.pop())
}

fn version_records(
    connection: &Connection,
    recipes: &RecipeCache,
    sql: &str,
    parameters: impl Params,
) -> Result<Vec<VersionRecord>, Failure> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(parameters)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let columns = Columns(row);
        found.push(VersionRecord {
            version: columns.version("version")?,
            recipe: recipes.recipe(&columns)?,
            status: columns.parsed("status", VersionStatus::parse)?,
            is_active: columns.get("is_active")?,
            created_at: columns.time("created_at")?,
        });
    }
    Ok(found)
}
