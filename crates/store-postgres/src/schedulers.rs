//! Schedulers: changes and queries.

use maestro_core::operation::OperationId;
use maestro_core::scheduler::{SchedulerName, SizeBaseline};
use maestro_engine::documents::unknown_value;
use maestro_engine::ports::store::{
    NewScheduler, Refusal, RolloutRecord, RolloutState, SchedulerRecord, SchedulerState, SchedulerUpdate,
    UnreadableScheduler,
};
use tokio_postgres::Row;
use tokio_postgres::types::FromSqlOwned;

use crate::columns::{Columns, or_unreadable, read_each, read_first, to_number};
use crate::failure::Result;
use crate::recipes::RecipeCache;
use crate::session::{Session, Statement};
use crate::value::values;
use crate::versions;

pub(crate) async fn create(session: &Session, new: &NewScheduler) -> Result {
    let name = &new.recipe.name;
    let sql = "INSERT INTO schedulers (name, state, active_version, fleet_size, created_at)
         VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING";
    let state = SchedulerState::Creating.as_str();
    let row = values![name, state, new.version, new.recipe.rooms_replicas, new.at];
    if session.ask(sql, row).await?.affected == 0 {
        return Err(Refusal::SchedulerExists(name.clone()).into());
    }
    versions::create(session, name, &new.recipe, new.version, new.version_status, new.at).await
}

pub(crate) async fn update(session: &Session, update: &SchedulerUpdate) -> Result {
    let SchedulerUpdate { scheduler, revision, state, active_version, fleet_size, rollout, last_shrunk_at } =
        update;
    let is: i64 = column(session, "SELECT revision FROM schedulers WHERE name = $1", scheduler).await?;
    if is != i64::from(*revision) {
        return Err(Refusal::SchedulerChanged(scheduler.clone()).into());
    }
    if update.changes_nothing() {
        return Ok(());
    }
    if let Some(version) = active_version {
        versions::require(session, scheduler, *version).await?;
    }
    let sql = "UPDATE schedulers
         SET revision = revision + 1, state = coalesce($2, state),
             active_version = coalesce($3, active_version), fleet_size = coalesce($4, fleet_size),
             last_shrunk_at = coalesce($5, last_shrunk_at)
         WHERE name = $1";
    let state = state.map(SchedulerState::as_str);
    session.ask(sql, values![scheduler, state, *active_version, *fleet_size, *last_shrunk_at]).await?;
    match rollout {
        None => Ok(()),
        Some(rollout) => set_rollout(session, scheduler, rollout.as_ref()).await,
    }
}

/// With `of`, only if that operation's part of the size is still what is taken back.
pub(crate) fn adjust_fleet_size(
    scheduler: &SchedulerName,
    delta: i64,
    of: Option<OperationId>,
) -> Statement<'_> {
    let sql = "WITH adjusted AS (
            UPDATE schedulers
            SET revision = revision + 1,
                fleet_size = least(greatest(fleet_size::NUMERIC + $2, 0), 4294967295)::BIGINT
            WHERE name = $1
              AND ($3::UUID IS NULL OR coalesce((SELECT fleet_delta FROM operations WHERE id = $3), 0) = $4)
            RETURNING 1)
        SELECT EXISTS (SELECT 1 FROM adjusted) AS done";
    Statement::new(sql, values![scheduler, delta, of, delta.saturating_neg()])
}

pub(crate) async fn why_not_adjusted(session: &Session, scheduler: &SchedulerName) -> Result<Refusal> {
    require(session, scheduler).await?;
    Ok(Refusal::SchedulerChanged(scheduler.clone()))
}

pub(crate) async fn delete(session: &Session, scheduler: &SchedulerName, keep: OperationId) -> Result {
    require(session, scheduler).await?;
    let sql = "SELECT count(*) FROM rooms WHERE scheduler = $1 AND ended_at IS NULL";
    let rooms = to_number(session.value(sql, values![scheduler]).await?, "rooms")?;
    if rooms > 0 {
        let scheduler = scheduler.clone();
        return Err(Refusal::RoomsLeft { scheduler, rooms }.into());
    }
    let gone = [
        "DELETE FROM rooms WHERE scheduler = $1",
        "DELETE FROM allocations WHERE scheduler = $1",
        // Versions, the rollout, the ownership and the locks go with it.
        "DELETE FROM schedulers WHERE name = $1",
        "DELETE FROM no_action_contents WHERE scheduler = $1",
        "DELETE FROM outbox WHERE queue IN (SELECT id FROM event_queues WHERE scheduler = $1 AND address IS NULL)",
        "DELETE FROM event_queues WHERE scheduler = $1 AND address IS NULL",
    ];
    let mut statements: Vec<_> = gone.map(|sql| Statement::new(sql, values![scheduler])).into();
    let sql = "DELETE FROM operations WHERE scheduler = $1 AND id <> $2";
    statements.push(Statement::new(sql, values![scheduler, keep]));
    session.ask_all(&statements).await.map(drop)
}

/// [`Refusal::SchedulerNotFound`] if there is none.
pub(crate) async fn require(session: &Session, scheduler: &SchedulerName) -> Result {
    column::<bool>(session, "SELECT TRUE FROM schedulers WHERE name = $1", scheduler).await.map(drop)
}

