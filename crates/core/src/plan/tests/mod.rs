mod crash_loops;
mod fleet;
mod held;
mod places;
mod regions;
mod rollouts;
mod settled;
mod slow;
mod spread;
mod walks;

use super::*;
use crate::scheduler::{MaxSurge, OccupiedRooms};

const LIMITS: Limits = Limits {
    initialization_timeout: Millis::from_seconds(120),
    ping_timeout: Millis::from_seconds(240),
    deletion_timeout: Millis::from_seconds(120),
    add_max: 1000,
    remove_max: 1000,
};

const PAUSED: ReplacementRules = ReplacementRules {
    versions: OldVersions::Kept,
    max_surge: MaxSurge::Rooms(1),
    max_unavailable: 0,
    occupied: OccupiedRooms::DeleteLast,
    occupied_may_go: true,
};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

fn rooms(status: RoomStatus, number: u32) -> Vec<RoomFact> {
    let room = |index| RoomFact {
        id: RoomId::new(&format!("{status}-{index:03}")),
        region: Region::default_region(),
        status,
        version: Version::FIRST,
        old: false,
        draining: false,
        matches: 0,
        created_at: at(0),
        heard_at: Some(at(0)),
        known: true,
        was_ready: matches!(status, RoomStatus::Ready | RoomStatus::Active | RoomStatus::Occupied),
        held: false,
        leaving: false,
        reachable: true,
        reachable_since: None,
        spared_until: None,
    };
    (0..number).map(room).collect()
}

fn snapshot(fleet_size: u32, rooms: &[RoomFact]) -> FleetSnapshot<'_> {
    FleetSnapshot::at_rest(at(1), Scaling::FleetSize(fleet_size), 1, PAUSED, rooms, LIMITS)
}

#[test]
fn holds_the_fleet_size() {
    use RoomStatus::*;
    // (fleet size, [pending, ready, occupied], adding, removing) → (add, remove)
    for (size, there, adding, removing, add, remove) in [
        (10, [0, 0, 0], 0, 0, 10, 0),
        (10, [0, 10, 0], 0, 0, 0, 0),
        (10, [4, 3, 3], 0, 0, 0, 0),
        (10, [0, 7, 0], 3, 0, 0, 0),
        (10, [0, 7, 0], 2, 0, 1, 0),
        (10, [0, 12, 0], 0, 2, 0, 0),
        (10, [0, 12, 0], 0, 1, 0, 1),
        (10, [2, 8, 3], 0, 0, 0, 3),
        (2, [0, 1, 5], 0, 0, 0, 1),
        (0, [0, 0, 5], 0, 0, 0, 0),
        // What an unfinished removal takes is not asked for again because others should go too.
        (0, [3, 0, 5], 0, 3, 0, 0),
        (0, [3, 2, 5], 0, 4, 0, 1),
        // Rooms that are still being made cannot go yet: ready ones do not go in their place.
        (12, [0, 10, 0], 5, 0, 0, 0),
        (12, [2, 9, 0], 5, 0, 0, 2),
        (5000, [0, 0, 0], 0, 0, 1000, 0),
        (0, [0, 1500, 0], 0, 0, 0, 1000),
    ] {
        let there = [rooms(Pending, there[0]), rooms(Ready, there[1]), rooms(Occupied, there[2])].concat();
        let plan = plan(&FleetSnapshot { adding, removing, ..snapshot(size, &there) });
        assert_eq!((plan.add, plan.remove), (add, remove), "{size} wanted, {} there", there.len());
    }
}

#[test]
fn says_what_it_does_not_do_and_why() {
    let many = rooms(RoomStatus::Occupied, 3);
    let held = plan(&snapshot(1, &many)).held_back;
    assert_eq!(
        held[0].to_string(),
        "2 more should go, but players are in them; waiting for their matches to end"
    );
    let mut unknown = rooms(RoomStatus::Unready, 3);
    unknown[1].known = false;
    let plan = plan(&snapshot(1, &unknown));
    assert_eq!(plan.remove, 0);
    assert_eq!(
        plan.held_back[0].to_string(),
        "nothing is scaled down: 1 room has not pinged since the restart"
    );
}

#[test]
fn nothing_shrinks_while_a_panic_is_on_its_way() {
    let many = rooms(RoomStatus::Ready, 5);
    let calm = plan(&snapshot(2, &many));
    assert_eq!((calm.remove, calm.held_back.len()), (3, 0));
    let held = plan(&FleetSnapshot { panic: true, ..snapshot(2, &many) });
    assert!(held.is_empty());
    let text = "surplus of 3 rooms stays for now: no scale-down during a panic";
    assert_eq!(held.held_back[0].to_string(), text);
    // What is dead goes all the same, and what is missing comes.
    let mut dead = rooms(RoomStatus::Ready, 2);
    dead[0].status = RoomStatus::Error;
    let mended = plan(&FleetSnapshot { panic: true, ..snapshot(2, &dead) });
    assert_eq!((mended.expired.len(), mended.add), (1, 1));
}

