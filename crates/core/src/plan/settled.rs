//! Whether a fleet still needs nothing, told from its counters alone. Where rooms change all the time, most changes are of
//! rooms that players enter and leave, and a look at every room to find that out costs more than the changes.

use crate::autoscaling::{self, Demand};
use crate::room::StatusCounts;

use super::{Plan, Scaling};

/// What counters say of a fleet.
#[derive(Debug, Clone, Copy)]
pub struct FleetCounters<'a> {
    pub by_status: &'a StatusCounts,
    /// Rooms not heard of since a restart.
    pub unknown: u32,
    pub demand: Demand,
}

/// Whether a plan of now would find nothing to do, as `last` did, which was made of a look at every room. Nothing but rooms
/// may have changed since: neither the scheduler nor its operations nor what is known of its regions, and the time at which
/// that plan wanted to look again has not come. False only says that it takes another look to know.
pub fn is_settled(last: &Plan, scaling: Scaling<'_>, now: FleetCounters<'_>) -> bool {
    let FleetCounters { by_status, unknown, demand } = now;
    let counted_all = demand.total == last.seen.total && last.seen.unknown == 0 && last.held_back.is_empty();
    let found_nothing = last.is_empty() && last.rollout.is_none();
    // A room that neither is ready nor serves anybody may be one that has to go.
    let all_serve = unknown == 0 && by_status.iter().all(|(status, rooms)| rooms == 0 || status.is_up());
    found_nothing && counted_all && all_serve && desired(scaling, &demand) == Some(demand.total)
}

/// `None`: counters do not tell.
fn desired(scaling: Scaling<'_>, demand: &Demand) -> Option<u32> {
    match scaling {
        Scaling::FleetSize(size) => Some(size),
        // A room that says that it is occupied and names no match counts as one, which a sum of matches does not show.
        Scaling::Auto { autoscaling, .. } => {
            (demand.matches_max <= 1).then(|| autoscaling::decide(demand, autoscaling).desired)
        }
    }
}
