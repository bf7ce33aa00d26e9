//! Regions in plans: caps, closed regions, drains, and from where rooms go.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::fleet::{Fleet, NEW};
use super::*;
use crate::placement::Standing;
use crate::policy::{Part, PlacementPolicy, PlacementRegion};

fn region(name: &str) -> Region {
    Region::parse(name).unwrap()
}

fn open() -> Place {
    Place { reachable: true, closed: None, draining: false, capacity: None }
}

fn closed(why: &str) -> Place {
    Place { closed: Some(why.into()), ..open() }
}

/// (name, weight, cap, what is said of it).
fn places(regions: &[(&str, u32, Option<u32>, Place)]) -> Places {
    let listed = |(name, weight, cap, _): &(&str, u32, Option<u32>, Place)| PlacementRegion {
        name: region(name),
        weight: *weight,
        cap: *cap,
    };
    Places {
        regions: regions.iter().map(|(name, _, _, place)| (region(name), place.clone())).collect(),
        policy: PlacementPolicy { regions: regions.iter().map(listed).collect() },
        bound_to: None,
    }
}

fn ready_in(name: &str, number: u32) -> Vec<RoomFact> {
    in_region(name, rooms(RoomStatus::Ready, number))
}

fn in_region(name: &str, rooms: Vec<RoomFact>) -> Vec<RoomFact> {
    let moved = |room: RoomFact| RoomFact {
        id: RoomId::new(&format!("{name}-{}", room.id)),
        region: region(name),
        ..room
    };
    rooms.into_iter().map(moved).collect()
}

fn held(plan: &Plan) -> Vec<String> {
    plan.held_back.iter().map(ToString::to_string).collect()
}

#[test]
fn a_fleet_is_no_larger_than_its_caps() {
    let places = places(&[("a", 1, Some(4), open()), ("b", 1, Some(3), open())]);
    let there = ready_in("a", 2);
    let plan = plan(&FleetSnapshot { places: Some(&places), ..snapshot(10, &there) });
    assert_eq!((plan.decision.desired, plan.add), (7, 5));
    assert_eq!(plan.decision.reason(), "fleet size 10; caps of its regions → 7");
    assert_eq!(plan.held_back, []);
}

#[test]
fn a_cap_that_was_lowered_removes_nobody() {
    let places = places(&[("a", 1, Some(1), open()), ("b", 0, None, open())]);
    let there: Vec<_> = ready_in("a", 3).into_iter().chain(ready_in("b", 2)).collect();
    let plan = plan(&FleetSnapshot { places: Some(&places), ..snapshot(10, &there) });
    assert_eq!((plan.decision.desired, plan.add, plan.remove), (5, 0, 0));
}

#[test]
fn rooms_that_end_take_place_until_they_are_gone() {
    let places = places(&[("a", 1, Some(4), open())]);
    let mut there = ready_in("a", 4);
    there[0].leaving = true;
    let plan = plan(&FleetSnapshot { places: Some(&places), ..snapshot(4, &there) });
    assert_eq!((plan.decision.desired, plan.add), (4, 0), "it is wanted all the same");
    assert_eq!(held(&plan), ["1 more wanted, but no region may have new rooms: a has a cap of 4"]);
}

#[test]
fn regions_that_may_get_more_rooms() {
    let away = Place { reachable: false, ..closed("it cannot be reached") };
    let full = Place { capacity: Some(PlaceCapacity { rooms: 2, why: String::new() }), ..open() };
    let places = places(&[
        ("capped", 1, Some(2), open()),
        ("cordoned", 1, None, closed("cordoned by ann")),
        ("away", 1, None, away),
        ("weightless", 0, None, open()),
        ("full", 1, Some(9), full),
        ("grows", 1, Some(3), open()),
    ]);
    let there: Vec<_> = ["capped", "full", "grows"].into_iter().flat_map(|name| ready_in(name, 2)).collect();
    let mut standings = places.standings(&there, |_| true);
    assert_eq!(places.growing(&standings), [region("grows")]);
    for (bound_to, expected) in [("capped", true), ("full", false), ("away", false), ("mars", false)] {
        let bound = Places { bound_to: Some(region(bound_to)), ..places.clone() };
        let expected = if expected { vec![region(bound_to)] } else { Vec::new() };
        assert_eq!(bound.growing(&standings), expected, "whatever the policy says");
    }
    // Those that are on their way out take place, too.
    standings.get_mut(&region("grows")).unwrap().beside = 1;
    assert_eq!(places.growing(&standings), []);
}

#[test]
fn closed_regions_get_no_rooms() {
    let cordoned = || closed("a is cordoned by ann: power");
    let there = ready_in("a", 1);
    for (second, adding, add, why) in [
        (
            closed("b cannot be reached: gone"),
            0,
            0,
            "no region may have new rooms: a is cordoned by ann: power; b cannot be reached: gone",
        ),
        (open(), 0, 2, "regions have capacity for only 2: a is cordoned by ann: power; b has a cap of 2"),
        (open(), 1, 1, "regions have capacity for only 1: a is cordoned by ann: power; b has a cap of 2"),
    ] {
        let places = places(&[("a", 1, None, cordoned()), ("b", 1, Some(2), second)]);
        let snapshot = FleetSnapshot { places: Some(&places), adding, ..snapshot(6, &there) };
        let plan = plan(&snapshot);
        assert_eq!(plan.add, add, "{why}");
        assert_eq!(held(&plan), [format!("{} more wanted, but {why}", 5 - adding - add)]);
    }
}

