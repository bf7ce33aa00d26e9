//! New versions of a fleet: tried, switched to, rolled out, and taken back when they fail.

use std::collections::BTreeMap;
use std::time::Duration;

use maestro_core::operation::{Operation, OperationId, OperationStatus};
use maestro_core::room::{Purpose, RoomId, RoomStatus};
use maestro_core::scheduler::{MaxSurge, Recipe, Version, VersionStatus};
use maestro_engine::Settings;
use maestro_engine::ports::store::RolloutState;
use maestro_engine::services::RolloutPhase;
use maestro_simulation::{Exit, Habits, Span, World};

use super::common::*;
use super::rollout_tables::half_ready;

pub(crate) const V1: Version = Version::FIRST;
const V1_1: Version = Version { major: 1, minor: 1, patch: 0 };
pub(crate) const V2: Version = Version { major: 2, minor: 0, patch: 0 };

/// What replaces rooms: the command is another one.
pub(crate) fn another_command(mut recipe: Recipe) -> Recipe {
    recipe.spec.containers[0].command.push("--generation=2".into());
    recipe
}

pub(crate) async fn submit(world: &World, recipe: Recipe) -> OperationId {
    match world.engine().create_version(ARENA, recipe, "ann").await {
        Ok(id) => id,
        Err(error) => world.fail(&format!("not accepted: {error}")),
    }
}

async fn operation(world: &World, id: OperationId) -> Operation {
    world.store().operation(&arena(), id).await.unwrap().unwrap()
}

pub(crate) async fn ended_as(world: &World, id: OperationId, status: OperationStatus) -> Operation {
    world
        .run_until("the operation to end", HOUR, async |world| operation(world, id).await.status.is_final())
        .await;
    let ended = operation(world, id).await;
    assert_eq!(ended.status, status, "{:#?}", ended.history);
    ended
}

pub(crate) async fn statuses(world: &World) -> BTreeMap<String, VersionStatus> {
    let (versions, _) = world.store().versions(&arena()).await.unwrap();
    versions.into_iter().map(|version| (version.version.to_string(), version.status)).collect()
}

pub(crate) async fn rooms_of(world: &World, version: Version) -> Vec<RoomId> {
    let rooms = world.engine().rooms(ARENA).await.unwrap();
    rooms.into_iter().filter(|room| room.version == version).map(|room| room.id).collect()
}

pub(crate) async fn ready(world: &World) -> usize {
    let rooms = world.engine().rooms(ARENA).await.unwrap();
    rooms.iter().filter(|room| room.status == RoomStatus::Ready).count()
}

async fn ready_rooms(world: &World) -> Vec<RoomId> {
    let rooms = world.engine().rooms(ARENA).await.unwrap();
    rooms.into_iter().filter(|room| room.status == RoomStatus::Ready).map(|room| room.id).collect()
}

pub(crate) async fn rollout_over(world: &World, bound: Duration) {
    let what = "the rollout to be over";
    let over = async |world: &World| {
        let record = world.store().scheduler(&arena()).await.unwrap().unwrap();
        record.rollout.is_none() && work_in_hand(world).await.is_empty()
    };
    world.run_until(what, bound, over).await;
}

#[test]
fn a_minor_version_leaves_the_rooms_alone() {
    run(async {
        let world = world_with_fleet(1, 5).await;
        let before = ids(&world).await;
        let minor = Recipe { max_surge: MaxSurge::Rooms(3), ..recipe(5) };
        let id = submit(&world, minor).await;
        ended_as(&world, id, OperationStatus::Finished).await;
        settle(&world, 5, MINUTE).await;
        assert_eq!(ids(&world).await, before);
        let record = world.store().scheduler(&arena()).await.unwrap().unwrap();
        assert_eq!((record.active_version, record.rollout), (V1_1, None));
        assert_eq!(statuses(&world).await["v1.1.0"], VersionStatus::Deployed);
    });
}

#[test]
fn a_major_version_is_tried_and_replaces_every_room() {
    run(async {
        let world = world_with_fleet(2, 8).await;
        let before = ids(&world).await;
        let id = submit(&world, another_command(recipe(8))).await;
        let tried = async |world: &World| {
            let rows = world.store().live_rooms(&arena()).await.unwrap();
            rows.iter().any(|row| row.purpose == Purpose::Validation)
        };
        world.run_until("a validation room", MINUTE, tried).await;
        assert_eq!(statuses(&world).await["v2.0.0"], VersionStatus::Validating);
        let created = ended_as(&world, id, OperationStatus::Finished).await;
        let history: Vec<_> = created.history.iter().map(|event| event.event.as_str()).collect();
        assert!(history.iter().any(|event| event.starts_with("attempt 1 succeeded")), "{history:?}");
        assert!(!tried(&world).await, "the validation room is gone before the operation ends");

        // At every observation there are as many ready rooms as wanted.
        let over = async |world: &World| {
            let seen = ready(world).await;
            assert!(seen >= 8, "{seen} ready");
            let record = world.store().scheduler(&arena()).await.unwrap().unwrap();
            record.active_version == V2 && record.rollout.is_none()
        };
        world.run_until("the rollout to be over", HOUR, over).await;
        settle(&world, 8, MINUTE).await;
        let after = ids(&world).await;
        assert!(before.iter().all(|old| !after.contains(old)));
        assert_eq!(rooms_of(&world, V2).await.len(), 8);
        let statuses = statuses(&world).await;
        assert_eq!(
            (statuses["v1.0.0"], statuses["v2.0.0"]),
            (VersionStatus::Deployed, VersionStatus::Deployed)
        );
    });
}

