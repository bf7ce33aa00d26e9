//! The flows of the locks document in which several take part: additions beside each other and beside a panic, scaling
//! down beside a deletion, and operations that wait for what does not answer.

use std::time::Duration;

use maestro_core::lock::{Holder, LockKind};
use maestro_core::operation::{Activity, DefinitionKind, Operation, OperationStatus, Origin};
use maestro_core::room::{Purpose, RoomStatus};
use maestro_core::scheduler::{
    Autoscaling, FixedBuffer, OtherParameters, Recipe, ScalingPolicy, VersionStatus,
};
use maestro_core::time::Millis;
use maestro_engine::Settings;
use maestro_simulation::{Habits, HostFaults, Span, World};

use super::common::*;
use super::locks::*;
use super::panic::{by, is_panic_lock_free, panicking, panics_in};
use super::rollouts::{another_command, ended_as, submit};

/// A fleet that is as large as its minimum as long as nobody plays.
fn at_least(min: u32) -> Recipe {
    let policy = ScalingPolicy::FixedBuffer(FixedBuffer { amount: 0 });
    let other_parameters = OtherParameters::default();
    let autoscaling = Autoscaling {
        enabled: true,
        min,
        max: None,
        cooldown_seconds: 0,
        policy,
        other_parameters,
        panic: None,
    };
    Recipe { autoscaling: Some(autoscaling), ..recipe(0) }
}

/// An autoscaled fleet of rooms that take their whole grace period to go.
async fn stubborn_fleet(seed: u64, rooms: u32, settings: Settings) -> World {
    let mut world = World::with_settings(seed, settings);
    world.host().set_habits(stubborn());
    world.start_engine().await;
    world.engine().create_scheduler(at_least(rooms), "ann").await.unwrap();
    let ready = async |world: &World| {
        let all = world.engine().rooms(ARENA).await.unwrap();
        all.len() == rooms as usize && all.iter().all(|room| room.last_ping_at.is_some())
    };
    world.run_until("the fleet to be there", MINUTE, ready).await;
    world
}

async fn in_hand(world: &World, kind: DefinitionKind) -> Vec<Operation> {
    let mut operations = world.store().unfinished(&arena()).await.unwrap();
    operations.retain(|operation| operation.definition.kind() == kind);
    operations
}

#[test]
fn two_additions_are_on_their_way_at_once() {
    run(async {
        let world = world_with_fleet(16, 2).await;
        world
            .host()
            .set_habits(Habits { ready_after: Some(Span::millis(20_000, 20_000)), ..Habits::default() });
        let one = world.engine().add_rooms(ARENA, 3, false, "ann").await.unwrap();
        let other = world.engine().add_rooms(ARENA, 4, false, "bob").await.unwrap();
        ended_as(&world, one, OperationStatus::Finished).await;
        ended_as(&world, other, OperationStatus::Finished).await;
        settle(&world, 9, 5 * MINUTE).await;
        all_free(&world).await;
    });
}

/// Nobody waits for anybody: each of the three adds its rooms.
#[test]
fn two_additions_and_a_panic_are_on_their_way_at_once() {
    run(async {
        let mut world = World::new(18);
        world.start_engine().await;
        let recipe = Recipe { autoscaling: Some(panicking(by(3))), ..recipe(0) };
        world.engine().create_scheduler(recipe, "ann").await.unwrap();
        settle_at(&world, 10).await;
        world
            .host()
            .set_habits(Habits { ready_after: Some(Span::millis(20_000, 20_000)), ..Habits::default() });
        for room in world.host().rooms() {
            world.host().begin_match(&room.id);
        }
        let panicked = async |world: &World| panics_in(world.store()).await.len() == 1;
        world.run_until("a panic", MINUTE, panicked).await;
        let one = world.engine().add_rooms(ARENA, 2, true, "ann").await.unwrap();
        let other = world.engine().add_rooms(ARENA, 4, true, "bob").await.unwrap();
        let panic = panics_in(world.store()).await.remove(0).id;
        for id in [one, panic, other] {
            let ended = ended_as(&world, id, OperationStatus::Finished).await;
            assert!(!says(&ended, "waiting for"), "{:#?}", ended.history);
        }
        assert!(is_panic_lock_free(world.store()).await);
        all_free(&world).await;
    });
}

/// Ready or occupied, and no work in hand.
async fn settle_at(world: &World, rooms: usize) {
    let settled = async |world: &World| {
        let all = world.engine().rooms(ARENA).await.unwrap();
        let all_well = all.iter().all(|room| room.last_ping_at.is_some());
        all.len() == rooms && all_well && work_in_hand(world).await.is_empty()
    };
    world.run_until(&format!("{rooms} rooms"), 5 * MINUTE, settled).await;
}

