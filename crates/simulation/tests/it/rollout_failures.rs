//! Rollouts that fail: the way back, or the halt until someone comes.

use std::collections::BTreeSet;
use std::sync::Mutex;

use maestro_core::lock::{Holder, LockKind};
use maestro_core::operation::{Definition, DefinitionKind, OperationStatus};
use maestro_core::scheduler::{OnFailure, Recipe, Rollout, VersionStatus};
use maestro_engine::Parts;
use maestro_engine::ports::store::{Change, RolloutState, StoreError};
use maestro_engine::services::RolloutPhase;
use maestro_simulation::{Habits, NodePlan, World};

use super::common::*;
use super::locks::{holder, says, until_held};
use super::rollouts::*;

async fn failing_rollout(seed: u64, rules: Rollout) -> World {
    let world = world_with_fleet(seed, 6).await;
    let recipe = Recipe { rollout_rules: Some(rules), ..another_command(recipe(6)) };
    let id = submit(&world, recipe).await;
    ended_as(&world, id, OperationStatus::Finished).await;
    world.host().set_habits(Habits { ready_after: None, ..Habits::default() });
    world
}

fn leads_back(definition: &Definition) -> bool {
    matches!(definition, Definition::SwitchVersion(switch) if switch.only_from == Some(V2))
}

async fn until_state(world: &World, state: RolloutState) {
    let reached = async |world: &World| {
        world.engine().rollout(ARENA, None).await.unwrap().state == RolloutPhase::Replacing(state)
    };
    world.run_until("the rollout's state", 3 * HOUR, reached).await;
}

#[test]
fn a_version_that_fails_in_its_rollout_is_taken_back() {
    run(async {
        let world = world_with_fleet(4, 8).await;
        let id = submit(&world, another_command(recipe(8))).await;
        ended_as(&world, id, OperationStatus::Finished).await;
        // The room that was tried was well; those that follow are not.
        world.host().set_habits(Habits { ready_after: None, ..Habits::default() });
        let failed = async |world: &World| {
            assert!(ready(world).await >= 8);
            statuses(world).await.get("v2.0.0") == Some(&VersionStatus::Error)
        };
        world.run_until("the rollout to fail", 2 * HOUR, failed).await;
        world.host().set_habits(Habits::default());
        rollout_over(&world, HOUR).await;
        settle(&world, 8, HOUR).await;
        assert_eq!(rooms_of(&world, V1).await.len(), 8);
        let record = world.store().scheduler(&arena()).await.unwrap().unwrap();
        assert_eq!(record.active_version, V1);
        let why: Vec<_> = done(&world).await.into_iter().map(|operation| operation.reason).collect();
        let said = |reason: &&String| {
            reason.contains("new rooms in a row did not become ready; the last was room ")
                && reason.ends_with("; back to v1.0.0")
        };
        assert!(why.iter().any(|reason| said(&reason)), "{why:#?}");
    });
}

#[test]
fn a_rollout_that_halts_waits_for_someone() {
    run(async {
        let rules = Rollout { on_failure: OnFailure::Halt, ..Rollout::default() };
        let world = failing_rollout(11, rules).await;
        until_state(&world, RolloutState::Halted).await;
        assert_eq!(statuses(&world).await["v2.0.0"], VersionStatus::Error);
        world.host().set_habits(Habits::default());
        world.advance(HOUR).await;
        assert_eq!(rooms_of(&world, V1).await.len(), 6, "nothing more is replaced");
        // What dies meanwhile comes back as the version that is known to work.
        world.host().crash(&rooms_of(&world, V1).await[0]);
        world.advance(MINUTE).await;
        assert_eq!(rooms_of(&world, V1).await.len(), 6);
        world.engine().resume_rollout(ARENA, "ann").await.unwrap();
        rollout_over(&world, HOUR).await;
        assert_eq!(rooms_of(&world, V2).await.len(), 6);
        assert_eq!(statuses(&world).await["v2.0.0"], VersionStatus::Deployed);
    });
}

#[test]
fn another_version_moves_a_halted_rollout() {
    run(async {
        let rules = Rollout { on_failure: OnFailure::Halt, ..Rollout::default() };
        let world = failing_rollout(12, rules).await;
        until_state(&world, RolloutState::Halted).await;
        world.host().set_habits(Habits::default());
        let minor = Recipe {
            rollout_rules: Some(Rollout { max_failures: 9, ..rules }),
            ..another_command(recipe(6))
        };
        let id = submit(&world, minor).await;
        ended_as(&world, id, OperationStatus::Finished).await;
        rollout_over(&world, HOUR).await;
        settle(&world, 6, HOUR).await;
        assert_eq!(rooms_of(&world, V1).await.len(), 0);
        assert_eq!(statuses(&world).await["v2.1.0"], VersionStatus::Deployed);
    });
}

