//! Which rooms go.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::room::{RoomId, RoomStatus};
use crate::scheduler::Version;
use crate::time::Timestamp;

fn room(id: &str, region: &str, major: u32, second: i64, status: RoomStatus) -> Candidate {
    Candidate {
        id: RoomId::new(id),
        region: name(region),
        version: Version { major, ..Version::FIRST },
        created_at: Timestamp::from_second(second).unwrap(),
        status,
    }
}

fn ready(id: &str, region: &str, major: u32, second: i64) -> Candidate {
    room(id, region, major, second, RoomStatus::Ready)
}

fn removed(criteria: Criteria, rooms: &[Candidate], count: u64, data: &Value) -> Value {
    let regions = BTreeMap::new();
    let fleet = Fleet { candidates: rooms, ..fleet(&regions) };
    let policies = [Policy::Deletion(DeletionPolicy { criteria })];
    checked(&policies, &Action::ScaleIn { count: Some(count) }, &fleet, data)["deletion"].clone()
}

#[test]
fn criteria() {
    let rooms =
        [ready("a", "R", 2, 30), ready("b", "R", 1, 20), ready("c", "R", 2, 10), ready("d", "R", 1, 40)];
    for (criteria, expected) in [
        (Criteria::OldestFirst, ["c", "b", "a"]),
        (Criteria::YoungestFirst, ["d", "a", "b"]),
        (Criteria::OldestProfileFirst, ["b", "d", "c"]),
    ] {
        assert_eq!(removed(criteria, &rooms, 3, &json!({})), json!({"count": 3, "candidates": expected}));
    }
    // Among equals by id.
    let equal = ["b", "c", "a"].map(|id| ready(id, "R", 1, 5));
    for criteria in [Criteria::OldestFirst, Criteria::YoungestFirst, Criteria::OldestProfileFirst] {
        assert_eq!(removed(criteria, &equal, 2, &json!({}))["candidates"], json!(["a", "b"]));
    }
}

#[test]
fn unhealthy_first_and_players_last() {
    let rooms = [
        room("played", "R", 1, 1, RoomStatus::Occupied),
        room("active", "R", 1, 2, RoomStatus::Active),
        room("held", "R", 1, 3, RoomStatus::Allocated),
        room("ready", "R", 1, 4, RoomStatus::Ready),
        room("unready", "R", 1, 5, RoomStatus::Unready),
        room("pending", "R", 1, 6, RoomStatus::Pending),
        room("broken", "R", 1, 7, RoomStatus::Error),
    ];
    let order = removed(Criteria::OldestFirst, &rooms, 7, &json!({}))["candidates"].clone();
    assert_eq!(order, json!(["broken", "unready", "pending", "ready", "played", "active", "held"]));
}

/// Every room of B is older than any of A, and still the oldest of each go.
#[test]
fn within_the_number_of_each_region() {
    let mut rooms: Vec<_> = (0..4).map(|index| ready(&format!("a{index}"), "A", 1, 100 + index)).collect();
    rooms.extend((0..4).map(|index| ready(&format!("b{index}"), "B", 1, index)));
    let regions = standing(&[("A", 5), ("B", 4)]);
    let fleet = Fleet { candidates: &rooms, ..fleet(&regions) };
    let placement = PlacementPolicy::even([name("A"), name("B")]);
    let deletion = DeletionPolicy { criteria: Criteria::OldestFirst };
    let policies = [Policy::Deletion(deletion), Policy::Placement(&placement)];
    let data = checked(&policies, &Action::ScaleIn { count: Some(3) }, &fleet, &json!({}));
    let expected = json!({"count": 3, "regions": {"A": 2, "B": 1}, "candidates": ["a0", "a1", "b0"]});
    assert_eq!(data, json!({"status": "OK", "deletion": expected}));
    // Growth chooses nobody.
    let data = checked(&policies, &Action::ScaleOut { count: Some(1) }, &fleet, &json!({}));
    assert_eq!(data, json!({"status": "OK", "creation": {"count": 1, "regions": {"B": 1}}}));
}

#[test]
fn a_region_that_is_short_passes_its_number_on() {
    let rooms =
        [ready("a", "A", 1, 9), ready("b1", "B", 1, 2), ready("b2", "B", 1, 1), ready("c", "C", 1, 5)];
    let planned = json!({"deletion": {"count": 3, "regions": {"A": 2, "B": 1}}});
    let expected = json!({"count": 3, "regions": {"A": 1, "B": 2}, "candidates": ["a", "b2", "b1"]});
    assert_eq!(removed(Criteria::OldestFirst, &rooms, 0, &planned), expected);
    // With nobody left to pass it on to, fewer go.
    let planned = json!({"deletion": {"count": 9, "regions": {"A": 9}}});
    let expected =
        json!({"count": 4, "regions": {"A": 1, "B": 2, "C": 1}, "candidates": ["a", "b2", "b1", "c"]});
    assert_eq!(removed(Criteria::OldestFirst, &rooms, 0, &planned), expected);
}

#[test]
fn a_draw_is_repeated_by_its_seed() {
    let rooms: Vec<_> = (0..100).map(|index| ready(&format!("room-{index}"), "R", 1, index)).collect();
    let regions = BTreeMap::new();
    let draw = |seed| {
        let fleet = Fleet { candidates: &rooms, seed, ..fleet(&regions) };
        let policies = [Policy::Deletion(DeletionPolicy { criteria: Criteria::Random })];
        checked(&policies, &Action::ScaleIn { count: Some(10) }, &fleet, &json!({}))
    };
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
    // Over many draws everybody's turn comes.
    let mut chosen = std::collections::BTreeSet::new();
    for seed in 0..200 {
        chosen.extend(draw(seed)["deletion"]["candidates"].as_array().unwrap().iter().map(Value::to_string));
    }
    assert_eq!(chosen.len(), 100);
}

proptest! {
    /// As many as there can be, none twice, and nobody who is worth more to players than one who stays in the region.
    #[test]
    fn chosen_well(
        drafts in prop::collection::vec((0_u8..3, 0_u8..4, 0_i64..5), 0..12),
        numbers in prop::collection::vec(0_u64..5, 3),
        criteria in prop::sample::select(Criteria::ALL.to_vec()),
    ) {
        let statuses = [RoomStatus::Error, RoomStatus::Pending, RoomStatus::Ready, RoomStatus::Occupied];
        let rooms: Vec<_> = drafts.iter().enumerate().map(|(index, (region, status, second))| {
            room(&format!("r{index}"), &format!("{region}"), 1, *second, statuses[usize::from(*status)])
        }).collect();
        let count: u64 = numbers.iter().sum();
        let planned = json!({"deletion": {"count": count, "regions": {
            "0": numbers[0], "1": numbers[1], "2": numbers[2]}}});
        let chosen = removed(criteria, &rooms, 1, &planned);
        if count == 0 {
            return Ok(());
        }
        let ids: std::collections::BTreeSet<&str> =
            chosen["candidates"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
        prop_assert_eq!(ids.len() as u64, count.min(rooms.len() as u64));
        prop_assert_eq!(&chosen["count"], &json!(ids.len()));
        let (gone, stays): (Vec<_>, Vec<_>) = rooms.iter().partition(|room| ids.contains(room.id.as_str()));
        let worth = |room: &Candidate| statuses.iter().position(|status| *status == room.status);
        for gone in gone {
            for stays in stays.iter().filter(|stays| stays.region == gone.region) {
                prop_assert!(worth(gone) <= worth(stays));
            }
        }
    }
}
