//! Rollouts over several regions: where rooms come and go, and how the fleet is spread at the end.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::fleet::{Fleet, NEW, OLD};
use super::*;
use crate::placement::{RegionFact, grow, place_left, shrink};
use crate::policy::{PlacementPolicy, PlacementRegion};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

fn region(name: &str) -> Region {
    Region::parse(name).unwrap()
}

/// Weight and cap of each region.
fn places(regions: &[(u32, Option<u32>)]) -> Places {
    let listed = |(name, (weight, cap)): (&&str, &(u32, Option<u32>))| PlacementRegion {
        name: region(name),
        weight: *weight,
        cap: *cap,
    };
    let open = Place { reachable: true, ..Place::default() };
    Places {
        regions: NAMES.iter().take(regions.len()).map(|name| (region(name), open.clone())).collect(),
        policy: PlacementPolicy { regions: NAMES.iter().zip(regions).map(listed).collect() },
        bound_to: None,
    }
}

/// So many old ready rooms in each region.
fn old_fleet(rooms: &[u32], max_surge: MaxSurge) -> Fleet {
    let mut fleet = Fleet::old(0, 0, max_surge);
    for (name, number) in NAMES.iter().zip(rooms) {
        for _ in 0..*number {
            fleet.make(OLD, true, RoomStatus::Ready);
            fleet.rooms.last_mut().unwrap().region = region(name);
        }
    }
    fleet
}

fn spread_of(fleet: &Fleet, places: &Places) -> Vec<u32> {
    let in_region =
        |name: &&str| count(fleet.rooms.iter().filter(|room| room.region == region(name)).count());
    NAMES.iter().take(places.regions.len()).map(in_region).collect()
}

fn planned(fleet: &Fleet, places: &Places, size: u32) -> Plan {
    let scaling = Scaling::FleetSize(size);
    plan(&FleetSnapshot {
        replacement: fleet.rules,
        places: Some(places),
        scaling,
        ..snapshot(size, &fleet.rooms)
    })
}

/// Carries a plan out as the server does: new rooms by the shares of new rooms, under the caps of all; what is too much
/// when all are new by the shares of what stays.
fn carry_out(fleet: &mut Fleet, places: &Places, plan: &Plan) {
    let gone: Vec<RoomId> = plan
        .rollout
        .iter()
        .flat_map(|cycle| cycle.replaced.iter().map(|gone| &gone.room).chain(&cycle.surplus))
        .cloned()
        .collect();
    let standings = places.standings(&fleet.rooms, |room| !room.old);
    let (names, facts): (Vec<&Region>, Vec<RegionFact>) = places.policy.facts(&standings).unzip();
    let numbers = grow(&facts, plan.add.into()).unwrap();
    let names: Vec<Region> = names.into_iter().cloned().collect();
    for (name, number) in names.into_iter().zip(numbers) {
        for _ in 0..number {
            fleet.make(NEW, false, RoomStatus::Ready);
            fleet.rooms.last_mut().unwrap().region = name.clone();
        }
    }
    fleet.rooms.retain(|room| !gone.contains(&room.id));
    remove_by_shares(fleet, places, plan.remove);
}

fn remove_by_shares(fleet: &mut Fleet, places: &Places, number: u32) {
    let standings = places.standings(&fleet.rooms, |_| true);
    let facts: Vec<RegionFact> = places.policy.facts(&standings).map(|(_, fact)| fact).collect();
    let mut left = shrink(&facts, number.into()).unwrap();
    fleet.rooms.retain(|room| {
        let index = NAMES.iter().position(|name| room.region == region(name)).unwrap();
        let goes = left[index] > 0;
        left[index] -= u64::from(goes);
        !goes
    });
}

/// Until nothing is left to do.
fn roll_out(fleet: &mut Fleet, places: &Places, size: u32) {
    for _ in 0..500 {
        let plan = planned(fleet, places, size);
        if plan.is_empty() && fleet.rooms.iter().all(|room| !room.old) {
            return;
        }
        let ready = count(fleet.rooms.len());
        let gone = plan.rollout.as_ref().map_or(0, |cycle| count(cycle.replaced.len() + cycle.surplus.len()));
        assert!(ready - gone >= size.min(ready), "{plan:?}");
        carry_out(fleet, places, &plan);
        for (name, rooms) in NAMES.iter().zip(spread_of(fleet, places)) {
            let listed = places.policy.regions.iter().find(|listed| listed.name == region(name)).unwrap();
            assert!(listed.cap.is_none_or(|cap| rooms <= cap), "{rooms} rooms in {name}: {listed:?}");
        }
    }
    panic!("it does not end: {:?}", spread_of(fleet, places));
}

#[test]
fn a_rollout_ends_with_every_region_at_its_share() {
    for (regions, before, surge, after) in [
        // One that is full of old rooms gets its new ones all the same.
        (&[(1, Some(4)), (1, None)][..], &[4, 4][..], 1, &[4, 4][..]),
        (&[(1, Some(4)), (1, None)], &[4, 4], 2, &[4, 4]),
        (&[(1, Some(4)), (1, None)], &[4, 4], 8, &[4, 4]),
        (&[(3, Some(6)), (1, None)], &[6, 2], 1, &[6, 2]),
        (&[(3, Some(6)), (1, None)], &[6, 2], 4, &[6, 2]),
        (&[(1, Some(4)), (1, Some(5))], &[4, 4], 3, &[4, 4]),
        (&[(1, Some(3)), (1, Some(3)), (1, None)], &[3, 3, 3], 2, &[3, 3, 3]),
        // Without caps too, whichever rooms are the oldest.
        (&[(1, None), (1, None)], &[4, 4], 2, &[4, 4]),
        (&[(1, None), (1, None)], &[8, 0], 2, &[4, 4]),
        (&[(1, None), (3, None)], &[4, 4], 3, &[2, 6]),
        // Weight 0 gets none.
        (&[(1, None), (0, None)], &[4, 4], 2, &[8, 0]),
    ] {
        let places = places(regions);
        let size = before.iter().sum();
        let mut fleet = old_fleet(before, MaxSurge::Rooms(surge));
        roll_out(&mut fleet, &places, size);
        assert_eq!(spread_of(&fleet, &places), after, "{regions:?} from {before:?} with a surge of {surge}");
    }
}

