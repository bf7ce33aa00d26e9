//! Locks and those who change things at the same moment: each was wrong once.

use std::time::Duration;

use maestro_core::lock::{Holder, LockKind};
use maestro_core::operation::{DefinitionKind, Operation, OperationId, OperationStatus};
use maestro_core::scheduler::{Recipe, Version, VersionStatus};
use maestro_engine::ports::store::{Intent, RoomRecord, SchedulerState};
use maestro_engine::{Parts, Settings};
use maestro_simulation::{Habits, NodePlan, Span, World};

use super::common::*;
use super::rollouts::{another_command, ended_as, submit};

const SECOND: Duration = Duration::from_secs(1);
const MILLISECOND: Duration = Duration::from_millis(1);
const V1: Version = Version::FIRST;
const V2: Version = Version { major: 2, minor: 0, patch: 0 };
const V3: Version = Version { major: 3, minor: 0, patch: 0 };

async fn operation(world: &World, id: OperationId) -> Operation {
    world.store().operation(&arena(), id).await.unwrap().unwrap()
}

async fn holder(world: &World, kind: LockKind) -> Option<Holder> {
    shown_locks(world).await.held(kind).map(|lock| lock.holder)
}

async fn active(world: &World) -> Version {
    world.store().scheduler(&arena()).await.unwrap().unwrap().active_version
}

/// Rooms may take their time to go.
fn slow_to_go(recipe: Recipe) -> Recipe {
    let mut recipe = recipe;
    recipe.spec.termination_grace_period = 60 * SECOND;
    recipe
}

/// The first rooms take a while to go.
async fn slow_world(seed: u64, rooms: u32) -> World {
    let mut world = World::new(seed);
    world.host().set_habits(Habits { obeys_after: Some(Span::exactly(25 * SECOND)), ..Habits::default() });
    world.start_engine().await;
    world.engine().create_scheduler(slow_to_go(recipe(rooms)), "ann").await.unwrap();
    settle(&world, rooms, MINUTE).await;
    world.host().set_habits(Habits::default());
    world
}

#[test]
fn a_rollout_takes_the_place_of_the_cycles_before_it() {
    run(async {
        let world = slow_world(1, 8).await;
        let removal = world.engine().remove_rooms(ARENA, 1, false, "bob").await.unwrap();
        world.advance(SECOND).await;
        // Fewer rooms are wanted, and a cycle has to wait for the lock.
        submit(&world, Recipe { rooms_replicas: 5, ..slow_to_go(recipe(8)) }).await;
        let waits = async |world: &World| {
            let locks = world.store().locks(&arena()).await.unwrap();
            locks.waits(LockKind::Downscaling, Holder::HealthController).is_some()
        };
        world.run_until("a cycle to wait", 20 * SECOND, waits).await;
        submit(&world, Recipe { rooms_replicas: 5, ..slow_to_go(another_command(recipe(8))) }).await;
        ended_as(&world, removal, OperationStatus::Finished).await;
        let rolls =
            async |world: &World| holder(world, LockKind::Downscaling).await == Some(Holder::Rollout(V2));
        world.run_until("the rollout to have the lock", 15 * SECOND, rolls).await;
    });
}

#[test]
fn a_release_reaches_an_operation_that_waits_for_something_else() {
    run(async {
        let world = world_with_fleet(2, 3).await;
        world.host().set_habits(Habits { ready_after: None, ..Habits::default() });
        let version = submit(&world, another_command(recipe(3))).await;
        let tried = async |world: &World| operation(world, version).await.is_parked();
        world.run_until("the validation room to be waited for", MINUTE, tried).await;
        world.engine().release_lock(ARENA, "config", None, "eve", "it takes too long").await.unwrap();
        let ended = async |world: &World| operation(world, version).await.status == OperationStatus::Error;
        world.run_until("the operation to end", 10 * SECOND, ended).await;
        settle(&world, 3, MINUTE).await;
    });
}

