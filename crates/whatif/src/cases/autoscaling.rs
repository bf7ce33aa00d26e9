//! How many rooms a fleet should have: `{"id","occupied","total","min","max","readyTarget"}` asks,
//! `{"id","desired","decision","reason"}` answers.

use maestro_core::autoscaling::{Decision, Demand, Reason, decide};
use maestro_core::scheduler::{Autoscaling, OtherParameters, ReadyTarget, RoomOccupancy, ScalingPolicy};
use maestro_core::violation::Violation;
use serde::Serialize;

use super::Fields;

/// What `min` and `max` are when a case does not say.
const MIN: i32 = 1;
const NO_MAX: i32 = -1;

#[derive(Debug, Serialize)]
pub struct Answer {
    desired: u32,
    /// Such as `Scale Up: +60`.
    decision: String,
    reason: String,
}

pub fn answer(fields: &Fields<'_>) -> Result<Answer, Vec<Violation>> {
    let (demand, autoscaling) = read(fields)?;
    let decision = decide(&demand, &autoscaling);
    if let Some(wanted) = uncountable(&decision) {
        let reason = format!("{} wants {wanted} rooms, more than {}", demand.occupied, u32::MAX);
        return Err(vec![Violation::new("occupied", reason)]);
    }
    Ok(Answer {
        desired: decision.desired,
        decision: decision.outcome().to_string(),
        reason: decision.reason(),
    })
}

fn read(fields: &Fields<'_>) -> Result<(Demand, Autoscaling), Vec<Violation>> {
    let mut violations = Vec::new();
    let mut take = |outcome: Result<u32, Violation>| outcome.map_err(|violation| violations.push(violation));
    let occupied = take(fields.whole("occupied", None, 0, u32::MAX));
    let total = take(fields.whole("total", None, 0, u32::MAX));

    let bounds = bounds(fields).map_err(|more| violations.extend(more));
    let ready_target = fields
        .required("readyTarget", "a decimal from 0.1 to 0.9")
        .and_then(|text| ReadyTarget::parse(&text).map_err(|reason| Violation::new("readyTarget", reason)))
        .map_err(|violation| violations.push(violation));
    let (Ok(occupied), Ok(total), Ok((min, max)), Ok(ready_target)) = (occupied, total, bounds, ready_target)
    else {
        return Err(violations);
    };
    let demand = Demand { matches: occupied.into(), occupied, total, matches_max: 1 };
    let autoscaling = Autoscaling {
        enabled: true,
        min,
        max,
        cooldown_seconds: 0,
        policy: ScalingPolicy::RoomOccupancy(RoomOccupancy { ready_target, down_threshold: None }),
        other_parameters: OtherParameters::default(),
        panic: None,
    };
    Ok((demand, autoscaling))
}

fn bounds(fields: &Fields<'_>) -> Result<(u32, Option<u32>), Vec<Violation>> {
    let mut violations = Vec::new();
    let mut number = |name, default| {
        fields.whole(name, Some(default), i32::MIN, i32::MAX).map_err(|violation| violations.push(violation))
    };
    let (min, max) = (number("min", MIN), number("max", NO_MAX));
    let (Ok(min), Ok(max)) = (min, max) else {
        return Err(violations);
    };
    let lower = Autoscaling::parse_min(min).map_err(|reason| violations.push(Violation::new("min", reason)));
    let upper =
        Autoscaling::parse_max(max, min).map_err(|reason| violations.push(Violation::new("max", reason)));
    match (lower, upper) {
        (Ok(lower), Ok(upper)) => Ok((lower, upper)),
        (Ok(_) | Err(()), Ok(_) | Err(())) => Err(violations),
    }
}

/// What the formula gave, if it is more than there are numbers for and no `max` lowered it.
fn uncountable(decision: &Decision) -> Option<u64> {
    match decision.reasons.as_slice() {
        [Reason::Occupancy { wanted, .. }] if *wanted > u64::from(u32::MAX) => Some(*wanted),
        _ => None,
    }
}
