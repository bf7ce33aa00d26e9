//! Both rollout tables of the specification, row by row, and cases that the formula does not cover.

use super::fleet::{Fleet, NEW, OLD};
use super::*;
use crate::plan::Scaling;
use crate::scheduler::{
    Autoscaling, FixedBuffer, MaxSurge, OccupiedRooms, OtherParameters, ReadyTarget, RoomOccupancy,
    ScalingPolicy,
};

fn half_ready(max: Option<u32>) -> Autoscaling {
    let ready_target = ReadyTarget::parse("0.5").unwrap();
    let policy = ScalingPolicy::RoomOccupancy(RoomOccupancy { ready_target, down_threshold: None });
    let other_parameters = OtherParameters::default();
    Autoscaling { enabled: true, min: 1, max, cooldown_seconds: 0, policy, other_parameters, panic: None }
}

fn auto(autoscaling: &Autoscaling) -> Scaling<'_> {
    Scaling::Auto { autoscaling, last_shrunk_at: None }
}

/// The fleet becomes what the table says, loop by loop.
fn check(mut fleet: Fleet, table: &str) {
    let autoscaling = half_ready(None);
    for (index, row) in maestro_testkit::rollout_table(table).iter().enumerate() {
        let plan = fleet.plan(auto(&autoscaling));
        let available = count(fleet.rooms.len());
        let (surge, deleted) = match &plan.rollout {
            Some(cycle) => (cycle.surge, count(cycle.replaced.len())),
            None => (plan.add, plan.remove),
        };
        let seen = [
            fleet.count(RoomStatus::Ready),
            fleet.count(RoomStatus::Occupied),
            available,
            fleet.new_rooms(),
            plan.decision.desired,
            plan.desired_ready,
            surge,
            deleted,
        ];
        assert_eq!(&seen, row, "loop {}", index + 1);
        fleet.apply(&plan);
    }
}

/// A room that drains holds its players for a while yet, but stands in for no room of the fleet.
#[test]
fn an_occupied_room_that_is_leaving_does_not_let_another_go() {
    let mut fleet = Fleet::old(0, 2, MaxSurge::Rooms(1));
    (0..5).for_each(|_| fleet.make(NEW, false, RoomStatus::Ready));
    let first = fleet.plan(Scaling::FleetSize(6)).rollout.unwrap().replaced;
    assert_eq!(first.len(), 1, "{first:?}");
    let leaving = fleet.rooms.iter_mut().find(|room| room.id == first[0].room).unwrap();
    (leaving.leaving, leaving.status) = (true, RoomStatus::Terminating);

    let plan = fleet.plan(Scaling::FleetSize(6));
    assert_eq!((plan.seen.occupied, plan.seen.serving, plan.desired_ready), (2, 1, 5));
    let cycle = plan.rollout.unwrap();
    assert_eq!((cycle.surge, cycle.replaced), (1, vec![]));
}

#[test]
fn the_downscale_of_the_specification() {
    check(Fleet::old(20, 5, MaxSurge::Percent(25)), "downscale");
}

#[test]
fn the_upscale_of_the_specification() {
    check(Fleet::old(5, 20, MaxSurge::Percent(25)), "upscale");
}

/// Runs until every room is new and the plan is empty; how many cycles that took.
fn finish(fleet: &mut Fleet, scaling: Scaling<'_>) -> u32 {
    for cycles in 0..2000 {
        let plan = fleet.plan(scaling);
        if plan.is_empty() && fleet.new_rooms() == count(fleet.rooms.len()) {
            return cycles;
        }
        fleet.apply(&plan);
    }
    panic!("still {} old rooms", count(fleet.rooms.len()) - fleet.new_rooms());
}

#[test]
fn it_ends_whatever_the_fleet_looks_like() {
    let one = MaxSurge::Rooms(1);
    let quarter = MaxSurge::Percent(25);
    for (ready, occupied, max, surge) in [
        (50, 50, Some(100), quarter), // at its maximum
        (0, 150, Some(100), quarter), // more players than the maximum
        (50, 50, None, quarter),      // no maximum
        (0, 40, None, quarter),       // all occupied
        (0, 40, Some(40), one),
        (1, 0, Some(10), one),
        (30, 1, None, MaxSurge::Rooms(500)),
    ] {
        let autoscaling = half_ready(max);
        let mut fleet = Fleet::old(ready, occupied, surge);
        finish(&mut fleet, auto(&autoscaling));
        assert_eq!(fleet.count(RoomStatus::Occupied), occupied, "no player lost a place");
    }
    let mut fixed = Fleet::old(10, 0, quarter);
    finish(&mut fixed, Scaling::FleetSize(10));
}

