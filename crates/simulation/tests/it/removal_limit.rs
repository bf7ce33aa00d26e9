//! `operations.rooms.remove.limit`: whoever asks for it, one operation removes no more rooms than that.

use std::collections::BTreeMap;
use std::time::Duration;

use maestro_core::operation::{OperationId, OperationStatus};
use maestro_core::room::Region;
use maestro_core::scheduler::{MaxSurge, Recipe, Rollout};
use maestro_engine::Settings;
use maestro_engine::ports::store::{Intent, RoomRecord};
use maestro_engine::services::RegionOrder;
use maestro_simulation::{Habits, MemoryStore, World};

use super::common::*;
use super::placement::exactly;
use super::rollouts::*;

const LIMIT: u32 = 3;

async fn world(seed: u64, rooms: u32) -> World {
    let settings = Settings { rooms_remove_limit: LIMIT, ..Settings::default() };
    world_with_settings(seed, rooms, settings).await
}

/// How many rooms each operation asked to go.
async fn removed_by(world: &World) -> BTreeMap<OperationId, u32> {
    let mut removed = BTreeMap::new();
    let mut rows: Vec<RoomRecord> = ended(world).await;
    rows.extend(world.store().live_rooms(&arena()).await.unwrap());
    for row in rows {
        if let Intent::Stop(stop) = row.intent {
            *removed.entry(stop.operation).or_default() += 1;
        }
    }
    removed
}

async fn check_limit(world: &World, at_least: usize) {
    let removed = removed_by(world).await;
    assert!(removed.values().all(|rooms| *rooms <= LIMIT), "{removed:?}");
    assert!(removed.len() >= at_least, "{removed:?}");
}

#[test]
fn a_large_resize_down_is_done_in_parts() {
    run(async {
        let world = world(3, 14).await;
        // Players do not stop a person.
        for room in ids(&world).await {
            world.host().begin_match(&room);
        }
        world.advance(MINUTE).await;
        let id = world.engine().resize(ARENA, &exactly(2), false, "ann").await.unwrap();
        assert_eq!(fleet_size(&world).await, Some(2), "at once");
        let two = async |world: &World| ids(world).await.len() == 2 && work_in_hand(world).await.is_empty();
        world.run_until("two rooms", HOUR, two).await;
        check_limit(&world, 4).await;
        let resized = ended_as(&world, id, OperationStatus::Finished).await;
        let rest =
            resized.history.iter().find(|event| event.event.starts_with("created operation remove_rooms"));
        assert!(rest.is_some(), "{:#?}", resized.history);
    });
}

#[test]
fn rollouts_keep_the_limit() {
    run(async {
        let world = world(4, 12).await;
        let rules = Some(Rollout { max_unavailable: 12, ..Rollout::default() });
        let recipe = Recipe { max_surge: MaxSurge::Rooms(12), rollout_rules: rules, ..recipe(12) };
        let id = submit(&world, another_command(recipe)).await;
        ended_as(&world, id, OperationStatus::Finished).await;
        rollout_over(&world, HOUR).await;
        check_limit(&world, 4).await;
    });
}

#[test]
fn drains_keep_the_limit() {
    run(async {
        let settings = Settings { rooms_remove_limit: LIMIT, ..Settings::default() };
        let regions = ["us-east", "eu-west"].map(|name| Region(name.into()));
        let mut world = World::of_regions(6, settings, MemoryStore::on_clock, regions.to_vec());
        world.start_engine().await;
        // All of them could go at once.
        let rules = Some(Rollout { max_unavailable: 16, ..Rollout::default() });
        let recipe = Recipe { max_surge: MaxSurge::Rooms(16), rollout_rules: rules, ..recipe(16) };
        world.engine().create_scheduler(recipe, "ann").await.unwrap();
        settle(&world, 16, 5 * MINUTE).await;
        let drained = world.host_of(&regions[0]);
        assert_eq!(drained.rooms().len(), 8);
        world.engine().order_region("us-east", RegionOrder::Drain, "ann", "old").await.unwrap();
        let empty = async |_: &World| drained.rooms().is_empty();
        world.run_until("the region to be empty", HOUR, empty).await;
        settle(&world, 16, HOUR).await;
        check_limit(&world, 3).await;
    });
}

#[test]
fn expired_rooms_keep_the_limit() {
    run(async {
        let world = world(5, 2).await;
        // Nine rooms that never become ready, all at the same moment.
        world.host().set_habits(Habits { ready_after: None, ..Habits::default() });
        world.engine().add_rooms(ARENA, 9, false, "ann").await.unwrap();
        world.advance(Duration::from_secs(150)).await;
        world.host().set_habits(Habits::default());
        settle(&world, 11, HOUR).await;
        check_limit(&world, 3).await;
    });
}
