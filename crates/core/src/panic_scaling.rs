//! When a fleet panics: it is nearly full, it has fewer rooms than wanted (including those that are starting), and the next
//! health cycle is too far away. Pure: what was seen goes in, and what is needed comes out, with its numbers.

use std::fmt;

use crate::autoscaling::{self, Demand};
use crate::scheduler::Autoscaling;
use crate::text::count_of;

/// A burst of rooms that is needed now. `Display` is what people read as the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    pub matches: u64,
    /// How many matches all rooms together hold.
    pub places: u64,
    /// Percent of the places.
    pub limit: u32,
    pub total: u32,
    pub desired: u32,
    /// How many rooms to add.
    pub delta: u32,
}

/// `matches / (m · total) > limit` and `total < desired`, exactly. Without the second half a fleet that is as large as
/// it may be, or as its policy wants it under constant demand, would grow and shrink forever.
///
/// `None`: it does not panic, or not now.
pub fn need(demand: &Demand, autoscaling: &Autoscaling) -> Option<Need> {
    let panic = autoscaling.panic_scale()?;
    let Demand { matches, total, matches_max, .. } = *demand;
    let places = u64::from(total) * u64::from(matches_max.max(1));
    let above_limit = 100 * u128::from(matches) > u128::from(panic.limit) * u128::from(places);
    if !above_limit {
        return None;
    }
    let desired = autoscaling::decide(demand, autoscaling).desired;
    let (limit, delta) = (panic.limit, panic.delta);
    (total < desired).then_some(Need { matches, places, limit, total, desired, delta })
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { matches, places, limit, total, desired, delta } = self;
        write!(
            f,
            "{matches} of {places} matches' places are taken (limit {limit} %), \
             {total} of {}: adding {delta}",
            count_of(*desired, "room")
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scheduler::{
        FixedBuffer, OtherParameters, PanicScale, ReadyTarget, RoomOccupancy, ScalingPolicy,
    };

    fn autoscaling(policy: ScalingPolicy, max: Option<u32>, panic: PanicScale) -> Autoscaling {
        let other_parameters = OtherParameters::default();
        let panic = Some(panic);
        Autoscaling { enabled: true, min: 1, max, cooldown_seconds: 0, policy, other_parameters, panic }
    }

    fn occupancy(target: &str) -> ScalingPolicy {
        let ready_target = ReadyTarget::parse(target).unwrap();
        ScalingPolicy::RoomOccupancy(RoomOccupancy { ready_target, down_threshold: None })
    }

    fn enabled(limit: u32) -> PanicScale {
        PanicScale { enabled: true, limit, ..PanicScale::default() }
    }

    /// `matches` of rooms that hold `matches_max` each, all of whose rooms with a match are full.
    fn demand(matches: u64, total: u32, matches_max: u32) -> Demand {
        let occupied = u32::try_from(matches).unwrap() / matches_max;
        Demand { matches, occupied, total, matches_max, waiting: 0 }
    }

    #[test]
    fn above_the_limit_and_short_of_rooms() {
        // (matches, rooms, matches a room holds, max) → the reason, at readyTarget 0.2 and a limit of 90 %
        for (matches, total, matches_max, max, reason) in [
            (
                95,
                100,
                1,
                None,
                "95 of 100 matches' places are taken (limit 90 %), 100 of 119 rooms: adding 10",
            ),
            (
                91,
                100,
                1,
                None,
                "91 of 100 matches' places are taken (limit 90 %), 100 of 114 rooms: adding 10",
            ),
            // Exactly the limit is not above it.
            (90, 100, 1, None, ""),
            (0, 0, 1, None, ""),
            (1, 0, 1, None, "1 of 0 matches' places are taken (limit 90 %), 0 of 2 rooms: adding 10"),
            // As large as it may be.
            (100, 100, 1, Some(100), ""),
            (
                100,
                100,
                1,
                Some(101),
                "100 of 100 matches' places are taken (limit 90 %), 100 of 101 rooms: adding 10",
            ),
            // Places, not rooms.
            (95, 50, 2, None, "95 of 100 matches' places are taken (limit 90 %), 50 of 60 rooms: adding 10"),
            (90, 50, 2, None, ""),
            (50, 50, 2, None, ""),
        ] {
            let found =
                need(&demand(matches, total, matches_max), &autoscaling(occupancy("0.2"), max, enabled(90)));
            let said = found.map(|need| need.to_string()).unwrap_or_default();
            assert_eq!(said, reason, "{matches} matches in {total} rooms of {matches_max}");
        }
    }

    #[test]
    fn only_if_it_is_turned_on() {
        let full = demand(10, 10, 1);
        let on = autoscaling(occupancy("0.5"), None, enabled(90));
        assert!(need(&full, &on).is_some());
        let off = PanicScale { enabled: false, ..enabled(90) };
        assert_eq!(need(&full, &Autoscaling { panic: Some(off), ..on.clone() }), None);
        assert_eq!(need(&full, &Autoscaling { panic: None, ..on.clone() }), None);
        assert_eq!(need(&full, &Autoscaling { enabled: false, ..on }), None);
    }

    /// 95 of 100 rooms are occupied all day, and the policy wants 100.
    #[test]
    fn constant_demand_is_no_need() {
        let buffer = ScalingPolicy::FixedBuffer(FixedBuffer { amount: 5 });
        let autoscaling = autoscaling(buffer, None, enabled(90));
        assert_eq!(need(&demand(95, 100, 1), &autoscaling), None);
        assert_eq!(need(&demand(96, 100, 1), &autoscaling).map(|need| need.desired), Some(101));
    }

    proptest! {
        /// Who panics is short of rooms and above the limit, and who does not is not both.
        #[test]
        fn exact_for_every_fleet(
            occupied in 0_u32..5_000, more in 0_u32..5_000, matches_max in 1_u32..=35,
            limit in 1_u32..=99, max in prop::option::of(2_u32..6_000), millionths in 100_000_u32..=900_000,
        ) {
            let policy = occupancy(&format!("0.{millionths:06}"));
            let autoscaling = autoscaling(policy, max, enabled(limit));
            let (total, matches) = (occupied + more, u64::from(occupied) * u64::from(matches_max));
            let demand = Demand { matches, occupied, total, matches_max, waiting: 0 };
            let desired = autoscaling::decide(&demand, &autoscaling).desired;
            // All rooms with matches are full, so places cancel out.
            let above = 100 * u64::from(occupied) > u64::from(limit) * u64::from(total);
            prop_assert_eq!(need(&demand, &autoscaling).is_some(), above && total < desired);
        }

        /// One match more is never less need.
        #[test]
        fn need_grows_with_matches(matches in 0_u64..2_000, total in 0_u32..2_000, limit in 1_u32..=99) {
            let autoscaling = autoscaling(occupancy("0.3"), None, enabled(limit));
            let needs = |matches| need(&demand(matches, total, 1), &autoscaling).is_some();
            prop_assert!(!needs(matches) || needs(matches + 1));
        }
    }
}
