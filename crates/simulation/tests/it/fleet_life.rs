//! Hours in the life of a fleet, in milliseconds.

use std::time::Duration;

use super::common::*;
use maestro_core::operation::{DefinitionKind, OperationStatus};
use maestro_core::room::{EndCause, RoomId, RoomStatus};
use maestro_core::scheduler::{Recipe, SchedulerName};
use maestro_engine::Settings;
use maestro_engine::services::SchedulerFilter;
use maestro_simulation::{Exit, Habits, HostFaults, RoomOnHost, Span, World};

#[test]
fn a_fleet_of_ten_becomes_ready_and_stays_so() {
    run(async {
        let world = world_with_fleet(1, 10).await;
        assert!(world.elapsed() < Duration::from_secs(15), "{:?}", world.elapsed());
        let first: Vec<_> = ids(&world).await;
        world.advance(8 * HOUR).await;
        assert!(is_settled(&world, 10).await);
        assert_eq!(ids(&world).await, first, "nobody had to go");
        assert!(ended(&world).await.is_empty());
    });
}

#[test]
fn killed_rooms_are_replaced_at_once() {
    // Also where the next health cycle is an hour away: a room's end wakes the controller.
    let settings = Settings { health_controller_interval: HOUR, ..Settings::default() };
    run(async {
        let world = world_with_settings(2, 10, settings).await;
        let victims: Vec<RoomId> = ids(&world).await[..3].to_vec();
        for victim in &victims {
            world.host().crash(victim);
        }
        world.advance(Duration::from_millis(100)).await;
        let took = settle(&world, 10, MINUTE).await;
        assert!(took < Duration::from_secs(5), "{took:?}");
        assert!(victims.iter().all(|victim| !world.host().rooms().iter().any(|room| room.id == *victim)));
        for room in ended(&world).await {
            let end = room.ended.unwrap();
            assert_eq!(end.how, "container game exited with code 1");
            assert_eq!(end.cause, EndCause::Failed);
            assert!(end.was_ready);
        }
        let why: Vec<_> = done(&world).await.into_iter().map(|operation| operation.reason).collect();
        assert!(
            why.iter().any(|reason| victims.iter().any(|victim| reason.contains(victim.as_str()))),
            "a reason names who is replaced: {why:?}"
        );
    });
}

#[test]
fn without_early_wake_ups_the_next_cycle_replaces_them() {
    let settings = Settings { early_wake_up: false, ..Settings::default() };
    run(async {
        let world = world_with_settings(14, 5, settings).await;
        world.host().crash(&ids(&world).await[0]);
        world.advance(Duration::from_millis(100)).await;
        let took = settle(&world, 5, MINUTE).await;
        assert!(took < Duration::from_secs(15), "{took:?}");
    });
}

#[test]
fn rooms_that_never_become_ready_expire_and_starts_slow_down() {
    run(async {
        let mut world = World::new(3);
        world.host().set_habits(Habits { ready_after: None, ..Habits::default() });
        world.start_engine().await;
        create(&world, 5).await;
        world.advance(HOUR).await;
        let gone = ended(&world).await;
        assert!(!gone.is_empty());
        let timeout = Settings::default().room_initialization_timeout;
        for room in &gone {
            let ended = room.ended.as_ref().unwrap();
            let lived = ended.at.duration_since(room.created_at).as_millis();
            assert!(lived >= i128::from(timeout.0), "lived {lived} ms");
            assert!(lived <= i128::from(timeout.0) + 15_000, "lived {lived} ms");
            assert!(ended.how.contains("did not become ready within"), "{}", ended.how);
            assert!(!ended.was_ready);
        }
        assert!(world.host().rooms().len() <= 5, "no more than wanted at any time");

        world.host().set_habits(Habits::default());
        settle(&world, 5, 10 * MINUTE).await;
    });
}

