//! Counters say that nothing is to be done only if a look at all rooms says so, too.

use proptest::prelude::*;

use super::*;
use crate::autoscaling::Demand;
use crate::room::StatusCounts;
use crate::scheduler::{OtherParameters, ReadyTarget, RoomOccupancy, ScalingPolicy};

fn counters(rooms: &[RoomFact]) -> (StatusCounts, Demand) {
    let mut by_status = StatusCounts::default();
    rooms.iter().for_each(|room| by_status.add(room.status));
    let (occupied, total) = (by_status.occupied(), by_status.total());
    (by_status, Demand { matches: occupied.into(), occupied, total, matches_max: 1, waiting: 0 })
}

fn fleet(ready: u32, occupied: u32, others: &[RoomStatus]) -> Vec<RoomFact> {
    let mut fleet = rooms(RoomStatus::Ready, ready);
    fleet.extend(rooms(RoomStatus::Occupied, occupied));
    fleet.extend(others.iter().flat_map(|status| rooms(*status, 1)));
    fleet
}

fn settled(last: &Plan, scaling: Scaling<'_>, rooms: &[RoomFact], unknown: u32) -> bool {
    let (by_status, demand) = counters(rooms);
    is_settled(last, scaling, FleetCounters { by_status: &by_status, unknown, demand })
}

#[test]
fn players_who_come_and_go_need_no_look_where_the_size_is_held() {
    let size = Scaling::FleetSize(10);
    let last = plan(&snapshot(10, &fleet(10, 0, &[])));
    for (ready, occupied, others, unknown, expected) in [
        (10, 0, vec![], 0, true),
        (3, 7, vec![], 0, true),
        (0, 10, vec![], 0, true),
        // One is gone, one is too many, one may have to go, one was not heard of.
        (9, 0, vec![], 0, false),
        (10, 1, vec![], 0, false),
        (9, 0, vec![RoomStatus::Unready], 0, false),
        (9, 0, vec![RoomStatus::Pending], 0, false),
        (10, 0, vec![RoomStatus::Error], 0, false),
        (10, 0, vec![RoomStatus::Terminating], 0, false),
        (10, 0, vec![], 1, false),
    ] {
        let now = fleet(ready, occupied, &others);
        assert_eq!(settled(&last, size, &now, unknown), expected, "{ready} {occupied} {others:?} {unknown}");
    }
    let grows = plan(&snapshot(10, &fleet(9, 0, &[])));
    assert!(!settled(&grows, size, &fleet(9, 0, &[]), 0), "the last plan had something to do");
    assert!(!settled(&last, Scaling::FleetSize(11), &fleet(10, 0, &[]), 0));
}

fn autoscaling(min: u32, max: u32) -> Autoscaling {
    let ready_target = ReadyTarget::parse("0.5").unwrap();
    Autoscaling {
        enabled: true,
        min,
        max: Some(max),
        cooldown_seconds: 0,
        policy: ScalingPolicy::RoomOccupancy(RoomOccupancy { ready_target, down_threshold: None }),
        other_parameters: OtherParameters::default(),
        panic: None,
    }
}

proptest! {
    #[test]
    fn what_counters_call_settled_a_look_finds_settled(
        (min, more) in (1_u32..20, 1_u32..20),
        before in (0_u32..20, 0_u32..20),
        after in (0_u32..20, 0_u32..20),
        other in proptest::option::of(0..RoomStatus::ALL.len()),
        held in any::<bool>(),
    ) {
        let autoscaling = autoscaling(min, min + more);
        let scaling = match held {
            true => Scaling::FleetSize(min),
            false => Scaling::Auto { autoscaling: &autoscaling, last_shrunk_at: None },
        };
        let of = |rooms: &[RoomFact]| plan(&FleetSnapshot { scaling, ..snapshot(0, rooms) });
        let last = of(&fleet(before.0, before.1, &[]));
        let others: Vec<RoomStatus> = other.map(|index| RoomStatus::ALL[index]).into_iter().collect();
        let now = fleet(after.0, after.1, &others);
        if settled(&last, scaling, &now, 0) {
            let look = of(&now);
            prop_assert!(look.is_empty() && look.held_back.is_empty(), "{look:?}");
        }
    }
}
