//! Rooms whose region cannot be reached: not part of the fleet, their matches are demand, and nothing happens to them.

use super::fleet::{Fleet, NEW, OLD};
use super::*;
use crate::scheduler::{MaxSurge, OtherParameters, ReadyTarget, RoomOccupancy, ScalingPolicy};

fn lost(rooms: Vec<RoomFact>) -> Vec<RoomFact> {
    rooms.into_iter().map(|room| RoomFact { reachable: false, ..room }).collect()
}

#[test]
fn they_are_replaced_elsewhere_and_wanted_no_less() {
    use RoomStatus::*;
    // (fleet size, rooms here, rooms lost) → (total, ready, add)
    for (size, here, gone, expected) in [
        (10, rooms(Ready, 6), rooms(Ready, 4), (6, 6, 4)),
        (10, rooms(Ready, 0), rooms(Pending, 10), (0, 0, 10)),
        (10, rooms(Ready, 10), rooms(Ready, 10), (10, 10, 0)),
        (10, rooms(Ready, 10), rooms(Error, 10), (10, 10, 0)),
    ] {
        let all = [here, lost(gone)].concat();
        let plan = plan(&snapshot(size, &all));
        assert_eq!((plan.seen.total, plan.seen.ready, plan.add), expected, "{size}");
        assert_eq!((plan.remove, plan.expired.len()), (0, 0));
    }
}

fn half_ready() -> Autoscaling {
    let ready_target = ReadyTarget::parse("0.5").unwrap();
    Autoscaling {
        enabled: true,
        min: 1,
        max: None,
        cooldown_seconds: 0,
        policy: ScalingPolicy::RoomOccupancy(RoomOccupancy { ready_target, down_threshold: None }),
        other_parameters: OtherParameters::default(),
        panic: None,
    }
}

#[test]
fn their_matches_are_demand() {
    let autoscaling = half_ready();
    let scaling = Scaling::Auto { autoscaling: &autoscaling, last_shrunk_at: None };
    // (occupied here, occupied lost) → (desired, must be ready, add)
    for (here, gone, expected) in
        [(10, 0, (20, 10, 10)), (6, 4, (20, 14, 14)), (0, 10, (20, 20, 20)), (0, 0, (1, 1, 1))]
    {
        let all = [rooms(RoomStatus::Occupied, here), lost(rooms(RoomStatus::Occupied, gone))].concat();
        let plan = plan(&FleetSnapshot { scaling, ..snapshot(0, &all) });
        assert_eq!((plan.decision.desired, plan.desired_ready, plan.add), expected, "{here} and {gone}");
        assert_eq!(plan.seen.occupied, here + gone);
    }
}

/// Rooms that fell silent together: they run, as far as anybody can see.
#[test]
fn silent_rooms_are_replaced_beside_and_removed_when_their_time_is_over() {
    use RoomStatus::*;
    let until = at(50_000);
    let silent = |rooms: Vec<RoomFact>| -> Vec<RoomFact> {
        rooms
            .into_iter()
            .map(|room| RoomFact { spared_until: Some(until), heard_at: Some(at(0)), ..room })
            .collect()
    };
    for (size, here, gone, expected) in [
        (10, rooms(Ready, 4), rooms(Ready, 6), (4, 4, 6)),
        (10, rooms(Ready, 10), rooms(Ready, 6), (10, 10, 0)),
        (10, rooms(Ready, 4), rooms(Occupied, 6), (4, 4, 6)),
    ] {
        let all = [here, silent(gone.clone())].concat();
        let snapshot = FleetSnapshot { now: at(40_000), ..snapshot(size, &all) };
        let fresh: Vec<RoomFact> = snapshot
            .rooms
            .iter()
            .map(|room| match room.spared_until {
                None => RoomFact { heard_at: Some(at(40_000)), ..room.clone() },
                Some(_) => room.clone(),
            })
            .collect();
        let before = plan(&FleetSnapshot { rooms: &fresh, ..snapshot.clone() });
        assert_eq!((before.seen.total, before.seen.ready, before.add), expected, "{size}");
        assert_eq!((before.remove, before.expired.len()), (0, 0), "{size}");
        assert!(before.held_back.iter().any(|held| held.to_string().contains("stopped pinging together")));
        let occupied = gone.iter().filter(|room| room.status == Occupied).count();
        assert_eq!(before.seen.occupied as usize, occupied, "players in them need a place");
        assert!(
            removable(&fresh, crate::plan::Occupied::MayGo).iter().all(|room| room.spared_until.is_none())
        );
        let all: Vec<RoomFact> = fresh
            .iter()
            .map(|room| match room.spared_until {
                None => RoomFact { heard_at: Some(at(50_000)), ..room.clone() },
                Some(_) => room.clone(),
            })
            .collect();
        let after = plan(&FleetSnapshot { now: until, rooms: &all, ..snapshot });
        assert_eq!(after.expired.len(), 6, "{size}");
    }
}

