//! What hurt those who ran the locks of earlier systems, and does not hurt here. The rows of the problem table, and the
//! tests that show each:
//!
//! |    | problem | shown by |
//! |----|---------|----------|
//! | 1  | the work outlives its lock | [`work_that_outlives_the_ttl_keeps_its_lock`] |
//! | 2  | a crash blocks a scheduler for long | [`a_lock_of_a_dead_worker_is_of_use_within_the_ttl`], [`a_lock_whose_holder_never_comes_back_is_free_in_time`] |
//! | 3  | a wait that is canceled or timed out leaks | `locks::who_is_canceled_while_it_waits_leaves_the_order`, `locks::who_waits_too_long_gives_up_and_changes_nothing` |
//! | 4  | a free lock costs seconds, waiters starve | [`a_free_lock_costs_no_waiting`], `locks::a_second_removal_waits_for_the_first_and_says_so` |
//! | 5  | a paused holder goes on | `workforce::a_worker_that_slept_too_long_starts_and_stops_nothing`, `several`, contract suite of the guard |
//! | 6  | a lost lock is not noticed | [`a_holder_notices_that_its_lock_was_taken_away`] |
//! | 7-9 | blind release, nobody sees who holds what, unknown schedulers look free | `api/tests/api/{locks,releases}.rs` |
//! | 10 | several panics at once | `panic_nodes`, `panic` |
//! | 11 | two updates both start | [`of_two_updates_at_once_one_is_refused`] |
//! | 12 | a rollback that changes nothing | `locks::a_failed_update_goes_back_says_so_and_frees_its_locks` |
//! | 13 | a timeout looks like a cancellation | the two tests of row 3: `error` and `canceled` |
//! | 14 | a late write revives what was canceled | contract suite of the operation store, invariant `legal-transitions` |
//! | 15 | a version stays in progress when its coordinator dies | [`an_update_goes_on_when_its_worker_dies`] |
//! | 16 | an update that was read too early is lost | [`no_patch_is_lost`] |
//! | 17, 18 | removals overlap, and gone means forgotten | `locks::who_removes_has_the_lock_until_its_rooms_are_gone`, `locks::dead_rooms_go_under_the_lock` |
//! | 19 | a match begins while its room is removed | contract suite of the room table (claims), invariant `occupied-stays` |
//! | 20 | each worker adds its own samples | `workforce::three_workers_look_at_a_fleet_as_often_as_one` |
//! | 21 | no scaling during an update | [`a_fleet_grows_with_its_players_during_an_update`] |

use std::time::Duration;

use maestro_core::lock::{Holder, LockKind};
use maestro_core::operation::{Operation, OperationId, OperationStatus};
use maestro_core::scheduler::{MaxSurge, Recipe, Version, VersionStatus};
use maestro_core::time::Millis;
use maestro_engine::{Error, Settings};
use maestro_simulation::{Habits, NodePlan, Span, World};

use super::common::*;
use super::rollout_tables::half_ready;
use super::rollouts::{another_command, ended_as, submit};

const SECOND: Duration = Duration::from_secs(1);
const V2: Version = Version { major: 2, minor: 0, patch: 0 };

async fn operation(world: &World, id: OperationId) -> Operation {
    world.store().operation(&arena(), id).await.unwrap().unwrap()
}

async fn holds(world: &World, kind: LockKind, id: OperationId) -> bool {
    let locks = world.store().locks(&arena()).await.unwrap();
    locks.held(kind).is_some_and(|lock| lock.holder.operation() == Some(id))
}

/// A fleet whose rooms take so long to go.
async fn slow_to_go(mut world: World, rooms: u32, takes: Duration) -> World {
    world.host().set_habits(Habits { obeys_after: Some(Span::exactly(takes)), ..Habits::default() });
    world.start_engine().await;
    let recipe = {
        let mut recipe = recipe(rooms);
        recipe.spec.termination_grace_period = 10 * takes;
        recipe
    };
    world.engine().create_scheduler(recipe, "ann").await.unwrap();
    settle(&world, rooms, MINUTE).await;
    world
}

