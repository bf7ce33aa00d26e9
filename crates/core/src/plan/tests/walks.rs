//! Random fleets, recipes and occupancy walks: what must hold for every one of them.

use proptest::prelude::*;

use super::fleet::Fleet;
use super::*;
use crate::plan::Scaling;
use crate::scheduler::{
    Autoscaling, FixedBuffer, MaxSurge, OtherParameters, ReadyTarget, RoomOccupancy, ScalingPolicy,
};

#[derive(Debug, Clone)]
pub(super) struct Walk {
    ready: u32,
    occupied: u32,
    surge: MaxSurge,
    autoscaling: Option<Autoscaling>,
    fleet_size: u32,
    rollout: bool,
    /// How many players come (or go) before each cycle.
    pub(super) steps: Vec<i32>,
}

fn autoscaling() -> impl Strategy<Value = Autoscaling> {
    let target = (100_000_u32..=900_000).prop_map(|millionths| {
        let ready_target = ReadyTarget::parse(&format!("0.{millionths:06}")).unwrap();
        ScalingPolicy::RoomOccupancy(RoomOccupancy { ready_target, down_threshold: None })
    });
    let buffer = (1_u32..30).prop_map(|amount| ScalingPolicy::FixedBuffer(FixedBuffer { amount }));
    let max = prop_oneof![Just(None), (2_u32..120).prop_map(Some)];
    (1_u32..20, max, prop_oneof![target, buffer]).prop_map(|(min, max, policy)| Autoscaling {
        enabled: true,
        min,
        max: max.map(|max| max + min),
        cooldown_seconds: 0,
        policy,
        other_parameters: OtherParameters::default(),
        panic: None,
    })
}

pub(super) fn walks() -> impl Strategy<Value = Walk> {
    let surge = prop_oneof![(1_u32..100).prop_map(MaxSurge::Percent), (1_u32..20).prop_map(MaxSurge::Rooms)];
    let scaling = (prop::option::of(autoscaling()), 0_u32..60);
    let steps = prop::collection::vec(-5_i32..=5, 0..20);
    (0_u32..60, 0_u32..60, surge, scaling, any::<bool>(), steps).prop_map(
        |(ready, occupied, surge, (autoscaling, fleet_size), rollout, steps)| Walk {
            ready,
            occupied,
            surge,
            autoscaling,
            fleet_size,
            rollout,
            steps,
        },
    )
}

impl Walk {
    pub(super) fn scaling(&self) -> Scaling<'_> {
        match &self.autoscaling {
            Some(autoscaling) => Scaling::Auto { autoscaling, last_shrunk_at: None },
            None => Scaling::FleetSize(self.fleet_size),
        }
    }

    pub(super) fn fleet(&self) -> Fleet {
        let mut fleet = Fleet::old(self.ready, self.occupied, self.surge);
        fleet.rooms.iter_mut().for_each(|room| room.old = self.rollout);
        fleet
    }
}

/// One cycle, and what must hold of it.
fn cycle(fleet: &mut Fleet, scaling: Scaling<'_>) -> Result<bool, TestCaseError> {
    let plan = fleet.plan(scaling);
    let ready_before = fleet.count(RoomStatus::Ready);
    let replaced = plan.rollout.as_ref().map_or(&[][..], |cycle| &cycle.replaced);
    let is_ready =
        |id: &RoomId| fleet.rooms.iter().any(|room| room.id == *id && room.status == RoomStatus::Ready);
    let occupied_gone = count(replaced.iter().filter(|gone| gone.serves_players).count());
    let ready_gone = count(replaced.iter().filter(|gone| is_ready(&gone.room)).count())
        + plan.rollout.as_ref().map_or(0, |cycle| count(cycle.surplus.len()))
        + plan.remove;

    // Never under the ready target by our own act.
    let floor = plan.desired_ready.min(ready_before);
    prop_assert!(
        ready_before - ready_gone >= floor,
        "{ready_gone} of {ready_before} ready go, target {floor}"
    );
    // Our own adds never take the fleet above desired + surge.
    let ceiling =
        plan.rollout.as_ref().map_or(plan.decision.desired, |cycle| cycle.desired + cycle.surge_max);
    prop_assert!(plan.add == 0 || plan.seen.total + plan.add <= ceiling);
    // An occupied room goes only in a rollout, and only when no old ready room within the budget is left.
    if let Some(cycle) = &plan.rollout {
        prop_assert!(occupied_gone <= cycle.surge_max);
    }
    let is_empty = plan.is_empty();
    let players = fleet.count(RoomStatus::Occupied);
    fleet.apply(&plan);
    prop_assert_eq!(fleet.count(RoomStatus::Occupied), players, "players found a place");
    Ok(is_empty)
}

/// Demand stands still: the plan becomes empty within a bound and stays so.
fn settle(fleet: &mut Fleet, scaling: Scaling<'_>) -> Result<(), TestCaseError> {
    for _ in 0..1000 {
        if cycle(fleet, scaling)? {
            let again = fleet.plan(scaling);
            prop_assert!(again.is_empty(), "it flaps: {again:?}");
            prop_assert!(fleet.rooms.iter().all(|room| !room.old), "old rooms are left");
            return Ok(());
        }
    }
    Err(TestCaseError::fail("it never comes to rest"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn every_walk_is_safe_and_ends(walk in walks()) {
        let mut fleet = walk.fleet();
        for step in &walk.steps {
            cycle(&mut fleet, walk.scaling())?;
            match *step {
                more if more > 0 => fleet.occupy(more.unsigned_abs()),
                fewer => fleet.free(fewer.unsigned_abs()),
            }
        }
        settle(&mut fleet, walk.scaling())?;
    }
}
