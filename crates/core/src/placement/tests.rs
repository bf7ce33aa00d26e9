//! The planner against recorded cases, against every distribution there is, and at the ends of its numbers.

use proptest::prelude::*;
use proptest::test_runner::Config;
use serde_json::Value;

use super::*;

const NEW: RegionFact = RegionFact {
    weight: Weight(100),
    cap: None,
    rooms: Standing { counted: 0, beside: 0, kept: 0, goes_first: 0, cordoned: false, capacity: None },
};

fn with(weight: u64, cap: Option<u64>, counted: u64) -> RegionFact {
    let rooms = Standing { counted, ..Standing::default() };
    RegionFact { weight: Weight::new(weight).unwrap(), cap, rooms }
}

fn weighted(weights: &[u64], counted: &[u64]) -> Vec<RegionFact> {
    weights.iter().zip(counted).map(|(weight, counted)| with(*weight, None, *counted)).collect()
}

#[test]
fn growing() {
    let check = |weights: &[u64], counted: &[u64], count, expected: &[u64]| {
        assert_eq!(grow(&weighted(weights, counted), count).unwrap(), expected, "{weights:?} {counted:?}");
    };
    check(&[3, 2, 1], &[0, 0, 0], 60, &[30, 20, 10]);
    check(&[1, 1], &[1, 0], 3, &[1, 2]);
    check(&[1, 1, 1], &[0, 0, 0], 4, &[2, 1, 1]);
    check(&[1; 10], &[0; 10], 11, &[2, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
    check(&[100, 99], &[1, 0], 1, &[0, 1]);
    check(&[1, 1], &[9, 0], 4, &[0, 4]);
    check(&[1, 0, 1], &[0, 0, 0], 5, &[3, 0, 2]);
    check(&[1, 1], &[5, 5], 0, &[0, 0]);
    check(&[1], &[0], u64::MAX, &[u64::MAX]);
}

#[test]
fn removing() {
    let check = |weights: &[u64], counted: &[u64], count, expected: &[u64]| {
        assert_eq!(shrink(&weighted(weights, counted), count).unwrap(), expected, "{weights:?} {counted:?}");
    };
    check(&[3, 2, 1], &[30, 20, 10], 30, &[15, 10, 5]);
    // The one room that can be anywhere is the earlier region's to have.
    check(&[1, 1], &[4, 4], 3, &[1, 2]);
    check(&[1, 1], &[9, 1], 4, &[4, 0]);
    check(&[1, 1], &[9, 1], 9, &[8, 1]);
    check(&[1, 0, 1], &[9, 4, 1], 3, &[0, 3, 0]);
    check(&[0, 1, 0], &[3, 9, 5], 4, &[1, 0, 3]);
    check(&[0, 1, 0], &[3, 9, 5], 10, &[3, 2, 5]);
    check(&[0, 0], &[2, 3], 3, &[1, 2]);
    check(&[1], &[u64::MAX], u64::MAX, &[u64::MAX]);
}

#[test]
fn caps_and_cordons_hold_on_the_way_up() {
    let three = |first: RegionFact| [first, NEW, NEW];
    let check = |first, count, expected: [u64; 3]| {
        assert_eq!(grow(&three(first), count).unwrap(), expected);
    };
    check(with(100, Some(1), 0), 9, [1, 4, 4]);
    check(with(100, Some(0), 0), 9, [0, 5, 4]);
    // Its cap was lowered later: it keeps what it has.
    check(with(100, Some(1), 5), 4, [0, 2, 2]);
    let beside = Standing { counted: 1, beside: 2, ..Standing::default() };
    check(RegionFact { cap: Some(4), rooms: beside, ..NEW }, 8, [1, 4, 3]);
    let cordoned = Standing { counted: 2, cordoned: true, ..Standing::default() };
    check(RegionFact { rooms: cordoned, ..NEW }, 4, [0, 2, 2]);
    // What the region itself holds, where that is less than the cap.
    let small = Standing { counted: 1, beside: 1, capacity: Some(3), ..Standing::default() };
    check(RegionFact { cap: Some(9), rooms: small, ..NEW }, 8, [1, 4, 3]);
    check(RegionFact { cap: Some(2), rooms: small, ..NEW }, 8, [0, 4, 4]);
}

#[test]
fn rooms_that_may_not_go_stay() {
    let rooms =
        |counted, kept| RegionFact { rooms: Standing { counted, kept, ..Standing::default() }, ..NEW };
    assert_eq!(shrink(&[rooms(9, 8), rooms(9, 0)], 8), Ok(vec![1, 7]));
    assert_eq!(shrink(&[rooms(9, 9), rooms(1, 2)], 1), Err(NoPlan { fits: 0 }));
    // A cordon keeps nothing from going.
    let cordoned = Standing { counted: 9, cordoned: true, ..Standing::default() };
    assert_eq!(shrink(&[RegionFact { rooms: cordoned, ..NEW }, rooms(1, 0)], 4), Ok(vec![4, 0]));
}

#[test]
fn what_does_not_fit() {
    let full = [with(1, Some(3), 1), with(1, Some(2), 5)];
    assert_eq!(grow(&full, 3), Err(NoPlan { fits: 2 }));
    assert_eq!(grow(&[], 1), Err(NoPlan { fits: 0 }));
    assert_eq!(grow(&[], 0), Ok(vec![]));
    assert_eq!(grow(&[with(0, None, 7)], 1), Err(NoPlan { fits: 0 }));
    assert_eq!(shrink(&[with(1, None, 1), with(1, None, 0)], 3), Err(NoPlan { fits: 1 }));
    assert_eq!(place_left(&full), Some(2));
    assert_eq!(place_left(&[full[0], NEW]), None);
}

/// Ids that the README of `testdata` lists: no growth in regions of weight 0.
const ONLY_WEIGHT_ZERO: [u64; 2] = [58, 1872];
/// Weights that are negative or all 0, which no policy has: they are refused on submission.
const NO_POLICY: [u64; 7] = [56, 62, 1870, 1886, 1904, 1916, 1940];

#[test]
fn recorded_cases() {
    let mut checked = 0;
    for case in maestro_testkit::recorded("region-placement.jsonl") {
        let id = case["id"].as_u64().unwrap();
        if NO_POLICY.contains(&id) {
            continue;
        }
        let regions = recorded_regions(&case);
        let count = case["count"].as_u64().unwrap();
        let grows = case["expand"].as_bool().unwrap();
        let plan = if grows { grow(&regions, count) } else { shrink(&regions, count) };
        let feasible = case["feasible"].as_bool().unwrap() && !ONLY_WEIGHT_ZERO.contains(&id);
        assert_eq!(plan.is_ok(), feasible, "{id}");
        if let Ok(plan) = plan {
            assert_eq!(plan.iter().sum::<u64>(), count, "{id}");
            assert_eq!(deviation(&regions, &plan, grows), best_deviation(&case), "{id}");
        }
        checked += 1;
    }
    assert_eq!(checked, 1078 - NO_POLICY.len());
}

fn recorded_regions(case: &Value) -> Vec<RegionFact> {
    let region = |region: &Value| {
        let counted = case["current"][region["name"].as_str().unwrap()].as_u64().unwrap();
        with(region["weight"].as_u64().unwrap(), region["cap"].as_u64(), counted)
    };
    case["regions"].as_array().unwrap().iter().map(region).collect()
}

fn best_deviation(case: &Value) -> i128 {
    case["best_deviation_num"].as_u64().unwrap().into()
}

/// The sum of the absolute differences from the shares, in parts of a room.
fn deviation(regions: &[RegionFact], plan: &[u64], grows: bool) -> i128 {
    let rooms: Vec<i128> = regions
        .iter()
        .zip(plan)
        .map(|(region, moved)| {
            let moved = i128::from(*moved);
            i128::from(region.rooms.counted) + if grows { moved } else { -moved }
        })
        .collect();
    let weights: i128 = regions.iter().map(|region| i128::from(region.weight.get())).sum();
    let total: i128 = rooms.iter().sum();
    let differences = regions
        .iter()
        .zip(rooms)
        .map(|(region, rooms)| (rooms * weights - total * i128::from(region.weight.get())).abs());
    differences.sum()
}

#[test]
fn as_large_as_numbers_get() {
    let count = 1 << 54;
    let even = vec![with(1, None, 0); 100];
    let plan = grow(&even, count).unwrap();
    let (most, least) = (plan.iter().max().unwrap(), plan.iter().min().unwrap());
    assert_eq!((plan.iter().sum::<u64>(), most - least), (count, 1));

    let largest = Weight::MAX.get();
    let full = vec![with(largest, None, u64::MAX); REGIONS_MAX];
    assert_eq!(shrink(&full, u64::MAX).unwrap().iter().sum::<u64>(), u64::MAX);
    assert_eq!(grow(&full, u64::MAX).unwrap().iter().sum::<u64>(), u64::MAX);
    let uneven = [with(largest, None, 0), with(1, None, 0)];
    assert_eq!(grow(&uneven, u64::MAX), Ok(vec![u64::MAX - 1024, 1024]));
    assert_eq!(Weight::new(largest + 1), None);
}

/// The distribution of so many rooms is the same from below and from above.
#[test]
fn the_way_does_not_matter() {
    let weights = [5, 3, 1];
    let many = grow(&weighted(&weights, &[0; 3]), 200).unwrap();
    for total in 0..=100 {
        let grown = grow(&weighted(&weights, &[0; 3]), total).unwrap();
        let less = shrink(&weighted(&weights, &many), 200 - total).unwrap();
        let shrunk: Vec<u64> = many.iter().zip(less).map(|(rooms, less)| rooms - less).collect();
        assert_eq!(grown, shrunk);
    }
}

proptest! {
    #![proptest_config(Config { cases: 50_000, ..Config::default() })]

    #[test]
    fn growing_is_the_best_of_all_ways(regions in regions(), count in 0_u64..8) {
        let plan = grow(&regions, count);
        let most = |region: &RegionFact| match region.cap {
            _ if region.weight.get() == 0 || region.rooms.cordoned => 0,
            None => count,
            Some(cap) => cap.saturating_sub(region.rooms.counted + region.rooms.beside),
        };
        let ways = ways(&regions.iter().map(most).collect::<Vec<_>>(), count);
        let final_rooms = |way: &[u64]| -> Vec<u64> {
            regions.iter().zip(way).map(|(region, more)| region.rooms.counted + more).collect()
        };
        let best = ways.into_iter().min_by_key(|way| (squares(&regions, &final_rooms(way)), earlier_first(&final_rooms(way))));
        prop_assert_eq!(plan.ok(), best);
    }

    #[test]
    fn removing_is_the_best_of_all_ways(regions in regions(), count in 0_u64..8) {
        let plan = shrink(&regions, count);
        let most = |region: &RegionFact| region.rooms.counted.saturating_sub(region.rooms.kept);
        let ways = ways(&regions.iter().map(most).collect::<Vec<_>>(), count);
        let final_rooms = |way: &[u64]| -> Vec<u64> {
            regions.iter().zip(way).map(|(region, less)| region.rooms.counted - less).collect()
        };
        let unweighted = |way: &[u64]| -> u64 {
            let rooms = final_rooms(way);
            regions.iter().zip(rooms).filter(|(region, _)| region.weight.get() == 0).map(|(_, rooms)| rooms).sum()
        };
        let best = ways.into_iter().min_by_key(|way| {
            (unweighted(way), squares(&regions, &final_rooms(way)), earlier_first(&final_rooms(way)))
        });
        prop_assert_eq!(plan.ok(), best);
    }
}

proptest! {
    /// Against one that goes room by room.
    #[test]
    fn many_rooms_in_many_regions(
        drafts in prop::collection::vec((0_u64..500, prop::option::of(0_u64..80), 0_u64..60), 1..20),
        count in 0_u64..600,
    ) {
        let regions: Vec<_> = drafts.into_iter().map(|(weight, cap, counted)| with(weight, cap, counted)).collect();
        let weights: i128 = regions.iter().map(|region| i128::from(region.weight.get())).sum();
        let total = i128::from(regions.iter().map(|region| region.rooms.counted).sum::<u64>() + count);
        let mut rooms: Vec<u64> = regions.iter().map(|region| region.rooms.counted).collect();
        let mut placed = 0;
        while placed < count {
            let next = (0..regions.len())
                .filter(|index| regions[*index].weight.get() > 0)
                .filter(|index| regions[*index].cap.is_none_or(|cap| rooms[*index] < cap))
                .min_by_key(|index| {
                    i128::from(rooms[*index]) * weights - total * i128::from(regions[*index].weight.get())
                });
            let Some(next) = next else { break };
            rooms[next] += 1;
            placed += 1;
        }
        let by_room: Vec<u64> =
            regions.iter().zip(rooms).map(|(region, rooms)| rooms - region.rooms.counted).collect();
        prop_assert_eq!(grow(&regions, count).ok(), (placed == count).then_some(by_room));
    }
}

fn regions() -> impl Strategy<Value = Vec<RegionFact>> {
    let region =
        (0_u64..4, prop::option::of(0_u64..6), 0_u64..5, 0_u64..2, 0_u64..3, prop::bool::weighted(0.1));
    let region = region.prop_map(|(weight, cap, counted, beside, kept, cordoned)| RegionFact {
        weight: Weight::new(weight).unwrap(),
        cap,
        rooms: Standing { counted, beside, kept, goes_first: 0, cordoned, capacity: None },
    });
    prop::collection::vec(region, 1..5)
}

/// Every way to take `count` from places that have so many each.
fn ways(most: &[u64], count: u64) -> Vec<Vec<u64>> {
    let Some((first, rest)) = most.split_first() else {
        return if count == 0 { vec![vec![]] } else { vec![] };
    };
    let mut all = Vec::new();
    for taken in 0..=count.min(*first) {
        for mut way in ways(rest, count - taken) {
            way.insert(0, taken);
            all.push(way);
        }
    }
    all
}

fn squares(regions: &[RegionFact], rooms: &[u64]) -> i64 {
    let weights: i64 = regions.iter().map(|region| region.weight.get().cast_signed()).sum();
    let weights = weights.max(1);
    let total: i64 = rooms.iter().sum::<u64>().cast_signed();
    let square = |(region, rooms): (&RegionFact, &u64)| {
        let difference = rooms.cast_signed() * weights - total * region.weight.get().cast_signed();
        difference * difference
    };
    regions.iter().zip(rooms).map(square).sum()
}

/// The smaller, the more rooms the earlier regions have.
fn earlier_first(rooms: &[u64]) -> Vec<std::cmp::Reverse<u64>> {
    rooms.iter().copied().map(std::cmp::Reverse).collect()
}
