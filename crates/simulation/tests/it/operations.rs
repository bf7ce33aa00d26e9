//! Operations from request to end, seen from outside.

use std::time::Duration;

use super::common::*;
use maestro_core::operation::{Definition, Operation, OperationId, OperationStatus};
use maestro_core::room::RoomId;
use maestro_core::time::Millis;
use maestro_engine::Settings;
use maestro_engine::ports::contract::fixtures;
use maestro_engine::ports::store::{Change, NewOperation, Transaction};
use maestro_simulation::{Habits, HostFaults, Span, World};
use serde_json::Value;

const SECOND: Duration = Duration::from_secs(1);

async fn operation(world: &World, id: OperationId) -> Operation {
    let found = world.store().operation(&arena(), id).await.unwrap();
    found.expect("it is there")
}

#[test]
fn a_lease_is_renewed_as_long_as_it_is_held() {
    run(async {
        let stubborn = Habits { obeys_after: None, ..Habits::default() };
        let mut world = World::new(1);
        world.host().set_habits(stubborn);
        world.start_engine().await;
        let mut recipe = recipe(4);
        recipe.spec.termination_grace_period = 40 * SECOND;
        world.engine().create_scheduler(recipe, "ann").await.unwrap();
        settle(&world, 4, MINUTE).await;
        let id = world.engine().remove_rooms(ARENA, 2, false, "ann").await.unwrap();
        let mut looked = 0;
        loop {
            world.advance(Duration::from_millis(100)).await;
            let removal = operation(&world, id).await;
            if removal.status.is_final() {
                assert_eq!(removal.lease, None);
                break;
            }
            if removal.status == OperationStatus::InProgress {
                let lease = removal.lease.unwrap();
                assert!(lease.expires_at > world.now(), "it ran out at {}", lease.expires_at);
                looked += 1;
            }
        }
        assert!(looked > 300, "eight times its TTL: {looked}");
        settle(&world, 2, MINUTE).await;
    });
}

#[test]
fn a_canceled_add_takes_back_what_it_made() {
    run(async {
        let world = world_with_fleet(2, 3).await;
        world.host().set_host_faults(HostFaults { latency: Span::millis(200, 400), ..HostFaults::default() });
        let id = world.engine().add_rooms(ARENA, 100, false, "ann").await.unwrap();
        let half = async |world: &World| world.host().rooms().len() > 20;
        world.run_until("some rooms", 10 * MINUTE, half).await;
        world.engine().cancel_operation(ARENA, &id.to_string(), "bob").await.unwrap();
        let ended = async |world: &World| operation(world, id).await.status.is_final();
        world.run_until("its end", 10 * MINUTE, ended).await;
        assert_eq!(operation(&world, id).await.status, OperationStatus::Canceled);
        settle(&world, 3, 5 * MINUTE).await;
    });
}

#[test]
fn rooms_that_players_entered_survive_a_rollback() {
    run(async {
        let world = world_with_fleet(3, 1).await;
        let first = world.host().rooms()[0].id.clone();
        world
            .host()
            .set_host_faults(HostFaults { latency: Span::millis(2_000, 2_500), ..HostFaults::default() });
        let id = world.engine().add_rooms(ARENA, 80, false, "ann").await.unwrap();
        let ready = async |world: &World| {
            let rooms = world.engine().rooms(ARENA).await.unwrap();
            rooms.iter().filter(|room| room.status == maestro_core::room::RoomStatus::Ready).count() > 10
        };
        world.run_until("some rooms are ready", 10 * MINUTE, ready).await;
        let entered = world.host().rooms().into_iter().find(|room| room.id != first).unwrap().id;
        world.host().begin_match(&entered);
        world.advance(SECOND).await;
        assert_eq!(operation(&world, id).await.status, OperationStatus::InProgress);
        world.engine().cancel_operation(ARENA, &id.to_string(), "bob").await.unwrap();
        world.host().set_host_faults(HostFaults::default());
        let ended = async |world: &World| operation(world, id).await.status.is_final();
        world.run_until("its end", 10 * MINUTE, ended).await;
        assert!(world.host().rooms().iter().any(|room| room.id == entered), "players are in it");
        let told = operation(&world, id).await.history;
        assert!(told.iter().any(|event| event.event.contains("players")), "{told:?}");
        world.host().end_match(&entered);
        settle(&world, 1, 5 * MINUTE).await;
    });
}