#[test]
fn a_broken_old_version_is_replaced() {
    let mut fleet = Fleet::old(0, 0, MaxSurge::Percent(25));
    for _ in 0..10 {
        fleet.make(OLD, true, RoomStatus::Unready);
    }
    let first = fleet.plan(Scaling::FleetSize(10));
    let cycle = first.rollout.unwrap();
    assert_eq!((first.add, cycle.replaced.len()), (2, 0), "they are kept while nothing better is there");
    fleet.make(NEW, false, RoomStatus::Ready);
    fleet.make(NEW, false, RoomStatus::Ready);
    let cycle = fleet.plan(Scaling::FleetSize(10)).rollout.unwrap();
    assert_eq!(cycle.replaced.len(), 2);
}

#[test]
fn who_goes_first() {
    let middle = Version { major: 1, minor: 3, patch: 0 };
    let mut fleet = Fleet::old(2, 2, MaxSurge::Rooms(10)); // room-1, 2 ready, 3, 4 occupied
    fleet.make(middle, true, RoomStatus::Ready); // 5
    fleet.make(middle, true, RoomStatus::Pending); // 6
    for _ in 0..5 {
        fleet.make(NEW, false, RoomStatus::Ready); // 7 to 11
    }
    let cycle = fleet.plan(Scaling::FleetSize(6)).rollout.unwrap();
    let order: Vec<_> =
        cycle.replaced.iter().map(|gone| gone.room.as_str().trim_start_matches("room-0000")).collect();
    assert_eq!(order, ["6", "1", "2", "5", "3"], "budget 4 of 8 ready, then one occupied");
    assert_eq!(cycle.replaced.iter().filter(|gone| gone.serves_players).count(), 1);
}

#[test]
fn occupied_rooms_may_wait_for_their_match_to_end() {
    let mut fleet = Fleet::old(0, 4, MaxSurge::Rooms(4));
    fleet.rules.occupied = OccupiedRooms::WaitForMatchEnd;
    for _ in 0..4 {
        fleet.make(NEW, false, RoomStatus::Ready);
    }
    let cycle = fleet.plan(Scaling::FleetSize(4)).rollout.unwrap();
    assert_eq!(cycle.replaced, []);
}

#[test]
fn nothing_ready_goes_while_a_room_is_unknown() {
    let mut fleet = Fleet::old(10, 0, MaxSurge::Rooms(5));
    for _ in 0..5 {
        fleet.make(NEW, false, RoomStatus::Ready);
    }
    fleet.rooms[0].known = false;
    fleet.rooms[0].status = RoomStatus::Unready;
    assert_eq!(fleet.plan(Scaling::FleetSize(10)).rollout.unwrap().replaced, []);
}

#[test]
fn players_who_look_for_a_room_are_wanted_a_place_for() {
    let mut fleet = Fleet::old(5, 10, MaxSurge::Rooms(5));
    fleet.rooms.iter_mut().for_each(|room| room.old = false);
    fleet.rejoining = 3;
    let buffer = ScalingPolicy::FixedBuffer(FixedBuffer { amount: 2 });
    for (policy, desired) in [(buffer, 15), (half_ready(None).policy, 26)] {
        let autoscaling = Autoscaling { policy, ..half_ready(None) };
        assert_eq!(fleet.plan(auto(&autoscaling)).decision.desired, desired);
    }
}

#[test]
fn a_removal_from_before_does_not_make_it_surge_twice() {
    let mut fleet = Fleet::old(10, 0, MaxSurge::Rooms(12));
    (fleet.adding, fleet.removing) = (6, 4);
    assert_eq!(fleet.plan(Scaling::FleetSize(8)).add, 2, "8 new ones are wanted, 6 are on their way");
}

