//! What one engine enqueues is done by another one: at once if wake-ups pass, and soon if none of them does.

use std::time::Duration;

use maestro_engine::{Parts, Settings};
use maestro_simulation::{NodeNumber, NodePlan, World};

use super::common::*;

const SECOND: Duration = Duration::from_secs(1);

/// A worker with a fleet of two, and an engine that only answers. Nothing happens by the clock.
async fn worker_and_api(seed: u64) -> (World, NodeNumber) {
    let settings = Settings { health_controller_interval: HOUR, ..Settings::default() };
    let mut world = World::with_settings(seed, settings);
    world.start_engine().await;
    let parts = Parts::ROOMS_API;
    let api = world.start_node(NodePlan { parts, ..NodePlan::PLAIN }).await.unwrap();
    create(&world, 2).await;
    settle(&world, 2, MINUTE).await;
    world.advance(MINUTE).await;
    (world, api)
}

/// How long it takes until the worker has begun what the other one enqueued.
async fn begins_after(world: &World, api: NodeNumber) -> Duration {
    world.engine_of(api).unwrap().add_rooms(ARENA, 1, false, "ann").await.unwrap();
    let has_begun = async |world: &World| world.rooms().len() == 3;
    world.run_until("the third room", HOUR, has_begun).await
}

#[test]
fn what_another_engine_enqueues_begins_at_once() {
    run(async {
        let (world, api) = worker_and_api(1).await;
        let took = begins_after(&world, api).await;
        assert!(took < SECOND, "{took:?}");
        settle(&world, 3, MINUTE).await;
    });
}

#[test]
fn what_another_engine_enqueues_is_found_without_wake_ups() {
    run(async {
        let (world, api) = worker_and_api(1).await;
        world.lose_wake_ups();
        let took = begins_after(&world, api).await;
        let sync_interval = world.settings().sync_interval;
        assert!(took <= sync_interval + SECOND, "{took:?}");
        settle(&world, 3, MINUTE).await;
    });
}

/// The new scheduler is nobody's, and each worker has to see by itself that it is there.
#[test]
fn a_scheduler_that_another_engine_creates_is_taken_without_wake_ups() {
    run(async {
        let mut world = World::new(2);
        world.lose_wake_ups();
        world.start_engine().await;
        let parts = Parts::MANAGEMENT_API;
        let api = world.start_node(NodePlan { parts, ..NodePlan::PLAIN }).await.unwrap();
        world.engine_of(api).unwrap().create_scheduler(recipe(2), "ann").await.unwrap();
        settle(&world, 2, MINUTE).await;
    });
}

/// It holds no runtime, and knows of regions what the worker writes to the store.
#[test]
fn an_engine_without_runtimes_knows_how_regions_are() {
    run(async {
        let (world, api) = worker_and_api(3).await;
        let seen = async |world: &World| world.engine_of(api).unwrap().regions().await.unwrap().remove(0);
        assert!(seen(&world).await.reachable);
        world
            .host()
            .set_host_faults(maestro_simulation::HostFaults { available: false, ..Default::default() });
        let is_lost = async |world: &World| !seen(world).await.reachable;
        world.run_until("the region to be lost", MINUTE, is_lost).await;
        let reason = seen(&world).await.reason;
        assert!(reason.starts_with("cannot be reached: "), "{reason}");
        world.host().set_host_faults(Default::default());
        let is_back = async |world: &World| seen(world).await.reachable;
        world.run_until("the region to be back", 2 * MINUTE, is_back).await;
        let worker = world.nodes()[0];
        let mut world = world;
        world.crash_node(worker).await;
        let nobody_looks = async |world: &World| {
            let views = world.engine_of(api).unwrap().regions().await.unwrap();
            !views[0].reachable
        };
        world.run_until("nobody to look", 3 * MINUTE, nobody_looks).await;
        let reason = world.engine_of(api).unwrap().regions().await.unwrap().remove(0).reason;
        assert!(reason.contains("no process that can reach it says how it is since"), "{reason}");
    });
}
