//! How many rooms a fleet should have, and why. Pure: what was seen goes in, a decision comes out.
//!
//! Integer arithmetic on purpose: 1 / (1 − 0.8) is 5, and 6 in binary floating point.

use std::fmt;

use crate::scheduler::{Autoscaling, FixedBuffer, Fraction, ReadyTarget, ScalingPolicy, WHOLE};
use crate::time::{Millis, Timestamp, after};

/// What the players want; rooms of unfinished operations are already counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// Matches that run or are about to begin. With one match a room, the occupied rooms.
    pub matches: u64,
    /// Rooms that players are in or on their way to.
    pub occupied: u32,
    pub total: u32,
    /// How many matches a room holds.
    pub matches_max: u32,
    /// Matches that matchmakers wait for a room for, and that a new room would fit.
    pub waiting: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub desired: u32,
    pub total: u32,
    /// In the order in which they applied; never empty.
    pub reasons: Vec<Reason>,
}

/// One step of a decision. `Display` is what people read in the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    FleetSize {
        size: u32,
    },
    Occupancy {
        matches: u64,
        matches_max: u32,
        ready_target: ReadyTarget,
        wanted: u64,
    },
    Buffer {
        occupied: u32,
        amount: u32,
        wanted: u64,
    },
    /// Matchmakers wait for rooms.
    Waiting {
        matches: u32,
        wanted: u64,
    },
    RaisedToMin {
        min: u32,
    },
    LoweredToMax {
        max: u32,
    },
    /// The caps of its regions hold no more.
    LoweredToPlaces {
        rooms: u32,
    },
}

/// What a decision amounts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    ScaleUp(u32),
    DoNothing,
    ScaleDown(u32),
}

/// Without autoscaling: hold the fleet size.
pub fn hold(size: u32, total: u32) -> Decision {
    Decision { desired: size, total, reasons: vec![Reason::FleetSize { size }] }
}

pub fn decide(demand: &Demand, autoscaling: &Autoscaling) -> Decision {
    let (wanted, reason) = match &autoscaling.policy {
        ScalingPolicy::RoomOccupancy(policy) => {
            let wanted = rooms_for(demand, policy.ready_target);
            let Demand { matches, matches_max, .. } = *demand;
            let ready_target = policy.ready_target;
            (wanted, Reason::Occupancy { matches, matches_max, ready_target, wanted })
        }
        ScalingPolicy::FixedBuffer(FixedBuffer { amount }) => {
            let wanted = u64::from(demand.occupied) + u64::from(*amount);
            (wanted, Reason::Buffer { occupied: demand.occupied, amount: *amount, wanted })
        }
    };
    let mut reasons = vec![reason];
    let mut wanted = wanted;
    if demand.waiting > 0 {
        // Those who wait take rooms at once: what is to stand ready beside them is not theirs.
        wanted = wanted.saturating_add(demand.waiting.div_ceil(demand.matches_max.max(1)).into());
        reasons.push(Reason::Waiting { matches: demand.waiting, wanted });
    }
    let mut desired = u32::try_from(wanted).unwrap_or(u32::MAX);
    if desired < autoscaling.min {
        desired = autoscaling.min;
        reasons.push(Reason::RaisedToMin { min: desired });
    }
    if let Some(max) = autoscaling.max.filter(|max| desired > *max) {
        desired = max;
        reasons.push(Reason::LoweredToMax { max });
    }
    Decision { desired, total: demand.total, reasons }
}

/// `⌈matches / ((1 − readyTarget) · m)⌉`, exactly.
fn rooms_for(demand: &Demand, target: ReadyTarget) -> u64 {
    let busy_share = u128::from(WHOLE - target.units()) * u128::from(demand.matches_max.max(1));
    let rooms = (u128::from(demand.matches) * u128::from(WHOLE)).div_ceil(busy_share);
    u64::try_from(rooms).unwrap_or(u64::MAX)
}

/// What holds back a scale-down that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShrinkHold {
    Cooldown { until: Timestamp },
    DownThreshold { free: u64, wanted_free: u64, threshold: Fraction },
}

