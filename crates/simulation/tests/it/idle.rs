//! Fleets that need nothing: what looking after them comes to.

use std::collections::BTreeSet;
use std::time::Duration;

use maestro_core::operation::{DefinitionKind, Operation, OperationStatus, Stage};
use maestro_core::scheduler::{Recipe, SchedulerName};
use maestro_engine::Settings;
use maestro_engine::ports::contract::fixtures;
use maestro_engine::ports::store::SchedulerState;
use maestro_simulation::{Faults, PortFaults, Rate, Span, World};

use super::common::*;
use super::locks::stubborn;
use super::rollouts::*;

const SCHEDULERS: usize = 30;
const SECOND: Duration = Duration::from_secs(1);

fn name(number: usize) -> SchedulerName {
    SchedulerName::parse(&format!("arena-{number:03}")).unwrap()
}

/// With a room each, all ready.
async fn world_of_many() -> World {
    let mut world = World::new(3);
    world.start_engine().await;
    for number in 0..SCHEDULERS {
        let recipe = Recipe { name: name(number), ..recipe(1) };
        world.engine().create_scheduler(recipe, "ann").await.unwrap();
    }
    world.advance(3 * MINUTE).await;
    world
}

async fn cycles_of(world: &World, number: usize) -> Vec<Operation> {
    let page = world.store().operations(&name(number), Stage::Final, fixtures::all_operations()).await;
    let is_quiet = |operation: &Operation| {
        operation.definition.kind() == DefinitionKind::HealthController && !operation.took_action
    };
    page.unwrap().operations.into_iter().filter(is_quiet).collect()
}

#[test]
fn a_cycle_that_changes_nothing_is_one_row() {
    run(async {
        let world = world_of_many().await;
        let before = world.trace().lines().len();
        let cycles_before = cycles_of(&world, 7).await.len();
        world.advance(5 * MINUTE).await;
        let lines = world.trace().lines();
        let count = |what: &str| lines[before..].iter().filter(|line| line.contains(what)).count();
        for what in ["enqueue own", "start operation", "end operation", "take lock"] {
            assert_eq!(
                count(what),
                0,
                "{what}: {:?}",
                lines[before..].iter().find(|line| line.contains(what))
            );
        }
        // Thirty cycles each, and a clean-up now and then.
        let rows = count("no action");
        assert!((29 * SCHEDULERS..=32 * SCHEDULERS).contains(&rows), "{rows} rows");

        let cycles = cycles_of(&world, 7).await.split_off(cycles_before);
        assert!((29..=31).contains(&cycles.len()), "{} cycles in five minutes", cycles.len());
        let last = world.store().operation(&name(7), cycles[0].id).await.unwrap().unwrap();
        assert_eq!(last.status, OperationStatus::Finished);
        let events: Vec<&str> = last.history.iter().map(|event| event.event.as_str()).collect();
        assert_eq!(events.first(), Some(&"Created"));
        assert_eq!(events.last(), Some(&"Operation finished"));
        assert!(events[1].starts_with("1 room, 1 ready, 0 occupied"), "{events:?}");
        let decisions = world.engine().autoscaling_decisions(name(7).as_str()).await.unwrap();
        assert_eq!((decisions[0].total, decisions[0].ready), (1, 1));
    });
}

/// All of them began at the same moment.
#[test]
fn cycles_of_many_schedulers_are_spread_over_their_period() {
    run(async {
        let mut world = world_of_many().await;
        world.stop_engine().await;
        world.start_engine().await;
        world.advance(3 * MINUTE).await;
        let mut seconds = BTreeSet::new();
        for number in 0..SCHEDULERS {
            let cycles = cycles_of(&world, number).await;
            seconds.insert(cycles.last().unwrap().created_at.as_second() % 10);
        }
        assert!(seconds.len() >= 8, "of ten seconds only in {seconds:?}");
    });
}

/// What is recorded together is lost together, and nothing else is.
#[test]
fn a_crash_loses_records_of_nothing_at_most() {
    run(async {
        let mut world = world_of_many().await;
        for _ in 0..5 {
            world.crash_engine().await;
            world.start_engine().await;
            world.advance(MINUTE).await;
        }
        for number in 0..SCHEDULERS {
            let cycles = cycles_of(&world, number).await;
            assert!(cycles.len() >= 30, "{} cycles of {}", cycles.len(), name(number));
            assert_eq!(world.engine().rooms(name(number).as_str()).await.unwrap().len(), 1);
        }
        world.check();
    });
}

/// Something that no event tells of is found by the comparison of registry and host, which is one for all.
#[test]
fn what_differs_is_found_also_where_nothing_happens() {
    run(async {
        let world = world_of_many().await;
        let lost = world.engine().rooms(name(4).as_str()).await.unwrap()[0].id.clone();
        world.host().lose(&lost);
        let stray = maestro_core::room::RoomId::new("stray");
        world.host().invent(&name(9), &stray, Vec::new());
        world.advance(2 * MINUTE).await;
        let rooms: Vec<_> = world.rooms().into_iter().map(|room| room.id).collect();
        assert!(!rooms.contains(&stray), "it was stopped");
        let replaced = world.engine().rooms(name(4).as_str()).await.unwrap();
        assert!(replaced.len() == 1 && replaced[0].id != lost, "{replaced:?}");
        assert_eq!(rooms.len(), SCHEDULERS);
    });
}