#[test]
fn rooms_that_crash_at_once_do_not_make_it_spin() {
    run(async {
        let mut world = World::new(4);
        world.host().set_habits(Habits {
            exits: Some(Exit { after: Span::millis(0, 50), code: 1 }),
            ..Habits::default()
        });
        world.start_engine().await;
        create(&world, 5).await;
        world.advance(HOUR).await;
        let started = ended(&world).await.len();
        // Five rooms at a time, at most once a minute when it is used to it, with a few quick attempts before.
        assert!(started > 50, "it goes on trying: {started}");
        assert!(started < 5 * 75, "it backs off: {started}");

        world.host().set_habits(Habits::default());
        let took = settle(&world, 5, 10 * MINUTE).await;
        assert!(took <= 2 * MINUTE, "a mended room is noticed: {took:?}");
    });
}

#[test]
fn rooms_that_crash_after_different_times_do_not_make_it_spin() {
    for (rooms, most_in_an_hour) in [(10, 150), (50, 600)] {
        run(async {
            let mut world = World::new(16);
            world.host().set_habits(Habits {
                exits: Some(Exit { after: Span::millis(0, 9_000), code: 1 }),
                ..Habits::default()
            });
            world.start_engine().await;
            create(&world, rooms).await;
            world.advance(HOUR).await;
            let started = ended(&world).await.len() + world.host().rooms().len();
            assert!(started > 60, "it goes on trying: {started}");
            assert!(started < most_in_an_hour, "it backs off: {started} of {rooms}");

            world.host().set_habits(Habits::default());
            let took = settle(&world, rooms, 10 * MINUTE).await;
            assert!(took <= 2 * MINUTE, "mended rooms are noticed: {took:?}");
        });
    }
}

#[test]
fn silent_rooms_expire_by_the_ping_timeout() {
    run(async {
        let world = world_with_fleet(5, 10).await;
        let silent: Vec<RoomId> = ids(&world).await[..4].to_vec();
        for room in &silent {
            world.host().silence(room);
        }
        let timeout = Settings::default().room_ping_timeout.as_duration();
        world.advance(timeout - 15 * Duration::from_secs(1)).await;
        assert!(ended(&world).await.is_empty(), "not yet");
        world.advance(MINUTE).await;
        settle(&world, 10, MINUTE).await;
        let gone = ended(&world).await;
        assert_eq!(gone.len(), 4);
        for room in gone {
            assert!(silent.contains(&room.id));
            let how = room.ended.unwrap().how;
            assert!(how.contains("has not pinged for"), "{how}");
        }
    });
}

#[test]
fn a_person_adds_and_removes_rooms() {
    run(async {
        let world = world_with_fleet(6, 10).await;
        world.engine().add_rooms(ARENA, 5, false, "ann").await.unwrap();
        settle(&world, 15, MINUTE).await;
        world.engine().remove_rooms(ARENA, 12, false, "bob").await.unwrap();
        settle(&world, 3, MINUTE).await;
        world.advance(HOUR).await;
        assert!(is_settled(&world, 3).await, "it stays where it was put");
        for operation in done(&world).await {
            assert_eq!(operation.status, OperationStatus::Finished, "{operation:?}");
            assert_eq!(operation.lease, None);
        }
    });
}

#[test]
fn an_occupied_room_is_the_last_to_go() {
    run(async {
        let world = world_with_fleet(7, 10).await;
        let busy: Vec<RoomId> = ids(&world).await[..4].to_vec();
        for room in &busy {
            world.host().begin_match(room);
        }
        world.advance(Duration::from_secs(1)).await;
        world.engine().remove_rooms(ARENA, 6, false, "ann").await.unwrap();
        world.advance(MINUTE).await;
        let left: Vec<_> = ids(&world).await;
        assert_eq!(left, busy);
        for room in world.engine().rooms(ARENA).await.unwrap() {
            assert_eq!(room.status, RoomStatus::Occupied);
        }
        assert!(world.host().rooms().iter().all(|room| room.matches == 1));
    });
}