#[test]
fn a_panic_keeps_what_is_above_the_surge() {
    let mut fleet = Fleet::old(1, 0, MaxSurge::Rooms(1));
    for _ in 0..9 {
        fleet.make(NEW, false, RoomStatus::Ready);
    }
    let surplus = |fleet: &Fleet| fleet.plan(Scaling::FleetSize(5)).rollout.map(|cycle| cycle.surplus.len());
    assert_eq!(surplus(&fleet), Some(3));
    fleet.panic = true;
    assert_eq!(surplus(&fleet), Some(0));
    let plan = fleet.plan(Scaling::FleetSize(5));
    assert_eq!(plan.rollout.map(|cycle| cycle.replaced.len()), Some(1), "the old one goes all the same");
    assert_eq!(plan.held_back, [HeldBack::Panic { rooms: 3 }]);
}

/// What its surge has added stays beside the old rooms; what is above that goes.
#[test]
fn paused_it_takes_no_old_room_for_a_new_one() {
    let mut fleet = Fleet::old(8, 0, MaxSurge::Percent(100));
    fleet.rules.versions = OldVersions::Kept;
    for _ in 0..8 {
        fleet.make(NEW, false, RoomStatus::Ready);
    }
    let plan = |fleet: &Fleet, size: u32| fleet.plan(Scaling::FleetSize(size));
    assert_eq!(plan(&fleet, 8).remove, 0);
    assert_eq!(plan(&fleet, 8).held_back, [HeldBack::Paused { rooms: 8 }]);
    assert_eq!(plan(&fleet, 5).remove, 6, "autoscaling goes on: 5 wanted, 5 of the surge");
    fleet.rules.versions = OldVersions::Counted;
    assert_eq!(plan(&fleet, 8).remove, 8, "halted, they are too many");
}

#[test]
fn paused_it_only_scales() {
    let fleet = Fleet::old(10, 0, MaxSurge::Rooms(5));
    let plan = plan(&FleetSnapshot { now: at(0), ..snapshot(12, &fleet.rooms) });
    assert_eq!((plan.add, plan.rollout), (2, None));
}

#[test]
fn rooms_with_players_wait_for_their_turn() {
    // Four of six rooms have players; two old ready ones go whoever's turn it is.
    for (occupied_may_go, gone, with_players, held) in [(true, 4, 2, 0), (false, 2, 0, 2)] {
        let mut fleet = Fleet::old(2, 4, MaxSurge::Rooms(2));
        for _ in 0..4 {
            fleet.make(NEW, false, RoomStatus::Ready);
        }
        fleet.rules.occupied_may_go = occupied_may_go;
        let plan = fleet.plan(Scaling::FleetSize(6));
        let cycle = plan.rollout.unwrap();
        let players = cycle.replaced.iter().filter(|room| room.serves_players).count();
        assert_eq!((cycle.replaced.len(), players), (gone, with_players), "{cycle:?}");
        assert_eq!(cycle.occupied_held, held);
        let is_held = plan.held_back.contains(&HeldBack::OccupiedPace { rooms: held });
        assert_eq!(is_held, held > 0, "{:?}", plan.held_back);
    }
}

/// A saturated fleet moves too, but not faster.
#[test]
fn a_saturated_fleet_waits_for_its_turn_too() {
    for (occupied_may_go, gone) in [(true, 1), (false, 0)] {
        let mut fleet = Fleet::old(0, 4, MaxSurge::Rooms(1));
        fleet.make(NEW, false, RoomStatus::Ready);
        fleet.rules.occupied_may_go = occupied_may_go;
        let plan = fleet.plan(Scaling::FleetSize(4));
        assert_eq!(plan.rollout.unwrap().replaced.len(), gone);
    }
}

#[test]
fn no_operation_removes_more_than_the_limit() {
    let mut fleet = Fleet::old(2500, 0, MaxSurge::Rooms(1));
    fleet.rules.max_unavailable = 2500;
    let plan = fleet.plan(Scaling::FleetSize(2500));
    assert_eq!(plan.rollout.unwrap().replaced.len(), 1000);
    assert!(plan.held_back.contains(&HeldBack::Capped { rooms: 1500 }), "{:?}", plan.held_back);
    let mut fleet = Fleet::old(0, 0, MaxSurge::Rooms(1));
    for _ in 0..1200 {
        fleet.make(NEW, false, RoomStatus::Error);
    }
    let plan = fleet.plan(Scaling::FleetSize(0));
    assert_eq!(plan.expired.len(), 1000);
    assert!(plan.held_back.contains(&HeldBack::Capped { rooms: 200 }), "{:?}", plan.held_back);
}
