//! The rollout block: each field may be left out, and has a default then.

use super::field::{Field, Refused};
use super::time::{millis_above_zero, millis_from_zero};
use crate::scheduler::draft::RolloutDraft;
use crate::scheduler::{OccupiedRooms, OnFailure, Rollout};

pub(super) fn rollout(field: &Field<'_>, draft: &RolloutDraft) -> Result<Rollout, Refused> {
    let RolloutDraft {
        max_unavailable,
        occupied,
        on_failure,
        max_failures,
        timeout,
        match_end_deadline,
        rejoin_grace,
        occupied_interval,
    } = draft;
    let max_unavailable =
        max_unavailable.map(|number| field.child("maxUnavailable").number(number, 0, i32::MAX)).transpose();
    let occupied =
        occupied.as_deref().map(|text| field.child("occupied").take(OccupiedRooms::parse(text))).transpose();
    let on_failure =
        on_failure.as_deref().map(|text| field.child("onFailure").take(OnFailure::parse(text))).transpose();
    let max_failures =
        max_failures.map(|number| field.child("maxFailures").number(number, 1, i32::MAX)).transpose();
    let timeout = timeout.map(|time| millis_above_zero(&field.child("timeout"), time)).transpose();
    let match_end_deadline =
        match_end_deadline.map(|time| millis_above_zero(&field.child("matchEndDeadline"), time)).transpose();
    let rejoin_grace =
        rejoin_grace.map(|time| millis_from_zero(&field.child("rejoinGrace"), time)).transpose();
    let occupied_interval =
        occupied_interval.map(|time| millis_from_zero(&field.child("occupiedInterval"), time)).transpose();
    let default = Rollout::default();
    Ok(Rollout {
        max_unavailable: max_unavailable?.unwrap_or(default.max_unavailable),
        occupied: occupied?.unwrap_or(default.occupied),
        on_failure: on_failure?.unwrap_or(default.on_failure),
        max_failures: max_failures?.unwrap_or(default.max_failures),
        timeout: timeout?.or(default.timeout),
        match_end_deadline: match_end_deadline?.or(default.match_end_deadline),
        rejoin_grace: rejoin_grace?.unwrap_or(default.rejoin_grace),
        occupied_interval: occupied_interval?.unwrap_or(default.occupied_interval),
    })
}