#[test]
fn a_cycle_does_not_plan_for_a_fleet_size_of_the_past() {
    run(async {
        let world = world_with_fleet(5, 6).await;
        world
            .host()
            .set_host_faults(HostFaults { latency: Span::millis(2_000, 2_500), ..HostFaults::default() });
        // A cycle that lists the host is under way for seconds; in the middle of it someone removes rooms.
        let in_a_cycle = async |world: &World| {
            let unfinished = world.store().unfinished(&arena()).await.unwrap();
            unfinished.iter().any(|operation| operation.is_executing())
        };
        world.advance(MINUTE).await;
        world.host().invent(&arena(), &RoomId::new("stray"), Vec::new());
        world.run_until("a cycle", 2 * MINUTE, in_a_cycle).await;
        world.advance(SECOND).await;
        assert!(in_a_cycle(&world).await, "it is still listing");
        world.engine().remove_rooms(ARENA, 3, false, "ann").await.unwrap();
        settle(&world, 3, 10 * MINUTE).await;
        let adds = done(&world).await.into_iter().map(|operation| operation.definition);
        let adds = adds.filter(|definition| definition.name() == "add_rooms").count();
        assert_eq!(adds, 1, "only the fleet's beginning");
    });
}

#[test]
fn what_is_old_is_forgotten() {
    let settings = Settings {
        storage_clean_up_interval: 5 * MINUTE,
        operations_kept: Millis::from_seconds(3600),
        no_action_kept: Millis::from_seconds(600),
        rooms_kept: Millis::from_seconds(1800),
        ..Settings::default()
    };
    run(async {
        let world = world_with_settings(4, 5, settings).await;
        for room in world.host().rooms() {
            world.host().crash(&room.id);
        }
        world.advance(10 * MINUTE).await;
        assert_eq!(ended(&world).await.len(), 5);
        assert!(!done(&world).await.is_empty());
        world.advance(2 * HOUR).await;
        assert_eq!(ended(&world).await, []);
        assert_eq!(done(&world).await, []);
        let everything = fixtures::all_operations();
        let stage = maestro_core::operation::Stage::Final;
        let cycles = world.store().operations(&arena(), stage, everything).await.unwrap().total;
        assert!(cycles <= 6 * 16, "{cycles} cycles of ten seconds are kept for ten minutes");
        assert!(is_settled(&world, 5).await);
    });
}

/// A newer Maestro may have left it, which was taken back.
#[test]
fn an_operation_of_an_unknown_kind_that_is_in_progress_ends() {
    run(async {
        let mut world = world_with_fleet(15, 2).await;
        world.crash_engine().await;
        let definition = Definition::Unknown { name: "tidy_up".into(), input: Value::Null };
        let unknown = NewOperation { definition, created_at: world.now(), ..fixtures::new_operation(1) };
        let changes = vec![Change::Enqueue(unknown), fixtures::start(1)];
        world.store().commit(Transaction::of_no_scheduler("test", changes)).await.unwrap();
        world.start_engine().await;
        let id = fixtures::operation_id(1);
        let ended = async |world: &World| operation(world, id).await.status == OperationStatus::Error;
        world.run_until("it to end", MINUTE, ended).await;
        let history = operation(&world, id).await.history;
        let said = history.iter().filter(|event| event.event.contains("no executor is known for it"));
        assert_eq!(said.count(), 2, "there and back: {history:#?}");
        settle(&world, 2, MINUTE).await;
    });
}

/// Where a call takes a second on its way and another one back, twenty of them one after another would take forty.
#[test]
fn a_deletion_asks_its_rooms_to_go_together() {
    run(async {
        let world = world_with_fleet(12, 20).await;
        world.host().set_host_faults(HostFaults { latency: Span::exactly(SECOND), ..HostFaults::default() });
        world.engine().delete_scheduler(ARENA, "ann").await.unwrap();
        let begun = async |world: &World| world.host().rooms().len() < 20;
        world.run_until("the first room to be gone", 5 * MINUTE, begun).await;
        let gone = async |world: &World| world.host().rooms().is_empty();
        let took = world.run_until("the last room to be gone", 5 * MINUTE, gone).await;
        assert!(took < 10 * SECOND, "the last room went {took:?} after the first");
    });
}
