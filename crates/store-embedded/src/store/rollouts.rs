//! Rollouts: at most one per scheduler.

use maestro_core::scheduler::{SchedulerName, SizeBaseline};
use maestro_engine::ports::store::{Refusal, RolloutRecord, RolloutState};
use rusqlite::Connection;

use super::columns::{Columns, Values, execute, from_time, has_row, insert};
use super::failure::Failure;
use super::schedulers;

/// Compares columns, not records: a time that was given has more digits than the one that is kept.
pub(super) fn set(
    connection: &Connection,
    scheduler: &SchedulerName,
    from: Option<&RolloutRecord>,
    to: Option<&RolloutRecord>,
) -> Result<(), Failure> {
    schedulers::require(connection, scheduler)?;
    let is_expected = match from {
        Some(from) => with_row(scheduler, from, |row| has_row(connection, "rollouts", row))?,
        None => !has_row(connection, "rollouts", &[("scheduler", &scheduler.as_str())])?,
    };
    if !is_expected {
        let scheduler = scheduler.clone();
        return Err(Refusal::RolloutChanged { scheduler }.into());
    }
    match to {
        None => execute(connection, "DELETE FROM rollouts WHERE scheduler = ?1", [scheduler.as_str()]),
        Some(to) => with_row(scheduler, to, |row| insert(connection, "INSERT OR REPLACE INTO rollouts", row))
            .map(drop),
    }
}

fn with_row<T>(scheduler: &SchedulerName, record: &RolloutRecord, with: impl FnOnce(Values<'_>) -> T) -> T {
    let RolloutRecord { state, to, from, since, fleet_size, occupied_at, note } = record;
    with(&[
        ("scheduler", &scheduler.as_str()),
        ("state", &state.as_str()),
        ("to_version", &to.to_string()),
        ("from_version", &from.to_string()),
        ("since", &from_time(*since)),
        ("fleet_size", &fleet_size.before),
        ("fleet_size_after", &fleet_size.after),
        ("occupied_at", &occupied_at.map(from_time)),
        ("note", note),
    ])
}

/// What a scheduler's row was joined with.
pub(super) fn of(columns: &Columns<'_, '_>) -> Result<Option<RolloutRecord>, Failure> {
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