/// However many schedulers want to know, each minute has one look at the host, beside the one for rooms of nobody.
#[test]
fn one_look_at_the_host_serves_all_schedulers() {
    run(async {
        let mut world = world_of_many().await;
        world.stop_engine().await;
        world.count_calls();
        world.start_engine().await;
        world.advance(5 * MINUTE).await;
        let looks = world.calls("list");
        assert!((10..=15).contains(&looks), "{looks} looks in five minutes");
    });
}

#[test]
fn schedulers_that_come_together_are_taken_together() {
    run(async {
        let mut world = World::new(5);
        world.start_engine().await;
        world.advance(SECOND).await;
        world.count_calls();
        for number in 0..SCHEDULERS {
            let recipe = Recipe { name: name(number), ..recipe(0) };
            world.engine().create_scheduler(recipe, "ann").await.unwrap();
        }
        world.advance(SECOND).await;
        for number in 0..SCHEDULERS {
            let record = world.store().scheduler(&name(number)).await.unwrap().unwrap();
            assert_eq!(record.state, SchedulerState::InSync);
        }
        assert_eq!(world.calls("schedulers"), 0, "names are enough");
        let looks = world.calls("scheduler_names");
        assert!((1..=15).contains(&looks), "{SCHEDULERS} new schedulers were looked for {looks} times");
    });
}

/// Rooms that change all the time, and a removal that waits for others: a turn reads neither the whole fleet nor comes for
/// each of them.
#[test]
fn rooms_that_change_are_looked_at_together() {
    const CHANGES: usize = 1500;
    run(async {
        let mut world = World::new(11);
        world.host().set_habits(stubborn());
        world.start_engine().await;
        let mut recipe = recipe(20);
        recipe.spec.termination_grace_period = MINUTE;
        world.engine().create_scheduler(recipe, "ann").await.unwrap();
        settle(&world, 20, MINUTE).await;
        world.engine().remove_rooms(ARENA, 1, false, "ann").await.unwrap();
        world.advance(5 * SECOND).await;
        assert_eq!(work_in_hand(&world).await.len(), 1, "a removal waits for its room");
        let rooms = ids(&world).await;
        world.count_calls();
        for change in 0..CHANGES {
            let room = &rooms[change % 10];
            match change / 10 % 2 {
                0 => world.host().begin_match(room),
                _ => world.host().end_match(room),
            }
            world.advance(Duration::from_millis(2)).await;
        }
        let (pings, turns, fleets) = (world.calls("ping"), world.calls("unfinished"), world.calls("fleet"));
        assert!(pings >= CHANGES, "{pings} pings");
        assert!(turns <= CHANGES / 5, "{turns} turns for {CHANGES} changes");
        assert!(fleets <= CHANGES / 150, "{fleets} times the whole fleet for {CHANGES} changes");
    });
}

#[test]
fn the_state_of_a_rollout_is_counted_and_not_read() {
    run(async {
        let world = world_with_fleet(12, 6).await;
        submit(&world, another_command(recipe(6))).await;
        rollout_over(&world, 10 * MINUTE).await;
        world.count_calls();
        let status = world.engine().rollout(ARENA, None).await.unwrap();
        assert_eq!((status.old_rooms, status.new_rooms), (0, 6));
        assert_eq!(world.calls("fleet"), 0);
        assert_eq!(world.calls("room_counts"), 1);
    });
}

/// A room died. What is gathered of a fleet includes how its rooms ended, so that is counted.
#[test]
fn what_a_look_has_found_is_not_gathered_again() {
    run(async {
        let world = world_with_fleet(12, 3).await;
        world.advance(90 * SECOND).await;
        world.count_calls();
        world.host().crash(&ids(&world).await[0]);
        let is_adding = |operation: &Operation| operation.definition.kind() == DefinitionKind::AddRooms;
        let adds = async |world: &World| work_in_hand(world).await.iter().any(is_adding);
        world.run_until("the cycle asks for a room", MINUTE, adds).await;
        assert_eq!(world.calls("fleet"), 1);
    });
}

/// The store takes its time for every answer, so that a room may die between what a look has read and the look's end.
#[test]
fn what_changes_during_a_look_is_seen_by_the_next() {
    let with_slow_store = async || {
        let settings = Settings {
            health_controller_interval: HOUR,
            storage_clean_up_interval: 100 * HOUR,
            ..Settings::default()
        };
        let world = world_with_settings(12, 3, settings).await;
        let slow = Rate::of_ten_thousand(10_000);
        let store = PortFaults { slow, slow_for: Span::millis(50, 50), ..PortFaults::NONE };
        world.set_faults(Faults { store, ..Faults::NONE });
        world.advance(MINUTE).await;
        world
    };
    let looked_at = run(async {
        let world = with_slow_store().await;
        let is_written = |line: &String| line.contains("no action of arena");
        let looks = async |world: &World| world.trace().lines().iter().any(is_written);
        world.run_until("a cycle finds nothing to do", HOUR, looks).await;
        world.elapsed()
    });
    for twentieths in 0..60 {
        run(async {
            let world = with_slow_store().await;
            world.advance(looked_at - world.elapsed() - Duration::from_millis(50 * twentieths)).await;
            world.host().crash(&world.rooms()[0].id);
            settle(&world, 3, 2 * MINUTE).await;
        });
    }
}
