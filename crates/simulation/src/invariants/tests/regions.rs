//! What is judged where a fleet is in several regions.

use std::sync::Arc;

use maestro_core::policy::{PlacementPolicy, PlacementRegion, Policies};
use maestro_core::scheduler::Recipe;
use maestro_engine::ports::store::{NewScheduler, RegionRecord};

use super::*;
use crate::invariants::caps;

fn region() -> Region {
    Region::default_region()
}

#[test]
fn rooms_that_a_node_does_not_see_are_stood_in_for() {
    let adds = |seen: bool, amount: u32| {
        async move |scene: &Scene| {
            scene.fleet(&[RoomStatus::Ready; 3]).await;
            if !seen {
                scene.inspector.region_unseen(NODE, &region());
            }
            scene.work(vec![Change::Enqueue(operation(2, add(amount), Origin::Controller))]).await;
        }
    };
    check(adds(true, SIZE), &[Invariant::SurgeBound]);
    check(adds(false, SIZE), &[]);
    check(adds(false, SIZE + 1), &[Invariant::SurgeBound]);
}

#[test]
fn rooms_that_a_node_does_not_see_need_not_go_first() {
    let removes = |seen: bool| {
        async move |scene: &Scene| {
            scene.fleet(&[RoomStatus::Occupied, RoomStatus::Ready]).await;
            if !seen {
                scene.inspector.region_unseen(NODE, &region());
            }
            scene.remove(remove(1), person(), &[1, 2], 1).await;
        }
    };
    check(removes(true), &[Invariant::ReadyBeforeOccupied]);
    check(removes(false), &[]);
}

#[test]
fn what_is_drained_may_be_replaced_before_it_goes() {
    let says = |draining: bool| RegionRecord {
        name: region(),
        cordoned: draining,
        draining,
        by: "ann".into(),
        reason: "it is slow".into(),
        at: at(0),
        lost_at: None,
    };
    let adds = |amount: u32| {
        async move |scene: &Scene| {
            scene.fleet(&[RoomStatus::Ready; 3]).await;
            scene.request(vec![Change::SetRegion { from: None, to: says(true) }]).await;
            scene.work(vec![Change::Enqueue(operation(2, add(amount), Origin::Controller))]).await;
        }
    };
    // A quarter of them is the surge, one at least.
    let surge = (SIZE / 4).max(1);
    check(adds(SIZE - 3 + surge), &[]);
    check(adds(SIZE - 3 + surge + 1), &[Invariant::SurgeBound]);
}

#[test]
fn caps_that_an_addition_oversteps() {
    for (cap, bound_to, first, then, expected) in [
        (Some(3), None, 3, 0, 0),
        (Some(3), None, 2, 1, 0),
        (Some(3), None, 2, 2, 1),
        (None, None, 2, 2, 0),
        (Some(3), Some(region()), 2, 2, 0),
        // They were too many before.
        (Some(1), None, 3, 0, 0),
    ] {
        let overstepped = check_caps(cap, bound_to, first, then);
        assert_eq!(overstepped.len(), expected, "cap {cap:?}, {first} and {then} rooms: {overstepped:?}");
    }
}

/// What is said of an addition of `then` rooms to `first`.
fn check_caps(cap: Option<u32>, bound_to: Option<Region>, first: u32, then: u32) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let placement = PlacementPolicy { regions: vec![PlacementRegion { name: region(), weight: 1, cap }] };
    let mut recipe = Recipe {
        policies: Policies { placement: Some(placement), deletion: None },
        ..fixtures::recipe(&arena())
    };
    recipe.spec.region = bound_to;
    let scheduler = NewScheduler { recipe: Arc::new(recipe), ..fixtures::new_scheduler(&arena()) };
    runtime.block_on(async {
        let store = MemoryStore::new(Arc::new(VirtualClock::begin()));
        let intend = |numbers: std::ops::Range<u32>| {
            Transaction::of_no_scheduler(
                "step",
                numbers.map(|number| Change::IntendRoom(room(number))).collect(),
            )
        };
        let adds = intend(first..first + then);
        store
            .commit(Transaction::of_no_scheduler("request", vec![Change::CreateScheduler(scheduler)]))
            .await
            .unwrap();
        store.commit(intend(0..first)).await.unwrap();
        store.commit(adds.clone()).await.unwrap();
        let found = caps::overstepped(&arena(), &adds, &store).await.unwrap();
        found.into_iter().map(|violation| violation.what).collect()
    })
}