#[test]
fn rooms_expire() {
    use RoomStatus::*;
    for (status, known, second, why) in [
        (Pending, true, 119, None),
        (Pending, true, 120, Some("did not become ready within 120s")),
        (Unready, true, 121, Some("did not become ready within 121s")),
        (Unready, false, 121, None),
        (Unready, false, 240, Some("has not pinged for 240s")),
        (Ready, true, 239, None),
        (Ready, true, 240, Some("has not pinged for 240s")),
        (Occupied, true, 300, Some("has not pinged for 300s")),
        (Allocated, true, 240, Some("has not pinged for 240s")),
        (Terminating, true, 119, None),
        (Terminating, true, 120, Some("has been terminating for 120s")),
        (Terminated, true, 0, Some("said that it is terminated")),
        (Error, true, 0, Some("is in error")),
    ] {
        let mut room = rooms(status, 1);
        room[0].known = known;
        let plan = plan(&FleetSnapshot { now: at(second), ..snapshot(1, &room) });
        let said = plan.expired.first().map(|gone| gone.why.to_string());
        assert_eq!(said.as_deref(), why, "{status} after {second} s");
        let is_gone = why.is_some() || status == Terminating;
        assert_eq!(plan.add, u32::from(is_gone), "{status} after {second} s is replaced");
        if why.is_none() {
            assert!(plan.look_again_at.is_some(), "a {status} room can expire by itself");
        }
    }
}

#[test]
fn a_leaving_room_is_gone_and_expires_no_more() {
    let mut room = rooms(RoomStatus::Ready, 1);
    room[0].leaving = true;
    let plan = plan(&FleetSnapshot { now: at(999), ..snapshot(1, &room) });
    assert_eq!((plan.add, plan.expired.len()), (1, 0));
}

fn ended(operation: u128, second: i64, was_ready: bool, cause: EndCause) -> EndedFact {
    EndedFact {
        rooms: 1,
        operation: OperationId::from_u128(operation),
        old: false,
        created_at: at(second),
        ended_at: at(second),
        cause,
        was_ready,
    }
}

#[test]
fn failing_starts_back_off() {
    let failed = |operation, second| ended(operation, second, false, EndCause::Failed);
    // (rooms that ended, latest first; second of looking) → rooms added of 5 wanted
    for (ended, second, add) in [
        (vec![], 0, 5),
        (vec![failed(1, 0)], 0, 4),
        (vec![failed(1, 0)], 1, 5),
        (vec![failed(1, 0); 5], 0, 0),
        (vec![failed(1, 0); 5], 1, 5),
        (vec![failed(3, 9), failed(2, 5), failed(1, 0)], 12, 4),
        (vec![failed(3, 9), failed(2, 5), failed(1, 0)], 13, 5),
        // What Maestro stopped is no failure; what was well for a while neither.
        (vec![ended(9, 0, false, EndCause::Asked); 5], 0, 5),
        (vec![EndedFact { created_at: at(-99), ..ended(9, 0, true, EndCause::Failed) }], 0, 5),
        // An operation that could not even choose its rooms.
        (vec![EndedFact { rooms: 5, ..failed(1, 0) }], 0, 0),
        // A version that mends a crash loop does not wait for the one that it replaces.
        (vec![EndedFact { old: true, ..failed(1, 0) }; 5], 0, 5),
        (vec![failed(2, 0), EndedFact { old: true, ..failed(1, 0) }], 1, 5),
        // A second of being ready is still "at once".
        (vec![ended(9, 0, true, EndCause::Completed)], 0, 4),
    ] {
        let plan = plan(&FleetSnapshot { ended: &ended, now: at(second), ..snapshot(5, &[]) });
        assert_eq!(plan.add, add, "{} ended, second {second}", ended.len());
    }
}

#[test]
fn the_wait_grows_up_to_a_minute() {
    let row: Vec<_> = (0..40).rev().map(|n| ended(n, n as i64, false, EndCause::Failed)).collect();
    let plan = plan(&FleetSnapshot { ended: &row, now: at(39), ..snapshot(1, &[]) });
    assert_eq!(plan.look_again_at, Some(at(39 + 60)));
    assert_eq!(plan.add, 0);
}

#[test]
fn a_success_ends_the_row_of_failures() {
    let row: Vec<_> = (0..9).rev().map(|n| ended(n, n as i64, false, EndCause::Failed)).collect();
    let mut well = rooms(RoomStatus::Ready, 1);
    well[0].created_at = at(20);
    // It may be one of those that end after a few seconds.
    for (second, add) in [(21, 0), (29, 0), (30, 1)] {
        let plan = plan(&FleetSnapshot { ended: &row, now: at(second), ..snapshot(2, &well) });
        assert_eq!(plan.add, add, "second {second}");
    }
}

#[test]
fn who_serves_nobody_goes_first() {
    let mut all: Vec<RoomFact> = RoomStatus::ALL.into_iter().flat_map(|status| rooms(status, 2)).collect();
    all[0].known = false;
    all[5].leaving = true;
    let order = |occupied| {
        let ids = removal_order(&all, occupied);
        ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        order(Occupied::Stay),
        "error-000 error-001 terminated-000 terminated-001 pending-001 unready-000 unready-001 ready-000"
    );
    assert_eq!(
        order(Occupied::MayGo),
        format!(
            "{} active-000 active-001 allocated-000 allocated-001 occupied-000 occupied-001",
            order(Occupied::Stay)
        )
    );
    assert!(!order(Occupied::MayGo).contains(RoomStatus::Terminating.as_str()));
}