#[test]
fn a_refused_start_undoes_what_a_person_asked_for() {
    run(async {
        let world = world_with_fleet(8, 4).await;
        world.host().set_host_faults(HostFaults {
            refuses_starts: Some("command /game does not exist".into()),
            ..HostFaults::default()
        });
        let id = world.engine().add_rooms(ARENA, 3, false, "ann").await.unwrap();
        world.advance(MINUTE).await;
        let operation = world.store().operation(&arena(), id).await.unwrap().unwrap();
        assert_eq!(operation.status, OperationStatus::Error);
        let told = operation.history.iter().any(|event| event.event.contains("command /game does not exist"));
        assert!(told, "{:?}", operation.history);
        assert!(is_settled(&world, 4).await, "and the fleet size is as it was");
    });
}

/// That another fleet was faster says nothing about a version: no back-off, no failure.
#[test]
fn a_host_that_is_full_is_no_fault_of_a_room() {
    run(async {
        let world = world_with_fleet(14, 10).await;
        world.host().set_host_faults(HostFaults { rooms_max: Some(6), ..HostFaults::default() });
        for room in &ids(&world).await[..7] {
            world.host().crash(room);
        }
        world.advance(10 * MINUTE).await;
        assert_eq!(world.host().rooms().len(), 6);
        let fleets = world.engine().fleet_overviews(&SchedulerFilter::default()).await.unwrap();
        let problem = fleets[0].problem.as_ref().unwrap();
        assert_eq!(problem.word, "no capacity", "{problem:?}");
        world.host().set_host_faults(HostFaults::default());
        settle(&world, 10, MINUTE).await;
    });
}

#[test]
fn who_asks_for_more_than_is_free_is_told() {
    run(async {
        let world = world_with_fleet(15, 4).await;
        let duel = SchedulerName::parse("duel").unwrap();
        world.engine().create_scheduler(Recipe { name: duel, ..recipe(4) }, "ann").await.unwrap();
        world.advance(MINUTE).await;
        world.host().set_host_faults(HostFaults { rooms_max: Some(8), ..HostFaults::default() });
        let id = world.engine().add_rooms(ARENA, 2, false, "ann").await.unwrap();
        world.advance(MINUTE).await;
        let operation = world.store().operation(&arena(), id).await.unwrap().unwrap();
        assert_eq!(operation.status, OperationStatus::Error);
        let told = operation.history.iter().any(|event| event.event.contains("the host holds no more rooms"));
        assert!(told, "{:?}", operation.history);
        assert_eq!(fleet_size(&world).await, Some(4));
        let ended = ended(&world).await;
        let causes: Vec<_> = ended.iter().filter_map(|row| Some(row.ended.as_ref()?.cause)).collect();
        assert!(!causes.is_empty() && causes.iter().all(|cause| *cause == EndCause::Asked), "{causes:?}");
    });
}

#[test]
fn a_host_that_does_not_answer_is_waited_for() {
    run(async {
        let world = world_with_fleet(9, 10).await;
        world.host().set_host_faults(HostFaults { available: false, ..HostFaults::default() });
        for room in &ids(&world).await[..5] {
            world.host().crash(room);
        }
        world.advance(20 * MINUTE).await;
        world.host().set_host_faults(HostFaults::default());
        settle(&world, 10, 5 * MINUTE).await;
    });
}

#[test]
fn a_lost_room_is_found_missing() {
    run(async {
        let world = world_with_fleet(10, 10).await;
        let lost = ids(&world).await[0].clone();
        world.host().lose(&lost);
        world.advance(3 * MINUTE).await;
        assert!(is_settled(&world, 10).await);
        let row = world.store().room(&arena(), &lost).await.unwrap().unwrap();
        assert_eq!(row.ended.unwrap().how, "lost: the runtime does not have it any more");
        // The cycle that found it missing did not count it.
        let cycle = told(&world).await;
        let found = format!("room {lost} lost: the runtime does not have it any more\n9 rooms, 9 ready");
        assert!(cycle.contains(&found), "{cycle}");
    });
}

