//! Rollouts: at most one per scheduler.

use maestro_core::scheduler::{SchedulerName, SizeBaseline};
use maestro_engine::ports::store::{Refusal, RolloutRecord, RolloutState};
use rusqlite::{Connection, Params};

use super::columns::{Columns, from_time};
use super::failure::Failure;
use super::schedulers;

pub(super) fn set(
    connection: &Connection,
    scheduler: &SchedulerName,
    from: Option<&RolloutRecord>,
    to: Option<&RolloutRecord>,
) -> Result<(), Failure> {
    schedulers::require(connection, scheduler)?;
    if !is(connection, scheduler, from)? {
        let scheduler = scheduler.clone();
        return Err(Refusal::RolloutChanged { scheduler }.into());
    }
    match to {
        None => connection
            .prepare_cached("DELETE FROM rollouts WHERE scheduler = ?1")?
            .execute([scheduler.as_str()])?,
        Some(rollout) => connection
            .prepare_cached(
                "INSERT OR REPLACE INTO rollouts
                         (scheduler, state, to_version, from_version, since, fleet_size, fleet_size_after,
                          occupied_at, note)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )?
            .execute(columns_of(scheduler, rollout))?,
    };
    Ok(())
}

/// Compares columns, not records: a time that was given has more digits than the one that is kept.
fn is(
    connection: &Connection,
    scheduler: &SchedulerName,
    expected: Option<&RolloutRecord>,
) -> Result<bool, Failure> {
    let Some(rollout) = expected else {
        return Ok(connection
            .prepare_cached("SELECT NOT EXISTS (SELECT 1 FROM rollouts WHERE scheduler = ?1)")?
            .query_row([scheduler.as_str()], |row| row.get(0))?);
    };
    Ok(connection
        .prepare_cached(
            "SELECT EXISTS (
                 SELECT 1 FROM rollouts
                 WHERE scheduler = ?1 AND state = ?2 AND to_version = ?3 AND from_version = ?4 AND since = ?5
                   AND fleet_size = ?6 AND fleet_size_after = ?7 AND occupied_at IS ?8 AND note = ?9
             )",
        )?
        .query_row(columns_of(scheduler, rollout), |row| row.get(0))?)
}

/// In the order in which statements name them.
fn columns_of<'a>(scheduler: &'a SchedulerName, rollout: &'a RolloutRecord) -> impl Params + 'a {
    let RolloutRecord { state, to, from, since, fleet_size, occupied_at, note } = rollout;
    (
        scheduler.as_str(),
        state.as_str(),
        to.to_string(),
        from.to_string(),
        from_time(*since),
        fleet_size.before,
        fleet_size.after,
        occupied_at.map(from_time),
        note,
    )
}

/// What a scheduler's row was joined with.
pub(super) fn of(columns: &Columns<'_, '_>) -> Result<Option<RolloutRecord>, Failure> {
    let state: Option<String> = columns.get("rollout_state")?;
    if state.is_none() {
        return Ok(None);
    }
    Ok(Some(RolloutRecord {
        state: columns.parsed("rollout_state", RolloutState::parse)?,
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