#[test]
fn autoscaling_has_the_lock_until_the_rooms_that_it_removes_are_gone() {
    run(async {
        let world = stubborn_fleet(19, 6, Settings::default()).await;
        world.engine().create_version(ARENA, at_least(2), "ann").await.unwrap();
        let removes = async |world: &World| {
            let removals = in_hand(world, DefinitionKind::RemoveRooms).await;
            removals.iter().any(|removal| removal.is_parked() && removal.origin == Origin::Controller)
        };
        world.run_until("four rooms to be asked to go", MINUTE, removes).await;
        let removal = in_hand(&world, DefinitionKind::RemoveRooms).await.remove(0).id;
        let gone = async |world: &World| {
            let rooms = world.host().rooms().len();
            let held = is_held_by_operation(world, LockKind::Downscaling, removal).await;
            assert!(held || rooms == 2, "{rooms} rooms, and nobody has the lock");
            !held
        };
        world.run_until("the lock to be free", 5 * MINUTE, gone).await;
        settle_at(&world, 2).await;
        all_free(&world).await;
    });
}

#[test]
fn autoscaling_gives_up_the_lock_if_its_rooms_do_not_go_in_time() {
    run(async {
        let settings = Settings { downscaling_timeout: Millis::from_seconds(2), ..Settings::default() };
        let world = stubborn_fleet(20, 6, settings).await;
        world.engine().create_version(ARENA, at_least(2), "ann").await.unwrap();
        let removes = async |world: &World| !in_hand(world, DefinitionKind::RemoveRooms).await.is_empty();
        world.run_until("a removal", MINUTE, removes).await;
        let removal = in_hand(&world, DefinitionKind::RemoveRooms).await.remove(0).id;
        let ended = ended_as(&world, removal, OperationStatus::Finished).await;
        assert!(
            says(&ended, "still there after 2s, the health controller takes over"),
            "{:#?}",
            ended.history
        );
        settle_at(&world, 2).await;
        all_free(&world).await;
    });
}

/// It waits for the rollout's lock, and the rollout does not wait for it: the old rooms go, also those that a smaller
/// size would have taken.
#[test]
fn a_removal_during_a_rollout_is_part_of_what_the_rollout_does() {
    run(async {
        let world = world_with_fleet(22, 5).await;
        submit(&world, another_command(recipe(5))).await;
        until_held(&world, LockKind::Downscaling, Holder::Rollout(V2)).await;
        let removal = world.engine().remove_rooms(ARENA, 2, false, "bob").await.unwrap();
        let ended = ended_as(&world, removal, OperationStatus::Finished).await;
        assert!(says(&ended, "waiting for downscaling held by rollout v2.0.0"), "{:#?}", ended.history);
        assert!(says(&ended, "no room had to go any more"), "{:#?}", ended.history);
        settle(&world, 3, MINUTE).await;
        let made = world.store().ended_rooms(&arena(), 100).await.unwrap();
        let new_ones = made.iter().filter(|room| room.version == V2 && room.purpose == Purpose::Fleet);
        assert_eq!(new_ones.count(), 0, "no new room was made for nothing");
        all_free(&world).await;
    });
}

/// The same of rooms that are named, old ones or new ones: neither waits for the other.
#[test]
fn rooms_that_are_named_during_a_rollout_go() {
    run(async {
        for seed in [22, 23] {
            let world = world_with_fleet(seed, 5).await;
            submit(&world, another_command(recipe(5))).await;
            until_held(&world, LockKind::Downscaling, Holder::Rollout(V2)).await;
            let mut named = world.engine().rooms(ARENA).await.unwrap();
            named.retain(|room| !room.validation && room.status != RoomStatus::Terminating);
            let named: Vec<String> = named.into_iter().map(|room| room.id.to_string()).take(2).collect();
            let removal = world.engine().remove_named_rooms(ARENA, &named, false, "bob").await.unwrap();
            ended_as(&world, removal, OperationStatus::Finished).await;
            settle(&world, 3, 10 * MINUTE).await;
            let stayed = ids(&world).await;
            assert!(!stayed.iter().any(|room| named.contains(&room.to_string())), "{named:?}: {stayed:?}");
            all_free(&world).await;
        }
    });
}

#[test]
fn a_deletion_ends_a_rollout_takes_its_locks_and_keeps_cycles_out() {
    run(async {
        let world = stubborn_world(14, 6).await;
        submit(&world, another_command(recipe(6))).await;
        until_held(&world, LockKind::Config, Holder::Rollout(V2)).await;
        let delete = world.engine().delete_scheduler(ARENA, "ann").await.unwrap();
        assert_eq!(holder(&world, LockKind::Config).await, None, "freed by the request itself");
        assert_eq!(version_status(&world, V2).await, VersionStatus::Canceled);
        let has_both = async |world: &World| {
            is_held_by_operation(world, LockKind::Termination, delete).await
                && is_held_by_operation(world, LockKind::Downscaling, delete).await
        };
        world.run_until("the deletion to have both locks", 10 * MINUTE, has_both).await;
        let gone = async |world: &World| {
            let there = world.store().scheduler(&arena()).await.unwrap().is_some();
            assert!(!there || has_both(world).await, "until nothing is left");
            !there
        };
        world.run_until("the scheduler to be gone", 10 * MINUTE, gone).await;
        assert_eq!(held(&world).await, Vec::<String>::new());
        assert_eq!(world.host().rooms(), []);
    });
}