/// What a region itself holds is like a cap: what it has no place for is at home elsewhere.
#[test]
fn a_rollout_goes_by_what_regions_hold() {
    for surge in [1, 2, 8] {
        let mut places = places(&[(1, None), (1, None)]);
        let capacity = PlaceCapacity { rooms: 3, why: "a holds at most 3".into() };
        places.regions.get_mut(&region("a")).unwrap().capacity = Some(capacity);
        let mut fleet = old_fleet(&[3, 5], MaxSurge::Rooms(surge));
        let first = planned(&fleet, &places, 8);
        assert_eq!(first.add, surge.min(5), "as many as belong where there is place");
        roll_out(&mut fleet, &places, 8);
        assert_eq!(spread_of(&fleet, &places), [3, 5], "surge {surge}");
    }
}

/// In the middle of it too, as far as rooms can be chosen.
#[test]
fn old_rooms_go_by_shares() {
    let places = places(&[(1, None), (1, None)]);
    let mut fleet = old_fleet(&[6, 2], MaxSurge::Rooms(4));
    for _ in 0..4 {
        fleet.make(NEW, false, RoomStatus::Ready);
        fleet.rooms.last_mut().unwrap().region = region("b");
    }
    // 6 and 6 rooms, of which 4 old ones go: two of each.
    let plan = planned(&fleet, &places, 8);
    carry_out(&mut fleet, &places, &Plan { add: 0, ..plan });
    assert_eq!(spread_of(&fleet, &places), [4, 4]);
}

/// New rooms that are too many go by shares, and so do rooms of drained regions.
#[test]
fn surplus_and_drained_rooms_go_by_shares() {
    let places_two = places(&[(1, None), (1, None)]);
    let mut fleet = old_fleet(&[1, 0], MaxSurge::Rooms(1));
    for name in ["a", "a", "b", "b", "b", "b", "b", "b"] {
        fleet.make(NEW, false, RoomStatus::Ready);
        fleet.rooms.last_mut().unwrap().region = region(name);
    }
    let plan = planned(&fleet, &places_two, 4);
    let cycle = plan.rollout.unwrap();
    let of = |rooms: &[RoomId]| {
        let is_in_b = |room: &&RoomFact| room.region == region("b") && rooms.contains(&room.id);
        (rooms.len(), fleet.rooms.iter().filter(is_in_b).count())
    };
    assert_eq!(of(&cycle.surplus), (3, 3), "{cycle:?}");

    let places_three = places(&[(1, None), (1, None), (1, None)]);
    let mut fleet = old_fleet(&[4, 2, 6], MaxSurge::Rooms(2));
    for room in &mut fleet.rooms {
        room.old = false;
        room.draining = room.region != region("c");
    }
    let plan = planned(&fleet, &places_three, 9);
    let gone: Vec<RoomId> = plan.rollout.unwrap().replaced.into_iter().map(|gone| gone.room).collect();
    let mut from: BTreeMap<Region, u32> = BTreeMap::new();
    for room in fleet.rooms.iter().filter(|room| gone.contains(&room.id)) {
        *from.entry(room.region.clone()).or_default() += 1;
    }
    assert_eq!(from, BTreeMap::from([(region("a"), 2), (region("b"), 1)]));
}

fn caps() -> impl Strategy<Value = Vec<(u32, Option<u32>)>> {
    proptest::collection::vec((1..4_u32, proptest::option::of(3..12_u32)), 2..=4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Wherever the old rooms are, a rollout that has place for a surge comes to its end, under the caps, and no region is
    /// further from its share than a surge.
    #[test]
    fn a_rollout_comes_to_its_end(regions in caps(), rooms in proptest::collection::vec(0..10_u32, 4), surge in 1..5_u32) {
        let places = places(&regions);
        let fitting = regions.iter().zip(&rooms).map(|((_, cap), rooms)| cap.map_or(*rooms, |cap| cap.min(*rooms)));
        let before: Vec<u32> = fitting.collect();
        let size: u32 = before.iter().sum();
        let most: Option<u32> = regions.iter().map(|(_, cap)| *cap).sum();
        prop_assume!(size > 0 && most.is_none_or(|most| most > size));
        let mut fleet = old_fleet(&before, MaxSurge::Rooms(surge));
        roll_out(&mut fleet, &places, size);
        let empty = places.standings(&[], |_| true);
        let facts: Vec<RegionFact> = places.policy.facts(&empty).map(|(_, fact)| fact).collect();
        prop_assert!(place_left(&facts).is_none_or(|left| left >= u64::from(size)));
        let shares = grow(&facts, size.into()).unwrap();
        for (is, share) in spread_of(&fleet, &places).into_iter().zip(shares) {
            prop_assert!(u64::from(is).abs_diff(share) <= u64::from(surge), "{is} instead of {share}");
        }
    }
}
