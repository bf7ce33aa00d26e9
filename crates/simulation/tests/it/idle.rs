//! Fleets that need nothing: what looking after them comes to.

use std::collections::BTreeSet;

use maestro_core::operation::{DefinitionKind, Operation, OperationStatus, Stage};
use maestro_core::scheduler::{Recipe, SchedulerName};
use maestro_engine::ports::contract::fixtures;
use maestro_simulation::World;

use super::common::*;

const SCHEDULERS: usize = 30;

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
        assert!(events[1].starts_with("1 rooms, 1 ready, 0 occupied"), "{events:?}");
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