#[test]
fn a_way_back_that_is_lost_is_found_again() {
    run(async {
        let world = failing_rollout(13, Rollout::default()).await;
        let switch = async |world: &World| {
            let unfinished = world.store().unfinished(&arena()).await.unwrap();
            unfinished
                .iter()
                .find(|operation| leads_back(&operation.definition))
                .map(|operation| operation.id)
        };
        // It is canceled before it begins.
        let waits = Mutex::new(BTreeSet::new());
        world.intercept_commits(Some(Box::new(move |transaction| {
            let mut waits = waits.lock().unwrap();
            for change in &transaction.changes {
                match change {
                    Change::Enqueue(new) if leads_back(&new.definition) => {
                        waits.insert(new.id);
                    }
                    Change::StartOperation { operation, .. } if waits.contains(operation) => {
                        return Some(StoreError::unavailable("start operation", "not yet"));
                    }
                    _ => {}
                }
            }
            None
        })));
        let enqueued = async |world: &World| switch(world).await.is_some();
        world.run_until("the switch that leads back", 3 * HOUR, enqueued).await;
        let id = switch(&world).await.unwrap();
        world.engine().cancel_operation(ARENA, &id.to_string(), "eve").await.unwrap();
        world.intercept_commits(None);
        world.host().set_habits(Habits::default());
        rollout_over(&world, HOUR).await;
        settle(&world, 6, HOUR).await;
        assert_eq!(rooms_of(&world, V1).await.len(), 6);
    });
}

#[test]
fn a_paused_way_back_stays_paused() {
    run(async {
        let world = failing_rollout(14, Rollout::default()).await;
        until_state(&world, RolloutState::RollingBack).await;
        world.engine().pause_rollout(ARENA, "ann").await.unwrap();
        world.advance(10 * MINUTE).await;
        assert_eq!(
            world.engine().rollout(ARENA, None).await.unwrap().state,
            RolloutPhase::Replacing(RolloutState::Paused)
        );
        world.host().set_habits(Habits::default());
        world.engine().resume_rollout(ARENA, "ann").await.unwrap();
        rollout_over(&world, HOUR).await;
        let statuses = statuses(&world).await;
        assert!(matches!(statuses["v1.0.0"], VersionStatus::Deployed), "{statuses:?}");
    });
}

#[test]
fn two_broken_versions_in_a_row() {
    run(async {
        let world = world_with_fleet(16, 6).await;
        for (number, command) in
            [(2, another_command(recipe(6))), (3, another_command(another_command(recipe(6))))]
        {
            let id = submit(&world, command).await;
            ended_as(&world, id, OperationStatus::Finished).await;
            world.host().set_habits(Habits { ready_after: None, ..Habits::default() });
            let version = format!("v{number}.0.0");
            let failed = async |world: &World| {
                assert!(ready(world).await >= 6);
                statuses(world).await.get(&version) == Some(&VersionStatus::Error)
            };
            world.run_until("the rollout to fail", 3 * HOUR, failed).await;
            world.host().set_habits(Habits::default());
            rollout_over(&world, HOUR).await;
            settle(&world, 6, HOUR).await;
            assert_eq!(rooms_of(&world, V1).await.len(), 6);
        }
    });
}

#[test]
fn a_way_back_sets_the_fleet_size_back() {
    run(async {
        let world = world_with_fleet(18, 4).await;
        world.engine().add_rooms(ARENA, 2, false, "ann").await.unwrap();
        settle(&world, 6, MINUTE).await;
        let id = submit(&world, another_command(recipe(9))).await;
        ended_as(&world, id, OperationStatus::Finished).await;
        let switched = async |world: &World| fleet_size(world).await == Some(9);
        world.run_until("the new fleet size", MINUTE, switched).await;
        world.engine().cancel_rollout(ARENA, "ann").await.unwrap();
        rollout_over(&world, HOUR).await;
        settle(&world, 6, HOUR).await;
    });
}

/// Also if the last version that was submitted states the number that was there before, and whatever people changed.
#[test]
fn a_way_back_over_several_versions_leaves_what_people_changed() {
    run(async {
        let world = world_with_fleet(19, 4).await;
        let sizes = [(9, 1), (5, 2), (4, 3)];
        for (generation, (size, added)) in (1..).zip(sizes) {
            let recipe = (0..generation).fold(recipe(size), |recipe, _| another_command(recipe));
            let id = submit(&world, recipe).await;
            ended_as(&world, id, OperationStatus::Finished).await;
            let switched = async |world: &World| fleet_size(world).await == Some(size);
            world.run_until("the new fleet size", MINUTE, switched).await;
            world.engine().add_rooms(ARENA, added, false, "ann").await.unwrap();
            assert_eq!(fleet_size(&world).await, Some(size + added));
        }
        world.engine().cancel_rollout(ARENA, "ann").await.unwrap();
        rollout_over(&world, HOUR).await;
        settle(&world, 4 + 1 + 2 + 3, HOUR).await;
    });
}