#[test]
fn attempts_to_validate_a_version_whose_rooms_crash_keep_a_growing_distance() {
    let settings = Settings { room_validation_attempts: 4, ..Settings::default() };
    run(async {
        let world = world_with_settings(21, 2, settings).await;
        let exits = Some(Exit { after: Span::millis(0, 50), code: 1 });
        world.host().set_habits(Habits { exits, ..Habits::default() });
        let id = submit(&world, another_command(recipe(2))).await;
        ended_as(&world, id, OperationStatus::Error).await;
        let mut rooms = world.store().rooms_made_by(&arena(), id).await.unwrap();
        rooms.sort_by_key(|room| room.created_at);
        let ends = rooms.iter().map(|room| room.ended.as_ref().unwrap().at);
        let pauses = ends.zip(&rooms[1..]).map(|(end, next)| next.created_at.duration_since(end).as_secs());
        assert_eq!(pauses.collect::<Vec<_>>(), [1, 2, 4]);
    });
}

#[test]
fn a_version_that_does_not_start_leaves_nothing() {
    let settings = Settings { room_validation_attempts: 2, ..Settings::default() };
    run(async {
        let world = world_with_settings(3, 4, settings).await;
        let before = ids(&world).await;
        world.host().set_habits(Habits { ready_after: None, ..Habits::default() });
        let id = submit(&world, another_command(recipe(4))).await;
        let failed = ended_as(&world, id, OperationStatus::Error).await;
        let history: Vec<_> = failed.history.iter().map(|event| event.event.clone()).collect();
        assert!(history.iter().any(|event| event.starts_with("attempt 2 of ")), "{history:#?}");
        assert!(history.iter().any(|event| event.contains("was not validated: attempt ")));
        settle(&world, 4, MINUTE).await;
        assert_eq!(ids(&world).await, before);
        assert_eq!(statuses(&world).await.into_keys().collect::<Vec<_>>(), ["v1.0.0"]);
        let next = world.engine().next_versions(ARENA).await.unwrap();
        assert_eq!(next.major.to_string(), "v3.0.0", "v2.0.0 is that one forever");
        let again = submit(&world, another_command(recipe(4))).await;
        let second = world.engine().create_version(ARENA, recipe(4), "bob").await.unwrap_err();
        assert!(second.to_string().contains(&format!("ongoing version operation (id: {again})")), "{second}");
    });
}

#[test]
fn paused_resumed_and_canceled() {
    let slow = Span::exactly(Duration::from_secs(20));
    run(async {
        let world = world_with_fleet(5, 8).await;
        world.host().set_habits(Habits { ready_after: Some(slow), ..Habits::default() });
        let id = submit(&world, another_command(recipe(8))).await;
        ended_as(&world, id, OperationStatus::Finished).await;
        let some_new = async |world: &World| !rooms_of(world, V2).await.is_empty();
        world.run_until("new rooms", 10 * MINUTE, some_new).await;
        world.engine().pause_rollout(ARENA, "ann").await.unwrap();
        world.advance(MINUTE).await;
        let paused = rooms_of(&world, V1).await;
        world.advance(HOUR).await;
        assert_eq!(rooms_of(&world, V1).await, paused, "nothing is replaced");
        assert_eq!(
            world.engine().rollout(ARENA, None).await.unwrap().state,
            RolloutPhase::Replacing(RolloutState::Paused)
        );
        world.engine().pause_rollout(ARENA, "ann").await.unwrap_err();
        world.engine().resume_rollout(ARENA, "ann").await.unwrap();
        let fewer = async |world: &World| rooms_of(world, V1).await.len() < paused.len();
        world.run_until("it to go on", 10 * MINUTE, fewer).await;
        world.engine().cancel_rollout(ARENA, "ann").await.unwrap();
        rollout_over(&world, HOUR).await;
        settle(&world, 8, HOUR).await;
        assert_eq!(rooms_of(&world, V1).await.len(), 8);
        assert_eq!(statuses(&world).await["v2.0.0"], VersionStatus::Canceled);
    });
}

