//! Schedulers: changes and queries.

use maestro_core::operation::OperationId;
use maestro_core::scheduler::{SchedulerName, SizeBaseline};
use maestro_engine::documents::unknown_value;
use maestro_engine::ports::store::{
    NewScheduler, Refusal, RolloutRecord, RolloutState, SchedulerRecord, SchedulerState, SchedulerUpdate,
    UnreadableScheduler,
};
use rusqlite::Connection;
use rusqlite::types::FromSql;

use super::columns::{
    Columns, Values, execute, find, from_id, from_time, insert, or_unreadable, read_each, read_rows, value,
};
use super::failure::Result;
use super::recipes::RecipeCache;
use super::{no_action, operations, outbox, versions};

pub(super) fn create(connection: &Connection, new: &NewScheduler) -> Result {
    let name = &new.recipe.name;
    let row: Values<'_> = &[
        ("name", &name.as_str()),
        ("state", &SchedulerState::Creating.as_str()),
        ("active_version", &new.version.to_string()),
        ("fleet_size", &new.recipe.rooms_replicas),
        ("created_at", &from_time(new.at)),
    ];
    let created = insert(connection, "INSERT OR IGNORE INTO schedulers", row)?;
    if created == 0 {
        return Err(Refusal::SchedulerExists(name.clone()).into());
    }
    versions::create(connection, name, &new.recipe, new.version, new.version_status, new.at)
}

pub(super) fn update(connection: &Connection, update: &SchedulerUpdate) -> Result {
    let SchedulerUpdate { scheduler, revision, state, active_version, fleet_size, rollout, last_shrunk_at } =
        update;
    let is: u32 = column(connection, "SELECT revision FROM schedulers WHERE name = ?1", scheduler)?;
    if is != *revision {
        return Err(Refusal::SchedulerChanged(scheduler.clone()).into());
    }
    if update.changes_nothing() {
        return Ok(());
    }
    if let Some(version) = active_version {
        versions::require(connection, scheduler, *version)?;
    }
    let sql = "UPDATE schedulers
         SET revision = revision + 1, state = coalesce(?2, state),
             active_version = coalesce(?3, active_version), fleet_size = coalesce(?4, fleet_size),
             last_shrunk_at = coalesce(?5, last_shrunk_at)
         WHERE name = ?1";
    let version = active_version.map(|version| version.to_string());
    let (state, last_shrunk_at) = (state.map(SchedulerState::as_str), last_shrunk_at.map(from_time));
    execute(connection, sql, (scheduler.as_str(), state, version, fleet_size, last_shrunk_at))?;
    rollout.as_ref().map_or(Ok(()), |rollout| set_rollout(connection, scheduler, rollout.as_ref()))
}

pub(super) fn adjust_fleet_size(
    connection: &Connection,
    scheduler: &SchedulerName,
    delta: i64,
    of: Option<OperationId>,
) -> Result {
    let is: u32 = column(connection, "SELECT fleet_size FROM schedulers WHERE name = ?1", scheduler)?;
    if let Some(operation) = of
        && operations::fleet_delta(connection, operation)? != delta.saturating_neg()
    {
        return Err(Refusal::SchedulerChanged(scheduler.clone()).into());
    }
    let size = i64::from(is).saturating_add(delta);
    let size = u32::try_from(size.max(0)).unwrap_or(u32::MAX);
    let sql = "UPDATE schedulers SET revision = revision + 1, fleet_size = ?2 WHERE name = ?1";
    execute(connection, sql, (scheduler.as_str(), size))
}

pub(super) fn delete(connection: &Connection, scheduler: &SchedulerName, keep: OperationId) -> Result {
    require(connection, scheduler)?;
    let sql = "SELECT count(*) FROM rooms WHERE scheduler = ?1 AND ended_at IS NULL";
    let rooms: u32 = value(connection, sql, [scheduler.as_str()])?;
    if rooms > 0 {
        let scheduler = scheduler.clone();
        return Err(Refusal::RoomsLeft { scheduler, rooms }.into());
    }
    for statement in [
        "DELETE FROM rooms WHERE scheduler = ?1",
        // Versions, the rollout, the ownership, the locks and the allocations go with it.
        "DELETE FROM schedulers WHERE name = ?1",
    ] {
        execute(connection, statement, [scheduler.as_str()])?;
    }
    // In two parts, each along an index.
    for statement in [
        "DELETE FROM operations WHERE scheduler = ?1 AND ended_at IS NULL AND id <> ?2",
        "DELETE FROM operations WHERE scheduler = ?1 AND ended_at IS NOT NULL AND id <> ?2",
    ] {
        execute(connection, statement, (scheduler.as_str(), from_id(keep)))?;
    }
    outbox::forget_scheduler(connection, scheduler)?;
    no_action::forget_scheduler(connection, scheduler)
}

pub(super) fn exists(connection: &Connection, scheduler: &SchedulerName) -> Result<bool> {
    value(connection, "SELECT EXISTS (SELECT 1 FROM schedulers WHERE name = ?1)", [scheduler.as_str()])
}

/// [`Refusal::SchedulerNotFound`] if there is none.
pub(super) fn require(connection: &Connection, scheduler: &SchedulerName) -> Result {
    column::<i64>(connection, "SELECT 1 FROM schedulers WHERE name = ?1", scheduler).map(drop)
}

