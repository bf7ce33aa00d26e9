//! Where rooms are made and where they go from: policies as the engine carries them out.

use std::collections::BTreeMap;
use std::time::Duration;

use maestro_core::operation::{Operation, OperationId, OperationStatus};
use maestro_core::policy::{Criteria, DeletionPolicy, PlacementPolicy, PlacementRegion};
use maestro_core::resize::{Draft, Number, Strictness};
use maestro_core::room::{Region, RoomStatus};
use maestro_core::scheduler::{MaxSurge, Recipe};
use maestro_engine::services::{RegionOrder, ResizeOrder, RolloutPhase};
use maestro_simulation::{Outage, World};
use serde_json::{Value, json};

use super::common::*;
use super::rollouts::{another_command, ended_as, rollout_over, submit};

const SECOND: Duration = Duration::from_secs(1);
pub(crate) const ONE: &str = "RegionOne";
pub(crate) const TWO: &str = "RegionTwo";
pub(crate) const THREE: &str = "RegionThree";

pub(crate) fn region(name: &str) -> Region {
    Region::parse(name).unwrap()
}

fn policy(regions: &[(&str, u32, Option<u32>)]) -> PlacementPolicy {
    let listed = |(name, weight, cap): &(&str, u32, Option<u32>)| PlacementRegion {
        name: region(name),
        weight: *weight,
        cap: *cap,
    };
    PlacementPolicy { regions: regions.iter().map(listed).collect() }
}

pub(crate) fn placed(rooms: u32, regions: &[(&str, u32, Option<u32>)]) -> Recipe {
    let mut recipe = recipe(rooms);
    recipe.policies.placement = Some(policy(regions));
    recipe
}

/// A fleet of so many rooms, in as many regions as the policy has.
pub(crate) async fn world(seed: u64, recipe: Recipe, regions: &[&str]) -> World {
    let mut world = World::with_regions(seed, regions);
    world.start_engine().await;
    let rooms = recipe.rooms_replicas;
    world.engine().create_scheduler(recipe, "ann").await.unwrap();
    settle(&world, rooms, 5 * MINUTE).await;
    world
}

/// Rooms by region.
pub(crate) async fn spread(world: &World) -> BTreeMap<String, usize> {
    let mut spread = BTreeMap::new();
    for room in world.engine().rooms(ARENA).await.unwrap() {
        *spread.entry(room.region.to_string()).or_default() += 1;
    }
    spread
}

pub(crate) async fn is_spread(world: &World, expected: &[(&str, usize)]) {
    let expected: BTreeMap<String, usize> =
        expected.iter().map(|(name, rooms)| ((*name).to_owned(), *rooms)).collect();
    assert_eq!(spread(world).await, expected);
}

pub(crate) async fn finished(world: &World, id: OperationId) -> Operation {
    ended_as(world, id, OperationStatus::Finished).await
}

pub(crate) async fn data_of(world: &World, id: OperationId, status: OperationStatus) -> Value {
    ended_as(world, id, status).await.data
}

pub(crate) fn exactly(rooms: i64) -> ResizeOrder {
    let number = Some(Number::parse(&rooms.to_string()).unwrap());
    let draft = Draft { adjustment_type: Some("EXACT_CAPACITY".into()), number, ..Draft::default() };
    ResizeOrder { draft, strictness: Strictness::Strict, asked: json!({ "number": rooms }) }
}