#[test]
fn another_version_arriving_midway_supersedes() {
    run(async {
        let world = world_with_fleet(6, 8).await;
        let id = submit(&world, another_command(recipe(8))).await;
        ended_as(&world, id, OperationStatus::Finished).await;
        let rolling =
            async |world: &World| statuses(world).await.get("v2.0.0") == Some(&VersionStatus::Rolling);
        world.run_until("it to roll", MINUTE, rolling).await;
        let id = submit(&world, another_command(another_command(recipe(8)))).await;
        ended_as(&world, id, OperationStatus::Finished).await;
        rollout_over(&world, HOUR).await;
        settle(&world, 8, HOUR).await;
        let v3 = Version { major: 3, minor: 0, patch: 0 };
        assert_eq!(rooms_of(&world, v3).await.len(), 8);
        let statuses = statuses(&world).await;
        assert_eq!(statuses["v3.0.0"], VersionStatus::Deployed);
        assert!(matches!(statuses["v2.0.0"], VersionStatus::Superseded | VersionStatus::Deployed));
    });
}

#[test]
fn a_crash_midway_is_gone_on_from() {
    for seed in 0..40 {
        run(async {
            let mut world = world_with_fleet(seed, 6).await;
            submit(&world, another_command(recipe(6))).await;
            world.advance(Duration::from_millis(seed * 137)).await;
            world.crash_engine().await;
            world.advance(Duration::from_secs(seed % 7)).await;
            world.start_engine().await;
            let over = async |world: &World| {
                let record = world.store().scheduler(&arena()).await.unwrap().unwrap();
                record.active_version == V2 && record.rollout.is_none() && is_settled(world, 6).await
            };
            world.run_until("all rooms to be new", HOUR, over).await;
            assert_eq!(rooms_of(&world, V2).await.len(), 6);
            let rows = world.store().live_rooms(&arena()).await.unwrap();
            assert!(rows.iter().all(|row| row.purpose == Purpose::Fleet), "no validation room is left");
        });
    }
}

#[test]
fn a_surge_of_one_does_not_starve_a_growing_fleet() {
    run(async {
        let world = world_with_fleet(17, 4).await;
        let recipe =
            Recipe { autoscaling: half_ready(), max_surge: MaxSurge::Rooms(1), ..another_command(recipe(4)) };
        let id = submit(&world, recipe).await;
        ended_as(&world, id, OperationStatus::Finished).await;
        // Ten times as many players come while rooms are being replaced; whoever loses a room looks for another.
        let occupied = async |world: &World| {
            let rooms = world.engine().rooms(ARENA).await.unwrap();
            rooms.iter().filter(|room| room.status == RoomStatus::Occupied).count()
        };
        let enough = async |world: &World| {
            let playing = occupied(world).await;
            for room in ready_rooms(world).await.into_iter().take(20_usize.saturating_sub(playing)) {
                world.host().begin_match(&room);
            }
            playing == 20 && ready(world).await >= 20 && rooms_of(world, V1).await.is_empty()
        };
        world.run_until("rooms for all of them", HOUR, enough).await;
        rollout_over(&world, HOUR).await;
    });
}

/// A cycle that led to something is followed by the next one as soon as that has something to do.
#[test]
fn a_rollout_does_not_wait_between_cycles_that_make_progress() {
    run(async {
        let world = world_with_fleet(21, 40).await;
        let begun = world.now();
        submit(&world, another_command(recipe(40))).await;
        rollout_over(&world, 10 * MINUTE).await;
        assert_eq!(rooms_of(&world, V2).await.len(), 40);
        let is_cycle = |operation: &Operation| {
            operation.definition.name() == "health_controller" && operation.created_at > begun
        };
        let cycles: Vec<_> = done(&world).await.into_iter().filter(is_cycle).collect();
        assert!(cycles.len() >= 5, "{} cycles", cycles.len());
        let gap = |pair: &[Operation]| pair[1].created_at.duration_since(pair[0].created_at);
        let shortest = cycles.windows(2).map(gap).min().unwrap();
        assert!(shortest.as_millis() < 1000, "at least {shortest:?} lie between any two cycles");
    });
}

/// Rooms of v1 end as soon as they are ready, and are tried once a minute. What mends them does not wait for that.
#[test]
fn a_version_that_mends_a_crash_loop_is_made_at_once() {
    run(async {
        let world = world_with_fleet(19, 5).await;
        let exits = Some(Exit { after: Span::exactly(Duration::from_secs(1)), code: 1 });
        world.host().set_habits(Habits { exits, ..Habits::default() });
        for room in world.rooms() {
            world.host().crash(&room.id);
        }
        world.advance(10 * MINUTE).await;
        let tried = ended(&world).await.len();
        let again = async |world: &World| ended(world).await.len() > tried;
        world.run_until("the next one to fail", 2 * MINUTE, again).await;
        world.host().set_habits(Habits::default());
        let mended = submit(&world, another_command(recipe(5))).await;
        ended_as(&world, mended, OperationStatus::Finished).await;
        settle(&world, 5, Duration::from_secs(30)).await;
        assert_eq!(rooms_of(&world, V2).await.len(), 5);
    });
}