/// Whether the fleet may shrink now: the cooldown has passed, and there is clearly more free than is wanted.
pub fn shrink_hold(
    demand: &Demand,
    autoscaling: &Autoscaling,
    last_shrunk_at: Option<Timestamp>,
    now: Timestamp,
) -> Option<ShrinkHold> {
    let cooldown = Millis::from_seconds(autoscaling.cooldown_seconds.into());
    // A time in the future is left over from before the clock was set back.
    let last_shrunk_at = last_shrunk_at.filter(|at| *at <= now);
    let until = last_shrunk_at.map(|at| after(at, cooldown)).filter(|until| now < *until);
    if let Some(until) = until {
        return Some(ShrinkHold::Cooldown { until });
    }
    let ScalingPolicy::RoomOccupancy(policy) = &autoscaling.policy else {
        return None;
    };
    let threshold = policy.down_threshold?;
    let matches_max = u64::from(demand.matches_max.max(1));
    let free = (u64::from(demand.total) * matches_max).saturating_sub(demand.matches);
    // No fleet has more rooms, and so the products below fit.
    let rooms = u32::try_from(rooms_for(demand, policy.ready_target)).unwrap_or(u32::MAX);
    let wanted = u128::from(rooms) * u128::from(matches_max);
    let wanted_free = (wanted * u128::from(policy.ready_target.units())).div_ceil(u128::from(WHOLE));
    // desiredFree / free ≤ threshold, without dividing: nothing free is never enough.
    let enough = wanted_free * u128::from(WHOLE) <= u128::from(threshold.units()) * u128::from(free);
    let wanted_free = u64::try_from(wanted_free).unwrap_or(u64::MAX);
    (free == 0 || !enough).then_some(ShrinkHold::DownThreshold { free, wanted_free, threshold })
}

impl Decision {
    pub fn outcome(&self) -> Outcome {
        match (self.desired, self.total) {
            (desired, total) if desired > total => Outcome::ScaleUp(desired - total),
            (desired, total) if desired < total => Outcome::ScaleDown(total - desired),
            _ => Outcome::DoNothing,
        }
    }

    /// A fleet cannot have more rooms than its regions may hold.
    pub fn lower_to_places(&mut self, most: u64) {
        if let Some(rooms) = u32::try_from(most).ok().filter(|rooms| self.desired > *rooms) {
            self.desired = rooms;
            self.reasons.push(Reason::LoweredToPlaces { rooms });
        }
    }

    /// All reasons on one line.
    pub fn reason(&self) -> String {
        self.reasons.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FleetSize { size } => write!(f, "fleet size {size}"),
            Self::Occupancy { matches, matches_max, ready_target, wanted } => match matches_max {
                0 | 1 => write!(f, "{matches} occupied at readyTarget {ready_target} → {wanted}"),
                _ => write!(
                    f,
                    "{matches} matches, {matches_max} a room, at readyTarget {ready_target} → {wanted}"
                ),
            },
            Self::Buffer { occupied, amount, wanted } => {
                write!(f, "{occupied} occupied and a buffer of {amount} → {wanted}")
            }
            Self::Waiting { matches, wanted } => write!(f, "{matches} waiting for a room → {wanted}"),
            Self::RaisedToMin { min } => write!(f, "min {min} → {min}"),
            Self::LoweredToMax { max } => write!(f, "max {max} → {max}"),
            Self::LoweredToPlaces { rooms } => write!(f, "caps of its regions → {rooms}"),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ScaleUp(rooms) => write!(f, "Scale Up: +{rooms}"),
            Self::DoNothing => f.write_str("Do Nothing: 0"),
            Self::ScaleDown(rooms) => write!(f, "Scale Down: -{rooms}"),
        }
    }
}