/// The worker sleeps over it: what it was about to write, under the rollout's lock, is refused when it wakes.
#[test]
fn a_release_from_a_rollout_reaches_a_removal_that_is_about_to_write() {
    let refused = (0..20).filter(|millis| run(is_refused_after(MILLISECOND * *millis))).count();
    assert!(refused > 0, "no release came at the right moment");
}

/// Whether the worker was refused something, so long after a cycle wanted an old room gone.
async fn is_refused_after(pause: Duration) -> bool {
    let mut world = World::new(5);
    let worker = world.start_node(NodePlan::PLAIN).await.unwrap();
    let api = world.start_node(NodePlan { parts: Parts::ROOMS_API, ..NodePlan::PLAIN }).await.unwrap();
    create(&world, 4).await;
    settle(&world, 4, MINUTE).await;
    submit(&world, another_command(recipe(4))).await;
    let removes = async |world: &World| {
        let unfinished = world.store().unfinished(&arena()).await.unwrap();
        unfinished.iter().any(|operation| operation.definition.kind() == DefinitionKind::RemoveRooms)
    };
    let rolls = async |world: &World| holder(world, LockKind::Downscaling).await == Some(Holder::Rollout(V2));
    world.run_until("the rollout to have the lock", MINUTE, rolls).await;
    while !removes(&world).await {
        world.advance(MILLISECOND).await;
    }
    world.advance(pause).await;
    world.freeze(worker);
    let rows = world.store().live_rooms(&arena()).await.unwrap();
    let staying = |row: &&RoomRecord| row.version == V1 && row.intent == Intent::Run;
    let before: Vec<_> = rows.iter().filter(staying).map(|row| row.id.clone()).collect();
    let engine = world.engine_of(api).unwrap();
    engine.release_lock(ARENA, "downscaling", None, "eve", "stop").await.unwrap();
    world.advance(SECOND).await;
    world.thaw(worker);
    world.advance(MINUTE).await;
    let rows = world.store().live_rooms(&arena()).await.unwrap();
    let after: Vec<_> = rows.iter().filter(staying).map(|row| row.id.clone()).collect();
    assert_eq!(after, before, "after {pause:?}: none went that had not been asked to");
    let views = engine.ports().table.rooms(&arena()).await.unwrap();
    assert!(views.iter().all(|view| view.claimed_by.is_none()), "after {pause:?}: all are in service again");
    world.trace().lines().iter().any(|line| line.contains("was taken away"))
}

/// The same of a cycle, whose lock is not stored: it writes nothing more, and ends as error.
#[test]
fn a_release_reaches_a_cycle_that_is_about_to_write() {
    let refused = (0..20).filter(|millis| run(is_cycle_refused_after(MILLISECOND * *millis))).count();
    assert!(refused > 0, "no release came at the right moment");
}

async fn is_cycle_refused_after(pause: Duration) -> bool {
    let mut world = World::new(6);
    let worker = world.start_node(NodePlan::PLAIN).await.unwrap();
    let api = world.start_node(NodePlan { parts: Parts::ROOMS_API, ..NodePlan::PLAIN }).await.unwrap();
    create(&world, 4).await;
    settle(&world, 4, MINUTE).await;
    world.host().crash(&world.host().rooms()[0].id);
    let cycle = async |world: &World| match holder(world, LockKind::Termination).await {
        Some(Holder::Operation { kind: DefinitionKind::HealthController, id }) => Some(id),
        _ => None,
    };
    let id = loop {
        if let Some(id) = cycle(&world).await {
            break id;
        }
        world.advance(MILLISECOND).await;
    };
    world.advance(pause).await;
    world.freeze(worker);
    let is_at_work = cycle(&world).await == Some(id);
    let engine = world.engine_of(api).unwrap();
    engine.release_lock(ARENA, "termination", None, "eve", "stop").await.unwrap();
    world.advance(SECOND).await;
    world.thaw(worker);
    if is_at_work {
        ended_as(&world, id, OperationStatus::Error).await;
        let wrote =
            operation(&world, id).await.history.iter().any(|event| event.event.contains("created operation"));
        assert!(!wrote, "after {pause:?}: a cycle that lost its lock asked for something");
    }
    settle(&world, 4, MINUTE).await;
    world.trace().lines().iter().any(|line| line.contains("rolls back"))
}

