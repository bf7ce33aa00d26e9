//! The rollout block: each field may be left out, and has a default then.

use maestro_core::scheduler::Rollout;

use super::field::{Field, Refused};
use super::time::{millis_above_zero, millis_from_zero};
use crate::v1;

pub(super) fn rollout(field: &Field<'_>, wire: &v1::Rollout) -> Result<Rollout, Refused> {
    let max_unavailable = field.optional_number("maxUnavailable", wire.max_unavailable, 0);
    let occupied = field.optional("occupied", wire.occupied.as_deref(), |field, text| field.choose(text));
    let on_failure =
        field.optional("onFailure", wire.on_failure.as_deref(), |field, text| field.choose(text));
    let max_failures = field.optional_number("maxFailures", wire.max_failures, 1);
    let timeout = field.optional("timeout", wire.timeout, millis_above_zero);
    let match_end_deadline = field.optional("matchEndDeadline", wire.match_end_deadline, millis_above_zero);
    let rejoin_grace = field.optional("rejoinGrace", wire.rejoin_grace, millis_from_zero);
    let occupied_interval = field.optional("occupiedInterval", wire.occupied_interval, millis_from_zero);
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
