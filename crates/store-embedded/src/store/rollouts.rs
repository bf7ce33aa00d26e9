//! Rollouts: at most one per scheduler.

use maestro_core::scheduler::{SchedulerName, SizeBaseline};
use maestro_engine::ports::store::{RolloutRecord, RolloutState};
use rusqlite::Connection;

use super::columns::{Columns, Values, execute, from_time, insert};
use super::failure::Result;

pub(super) fn set(
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

/// What a scheduler's row was joined with.
pub(super) fn of(columns: &Columns<'_, '_>) -> Result<Option<RolloutRecord>> {
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
