//! The flows of the locks document, walked on the running engine: who holds which lock, and until when.

use std::time::Duration;

use maestro_core::lock::{Holder, LockKind};
use maestro_core::operation::{DefinitionKind, Operation, OperationId, OperationStatus};
use maestro_core::scheduler::{MaxSurge, OnFailure, Recipe, Rollout, Version, VersionStatus};
use maestro_core::time::Millis;
use maestro_engine::Settings;
use maestro_engine::ports::store::RolloutState;
use maestro_simulation::{Habits, World};

use super::common::*;
use super::rollouts::{another_command, ended_as, submit};

pub(crate) const V2: Version = Version { major: 2, minor: 0, patch: 0 };
const V2_1: Version = Version { major: 2, minor: 1, patch: 0 };
const V3: Version = Version { major: 3, minor: 0, patch: 0 };

pub(crate) async fn holder(world: &World, kind: LockKind) -> Option<Holder> {
    shown_locks(world).await.held(kind).map(|lock| lock.holder)
}

pub(crate) async fn is_held_by_operation(world: &World, kind: LockKind, id: OperationId) -> bool {
    holder(world, kind).await.and_then(Holder::operation) == Some(id)
}

/// Who holds which lock, as people read it.
pub(crate) async fn held(world: &World) -> Vec<String> {
    let locks = shown_locks(world).await;
    locks.held.iter().map(|lock| format!("{}: {}", lock.kind, lock.holder)).collect()
}

pub(crate) async fn until_held(world: &World, kind: LockKind, by: Holder) {
    let what = format!("{kind} to be held by {by}");
    world.run_until(&what, 5 * MINUTE, async |world| holder(world, kind).await == Some(by)).await;
}

/// No lock is held or waited for, but that of a health cycle that happens to run.
pub(crate) async fn all_free(world: &World) {
    let free = async |world: &World| {
        let locks = shown_locks(world).await;
        locks.waiters.is_empty() && locks.held.iter().all(|lock| lock.kind == LockKind::Termination)
    };
    world.run_until("all locks to be free", MINUTE, free).await;
}

pub(crate) async fn operation(world: &World, id: OperationId) -> Operation {
    world.store().operation(&arena(), id).await.unwrap().unwrap()
}

/// The only unfinished operation of this kind.
async fn unfinished(world: &World, kind: DefinitionKind) -> Option<Operation> {
    let mut operations = world.store().unfinished(&arena()).await.unwrap();
    operations.retain(|operation| operation.definition.kind() == kind);
    operations.pop()
}

pub(crate) async fn version_status(world: &World, version: Version) -> VersionStatus {
    world.store().version(&arena(), version).await.unwrap().unwrap().status
}

pub(crate) fn says(operation: &Operation, words: &str) -> bool {
    operation.history.iter().any(|event| event.event.contains(words))
}

/// Rooms that have to be killed: they take their whole grace period to go.
pub(crate) fn stubborn() -> Habits {
    Habits { obeys_after: None, ..Habits::default() }
}

/// A fleet of them.
pub(crate) async fn stubborn_world(seed: u64, rooms: u32) -> World {
    stubborn_world_with_settings(seed, rooms, Settings::default()).await
}

async fn stubborn_world_with_settings(seed: u64, rooms: u32, settings: Settings) -> World {
    let mut world = World::with_settings(seed, settings);
    world.host().set_habits(stubborn());
    world.start_engine().await;
    create(&world, rooms).await;
    settle(&world, rooms, MINUTE).await;
    world
}

#[test]
fn a_minor_update_has_the_config_lock_until_it_is_written() {
    run(async {
        let world = world_with_fleet(1, 4).await;
        let id = submit(&world, Recipe { max_surge: MaxSurge::Rooms(3), ..recipe(4) }).await;
        // First the new version has it, then its switch, from the transaction on in which the version was made.
        let mut holders = Vec::new();
        while world.store().scheduler(&arena()).await.unwrap().unwrap().active_version == Version::FIRST {
            holders.extend(holder(&world, LockKind::Config).await);
            holders.dedup();
            world.advance(Duration::from_millis(1)).await;
        }
        let kinds: Vec<_> = holders.iter().map(|holder| holder.to_string()).collect();
        assert_eq!(holders.len(), 2, "{kinds:?}");
        assert_eq!(holders[0].operation(), Some(id));
        assert!(kinds[1].starts_with("switch_active_version "), "{kinds:?}");
        assert_eq!(holder(&world, LockKind::Config).await, None, "released with its end");
        all_free(&world).await;
    });
}