#[test]
fn a_fleet_grows_and_shrinks_by_its_weights() {
    run(async {
        let regions = [(ONE, 3, Some(25)), (TWO, 2, None), (THREE, 1, None)];
        let world = world(1, placed(0, &regions), &[ONE, TWO, THREE]).await;
        finished(&world, world.engine().resize(ARENA, &exactly(60), false, "ann").await.unwrap()).await;
        settle(&world, 60, MINUTE).await;
        is_spread(&world, &[(ONE, 25), (THREE, 12), (TWO, 23)]).await;
        finished(&world, world.engine().resize(ARENA, &exactly(20), false, "ann").await.unwrap()).await;
        settle(&world, 20, MINUTE).await;
        is_spread(&world, &[(ONE, 10), (THREE, 3), (TWO, 7)]).await;
        let version = submit(&world, another_command(placed(20, &regions))).await;
        finished(&world, version).await;
        settle(&world, 20, HOUR).await;
        is_spread(&world, &[(ONE, 10), (THREE, 3), (TWO, 7)]).await;
    });
}

/// Its old rooms take all the place that it has: they make way for the new ones, and those are made there.
#[test]
fn a_region_full_of_old_rooms_gets_its_new_ones() {
    for (max_surge, replicas) in [(1, 8), (3, 8), (8, 12)] {
        run(async {
            let regions = [(ONE, 1, Some(replicas / 2)), (TWO, 1, None)];
            let mut recipe = placed(replicas, &regions);
            recipe.max_surge = MaxSurge::Rooms(max_surge);
            let world = world(13, recipe.clone(), &[ONE, TWO]).await;
            let half = replicas as usize / 2;
            is_spread(&world, &[(ONE, half), (TWO, half)]).await;
            finished(&world, submit(&world, another_command(recipe)).await).await;
            rollout_over(&world, HOUR).await;
            settle(&world, replicas, HOUR).await;
            is_spread(&world, &[(ONE, half), (TWO, half)]).await;
        });
    }
}

#[test]
fn what_the_policies_decide_is_in_the_data() {
    run(async {
        let regions = [(ONE, 1, Some(3)), (TWO, 2, Some(6))];
        let world = world(2, placed(0, &regions), &[ONE, TWO]).await;
        let engine = world.engine();
        let add = engine.add_rooms(ARENA, 3, false, "ann").await.unwrap();
        let created = json!({"status": "OK", "creation": {"count": 3, "regions": {ONE: 1, TWO: 2}}});
        assert_eq!(data_of(&world, add, OperationStatus::Finished).await, created);
        let too_many = engine.add_rooms(ARENA, 7, false, "ann").await.unwrap();
        let refused = json!({"status": "ERROR", "reason": "There is no feasible plan to handle all nodes."});
        assert_eq!(data_of(&world, too_many, OperationStatus::Error).await, refused);
        settle(&world, 3, MINUTE).await;
        let one_more = engine.create_room(ARENA, None, false, "ann").await.unwrap();
        let created = json!({"status": "OK", "creation": {"count": 1, "regions": {TWO: 1}}});
        assert_eq!(data_of(&world, one_more, OperationStatus::Finished).await, created);
        let here = engine.create_room(ARENA, Some(ONE), false, "ann").await.unwrap();
        let created = json!({"status": "OK", "creation": {"count": 1, "regions": {ONE: 1}}});
        assert_eq!(data_of(&world, here, OperationStatus::Finished).await, created);
        is_spread(&world, &[(ONE, 2), (TWO, 3)]).await;
        let remove = engine.remove_rooms(ARENA, 2, false, "ann").await.unwrap();
        let removed = json!({"status": "OK", "deletion": {"count": 2, "regions": {ONE: 1, TWO: 1}}});
        assert_eq!(data_of(&world, remove, OperationStatus::Finished).await, removed);
        settle(&world, 3, MINUTE).await;
        let beyond = ResizeOrder { draft: Draft { max_size: Some(2), ..exactly(3).draft }, ..exactly(3) };
        let refused = engine.resize(ARENA, &beyond, false, "ann").await.unwrap();
        let data = data_of(&world, refused, OperationStatus::Error).await;
        assert_eq!((&data["status"], data["reason"].as_str().is_some()), (&json!("ERROR"), true), "{data}");
        assert_eq!(fleet_size(&world).await, Some(3), "nothing changed");
    });
}