/// [`Refusal::SchedulerNotFound`] if there is none.
pub(crate) async fn state(session: &Session, scheduler: &SchedulerName) -> Result<SchedulerState> {
    let state: String = column(session, "SELECT state FROM schedulers WHERE name = $1", scheduler).await?;
    SchedulerState::parse(&state).ok_or_else(|| unknown_value("state", state).into())
}

/// [`Refusal::SchedulerNotFound`] if there is none.
async fn column<T: FromSqlOwned>(
    session: &Session,
    sql: &'static str,
    scheduler: &SchedulerName,
) -> Result<T> {
    let found = session.find(sql, values![scheduler]).await?;
    found.ok_or_else(|| Refusal::SchedulerNotFound(scheduler.clone()).into())
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT s.name, s.state, s.active_version, s.fleet_size, s.created_at, s.last_shrunk_at, s.revision,
                v.number, v.recipe, v.created_at AS version_created_at, r.state AS rollout_state,
                r.to_version AS rollout_to, r.from_version AS rollout_from, r.since AS rollout_since,
                r.fleet_size AS rollout_fleet_size, r.fleet_size_after AS rollout_fleet_size_after,
                r.occupied_at AS rollout_occupied_at, r.note AS rollout_note
             FROM schedulers AS s
             JOIN versions AS v ON v.scheduler = s.name AND v.version = s.active_version
             LEFT JOIN rollouts AS r ON r.scheduler = s.name ",
            $rest
        )
    };
}

pub(crate) fn one(name: &SchedulerName) -> Statement<'_> {
    Statement::new(select!("WHERE s.name = $1"), values![name])
}

pub(crate) fn read_one(recipes: &RecipeCache, rows: &[Row]) -> Result<Option<SchedulerRecord>> {
    read_first(rows, |columns| scheduler(columns, recipes))
}

/// Leaves out names that are not valid: nobody can ask for them, and no room can carry them.
pub(crate) async fn names(session: &Session) -> Result<Vec<SchedulerName>> {
    let rows = session.rows("SELECT name FROM schedulers ORDER BY name", values![]).await?;
    let mut names = Vec::with_capacity(rows.len());
    for columns in rows.iter().map(Columns) {
        names.extend(or_unreadable(columns.scheduler("name"))?);
    }
    Ok(names)
}

pub(crate) async fn all(
    session: &Session,
    recipes: &RecipeCache,
) -> Result<(Vec<SchedulerRecord>, Vec<UnreadableScheduler>)> {
    let rows = session.rows(select!("ORDER BY s.name"), values![]).await?;
    let read = |columns: &Columns<'_>| scheduler(columns, recipes);
    read_each("scheduler", &rows, read, |columns, why| {
        Ok(UnreadableScheduler {
            name: columns.scheduler("name")?,
            active_version: columns.get("active_version")?,
            fleet_size: columns.number("fleet_size")?,
            created_at: columns.time("created_at")?,
            why,
        })
    })
}

fn scheduler(columns: &Columns<'_>, recipes: &RecipeCache) -> Result<SchedulerRecord> {
    Ok(SchedulerRecord {
        name: columns.scheduler("name")?,
        state: columns.parsed("state", SchedulerState::parse)?,
        active_version: columns.version("active_version")?,
        recipe: recipes.recipe(columns)?,
        fleet_size: columns.number("fleet_size")?,
        created_at: columns.time("created_at")?,
        version_created_at: columns.time("version_created_at")?,
        last_shrunk_at: columns.optional_time("last_shrunk_at")?,
        rollout: rollout(columns)?,
        revision: columns.number("revision")?,
    })
}

async fn set_rollout(
    session: &Session,
    scheduler: &SchedulerName,
    rollout: Option<&RolloutRecord>,
) -> Result {
    let Some(RolloutRecord { state, to, from, since, fleet_size, occupied_at, note }) = rollout else {
        return session.ask("DELETE FROM rollouts WHERE scheduler = $1", values![scheduler]).await.map(drop);
    };
    let sql = "INSERT INTO rollouts
             (scheduler, state, to_version, from_version, since, fleet_size, fleet_size_after, occupied_at, note)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         ON CONFLICT (scheduler) DO UPDATE SET state = excluded.state, to_version = excluded.to_version,
             from_version = excluded.from_version, since = excluded.since, fleet_size = excluded.fleet_size,
             fleet_size_after = excluded.fleet_size_after, occupied_at = excluded.occupied_at, note = excluded.note";
    let (before, after) = (fleet_size.before, fleet_size.after);
    let row = values![scheduler, state.as_str(), *to, *from, *since, before, after, *occupied_at, note];
    session.ask(sql, row).await.map(drop)
}

/// What the row of a scheduler was joined with: there is at most one rollout of each.
fn rollout(columns: &Columns<'_>) -> Result<Option<RolloutRecord>> {
    let Some(state) = columns.optional("rollout_state", RolloutState::parse)? else {
        return Ok(None);
    };
    Ok(Some(RolloutRecord {
        state,
        to: columns.version("rollout_to")?,
        from: columns.version("rollout_from")?,
        since: columns.time("rollout_since")?,
        fleet_size: SizeBaseline {
            before: columns.number("rollout_fleet_size")?,
            after: columns.number("rollout_fleet_size_after")?,
        },
        occupied_at: columns.optional_time("rollout_occupied_at")?,
        note: columns.get("rollout_note")?,
    }))
}