#[test]
fn a_room_that_nobody_asked_for_is_stopped_and_the_history_says_so() {
    run(async {
        let world = world_with_fleet(13, 10).await;
        let invented = RoomId::new("arena-invented");
        world.host().invent(&arena(), &invented, Vec::new());
        world.advance(3 * MINUTE).await;
        assert!(is_settled(&world, 10).await);
        assert!(told(&world).await.contains("stopped room arena-invented"));
    });
}

/// All history of operations that are listed without asking for more.
async fn told(world: &World) -> String {
    let mut told = String::new();
    for operation in done(world).await {
        let whole = world.store().operation(&arena(), operation.id).await.unwrap();
        for event in whole.unwrap().history {
            told += &format!("{}\n", event.event);
        }
    }
    told
}

#[test]
fn ports_that_others_listen_to_are_not_given() {
    run(async {
        let mut world = World::new(11);
        world.start_engine().await;
        let mut recipe = recipe(10);
        recipe.port_range = Some(maestro_core::scheduler::PortRange { start: 40000, end: 40019 });
        for port in 40000..40010 {
            world.host().occupy_port(port);
        }
        world.engine().create_scheduler(recipe, "ann").await.unwrap();
        settle(&world, 10, 5 * MINUTE).await;
        // All ports are in use now: replacing a room takes the one port that its end set free.
        let victim = ids(&world).await[0].clone();
        world.host().crash(&victim);
        world.advance(Duration::from_secs(1)).await;
        settle(&world, 10, 5 * MINUTE).await;
    });
}

/// The next attempt comes later and later, and takes nothing of it back.
#[test]
fn a_fleet_keeps_the_rooms_that_there_are_ports_for() {
    run(async {
        let mut world = World::new(13);
        world.start_engine().await;
        let mut recipe = recipe(10);
        recipe.port_range = Some(maestro_core::scheduler::PortRange { start: 40000, end: 40019 });
        for port in 40000..40013 {
            world.host().occupy_port(port);
        }
        world.engine().create_scheduler(recipe, "ann").await.unwrap();
        let made = async |world: &World| world.host().rooms().len() == 7;
        world.run_until("those that fit", MINUTE, made).await;
        let before = world.host().rooms();
        world.advance(10 * MINUTE).await;
        let ids = |rooms: Vec<RoomOnHost>| rooms.into_iter().map(|room| room.id).collect::<Vec<_>>();
        assert_eq!(ids(world.host().rooms()), ids(before), "the very same");
        let adds = done(&world).await;
        let adds = adds.iter().filter(|operation| operation.definition.kind() == DefinitionKind::AddRooms);
        assert!(adds.count() < 30, "it does not try all the time");
    });
}

#[test]
fn deleting_leaves_nothing_but_its_own_record() {
    run(async {
        let world = world_with_fleet(12, 10).await;
        let id = world.engine().delete_scheduler(ARENA, "ann").await.unwrap();
        let gone = async |world: &World| world.store().scheduler(&arena()).await.unwrap().is_none();
        world.run_until("the scheduler to be gone", MINUTE, gone).await;
        assert_eq!(world.host().rooms(), []);
        assert!(world.host().schedulers().is_empty());
        assert_eq!(world.store().all_live_rooms().await.unwrap(), []);
        assert_eq!(ended(&world).await, []);
        assert_eq!(world.store().unfinished(&arena()).await.unwrap(), []);
        let record = world.store().operation(&arena(), id).await.unwrap().unwrap();
        assert_eq!(record.status, OperationStatus::Finished);
        assert_eq!(done(&world).await.len(), 1);

        create(&world, 3).await;
        settle(&world, 3, MINUTE).await;
    });
}