/// It wants them all the same, and says why it does not get them.
#[test]
fn a_region_holds_so_many_rooms_whatever_the_caps_say() {
    let holds = |rooms: u32| {
        let why = format!("a holds at most {rooms}");
        Place { capacity: Some(PlaceCapacity { rooms, why }), ..open() }
    };
    let there = ready_in("a", 2);
    let full = "no region may have new rooms: a holds at most 2";
    // (cap, what it holds, bound to it) → (add, why not more)
    for (cap, rooms, bound, add, why) in [
        (None, 4, false, 2, "regions have capacity for only 2: a holds at most 4"),
        (None, 2, false, 0, full),
        (None, 1, false, 0, "no region may have new rooms: a holds at most 1"),
        (Some(8), 4, false, 2, "regions have capacity for only 2: a holds at most 4"),
        (None, 4, true, 2, "regions have capacity for only 2: a holds at most 4"),
        (None, 2, true, 0, full),
    ] {
        let mut places = places(&[("a", 1, cap, holds(rooms))]);
        places.bound_to = bound.then(|| region("a"));
        let plan = plan(&FleetSnapshot { places: Some(&places), ..snapshot(8, &there) });
        assert_eq!((plan.decision.desired, plan.add, plan.remove), (8, add, 0), "{why}");
        assert_eq!(held(&plan), [format!("{} more wanted, but {why}", 6 - add)]);
    }
    let places = places(&[("a", 1, Some(2), holds(4))]);
    let plan = plan(&FleetSnapshot { places: Some(&places), ..snapshot(8, &there) });
    assert_eq!((plan.decision.desired, plan.add, held(&plan).len()), (2, 0, 0), "the cap is lower");
}

#[test]
fn a_recipe_that_names_its_region_asks_no_other() {
    let mut places = places(&[("a", 1, Some(1), open()), ("b", 1, None, closed("b is drained by ann: old"))]);
    for (bound_to, add, validation) in
        [("a", 5, Ok(region("a"))), ("b", 0, Err("b is drained by ann: old".into()))]
    {
        places.bound_to = Some(region(bound_to));
        let plan = plan(&FleetSnapshot { places: Some(&places), ..snapshot(5, &[]) });
        assert_eq!(plan.add, add, "{bound_to}");
        assert_eq!(places.for_validation(), validation);
    }
}

#[test]
fn a_validation_room_goes_where_the_weight_is() {
    let first = |regions: &[(&str, u32, Option<u32>, Place)]| places(regions).for_validation();
    let cordoned = || closed("it is cordoned");
    assert_eq!(first(&[("a", 1, None, open()), ("b", 2, Some(0), open())]), Ok(region("b")));
    assert_eq!(first(&[("a", 1, None, open()), ("b", 1, None, open())]), Ok(region("a")));
    assert_eq!(first(&[("a", 1, None, open()), ("b", 2, None, cordoned())]), Ok(region("a")));
    let none = first(&[("a", 0, None, open()), ("b", 2, None, cordoned())]);
    assert_eq!(none, Err("no region may have new rooms: a has weight 0; it is cordoned".into()));
}

/// Rooms of the region are drained, with as many players as said.
fn draining(ready: u32, occupied: u32, elsewhere: u32) -> Fleet {
    let mut fleet = Fleet::old(0, 0, MaxSurge::Rooms(2));
    fleet.rules.versions = OldVersions::Counted;
    for index in 0..ready + occupied {
        let status = if index < ready { RoomStatus::Ready } else { RoomStatus::Occupied };
        fleet.make(NEW, false, status);
    }
    for room in &mut fleet.rooms {
        room.draining = true;
    }
    for _ in 0..elsewhere {
        fleet.make(NEW, false, RoomStatus::Ready);
    }
    fleet
}

#[test]
fn a_drain_replaces_rooms_and_waits_for_matches() {
    let mut fleet = draining(6, 2, 2);
    let target = 10;
    for _ in 0..20 {
        let plan = fleet.plan(Scaling::FleetSize(target));
        assert!(plan.seen.ready >= plan.desired_ready, "{plan:?}");
        let cycle = plan.rollout.clone().unwrap();
        assert!(cycle.replaced.iter().all(|gone| !gone.serves_players));
        fleet.apply(&plan);
        if plan.is_empty() {
            break;
        }
    }
    let drained: Vec<_> = fleet.rooms.iter().filter(|room| room.draining).collect();
    assert_eq!(drained.len(), 2, "those with players");
    assert!(drained.iter().all(|room| room.status.serves_players()));
    assert_eq!(fleet.rooms.len() - drained.len(), target as usize, "who comes after them is there already");
}