/// [`Refusal::SchedulerNotFound`] if there is none.
pub(super) fn state(connection: &Connection, scheduler: &SchedulerName) -> Result<SchedulerState> {
    let state: String = column(connection, "SELECT state FROM schedulers WHERE name = ?1", scheduler)?;
    SchedulerState::parse(&state).ok_or_else(|| unknown_value("state", state).into())
}

/// [`Refusal::SchedulerNotFound`] if there is none.
fn column<T: FromSql>(connection: &Connection, sql: &str, scheduler: &SchedulerName) -> Result<T> {
    let found = find(connection, sql, [scheduler.as_str()])?;
    found.ok_or_else(|| Refusal::SchedulerNotFound(scheduler.clone()).into())
}

const SELECT_SCHEDULERS: &str =
    "SELECT schedulers.name, schedulers.state, schedulers.active_version, schedulers.fleet_size,
            schedulers.created_at, schedulers.last_shrunk_at, schedulers.revision, versions.number, versions.recipe,
            versions.created_at AS version_created_at, rollouts.state AS rollout_state,
            rollouts.to_version AS rollout_to, rollouts.from_version AS rollout_from,
            rollouts.since AS rollout_since, rollouts.fleet_size AS rollout_fleet_size,
            rollouts.fleet_size_after AS rollout_fleet_size_after,
            rollouts.occupied_at AS rollout_occupied_at, rollouts.note AS rollout_note
     FROM schedulers
     JOIN versions
       ON versions.scheduler = schedulers.name AND versions.version = schedulers.active_version
     LEFT JOIN rollouts ON rollouts.scheduler = schedulers.name";

pub(super) fn one(
    connection: &Connection,
    recipes: &RecipeCache,
    name: &SchedulerName,
) -> Result<Option<SchedulerRecord>> {
    let sql = format!("{SELECT_SCHEDULERS} WHERE schedulers.name = ?1");
    Ok(read_rows(connection, &sql, [name.as_str()], |columns| scheduler(columns, recipes))?.pop())
}

/// Leaves out names that are not valid: nobody can ask for them, and no room can carry them.
pub(super) fn names(connection: &Connection) -> Result<Vec<SchedulerName>> {
    let sql = "SELECT name FROM schedulers ORDER BY name";
    let names = read_rows(connection, sql, [], |columns| or_unreadable(columns.scheduler("name")))?;
    Ok(names.into_iter().flatten().collect())
}

pub(super) fn all(
    connection: &Connection,
    recipes: &RecipeCache,
) -> Result<(Vec<SchedulerRecord>, Vec<UnreadableScheduler>)> {
    let sql = format!("{SELECT_SCHEDULERS} ORDER BY schedulers.name");
    let read = |columns: &Columns<'_, '_>| scheduler(columns, recipes);
    read_each(connection, "scheduler", &sql, [], read, |columns, why| {
        Ok(UnreadableScheduler {
            name: columns.scheduler("name")?,
            active_version: columns.get("active_version")?,
            fleet_size: columns.get("fleet_size")?,
            created_at: columns.time("created_at")?,
            why,
        })
    })
}

fn scheduler(columns: &Columns<'_, '_>, recipes: &RecipeCache) -> Result<SchedulerRecord> {
    Ok(SchedulerRecord {
        name: columns.scheduler("name")?,
        state: columns.parsed("state", SchedulerState::parse)?,
        active_version: columns.version("active_version")?,
        recipe: recipes.recipe(columns)?,
        fleet_size: columns.get("fleet_size")?,
        created_at: columns.time("created_at")?,
        version_created_at: columns.time("version_created_at")?,
        last_shrunk_at: columns.optional_time("last_shrunk_at")?,
        rollout: rollout(columns)?,
        revision: columns.get("revision")?,
    })
}

fn set_rollout(
    connection: &Connection,
    scheduler: &SchedulerName,
    rollout: Option<&RolloutRecord>,
) -> Result {
    let Some(RolloutRecord { state, to, from, since, fleet_size, occupied_at, note }) = rollout else {
        return execute(connection, "DELETE FROM rollouts WHERE scheduler = ?1", [scheduler.as_str()]);
    };
    let row: Values<'_> = &[
        ("scheduler", &scheduler.as_str()),
        ("state", &state.as_str()),
        ("to_version", &to.to_string()),
        ("from_version", &from.to_string()),
        ("since", &from_time(*since)),
        ("fleet_size", &fleet_size.before),
        ("fleet_size_after", &fleet_size.after),
        ("occupied_at", &occupied_at.map(from_time)),
        ("note", note),
    ];
    insert(connection, "INSERT OR REPLACE INTO rollouts", row).map(drop)
}

/// What the row of a scheduler was joined with: there is at most one rollout of each.
fn rollout(columns: &Columns<'_, '_>) -> Result<Option<RolloutRecord>> {
    let Some(state) = columns.optional("rollout_state", RolloutState::parse)? else {
        return Ok(None);
    };
    Ok(Some(RolloutRecord {
        state,
        to: columns.version("rollout_to")?,
        from: columns.version("rollout_from")?,
        since: columns.time("rollout_since")?,
        fleet_size: SizeBaseline {
            before: columns.get("rollout_fleet_size")?,
            after: columns.get("rollout_fleet_size_after")?,
        },
        occupied_at: columns.optional_time("rollout_occupied_at")?,
        note: columns.get("rollout_note")?,
    }))
}