#[test]
fn work_that_outlives_the_ttl_keeps_its_lock() {
    run(async {
        let settings = Settings { lock_ttl: Millis::from_seconds(15), ..Settings::default() };
        let world = slow_to_go(World::with_settings(1, settings), 4, 2 * MINUTE).await;
        let removal = world.engine().remove_rooms(ARENA, 1, false, "bob").await.unwrap();
        let has_it = async |world: &World| holds(world, LockKind::Downscaling, removal).await;
        world.run_until("the removal to have the lock", MINUTE, has_it).await;
        let mut watched = Duration::ZERO;
        while !operation(&world, removal).await.status.is_final() {
            let locks = world.store().locks(&arena()).await.unwrap();
            let lock = locks.held(LockKind::Downscaling).expect("held to the end");
            assert!(!lock.is_over(world.now()), "renewed in time: {lock:?}");
            world.advance(SECOND).await;
            watched += SECOND;
        }
        assert!(watched > MINUTE, "{watched:?}, four times the TTL at least");
    });
}

#[test]
fn a_lock_of_a_dead_worker_is_of_use_within_the_ttl() {
    run(async {
        let mut world = slow_to_go(World::new(2), 4, 20 * SECOND).await;
        let removal = world.engine().remove_rooms(ARENA, 1, false, "bob").await.unwrap();
        let has_it = async |world: &World| holds(world, LockKind::Downscaling, removal).await;
        world.run_until("the removal to have the lock", MINUTE, has_it).await;
        let token = world.store().locks(&arena()).await.unwrap().held(LockKind::Downscaling).unwrap().token;
        world.crash_engine().await;
        world.start_engine().await;
        let taken_over = async |world: &World| {
            let history = operation(world, removal).await.history;
            history.iter().any(|event| event.event.starts_with("Taken over by engine-2"))
        };
        let ttl = world.settings().ownership_ttl.as_duration();
        world.run_until("another worker to go on", ttl + SECOND, taken_over).await;
        ended_as(&world, removal, OperationStatus::Finished).await;
        let next = world.engine().remove_rooms(ARENA, 1, false, "bob").await.unwrap();
        let has_next = async |world: &World| holds(world, LockKind::Downscaling, next).await;
        world.run_until("the next removal to have the lock", MINUTE, has_next).await;
        let locks = world.store().locks(&arena()).await.unwrap();
        assert!(locks.held(LockKind::Downscaling).unwrap().token > token);
    });
}

#[test]
fn a_lock_whose_holder_never_comes_back_is_free_in_time() {
    run(async {
        let mut world = slow_to_go(World::new(3), 4, 20 * SECOND).await;
        world.engine().remove_rooms(ARENA, 1, false, "bob").await.unwrap();
        world.advance(5 * SECOND).await;
        world.crash_engine().await;
        world.advance(world.settings().lock_ttl.as_duration() + SECOND).await;
        let locks = world.store().locks(&arena()).await.unwrap();
        assert!(locks.held.iter().all(|lock| lock.is_over(world.now())), "{locks:?}");
    });
}

#[test]
fn a_free_lock_costs_no_waiting() {
    run(async {
        let world = world_with_fleet(4, 4).await;
        let removal = world.engine().remove_rooms(ARENA, 1, false, "bob").await.unwrap();
        let has_it = async |world: &World| {
            holds(world, LockKind::Downscaling, removal).await
                || operation(world, removal).await.status.is_final()
        };
        let took = world.run_until("the removal to have the lock", SECOND, has_it).await;
        assert!(took <= Duration::from_millis(100), "{took:?}");
    });
}

#[test]
fn a_holder_notices_that_its_lock_was_taken_away() {
    run(async {
        let world = slow_to_go(World::new(5), 6, 20 * SECOND).await;
        let removal = world.engine().remove_rooms(ARENA, 2, false, "bob").await.unwrap();
        let has_it = async |world: &World| {
            holds(world, LockKind::Downscaling, removal).await && operation(world, removal).await.is_parked()
        };
        world.run_until("the rooms to be asked to go", MINUTE, has_it).await;
        world.engine().release_lock(ARENA, "downscaling", None, "eve", "it takes too long").await.unwrap();
        let ended = ended_as(&world, removal, OperationStatus::Error).await;
        let words = "the lock downscaling was released by eve: it takes too long";
        assert!(ended.history.iter().any(|event| event.event.contains(words)), "{:#?}", ended.history);
        settle(&world, 6, 5 * MINUTE).await;
    });
}

