//! What these tests have in common: one fleet, `arena`, and what it means that it is well.

use std::collections::BTreeSet;
use std::time::Duration;

use maestro_core::lock::Locks;
use maestro_core::operation::{Operation, Stage};
use maestro_core::room::{RoomId, RoomStatus};
use maestro_core::scheduler::{MatchAllocation, Recipe, SchedulerName};
use maestro_engine::Settings;
use maestro_engine::ports::contract::fixtures;
use maestro_engine::ports::store::RoomRecord;
use maestro_simulation::World;

pub(crate) const ARENA: &str = "arena";
pub(crate) const MINUTE: Duration = Duration::from_secs(60);
pub(crate) const HOUR: Duration = Duration::from_secs(3600);

/// One thread, and a clock that stands still while anybody works.
pub(crate) fn run<T>(life: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(life)
}

/// `MAESTRO_SEEDS=4000` looks further, for changes of the engine's core.
#[expect(clippy::disallowed_methods, reason = "how much to test is not part of the simulated world")]
pub(crate) fn seeds(default: u64) -> u64 {
    let asked = std::env::var("MAESTRO_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    asked.unwrap_or(default)
}

pub(crate) fn arena() -> SchedulerName {
    fixtures::arena()
}

pub(crate) fn recipe(rooms: u32) -> Recipe {
    Recipe {
        rooms_replicas: rooms,
        autoscaling: None,
        match_allocation: MatchAllocation { max_matches: 1 },
        rollout_rules: None,
        ..fixtures::recipe(&arena())
    }
}

/// A world with an engine and a fleet of so many rooms, all ready.
pub(crate) async fn world_with_fleet(seed: u64, rooms: u32) -> World {
    world_with_settings(seed, rooms, Settings::default()).await
}

pub(crate) async fn world_with_settings(seed: u64, rooms: u32, settings: Settings) -> World {
    let mut world = World::with_settings(seed, settings);
    world.start_engine().await;
    create(&world, rooms).await;
    settle(&world, rooms, MINUTE).await;
    world
}

pub(crate) async fn create(world: &World, rooms: u32) {
    let created = world.engine().create_scheduler(recipe(rooms), "ann").await;
    if let Err(error) = created {
        world.fail(&format!("not created: {error}"));
    }
}

/// Lets time pass until the fleet is as it should be and nothing is left to do.
pub(crate) async fn settle(world: &World, rooms: u32, bound: Duration) -> Duration {
    let what = format!("{rooms} ready rooms and nothing left to do");
    world.run_until(&what, bound, async |world| is_settled(world, rooms).await).await
}

/// So many rooms, and all is well with them.
pub(crate) async fn is_settled(world: &World, rooms: u32) -> bool {
    let size = fleet_size(world).await;
    size == Some(rooms) && is_at_rest(world).await
}

pub(crate) async fn fleet_size(world: &World) -> Option<u32> {
    let record = world.store().scheduler(&arena()).await.unwrap();
    record.map(|record| record.fleet_size)
}

/// As many rooms as wanted, all ready, the same ones in registry, room table and host, and no operation but health
/// cycles.
pub(crate) async fn is_at_rest(world: &World) -> bool {
    let (Ok(listed), Some(size)) = (world.engine().rooms(ARENA).await, fleet_size(world).await) else {
        return false;
    };
    let wanted: BTreeSet<_> = listed.iter().map(|room| room.id.clone()).collect();
    let there: BTreeSet<_> = world.rooms().into_iter().map(|room| room.id).collect();
    listed.len() == size as usize
        && listed.iter().all(|room| room.status == RoomStatus::Ready)
        && wanted == there
        && work_in_hand(world).await.is_empty()
}

/// Also the lock that is not stored.
pub(crate) async fn shown_locks(world: &World) -> Locks {
    let unfinished = world.store().unfinished(&arena()).await.unwrap();
    world.store().locks(&arena()).await.unwrap().with_termination(&unfinished)
}

/// Unfinished operations, without health cycles and clean-ups, which come and go.
pub(crate) async fn work_in_hand(world: &World) -> Vec<Operation> {
    let mut unfinished = world.store().unfinished(&arena()).await.unwrap();
    unfinished
        .retain(|operation| !matches!(operation.definition.name(), "health_controller" | "storage_clean_up"));
    unfinished
}

/// Final operations that did something, oldest first.
pub(crate) async fn done(world: &World) -> Vec<Operation> {
    let page = maestro_engine::ports::store::PageRequest { no_action: false, ..fixtures::all_operations() };
    let page = world.store().operations(&arena(), Stage::Final, page).await;
    page.unwrap().operations
}

/// Rooms that have ended, latest first.
pub(crate) async fn ended(world: &World) -> Vec<RoomRecord> {
    world.store().ended_rooms(&arena(), 10_000).await.unwrap()
}

pub(crate) async fn ids(world: &World) -> Vec<RoomId> {
    let rooms = world.engine().rooms(ARENA).await.unwrap();
    rooms.into_iter().map(|room| room.id).collect()
}