impl fmt::Display for ShrinkHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cooldown { until } => {
                write!(f, "the cooldown after the last scale-down lasts until {until:.3}")
            }
            Self::DownThreshold { free, wanted_free, threshold } => {
                write!(f, "{wanted_free} of {free} free places are wanted, above downThreshold {threshold}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scheduler::{OtherParameters, RoomOccupancy};

    fn occupancy(ready_target: &str, min: u32, max: Option<u32>) -> Autoscaling {
        let ready_target = ReadyTarget::parse(ready_target).unwrap();
        let policy = ScalingPolicy::RoomOccupancy(RoomOccupancy { ready_target, down_threshold: None });
        let other_parameters = OtherParameters::default();
        Autoscaling { enabled: true, min, max, cooldown_seconds: 0, policy, other_parameters, panic: None }
    }

    fn demand(total: u32, occupied: u32) -> Demand {
        Demand { matches: occupied.into(), occupied, total, matches_max: 1, waiting: 0 }
    }

    fn check(total: u32, occupied: u32, target: &str, desired: u32, outcome: &str) {
        let decision = decide(&demand(total, occupied), &occupancy(target, 1, None));
        assert_eq!((decision.desired, decision.outcome().to_string().as_str()), (desired, outcome));
    }

    #[test]
    fn the_table_of_the_specification() {
        check(100, 80, "0.5", 160, "Scale Up: +60");
        check(100, 50, "0.5", 100, "Do Nothing: 0");
        check(100, 30, "0.5", 60, "Scale Down: -40");
        check(50, 40, "0.3", 58, "Scale Up: +8");
        check(50, 35, "0.3", 50, "Do Nothing: 0");
        check(50, 10, "0.3", 15, "Scale Down: -35");
        check(10, 5, "0.9", 50, "Scale Up: +40");
        check(10, 1, "0.9", 10, "Do Nothing: 0");
        check(10, 1, "0.8", 5, "Scale Down: -5");
        check(5, 5, "0.1", 6, "Scale Up: +1");
        check(1, 1, "0.3", 2, "Scale Up: +1");
        check(2, 2, "0.9", 20, "Scale Up: +18");
    }

    /// The last digit decides whether a room more is needed, also where a 64-bit float has none left for it.
    #[test]
    fn every_digit_counts() {
        check(10, 5, "0.5", 10, "Do Nothing: 0");
        check(10, 5, "0.500000000000000001", 11, "Scale Up: +1");
        check(10, 5, "0.499999999999999999", 10, "Do Nothing: 0");
        check(10, 1, "0.899999999999999999", 10, "Do Nothing: 0");
        check(11, 1, "0.123456789012345678", 2, "Scale Down: -9");
        check(1_000_000_000, 1_000_000_000, "0.123456789012345678", 1_140_845_069, "Scale Up: +140845069");
    }

    #[test]
    fn clamped_with_its_reason() {
        for (occupied, min, max, desired, reason) in [
            (80, 1, Some(120), 120, "80 occupied at readyTarget 0.5 → 160; max 120 → 120"),
            (80, 1, None, 160, "80 occupied at readyTarget 0.5 → 160"),
            (0, 3, Some(9), 3, "0 occupied at readyTarget 0.5 → 0; min 3 → 3"),
            (4, 3, Some(9), 8, "4 occupied at readyTarget 0.5 → 8"),
        ] {
            let decision = decide(&demand(100, occupied), &occupancy("0.5", min, max));
            assert_eq!((decision.desired, decision.reason().as_str()), (desired, reason));
        }
    }

    #[test]
    fn several_matches_in_a_room() {
        for (matches, matches_max, desired) in [(8, 4, 4), (9, 4, 5), (1, 35, 1), (71, 35, 5), (0, 4, 1)] {
            let demand = Demand { matches, occupied: 0, total: 0, matches_max, waiting: 0 };
            assert_eq!(decide(&demand, &occupancy("0.5", 1, None)).desired, desired);
        }
    }

    #[test]
    fn a_fixed_buffer() {
        let policy = ScalingPolicy::FixedBuffer(FixedBuffer { amount: 10 });
        let autoscaling = Autoscaling { policy, ..occupancy("0.5", 1, Some(100)) };
        for (occupied, desired, reason) in [
            (0, 10, "0 occupied and a buffer of 10 → 10"),
            (95, 100, "95 occupied and a buffer of 10 → 105; max 100 → 100"),
        ] {
            let decision = decide(&demand(5, occupied), &autoscaling);
            assert_eq!((decision.desired, decision.reason().as_str()), (desired, reason));
        }
    }

    #[test]
    fn a_scale_down_may_be_held_back() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut autoscaling = occupancy("0.5", 1, None);
        let hold = |autoscaling: &Autoscaling, total, last| {
            shrink_hold(&demand(total, 10), autoscaling, last, at(100)).map(|hold| hold.to_string())
        };
        assert_eq!(hold(&autoscaling, 50, Some(at(99))), None);
        autoscaling.cooldown_seconds = 60;
        assert_eq!(hold(&autoscaling, 50, None), None);
        assert_eq!(hold(&autoscaling, 50, Some(at(40))), None);
        let text = "the cooldown after the last scale-down lasts until 1970-01-01T00:01:41.000Z";
        assert_eq!(hold(&autoscaling, 50, Some(at(41))).as_deref(), Some(text));
        let ScalingPolicy::RoomOccupancy(policy) = &mut autoscaling.policy else { unreachable!() };
        policy.down_threshold = Some(Fraction::parse("0.5").unwrap());
        // 10 free places are wanted; 20 of them make 0.5.
        assert_eq!(hold(&autoscaling, 30, None), None);
        let text = "10 of 19 free places are wanted, above downThreshold 0.5";
        assert_eq!(hold(&autoscaling, 29, None).as_deref(), Some(text));
        assert!(hold(&autoscaling, 10, None).is_some());
    }

    proptest! {
        /// Against a rational oracle that does not divide: the smallest n with n · (1 − t) · m ≥ matches.
        #[test]
        fn exact_for_every_target(
            units in WHOLE / 10..=WHOLE / 10 * 9,
            matches in 0_u64..5_000_000,
            matches_max in 1_u32..=35,
        ) {
            let target = ReadyTarget::parse(&format!("0.{units:018}")).unwrap();
            let demand = Demand { matches, occupied: 0, total: 0, matches_max, waiting: 0 };
            let rooms = u128::from(rooms_for(&demand, target));
            let served = |rooms: u128| rooms * u128::from(WHOLE - units) * u128::from(matches_max);
            let needed = u128::from(matches) * u128::from(WHOLE);
            prop_assert!(served(rooms) >= needed);
            prop_assert!(rooms == 0 || served(rooms - 1) < needed);
        }
    }
}