#[test]
fn of_two_updates_at_once_one_is_refused() {
    run(async {
        let world = world_with_fleet(6, 3).await;
        let minor = |surge| Recipe { max_surge: MaxSurge::Rooms(surge), ..recipe(3) };
        let engine = world.engine();
        let (one, other) = tokio::join!(
            engine.create_version(ARENA, minor(2), "ann"),
            engine.create_version(ARENA, minor(3), "bob")
        );
        let (accepted, refused) = if one.is_ok() { (one, other) } else { (other, one) };
        let accepted = accepted.unwrap();
        let Err(Error::Precondition(text)) = refused else { panic!("both were accepted") };
        assert!(text.contains(&accepted.to_string()), "it names the other one: {text}");
        ended_as(&world, accepted, OperationStatus::Finished).await;
        settle(&world, 3, MINUTE).await;
    });
}

#[test]
fn an_update_goes_on_when_its_worker_dies() {
    run(async {
        let mut world = World::new(7);
        let first = world.start_node(NodePlan::PLAIN).await.unwrap();
        create(&world, 6).await;
        settle(&world, 6, MINUTE).await;
        submit(&world, another_command(recipe(6))).await;
        let rolling = async |world: &World| {
            let locks = world.store().locks(&arena()).await.unwrap();
            locks.held_by(LockKind::Config, Holder::Rollout(V2)).is_some()
        };
        world.run_until("the rollout to begin", 5 * MINUTE, rolling).await;
        world.start_node(NodePlan::PLAIN).await.unwrap();
        world.crash_node(first).await;
        let over =
            async |world: &World| world.store().scheduler(&arena()).await.unwrap().unwrap().rollout.is_none();
        world.run_until("the rollout to be over", HOUR, over).await;
        settle(&world, 6, MINUTE).await;
        let status = world.store().version(&arena(), V2).await.unwrap().unwrap().status;
        assert_eq!(status, VersionStatus::Deployed);
    });
}

/// Two people change different things at nearly the same time, at every distance in time.
#[test]
fn no_patch_is_lost() {
    let mut overtaken = 0;
    for millis in 0..60 {
        run(async {
            let world = world_with_fleet(8, 2).await;
            let one = world
                .engine()
                .patch_version(
                    ARENA,
                    |recipe| Ok(Recipe { max_surge: MaxSurge::Rooms(3), ..recipe.clone() }),
                    false,
                    "ann",
                )
                .await
                .unwrap();
            world.advance(Duration::from_millis(millis)).await;
            let other = async |world: &World| {
                let patch = |recipe: &Recipe| Ok(Recipe { game: "other".into(), ..recipe.clone() });
                world.engine().patch_version(ARENA, patch, false, "bob").await
            };
            let accepted = other(&world).await;
            overtaken += u32::from(accepted.is_ok());
            ended_as(&world, one, OperationStatus::Finished).await;
            let id = match accepted {
                Ok(id) => id,
                Err(_) => {
                    world.run_until("all to be written", MINUTE, is_at_rest).await;
                    other(&world).await.unwrap()
                }
            };
            ended_as(&world, id, OperationStatus::Finished).await;
            world.run_until("all to be written", MINUTE, is_at_rest).await;
            let recipe = world.store().scheduler(&arena()).await.unwrap().unwrap().recipe;
            assert_eq!(
                (recipe.max_surge, recipe.game.as_str()),
                (MaxSurge::Rooms(3), "other"),
                "after {millis} ms"
            );
        });
    }
    assert!(overtaken > 0, "some came just when the first one was done");
}

#[test]
fn a_fleet_grows_with_its_players_during_an_update() {
    run(async {
        let mut world = World::new(9);
        world.start_engine().await;
        let recipe = Recipe { autoscaling: half_ready(), ..recipe(8) };
        world.engine().create_scheduler(recipe.clone(), "ann").await.unwrap();
        let well =
            async |world: &World| !world.host().rooms().is_empty() && work_in_hand(world).await.is_empty();
        world.run_until("a fleet", MINUTE, well).await;
        world
            .host()
            .set_habits(Habits { ready_after: Some(Span::exactly(30 * SECOND)), ..Habits::default() });
        submit(&world, another_command(recipe)).await;
        let rolling =
            async |world: &World| world.store().scheduler(&arena()).await.unwrap().unwrap().rollout.is_some();
        world.run_until("the rollout to begin", 5 * MINUTE, rolling).await;
        let before = world.host().rooms().len();
        for room in world.host().rooms() {
            world.host().begin_match(&room.id);
        }
        let grown = async |world: &World| {
            assert!(rolling(world).await, "still at it");
            world.host().rooms().len() >= 2 * before
        };
        world.run_until("twice as many rooms", 10 * MINUTE, grown).await;
    });
}