#[test]
fn nothing_is_held_against_them() {
    use RoomStatus::*;
    for status in [Pending, Unready, Ready, Occupied, Terminating, Error] {
        let all = lost(rooms(status, 3));
        let late = FleetSnapshot { now: at(100_000), ..snapshot(0, &all) };
        let plan = plan(&late);
        assert_eq!(
            (plan.expired.as_slice(), plan.remove, plan.look_again_at),
            (&[][..], 0, None),
            "{status}"
        );
        assert_eq!(removal_order(&all, super::super::Occupied::MayGo), []);
    }
}

/// What a room could not say while its region was away is not held against it when it is back.
#[test]
fn back_again_they_have_time_to_be_heard() {
    use RoomStatus::*;
    for (status, allowed) in [(Pending, 120), (Ready, 240), (Occupied, 240), (Terminating, 120)] {
        let back = |room: RoomFact| RoomFact { reachable_since: Some(at(5_000)), ..room };
        let all: Vec<_> = rooms(status, 2).into_iter().map(back).collect();
        for (seconds, expired) in [(0, 0), (allowed - 1, 0), (allowed, 2)] {
            let now = at(5_000 + seconds);
            let plan = plan(&FleetSnapshot { now, ..snapshot(2, &all) });
            assert_eq!(plan.expired.len(), expired, "{status} after {seconds} s");
        }
    }
}

/// After a restart nobody knows what players do there. They are given the time of a ping; the rest of the fleet does
/// not wait longer than that.
#[test]
fn unknown_ones_hold_a_scale_down_for_the_time_of_a_ping() {
    let unknown = |room: RoomFact| RoomFact { known: false, ..room };
    let gone = lost(rooms(RoomStatus::Unready, 3)).into_iter().map(unknown);
    let heard = |room: RoomFact| RoomFact { heard_at: Some(at(239)), ..room };
    let here = rooms(RoomStatus::Ready, 5).into_iter().map(heard);
    let all: Vec<_> = here.chain(gone).collect();
    let plan_at = |second| plan(&FleetSnapshot { now: at(second), ..snapshot(2, &all) });
    let waiting = plan_at(239);
    assert_eq!((waiting.remove, waiting.held_back.as_slice()), (0, &[HeldBack::Unknown { rooms: 3 }][..]));
    assert_eq!(waiting.look_again_at, Some(at(240)));
    assert_eq!(plan_at(240).remove, 3);
}

/// Old rooms there neither surge nor go. (That they keep the rollout open is the verdict's, which counts all of them.)
#[test]
fn old_ones_surge_nothing() {
    let mut fleet = Fleet::old(0, 0, MaxSurge::Rooms(5));
    for _ in 0..10 {
        fleet.make(NEW, false, RoomStatus::Ready);
        fleet.make(OLD, true, RoomStatus::Ready);
    }
    for room in fleet.rooms.iter_mut().filter(|room| room.old) {
        room.reachable = false;
    }
    let plan = fleet.plan(Scaling::FleetSize(10));
    assert_eq!((plan.seen.total, plan.seen.old, plan.add, plan.remove), (10, 0, 0, 0));
    assert_eq!(plan.rollout, None);
}

/// Nor do those that fell silent together: the rollout goes on with the others.
#[test]
fn a_rollout_goes_on_beside_silent_rooms() {
    let mut fleet = Fleet::old(0, 0, MaxSurge::Rooms(2));
    for _ in 0..6 {
        fleet.make(NEW, false, RoomStatus::Ready);
        fleet.make(OLD, true, RoomStatus::Ready);
        fleet.make(OLD, true, RoomStatus::Ready);
    }
    let silent: Vec<_> =
        fleet.rooms.iter().filter(|room| room.old).map(|room| room.id.clone()).take(6).collect();
    for room in fleet.rooms.iter_mut().filter(|room| silent.contains(&room.id)) {
        room.spared_until = Some(Timestamp::MAX);
    }
    let plan = fleet.plan(Scaling::FleetSize(10));
    assert_eq!((plan.seen.total, plan.seen.old), (12, 6));
    let replaced = plan.rollout.unwrap().replaced;
    assert!(!replaced.is_empty() && replaced.iter().all(|gone| !silent.contains(&gone.room)), "{replaced:?}");
}