#[test]
fn closed_regions_get_nothing() {
    run(async {
        let world = world(3, recipe(4), &[ONE, TWO]).await;
        is_spread(&world, &[(ONE, 2), (TWO, 2)]).await;
        let engine = world.engine();
        engine.order_region(ONE, RegionOrder::Cordon, "ann", "repairs").await.unwrap();
        finished(&world, engine.add_rooms(ARENA, 2, false, "ann").await.unwrap()).await;
        is_spread(&world, &[(ONE, 2), (TWO, 4)]).await;
        engine.order_region(TWO, RegionOrder::Cordon, "ann", "repairs").await.unwrap();
        let add = engine.add_rooms(ARENA, 1, false, "ann").await.unwrap();
        let refused = json!({"status": "ERROR", "reason": "No region is found usable."});
        assert_eq!(data_of(&world, add, OperationStatus::Error).await, refused);
    });
}

#[test]
fn a_drained_region_empties_and_fills_again_when_rooms_are_needed() {
    run(async {
        let world = world(4, recipe(6), &[ONE, TWO, THREE]).await;
        let engine = world.engine();
        let host = world.host_of(&region(TWO));
        let busy = host.rooms()[0].id.clone();
        host.begin_match(&busy);
        let enough = async |world: &World| {
            let rooms = world.engine().rooms(ARENA).await.unwrap();
            let ready = rooms.iter().filter(|room| room.status == RoomStatus::Ready).count();
            assert!(ready >= 5, "the drain takes no ready room that is needed: {ready}");
            spread(world).await
        };
        world.advance(10 * SECOND).await;
        engine.order_region(TWO, RegionOrder::Drain, "ann", "old machines").await.unwrap();
        let one_left = async |world: &World| enough(world).await.get(TWO) == Some(&1);
        world.run_until("only the match to be left", 10 * MINUTE, one_left).await;
        world.advance(5 * MINUTE).await;
        assert_eq!(spread(&world).await.get(TWO), Some(&1), "players are in it");
        host.end_match(&busy);
        let none_left = async |world: &World| !spread(world).await.contains_key(TWO);
        world.run_until("the region to be empty", 10 * MINUTE, none_left).await;
        settle(&world, 6, 5 * MINUTE).await;
        is_spread(&world, &[(ONE, 3), (THREE, 3)]).await;
        let reasons: Vec<String> = done(&world).await.into_iter().map(|operation| operation.reason).collect();
        assert!(reasons.iter().any(|reason| reason.starts_with("drain of RegionTwo: ")), "{reasons:?}");
        engine.order_region(TWO, RegionOrder::Uncordon, "ann", "").await.unwrap();
        finished(&world, engine.add_rooms(ARENA, 3, false, "ann").await.unwrap()).await;
        is_spread(&world, &[(ONE, 3), (THREE, 3), (TWO, 3)]).await;
    });
}

#[test]
fn a_lost_region_is_made_up_for_and_its_surplus_goes_where_there_is_too_much() {
    run(async {
        let world = world(5, recipe(6), &[ONE, TWO, THREE]).await;
        world.cut_off(&region(ONE), Outage::Network);
        let moved = async |world: &World| {
            let there = spread(world).await;
            there.get(TWO) == Some(&3) && there.get(THREE) == Some(&3)
        };
        world.run_until("the others to have its share", 3 * MINUTE, moved).await;
        world.reconnect(&region(ONE));
        settle(&world, 6, 10 * MINUTE).await;
        is_spread(&world, &[(ONE, 2), (THREE, 2), (TWO, 2)]).await;
    });
}

