//! Rooms that matchmakers were given, and in which no match has begun.

use super::fleet::{Fleet, NEW, OLD};
use super::*;

fn held(status: RoomStatus, number: u32) -> Vec<RoomFact> {
    rooms(status, number).into_iter().map(|room| RoomFact { held: true, matches: 1, ..room }).collect()
}

#[test]
fn a_scale_down_leaves_them_alone_whatever_their_status() {
    use RoomStatus::{Allocated, Pending, Ready, Unready};
    for status in [Pending, Unready, Ready, Allocated] {
        let there = [held(status, 2), rooms(Ready, 2)].concat();
        let plan = plan(&snapshot(1, &there));
        assert_eq!((plan.seen.serving, plan.seen.ready, plan.remove), (2, 2, 2), "{status}");
        let gone: Vec<_> = removable(&there, Occupied::Stay).into_iter().map(|room| room.held).collect();
        assert_eq!(gone, [false, false], "{status}");
        assert_eq!(removable(&there, Occupied::MayGo).len(), 4, "a person's removal may take them");
    }
}

#[test]
fn they_are_demand_whatever_their_status() {
    for matches_max in [1, 4] {
        for status in [RoomStatus::Pending, RoomStatus::Unready, RoomStatus::Allocated] {
            let there = [held(status, 3), rooms(RoomStatus::Ready, 1)].concat();
            let seen = plan(&FleetSnapshot { matches_max, ..snapshot(4, &there) }).seen;
            assert_eq!((seen.matches, seen.occupied), (3, 3), "{status}");
        }
    }
}

#[test]
fn a_rollout_takes_them_with_rooms_that_are_played_in_and_before_those() {
    // 1, 2 occupied, 3 allocated, 4 held and not up for a moment.
    let mut fleet = Fleet::old(0, 2, MaxSurge::Rooms(3));
    for status in [RoomStatus::Allocated, RoomStatus::Pending] {
        fleet.make(OLD, true, status);
    }
    for room in &mut fleet.rooms[2..] {
        (room.held, room.matches) = (true, 1);
    }
    for _ in 0..3 {
        fleet.make(NEW, false, RoomStatus::Ready);
    }
    for (occupied_may_go, expected) in [(true, &["3", "4", "1"][..]), (false, &[])] {
        fleet.rules.occupied_may_go = occupied_may_go;
        let cycle = fleet.plan(Scaling::FleetSize(4)).rollout.unwrap();
        let order: Vec<_> =
            cycle.replaced.iter().map(|gone| gone.room.as_str().trim_start_matches("room-0000")).collect();
        assert_eq!(order, expected);
        assert!(cycle.replaced.iter().all(|gone| gone.serves_players));
    }
}