#[test]
fn a_major_update_has_config_and_downscaling_until_the_last_old_room_is_gone() {
    run(async {
        let world = world_with_fleet(2, 8).await;
        let id = submit(&world, another_command(recipe(8))).await;
        ended_as(&world, id, OperationStatus::Finished).await;
        until_held(&world, LockKind::Config, Holder::Rollout(V2)).await;
        let over = async |world: &World| {
            let record = world.store().scheduler(&arena()).await.unwrap().unwrap();
            let rows = world.store().live_rooms(&arena()).await.unwrap();
            let old_rooms = rows.iter().filter(|row| row.version == Version::FIRST).count();
            let expected = record.rollout.as_ref().map(|_| Holder::Rollout(V2));
            assert_eq!(holder(world, LockKind::Config).await, expected);
            assert_eq!(holder(world, LockKind::Downscaling).await, expected);
            assert!(old_rooms == 0 || expected.is_some(), "old rooms and no lock");
            let locks = world.store().locks(&arena()).await.unwrap();
            let rollouts = locks.held.iter().filter(|lock| matches!(lock.holder, Holder::Rollout(_)));
            assert!(
                rollouts.into_iter().all(|lock| lock.expires_at.is_none()),
                "it ends with the rollout only"
            );
            record.rollout.is_none()
        };
        world.run_until("the rollout to be over", HOUR, over).await;
        all_free(&world).await;
        assert_eq!(version_status(&world, V2).await, VersionStatus::Deployed);
    });
}

#[test]
fn a_failed_update_goes_back_says_so_and_frees_its_locks() {
    run(async {
        let rules = Rollout { max_failures: 2, on_failure: OnFailure::Rollback, ..Rollout::default() };
        let world = world_with_fleet(3, 6).await;
        let new = Recipe { rollout_rules: Some(rules), ..another_command(recipe(6)) };
        let id = submit(&world, new).await;
        ended_as(&world, id, OperationStatus::Finished).await;
        // The validation room was fine; the rooms that follow never become ready.
        world.host().set_habits(Habits { ready_after: None, ..Habits::default() });
        until_held(&world, LockKind::Config, Holder::Rollout(V2)).await;
        let goes_back = async |world: &World| {
            holder(world, LockKind::Config).await == Some(Holder::Rollout(Version::FIRST))
        };
        world.run_until("the way back to have the lock", HOUR, goes_back).await;
        world.host().set_habits(Habits::default());
        assert_eq!(version_status(&world, V2).await, VersionStatus::Error);
        settle(&world, 6, HOUR).await;
        all_free(&world).await;
    });
}

#[test]
fn a_canceled_update_goes_back_and_frees_its_locks() {
    run(async {
        let world = world_with_fleet(4, 8).await;
        submit(&world, another_command(recipe(8))).await;
        until_held(&world, LockKind::Downscaling, Holder::Rollout(V2)).await;
        world.engine().cancel_rollout(ARENA, "ann").await.unwrap();
        settle(&world, 8, HOUR).await;
        let over = async |world: &World| held(world).await.iter().all(|lock| lock.starts_with("termination"));
        world.run_until("the way back to be over", HOUR, over).await;
        assert_eq!(version_status(&world, V2).await, VersionStatus::Canceled);
    });
}

#[test]
fn a_paused_rollout_keeps_the_recipe_and_lets_others_remove() {
    run(async {
        let world = world_with_fleet(5, 8).await;
        submit(&world, another_command(recipe(8))).await;
        until_held(&world, LockKind::Downscaling, Holder::Rollout(V2)).await;
        world.engine().pause_rollout(ARENA, "ann").await.unwrap();
        assert_eq!(holder(&world, LockKind::Config).await, Some(Holder::Rollout(V2)));
        assert_ne!(holder(&world, LockKind::Downscaling).await, Some(Holder::Rollout(V2)));
        let removal = world.engine().remove_rooms(ARENA, 2, false, "bob").await.unwrap();
        ended_as(&world, removal, OperationStatus::Finished).await;
        world.engine().resume_rollout(ARENA, "ann").await.unwrap();
        until_held(&world, LockKind::Downscaling, Holder::Rollout(V2)).await;
        settle(&world, 6, HOUR).await;
    });
}