#[test]
fn a_rollout_without_place_for_a_surge_says_so() {
    run(async {
        let full = |rooms| placed(rooms, &[(ONE, 1, Some(2)), (TWO, 1, Some(2))]);
        let world = world(6, full(4), &[ONE, TWO]).await;
        finished(&world, submit(&world, another_command(full(4))).await).await;
        world.advance(5 * MINUTE).await;
        let rollout = world.engine().rollout(ARENA, None).await.unwrap();
        assert_eq!((rollout.old_rooms, rollout.new_rooms), (4, 0), "{rollout:?}");
        let why = "no region may have new rooms: RegionOne has a cap of 2; RegionTwo has a cap of 2";
        assert!(rollout.waiting_for.contains(why), "{}", rollout.waiting_for);
        let mut moving = another_command(full(4));
        moving.rollout_rules = Some(maestro_core::scheduler::Rollout {
            max_unavailable: 1,
            ..moving.rollout_rules.unwrap_or_default()
        });
        finished(&world, submit(&world, moving).await).await;
        let over = async |world: &World| {
            world.engine().rollout(ARENA, None).await.unwrap().state == RolloutPhase::None
        };
        world.run_until("the rollout to be over", HOUR, over).await;
        settle(&world, 4, MINUTE).await;
        is_spread(&world, &[(ONE, 2), (TWO, 2)]).await;
    });
}

#[test]
fn caps_lower_what_is_wanted() {
    run(async {
        let recipe = placed(10, &[(ONE, 1, Some(3)), (TWO, 1, Some(2))]);
        let mut world = World::with_regions(7, &[ONE, TWO]);
        world.start_engine().await;
        world.engine().create_scheduler(recipe, "ann").await.unwrap();
        let full = async |world: &World| spread(world).await.values().sum::<usize>() == 5;
        world.run_until("as many as fit", 5 * MINUTE, full).await;
        world.advance(5 * MINUTE).await;
        is_spread(&world, &[(ONE, 3), (TWO, 2)]).await;
        let failed =
            done(&world).await.into_iter().find(|operation| operation.status == OperationStatus::Error);
        assert_eq!(failed, None);
    });
}

/// Within the number of its region.
#[test]
fn a_deletion_policy_chooses_who_goes() {
    for (criteria, survivors) in [(Criteria::OldestFirst, 2), (Criteria::YoungestFirst, 1)] {
        run(async {
            let mut recipe = placed(2, &[(ONE, 1, None), (TWO, 1, None)]);
            recipe.policies.deletion = Some(DeletionPolicy { criteria });
            let world = world(8, recipe, &[ONE, TWO]).await;
            let first = ids(&world).await;
            world.advance(MINUTE).await;
            let engine = world.engine();
            finished(&world, engine.add_rooms(ARENA, 2, false, "ann").await.unwrap()).await;
            settle(&world, 4, MINUTE).await;
            let remove = finished(&world, engine.remove_rooms(ARENA, 2, false, "ann").await.unwrap()).await;
            settle(&world, 2, MINUTE).await;
            is_spread(&world, &[(ONE, 1), (TWO, 1)]).await;
            let still: Vec<_> = ids(&world).await.into_iter().filter(|id| first.contains(id)).collect();
            assert_eq!(still.is_empty(), survivors == 2, "{criteria:?}: {}", remove.data);
            assert_eq!(remove.data["deletion"]["candidates"].as_array().map(Vec::len), Some(2));
        });
    }
}

#[test]
fn regions_that_nobody_configured_are_refused() {
    run(async {
        let world = world(9, recipe(1), &[ONE, TWO]).await;
        let engine = world.engine();
        let mars = Recipe {
            name: maestro_core::scheduler::SchedulerName::parse("mars").unwrap(),
            ..placed(1, &[("mars", 1, None)])
        };
        let refused = engine.create_scheduler(mars, "ann").await.unwrap_err().to_string();
        assert!(refused.contains("placement.regions[0].name"), "{refused}");
        let refused = engine.create_room(ARENA, Some("mars"), false, "ann").await.unwrap_err().to_string();
        assert!(refused.contains("region: \"mars\" is not a configured region"), "{refused}");
        assert_eq!(fleet_size(&world).await, Some(1));
    });
}