#[test]
fn of_deletions_at_once_there_is_one() {
    run(async {
        let world = slow_world(3, 3).await;
        let engine = world.engine();
        let first = engine.delete_scheduler(ARENA, "ann").await.unwrap();
        let has_lock = async |world: &World| {
            holder(world, LockKind::Termination).await.and_then(Holder::operation) == Some(first)
        };
        world.run_until("the deletion to be at it", MINUTE, has_lock).await;
        engine.release_lock(ARENA, "termination", None, "eve", "wait").await.unwrap();
        ended_as(&world, first, OperationStatus::Error).await;
        let (one, other) =
            tokio::join!(engine.delete_scheduler(ARENA, "ann"), engine.delete_scheduler(ARENA, "bob"));
        assert_eq!(one.unwrap(), other.unwrap());
        let gone = async |world: &World| world.store().scheduler(&arena()).await.unwrap().is_none();
        world.run_until("the scheduler to be gone", 5 * MINUTE, gone).await;
    });
}

#[test]
fn a_deletion_ends_a_rollout_that_begins_at_that_moment() {
    for millis in 0..40 {
        run(async {
            let world = world_with_fleet(4, 3).await;
            submit(&world, another_command(recipe(3))).await;
            let switched = async |world: &World| active(world).await == V2;
            world.run_until("the second version", MINUTE, switched).await;
            settle_rollout(&world).await;
            world.engine().switch_version(ARENA, "v1.0.0", "ann").await.unwrap();
            world.advance(Duration::from_millis(millis)).await;
            world.engine().delete_scheduler(ARENA, "bob").await.unwrap();
            let record = world.store().scheduler(&arena()).await.unwrap().unwrap();
            assert_eq!((record.state, record.rollout), (SchedulerState::Deleting, None), "after {millis} ms");
            let gone = async |world: &World| world.store().scheduler(&arena()).await.unwrap().is_none();
            world.run_until("the scheduler to be gone", 2 * MINUTE, gone).await;
        });
    }
}

async fn settle_rollout(world: &World) {
    let over = async |world: &World| {
        let record = world.store().scheduler(&arena()).await.unwrap().unwrap();
        record.rollout.is_none() && work_in_hand(world).await.is_empty()
    };
    world.run_until("the rollout to be over", HOUR, over).await;
}

#[test]
fn a_way_back_that_comes_too_late_undoes_nothing() {
    run(async {
        let settings = Settings { early_wake_up: true, ..Settings::default() };
        let world = world_with_settings(5, 6, settings).await;
        submit(&world, another_command(recipe(6))).await;
        let rolls = async |world: &World| holder(world, LockKind::Config).await == Some(Holder::Rollout(V2));
        world.run_until("the rollout to begin", MINUTE, rolls).await;
        world.engine().release_lock(ARENA, "config", None, "eve", "make way").await.unwrap();
        let third = submit(&world, another_command(another_command(recipe(6)))).await;
        let tried = async |world: &World| operation(world, third).await.is_parked();
        world.run_until("the third version to be tried", MINUTE, tried).await;
        let back = world.engine().cancel_rollout(ARENA, "ann").await.unwrap();
        settle_rollout(&world).await;
        let active = active(&world).await;
        let status = world.store().version(&arena(), V3).await.unwrap().map(|version| version.status);
        let ended = operation(&world, back).await;
        match active {
            V3 => assert!(ended.history.iter().any(|event| event.event.contains("v2.0.0")), "{ended:#?}"),
            other => panic!("{other} is active, and {V3} is {status:?}; {V1} was left long ago"),
        }
        assert_eq!(status, Some(VersionStatus::Deployed));
    });
}
