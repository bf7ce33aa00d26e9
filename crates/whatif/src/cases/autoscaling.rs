//! How many rooms a fleet should have: `{"id","occupied","total","min","max","readyTarget"}` asks,
//! `{"id","desired","decision","reason"}` answers.

use maestro_core::autoscaling::{Decision, Demand, Reason, decide};
use maestro_core::scheduler::{Autoscaling, OtherParameters, ReadyTarget, RoomOccupancy, ScalingPolicy};
use serde::Serialize;

use super::Fields;

/// What `min` and `max` are when a case does not say.
const MIN: i32 = 1;
const NO_MAX: i32 = -1;

#[derive(Debug, Serialize)]
pub struct AutoscalingAnswer {
    desired: u32,
    /// Such as `Scale Up: +60`.
    decision: String,
    reason: String,
}

pub fn answer(fields: &Fields<'_>) -> Option<AutoscalingAnswer> {
    let (demand, autoscaling) = read(fields)?;
    let decision = decide(&demand, &autoscaling);
    if let Some(wanted) = uncountable(&decision) {
        let reason = format!("{} needs {wanted} rooms, more than {}", demand.occupied, u32::MAX);
        return fields.refuse("occupied", reason);
    }
    Some(AutoscalingAnswer {
        desired: decision.desired,
        decision: decision.outcome().to_string(),
        reason: decision.reason(),
    })
}

fn read(fields: &Fields<'_>) -> Option<(Demand, Autoscaling)> {
    let occupied = fields.required_whole("occupied", 0..=u32::MAX);
    let total = fields.required_whole("total", 0..=u32::MAX);
    let number = |name, default| fields.whole(name, i32::MIN..=i32::MAX).unwrap_or(default);
    let (min, max) = (number("min", MIN), number("max", NO_MAX));
    let lower = fields.check("min", Autoscaling::parse_min(min));
    let upper = fields.check("max", Autoscaling::parse_max(max, min));
    let ready_target = fields
        .required("readyTarget", "a decimal from 0.1 to 0.9")
        .and_then(|text| fields.check("readyTarget", ReadyTarget::parse(&text)));
    let (occupied, total, min, max, ready_target) = (occupied?, total?, lower?, upper?, ready_target?);
    let demand = Demand { matches: occupied.into(), occupied, total, matches_max: 1, waiting: 0 };
    let autoscaling = Autoscaling {
        enabled: true,
        min,
        max,
        cooldown_seconds: 0,
        policy: ScalingPolicy::RoomOccupancy(RoomOccupancy { ready_target, down_threshold: None }),
        other_parameters: OtherParameters::default(),
        panic: None,
    };
    Some((demand, autoscaling))
}

/// What the formula gave, if it is more than there are numbers for and no `max` lowered it.
fn uncountable(decision: &Decision) -> Option<u64> {
    match decision.reasons.as_slice() {
        [Reason::Occupancy { wanted, .. }] if *wanted > u64::from(u32::MAX) => Some(*wanted),
        _ => None,
    }
}