#[test]
fn a_drain_without_place_elsewhere_says_so() {
    let fleet = draining(4, 0, 0);
    let places = places(&[("a", 1, None, closed("a is drained by ann: old"))]);
    let rooms: Vec<_> =
        fleet.rooms.iter().map(|room| RoomFact { region: region("a"), ..room.clone() }).collect();
    let plan =
        plan(&FleetSnapshot { replacement: fleet.rules, places: Some(&places), ..snapshot(4, &rooms) });
    assert_eq!((plan.add, plan.rollout.as_ref().map(|cycle| cycle.replaced.len())), (0, Some(0)));
    assert_eq!(held(&plan), ["2 more wanted, but no region may have new rooms: a is drained by ann: old"]);
}

/// (idle, ready, serving) rooms of each region → what stands there when so many are to go.
#[test]
fn idle_rooms_go_first_wherever_they_are() {
    let places = places(&[("a", 1, None, open()), ("b", 1, None, open())]);
    let in_a = [rooms(RoomStatus::Pending, 2), rooms(RoomStatus::Ready, 3)].concat();
    let in_b =
        [rooms(RoomStatus::Error, 1), rooms(RoomStatus::Ready, 4), rooms(RoomStatus::Occupied, 2)].concat();
    let all = [in_region("a", in_a), in_region("b", in_b)].concat();
    // count → (goes first, kept) of a and of b.
    for (count, a, b) in [
        (1, (0, 3), (0, 6)),
        (3, (0, 3), (0, 6)),
        (4, (2, 0), (1, 2)),
        (10, (2, 0), (1, 2)),
        (11, (5, 0), (5, 0)),
    ] {
        let candidates = removable(&all, Occupied::MayGo);
        let counts = |room: &RoomFact| room.status.counts();
        let standings = places.standings_for_removal(&all, &candidates, count, counts);
        let of = |name| {
            let Standing { goes_first, kept, .. } = standings[&region(name)];
            (goes_first, kept)
        };
        assert_eq!((of("a"), of("b")), (a, b), "{count}");
    }
}

#[test]
fn a_removal_follows_its_plan_and_passes_on_what_is_short() {
    let all = [ready_in("a", 2), ready_in("b", 2), ready_in("c", 1)].concat();
    let candidates = removable(&all, Occupied::Stay);
    let order = |part: Part| {
        let order = removal_by_plan(&part, &candidates);
        order.iter().map(|id| id.as_str().replace("-ready-00", "")).collect::<Vec<_>>().join(" ")
    };
    let regions = BTreeMap::from([(region("b"), 1), (region("c"), 2)]);
    assert_eq!(order(Part { regions: Some(regions), ..Part::default() }), "b0 c0 a0 a1 b1");
    let candidates = Some(vec![RoomId::new("c-ready-000"), RoomId::new("gone"), RoomId::new("a-ready-001")]);
    assert_eq!(order(Part { candidates, ..Part::default() }), "c0 a1 a0 b0 b1");
    assert_eq!(order(Part::default()), "a0 a1 b0 b1 c0");
}

/// Who was chosen while it was empty goes after all that are.
#[test]
fn players_who_came_since_the_plan_was_made_come_last() {
    let busy = in_region("a", rooms(RoomStatus::Occupied, 2));
    let all = [busy, ready_in("a", 1), ready_in("b", 1)].concat();
    let candidates = removable(&all, Occupied::MayGo);
    let named = Some(vec![RoomId::new("a-occupied-000"), RoomId::new("a-ready-000")]);
    let order = removal_by_plan(&Part { candidates: named, ..Part::default() }, &candidates);
    let order: Vec<&str> = order.iter().map(RoomId::as_str).collect();
    assert_eq!(order, ["a-ready-000", "b-ready-000", "a-occupied-000", "a-occupied-001"]);
}

proptest! {
    /// Whatever the caps: a plan adds no more than there is place for, and says so if that is less than is wanted.
    #[test]
    fn growth_keeps_within_the_caps(
        caps in prop::collection::vec((0..4_u32, prop::option::of(0..8_u32), 0..6_u32), 1..4),
        adding in 0..4_u32,
        wanted in 0..40_u32,
    ) {
        let names = ["a", "b", "c"];
        let listed: Vec<_> =
            names.iter().zip(&caps).map(|(name, (weight, cap, _))| (*name, *weight, *cap, open())).collect();
        let places = places(&listed);
        let there: Vec<_> =
            names.iter().zip(&caps).flat_map(|(name, (.., number))| ready_in(name, *number)).collect();
        let plan = plan(&FleetSnapshot { places: Some(&places), adding, ..snapshot(wanted, &there) });
        let standings = places.standings(&there, |_| true);
        if let Some(left) = places.left(&standings) {
            prop_assert!(u64::from(plan.add) <= left.saturating_sub(adding.into()));
        }
        let missing = plan.decision.desired.saturating_sub(plan.seen.total);
        prop_assert_eq!(plan.add < missing, !plan.held_back.is_empty());
    }
}