/// A cycle has a place in the order of the lock, and none comes any more: the deletion does not wait for it.
#[test]
fn a_deletion_takes_the_place_of_the_autoscaling_that_it_ends() {
    run(async {
        let world = stubborn_fleet(21, 6, Settings::default()).await;
        world.engine().remove_rooms(ARENA, 1, true, "bob").await.unwrap();
        world.engine().create_version(ARENA, at_least(2), "ann").await.unwrap();
        let waits = async |world: &World| {
            let locks = world.store().locks(&arena()).await.unwrap();
            locks.waits(LockKind::Downscaling, Holder::HealthController).is_some()
        };
        world.run_until("autoscaling to wait for the lock", MINUTE, waits).await;
        let asked_at = world.elapsed();
        world.engine().delete_scheduler(ARENA, "ann").await.unwrap();
        let gone = async |world: &World| world.store().scheduler(&arena()).await.unwrap().is_none();
        world.run_until("the scheduler to be gone", 10 * MINUTE, gone).await;
        let took = world.elapsed() - asked_at;
        assert!(took < world.settings().lock_wait_timeout.as_duration(), "it waited for nobody: {took:?}");
        assert_eq!(world.host().rooms(), []);
        assert_eq!(held(&world).await, Vec::<String>::new());
    });
}

/// However short the life of a lock is beside that of an ownership.
#[test]
fn a_lock_lives_as_long_as_its_holder() {
    run(async {
        let settings = Settings { lock_ttl: Millis::from_seconds(1), ..Settings::default() };
        let world = stubborn_fleet(22, 6, settings).await;
        let one = world.engine().remove_rooms(ARENA, 1, true, "ann").await.unwrap();
        let other = world.engine().remove_rooms(ARENA, 1, true, "bob").await.unwrap();
        let leaves = async |world: &World| operation(world, one).await.is_parked();
        world.run_until("the first room to be asked to go", MINUTE, leaves).await;
        let ended = async |world: &World| {
            let is_final = operation(world, one).await.status.is_final();
            let held = is_held_by_operation(world, LockKind::Downscaling, one).await;
            assert!(is_final || held, "{:?}", super::locks::held(world).await);
            is_final
        };
        world.run_until("the first removal to end", 5 * MINUTE, ended).await;
        ended_as(&world, other, OperationStatus::Finished).await;
        all_free(&world).await;
    });
}

/// It has no slot meanwhile, so the rest goes on; and people see what it waits for.
#[test]
fn who_waits_for_an_answer_makes_way() {
    run(async {
        let world = world_with_fleet(23, 4).await;
        world.host().set_host_faults(HostFaults { available: false, ..HostFaults::default() });
        let add = world.engine().add_rooms(ARENA, 2, false, "ann").await.unwrap();
        let waits = async |world: &World| operation(world, add).await.is_parked();
        world.run_until("the addition to wait", MINUTE, waits).await;
        let Activity::Parked(wait) = operation(&world, add).await.activity else { unreachable!() };
        assert!(wait.unanswered && wait.what.contains("does not answer"), "{wait:?}");
        let cycles = async |world: &World| in_hand(world, DefinitionKind::HealthController).await.is_empty();
        world.run_until("no cycle to be held up", Duration::from_secs(5), cycles).await;
        world.host().set_host_faults(HostFaults::default());
        ended_as(&world, add, OperationStatus::Finished).await;
        settle(&world, 6, MINUTE).await;
    });
}

/// Nothing may be done before there is a place for the scheduler's rooms: what is asked for meanwhile comes after it.
#[test]
fn a_creation_that_waits_for_an_answer_lets_nobody_pass() {
    run(async {
        let mut world = World::new(24);
        world.start_engine().await;
        world.host().set_host_faults(HostFaults { available: false, ..HostFaults::default() });
        create(&world, 2).await;
        let created = in_hand(&world, DefinitionKind::CreateScheduler).await.remove(0).id;
        let add = world.engine().add_rooms(ARENA, 1, false, "bob").await.unwrap();
        // The region is not given up yet.
        world.advance(Duration::from_secs(13)).await;
        let stuck = world.engine().stuck_operations(ARENA).await.unwrap();
        let stuck: Vec<_> = stuck.iter().map(|explained| explained.operation.id).collect();
        assert_eq!(stuck, [created], "people see it");
        assert_eq!(operation(&world, add).await.status, OperationStatus::Pending);
        world.host().set_host_faults(HostFaults::default());
        ended_as(&world, created, OperationStatus::Finished).await;
        ended_as(&world, add, OperationStatus::Finished).await;
        settle(&world, 3, MINUTE).await;
    });
}