#[test]
fn a_deletion_ends_the_rollout() {
    run(async {
        let world = failing_rollout(15, Rollout::default()).await;
        let rolling =
            async |world: &World| statuses(world).await.get("v2.0.0") == Some(&VersionStatus::Rolling);
        world.run_until("it to roll", MINUTE, rolling).await;
        world.engine().delete_scheduler(ARENA, "ann").await.unwrap();
        let record = world.store().scheduler(&arena()).await.unwrap().unwrap();
        assert_eq!(record.rollout, None);
        assert_eq!(statuses(&world).await["v2.0.0"], VersionStatus::Canceled);
        let gone = async |world: &World| world.store().scheduler(&arena()).await.unwrap().is_none();
        world.run_until("it to be gone", HOUR, gone).await;
        assert!(world.host().rooms().is_empty());
    });
}

/// Rooms go meanwhile, and the fleet grows again.
#[test]
fn a_deletion_that_is_taken_back_leaves_a_paused_rollout_paused() {
    run(async {
        let world = world_with_fleet(16, 8).await;
        submit(&world, another_command(recipe(8))).await;
        until_held(&world, LockKind::Downscaling, Holder::Rollout(V2)).await;
        world.engine().pause_rollout(ARENA, "ann").await.unwrap();
        let deletion = world.engine().delete_scheduler(ARENA, "bob").await.unwrap();
        assert_eq!(world.store().scheduler(&arena()).await.unwrap().unwrap().rollout, None);
        let fewer = async |world: &World| world.rooms().len() < 6;
        world.run_until("rooms to go", MINUTE, fewer).await;
        world.engine().cancel_operation(ARENA, &deletion.to_string(), "bob").await.unwrap();
        ended_as(&world, deletion, OperationStatus::Canceled).await;
        is_as_before(&world, RolloutState::Paused, VersionStatus::Rolling).await;
        world.engine().resume_rollout(ARENA, "ann").await.unwrap();
        rollout_over(&world, HOUR).await;
        settle(&world, 8, HOUR).await;
        assert_eq!(statuses(&world).await["v2.0.0"], VersionStatus::Deployed);
    });
}

#[test]
fn a_deletion_that_never_began_leaves_a_halted_rollout_halted() {
    run(async {
        let rules = Rollout { on_failure: OnFailure::Halt, ..Rollout::default() };
        let mut world = failing_rollout(17, rules).await;
        until_state(&world, RolloutState::Halted).await;
        // Nobody is there who would begin with it.
        world.crash_engine().await;
        world.start_node(NodePlan { parts: Parts::ROOMS_API, ..NodePlan::PLAIN }).await.unwrap();
        let deletion = world.engine().delete_scheduler(ARENA, "bob").await.unwrap();
        world.engine().cancel_operation(ARENA, &deletion.to_string(), "bob").await.unwrap();
        let canceled = ended_as(&world, deletion, OperationStatus::Canceled).await;
        assert!(says(&canceled, "before it began"), "{:#?}", canceled.history);
        is_as_before(&world, RolloutState::Halted, VersionStatus::Error).await;
    });
}

/// Someone takes its lock away, so it fails, and the scheduler stays to be deleted.
#[test]
fn a_deletion_that_fails_leaves_the_rollout_to_the_next_one() {
    run(async {
        let world = world_with_fleet(18, 8).await;
        world.host().set_habits(Habits { obeys_after: None, ..Habits::default() });
        submit(&world, another_command(recipe(8))).await;
        until_held(&world, LockKind::Downscaling, Holder::Rollout(V2)).await;
        world.engine().cancel_rollout(ARENA, "ann").await.unwrap();
        world.engine().pause_rollout(ARENA, "ann").await.unwrap();
        let first = world.engine().delete_scheduler(ARENA, "bob").await.unwrap();
        until_held(
            &world,
            LockKind::Termination,
            Holder::Operation { id: first, kind: DefinitionKind::DeleteScheduler },
        )
        .await;
        world
            .engine()
            .release_lock(ARENA, LockKind::Termination.as_str(), None, "eve", "it hangs")
            .await
            .unwrap();
        ended_as(&world, first, OperationStatus::Error).await;
        let second = world.engine().delete_scheduler(ARENA, "bob").await.unwrap();
        world.engine().cancel_operation(ARENA, &second.to_string(), "bob").await.unwrap();
        ended_as(&world, second, OperationStatus::Canceled).await;
        is_as_before(&world, RolloutState::Paused, VersionStatus::Canceled).await;
    });
}

async fn is_as_before(world: &World, state: RolloutState, status: VersionStatus) {
    let record = world.store().scheduler(&arena()).await.unwrap().unwrap();
    let rollout = record.rollout.expect("the rollout is there again");
    assert_eq!((rollout.state, rollout.from, rollout.to), (state, V1, V2));
    assert_eq!(statuses(world).await["v2.0.0"], status);
    assert_eq!(holder(world, LockKind::Config).await, Some(Holder::Rollout(V2)));
}
