//! Several workers on one store: who owns what, and how fast that moves.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use maestro_core::operation::{DefinitionKind, Token};
use maestro_core::scheduler::{Recipe, SchedulerName};
use maestro_engine::Settings;
use maestro_engine::ports::contract::fixtures;
use maestro_engine::ports::store::{OwnershipRecord, PageRequest};
use maestro_engine::ports::{Clock, Store};
use maestro_simulation::{MemoryStore, NodeNumber, NodePlan, World};

use super::common::*;

const SECOND: Duration = Duration::from_secs(1);
const SCHEDULERS: usize = 100;

fn ttl() -> Duration {
    Settings::default().ownership_ttl.as_duration()
}

fn name(number: usize) -> SchedulerName {
    SchedulerName::parse(&format!("arena-{number:03}")).unwrap()
}

async fn ownerships(world: &World) -> Vec<OwnershipRecord> {
    world.store().workers().await.unwrap().ownerships
}

/// How many schedulers each worker owns.
async fn shares(world: &World) -> BTreeMap<String, usize> {
    let mut shares = BTreeMap::new();
    for ownership in ownerships(world).await {
        *shares.entry(ownership.owner).or_insert(0) += 1;
    }
    shares
}

async fn even_among(world: &World, workers: &[NodeNumber]) -> bool {
    let shares = shares(world).await;
    let of = |worker: &NodeNumber| shares.get(&format!("engine-{worker}")).copied().unwrap_or(0);
    let each: Vec<usize> = workers.iter().map(of).collect();
    let (least, most) = (each.iter().min().unwrap(), each.iter().max().unwrap());
    each.iter().sum::<usize>() == SCHEDULERS && most - least <= 1
}

/// Three workers and a hundred small fleets that are well.
async fn three_workers(store: impl FnOnce(Arc<dyn Clock>) -> Arc<dyn Store>) -> (World, [NodeNumber; 3]) {
    let mut world = World::on_store(1, Settings::default(), store);
    let mut nodes = [0; 3];
    for node in &mut nodes {
        *node = world.start_node(NodePlan::PLAIN).await.unwrap();
    }
    for number in 0..SCHEDULERS {
        let recipe = Recipe { name: name(number), ..recipe(0) };
        world.engine_of(nodes[0]).unwrap().create_scheduler(recipe, "ann").await.unwrap();
    }
    let even = async |world: &World| even_among(world, &nodes).await;
    world.run_until("three even shares", 30 * SECOND, even).await;
    (world, nodes)
}

/// Each ownership that changed hands has a greater token than any before.
fn tokens_grew(before: &[OwnershipRecord], after: &[OwnershipRecord]) {
    let greatest = before.iter().map(|ownership| ownership.token).max().unwrap_or(Token(0));
    for (was, is) in before.iter().zip(after) {
        assert_eq!(was.scheduler, is.scheduler);
        assert!(was.owner == is.owner || is.token > greatest, "{was:?} → {is:?}");
    }
}

async fn stopped_frozen_and_joined(store: impl FnOnce(Arc<dyn Clock>) -> Arc<dyn Store>) {
    let (mut world, nodes) = three_workers(store).await;
    let before = ownerships(&world).await;
    world.stop_node(nodes[2]).await;
    let two = async |world: &World| even_among(world, &nodes[..2]).await;
    world.run_until("two even shares, at once", SECOND, two).await;
    let after = ownerships(&world).await;
    tokens_grew(&before, &after);

    let third = world.start_node(NodePlan::PLAIN).await.unwrap();
    let three = [nodes[0], nodes[1], third];
    let joined = async |world: &World| even_among(world, &three).await;
    world.run_until("a share for who came", 30 * SECOND, joined).await;

    let before = ownerships(&world).await;
    world.freeze(nodes[1]);
    let moved = async |world: &World| even_among(world, &[nodes[0], third]).await;
    world.run_until("the share of the frozen one to move", ttl() + SECOND, moved).await;
    tokens_grew(&before, &ownerships(&world).await);

    world.thaw(nodes[1]);
    let back = async |world: &World| even_among(world, &three).await;
    world.run_until("a share for who woke up", 30 * SECOND, back).await;

    let before = ownerships(&world).await;
    world.crash_node(nodes[0]).await;
    let two = async |world: &World| even_among(world, &[nodes[1], third]).await;
    world.run_until("the share of the dead one to move", ttl() + SECOND, two).await;
    tokens_grew(&before, &ownerships(&world).await);
}

#[test]
fn three_workers_share_a_hundred_schedulers() {
    run(stopped_frozen_and_joined(MemoryStore::on_clock));
}

/// How many health cycles there were, those that changed nothing included.
async fn cycles(world: &World) -> usize {
    let page = PageRequest { no_action: true, ..fixtures::all_operations() };
    let page = world.store().operations(&arena(), maestro_core::operation::Stage::Final, page).await.unwrap();
    let is_cycle = |kind| kind == DefinitionKind::HealthController;
    page.operations.iter().filter(|operation| is_cycle(operation.definition.kind())).count()
}

#[test]
fn three_workers_look_at_a_fleet_as_often_as_one() {
    let counted = |workers: usize| {
        run(async move {
            let mut world = World::new(3);
            for _ in 0..workers {
                world.start_node(NodePlan::PLAIN).await.unwrap();
            }
            create(&world, 3).await;
            settle(&world, 3, MINUTE).await;
            let before = cycles(&world).await;
            world.advance(10 * MINUTE).await;
            cycles(&world).await - before
        })
    };
    assert_eq!(counted(1), 60);
    assert_eq!(counted(3), 60);
}

#[test]
fn a_worker_that_slept_too_long_starts_and_stops_nothing() {
    run(async {
        let mut world = World::new(4);
        let first = world.start_node(NodePlan::PLAIN).await.unwrap();
        create(&world, 4).await;
        settle(&world, 4, MINUTE).await;
        let second = world.start_node(NodePlan::PLAIN).await.unwrap();
        world.engine_of(first).unwrap().add_rooms(ARENA, 8, false, "ann").await.unwrap();
        let begun = async |world: &World| world.host().rooms().len() > 4;
        world.run_until("the first rooms to be started", MINUTE, begun).await;
        world.freeze(first);
        world.advance(2 * ttl()).await;
        assert_eq!(shares(&world).await, BTreeMap::from([(format!("engine-{second}"), 1)]));
        // Nobody asks the frozen one.
        let grown =
            async |world: &World| world.host().rooms().len() == 12 && work_in_hand(world).await.is_empty();
        world.run_until("another worker to finish the work", MINUTE, grown).await;
        let rooms = world.host().rooms();
        world.thaw(first);
        world.advance(5 * MINUTE).await;
        assert_eq!(world.host().rooms(), rooms, "none more, none less");
        assert_eq!(world.violations(), Vec::<String>::new());
    });
}