#[test]
fn who_removes_has_the_lock_until_its_rooms_are_gone() {
    run(async {
        let world = stubborn_world(6, 6).await;
        let removal = world.engine().remove_rooms(ARENA, 2, false, "bob").await.unwrap();
        let leaving = async |world: &World| {
            let waits = operation(world, removal).await.is_parked();
            waits && is_held_by_operation(world, LockKind::Downscaling, removal).await
        };
        world.run_until("the rooms to be asked to go", MINUTE, leaving).await;
        let gone = async |world: &World| {
            let rooms = world.host().rooms().len();
            let held = is_held_by_operation(world, LockKind::Downscaling, removal).await;
            assert!(held || rooms == 4, "{rooms} rooms, and nobody has the lock");
            !held
        };
        world.run_until("the lock to be free", 5 * MINUTE, gone).await;
        ended_as(&world, removal, OperationStatus::Finished).await;
        all_free(&world).await;
    });
}

#[test]
fn a_removal_whose_rooms_do_not_go_gives_up_its_lock_in_time() {
    run(async {
        let settings = Settings { downscaling_timeout: Millis::from_seconds(2), ..Settings::default() };
        let world = stubborn_world_with_settings(7, 3, settings).await;
        let removal = world.engine().remove_rooms(ARENA, 1, false, "bob").await.unwrap();
        let ended = ended_as(&world, removal, OperationStatus::Finished).await;
        assert!(says(&ended, "still there after 2s"), "{:#?}", ended.history);
        assert_eq!(world.host().rooms().len(), 3, "it takes its grace period");
        assert!(!is_held_by_operation(&world, LockKind::Downscaling, removal).await);
        settle(&world, 2, 5 * MINUTE).await;
    });
}

#[test]
fn dead_rooms_go_under_the_lock() {
    run(async {
        let world = world_with_fleet(8, 4).await;
        let silent = ids(&world).await.remove(0);
        world.host().silence(&silent);
        let removal = async |world: &World| match unfinished(world, DefinitionKind::RemoveRooms).await {
            Some(removal) => {
                assert!(
                    is_held_by_operation(world, LockKind::Downscaling, removal.id).await,
                    "from the queue on"
                );
                true
            }
            None => false,
        };
        world.run_until("the silent room to be removed", HOUR, removal).await;
        settle(&world, 4, HOUR).await;
        all_free(&world).await;
    });
}

#[test]
fn a_second_removal_waits_for_the_first_and_says_so() {
    run(async {
        let world = stubborn_world(9, 9).await;
        let removals = [
            world.engine().remove_rooms(ARENA, 1, false, "ann").await.unwrap(),
            world.engine().remove_rooms(ARENA, 1, false, "bob").await.unwrap(),
            world.engine().remove_rooms(ARENA, 1, false, "eve").await.unwrap(),
        ];
        let waits = async |world: &World| operation(world, removals[2]).await.is_parked();
        world.run_until("the last one to wait", MINUTE, waits).await;
        let words = format!("waiting for downscaling held by remove_rooms {}", removals[0]);
        assert!(says(&operation(&world, removals[1]).await, &words));
        // Nobody else passes them, and each has its turn.
        let mut ended_at = Vec::new();
        for removal in removals {
            ended_at.push(ended_as(&world, removal, OperationStatus::Finished).await.ended_at);
        }
        assert!(ended_at.is_sorted(), "first come, first served: {ended_at:?}");
        settle(&world, 6, 5 * MINUTE).await;
        all_free(&world).await;
    });
}

#[test]
fn who_waits_too_long_gives_up_and_changes_nothing() {
    run(async {
        let settings = Settings { lock_wait_timeout: Millis::from_seconds(60), ..Settings::default() };
        let world = world_with_settings(10, 8, settings).await;
        // New rooms never become ready, so the rollout does not end by itself for a while.
        submit(&world, another_command(recipe(8))).await;
        until_held(&world, LockKind::Downscaling, Holder::Rollout(V2)).await;
        world.host().set_habits(Habits { ready_after: None, ..Habits::default() });
        let removal = world.engine().remove_rooms(ARENA, 2, false, "bob").await.unwrap();
        let ended = ended_as(&world, removal, OperationStatus::Error).await;
        assert!(says(&ended, "waited 60s for downscaling held by rollout v2.0.0"), "{:#?}", ended.history);
        assert_eq!(fleet_size(&world).await, Some(8), "the fleet size is taken back");
        let waiters = world.store().locks(&arena()).await.unwrap().waiters;
        assert!(waiters.iter().all(|waiter| waiter.holder.operation() != Some(removal)));
    });
}

#[test]
fn who_is_canceled_while_it_waits_leaves_the_order() {
    run(async {
        let world = world_with_fleet(11, 8).await;
        submit(&world, another_command(recipe(8))).await;
        until_held(&world, LockKind::Downscaling, Holder::Rollout(V2)).await;
        let removal = world.engine().remove_rooms(ARENA, 2, false, "bob").await.unwrap();
        let waits = async |world: &World| operation(world, removal).await.is_parked();
        world.run_until("the removal to wait", MINUTE, waits).await;
        world.engine().cancel_operation(ARENA, &removal.to_string(), "eve").await.unwrap();
        ended_as(&world, removal, OperationStatus::Canceled).await;
        assert_eq!(world.store().locks(&arena()).await.unwrap().waiters, []);
        settle(&world, 8, HOUR).await;
    });
}

#[test]
fn a_minor_version_passes_a_rollout_and_a_major_one_supersedes_it() {
    run(async {
        let world = world_with_fleet(12, 12).await;
        submit(&world, another_command(recipe(12))).await;
        until_held(&world, LockKind::Config, Holder::Rollout(V2)).await;
        let minor = Recipe { max_surge: MaxSurge::Rooms(2), ..another_command(recipe(12)) };
        submit(&world, minor).await;
        until_held(&world, LockKind::Config, Holder::Rollout(V2_1)).await;
        let major = another_command(another_command(recipe(12)));
        submit(&world, major).await;
        until_held(&world, LockKind::Config, Holder::Rollout(V3)).await;
        assert_eq!(holder(&world, LockKind::Downscaling).await, Some(Holder::Rollout(V3)));
        assert_eq!(version_status(&world, V2_1).await, VersionStatus::Superseded);
        settle(&world, 12, HOUR).await;
        let over = async |world: &World| holder(world, LockKind::Config).await.is_none();
        world.run_until("the rollout to be over", HOUR, over).await;
        all_free(&world).await;
    });
}

#[test]
fn a_switch_does_not_wait_for_a_removal_but_its_rollout_does() {
    run(async {
        let world = stubborn_world(13, 8).await;
        world.host().set_habits(Habits::default());
        let version = submit(&world, another_command(recipe(8))).await;
        let removal = world.engine().remove_rooms(ARENA, 2, false, "bob").await.unwrap();
        ended_as(&world, version, OperationStatus::Finished).await;
        until_held(&world, LockKind::Config, Holder::Rollout(V2)).await;
        if is_held_by_operation(&world, LockKind::Downscaling, removal).await {
            let locks = world.store().locks(&arena()).await.unwrap();
            assert!(locks.waits(LockKind::Downscaling, Holder::Rollout(V2)).is_some(), "it has a place");
        }
        until_held(&world, LockKind::Downscaling, Holder::Rollout(V2)).await;
        ended_as(&world, removal, OperationStatus::Finished).await;
        settle(&world, 6, HOUR).await;
    });
}

#[test]
fn a_cycle_has_the_termination_lock_and_gives_it_back() {
    run(async {
        let world = world_with_fleet(15, 3).await;
        let in_cycle = async |world: &World| match unfinished(world, DefinitionKind::HealthController).await {
            Some(cycle) => is_held_by_operation(world, LockKind::Termination, cycle.id).await,
            None => false,
        };
        let mut seen = 0;
        for millis in 0..60_000 {
            // Cycles in which nothing is to be done take no lock.
            if millis % 20_000 == 0 {
                world.host().crash(&world.host().rooms()[0].id);
            }
            world.advance(Duration::from_millis(1)).await;
            seen += u32::from(in_cycle(&world).await);
        }
        assert!(seen > 0, "cycles take some milliseconds of a minute");
        let free = async |world: &World| holder(world, LockKind::Termination).await.is_none();
        world.run_until("the lock to be free", MINUTE, free).await;
    });
}

#[test]
fn an_operation_that_fails_frees_what_it_held() {
    run(async {
        let settings = Settings { room_validation_attempts: 1, ..Settings::default() };
        let world = world_with_settings(17, 3, settings).await;
        world.host().set_habits(Habits { ready_after: None, ..Habits::default() });
        let id = submit(&world, another_command(recipe(3))).await;
        let held = async |world: &World| is_held_by_operation(world, LockKind::Config, id).await;
        world.run_until("the version to be tried", MINUTE, held).await;
        ended_as(&world, id, OperationStatus::Error).await;
        assert_eq!(holder(&world, LockKind::Config).await, None);
        let record = world.store().scheduler(&arena()).await.unwrap().unwrap();
        assert_eq!(record.rollout.map(|rollout| rollout.state), None::<RolloutState>);
        all_free(&world).await;
    });
}
