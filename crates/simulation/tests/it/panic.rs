//! Panic scale: one burst of rooms per event, and nothing shrinks meanwhile. Cycles are kept out of the way where only
//! the panic is looked at.

use std::time::Duration;

use maestro_core::lock::LockKind;
use maestro_core::operation::{
    Activity, Definition, DefinitionKind, Operation, OperationStatus, Origin, Stage,
};
use maestro_core::scheduler::{
    Autoscaling, OtherParameters, PanicScale, ReadyTarget, Recipe, RoomOccupancy, ScalingPolicy, Version,
};
use maestro_core::time::{Millis, age};
use maestro_engine::Settings;
use maestro_engine::ports::Store;
use maestro_engine::ports::contract::fixtures;
use maestro_simulation::{Exit, Habits, HostFaults, Span, World};

use super::common::*;

/// 13 rooms for 10 matches: a fifth is to stand ready.
pub(crate) fn panicking(panic: PanicScale) -> Autoscaling {
    let ready_target = ReadyTarget::parse("0.2").unwrap();
    let policy = ScalingPolicy::RoomOccupancy(RoomOccupancy { ready_target, down_threshold: None });
    let other_parameters = OtherParameters::default();
    let panic = Some(panic);
    Autoscaling { enabled: true, min: 10, max: None, cooldown_seconds: 0, policy, other_parameters, panic }
}

pub(crate) fn by(delta: u32) -> PanicScale {
    PanicScale { enabled: true, delta, timeout: Millis::from_seconds(30), ..PanicScale::default() }
}

/// The first cycle makes the fleet, and no other one comes.
pub(crate) fn no_cycles() -> Settings {
    let health_controller_interval = 24 * HOUR;
    Settings { health_controller_interval, early_wake_up: false, ..Settings::default() }
}

/// A fleet of ten ready rooms.
async fn world_of(seed: u64, autoscaling: Autoscaling, settings: Settings) -> World {
    let mut world = World::with_settings(seed, settings);
    world.start_engine().await;
    let recipe = Recipe { autoscaling: Some(autoscaling), ..recipe(0) };
    world.engine().create_scheduler(recipe, "ann").await.unwrap();
    until_rooms(&world, 10).await;
    world
}

/// So many rooms, and no operation in hand.
async fn until_rooms(world: &World, rooms: usize) {
    let reached = async |world: &World| {
        let listed = world.engine().rooms(ARENA).await.unwrap();
        let all_well = listed.iter().all(|room| room.last_ping_at.is_some());
        listed.len() == rooms && all_well && work_in_hand(world).await.is_empty()
    };
    world.run_until(&format!("{rooms} rooms and no work in hand"), 5 * MINUTE, reached).await;
}

async fn fill(world: &World) {
    for room in world.host().rooms() {
        if room.matches == 0 {
            world.host().begin_match(&room.id);
        }
    }
}

/// Adds that were asked for in a panic, oldest first.
pub(crate) async fn panics_in(store: &dyn Store) -> Vec<Operation> {
    let ended = store.operations(&arena(), Stage::Final, fixtures::all_operations()).await.unwrap();
    let mut panics = Vec::new();
    for listed in ended.operations {
        panics.extend(store.operation(&arena(), listed.id).await.unwrap());
    }
    panics.extend(store.unfinished(&arena()).await.unwrap());
    panics.retain(|operation| operation.origin == Origin::Panic);
    panics
}

async fn panics(world: &World) -> Vec<Operation> {
    panics_in(world.store()).await
}

async fn until_panics(world: &World, number: usize) -> Vec<Operation> {
    let reached = async |world: &World| panics(world).await.len() == number;
    world.run_until(&format!("{number} panics"), 5 * MINUTE, reached).await;
    panics(world).await
}

pub(crate) async fn is_panic_lock_free(store: &dyn Store) -> bool {
    store.locks(&arena()).await.unwrap().held(LockKind::Panic).is_none()
}

pub(crate) fn said(operation: &Operation, text: &str) -> bool {
    operation.history.iter().any(|event| event.event == text)
}

fn slow_rooms(world: &World) {
    let up_after = Span::exactly(Duration::from_secs(20));
    world.host().set_habits(Habits { up_after, ..Habits::default() });
}

#[test]
fn nearly_all_places_are_taken() {
    run(async {
        let world = world_of(1, panicking(by(3)), no_cycles()).await;
        // Nine of ten are the limit, not above it.
        for room in &ids(&world).await[..9] {
            world.host().begin_match(room);
        }
        world.advance(MINUTE).await;
        assert_eq!(panics(&world).await, []);
        fill(&world).await;
        let panic = until_panics(&world, 1).await.remove(0);
        let reason = "10 of 10 matches' places are taken (limit 90 %), 10 of 13 rooms: adding 3";
        assert_eq!((panic.reason.as_str(), panic.priority), (reason, true));
        assert_eq!(panic.definition, Definition::AddRooms { amount: 3 });
        until_rooms(&world, 13).await;
        let panic = panics(&world).await.remove(0);
        assert!(said(&panic, "added 3 rooms"), "{:#?}", panic.history);
        assert!(is_panic_lock_free(world.store()).await);
        world.advance(HOUR).await;
        assert_eq!(panics(&world).await.len(), 1);
    });
}

#[test]
fn off_unless_it_is_turned_on() {
    run(async {
        let off = PanicScale { enabled: false, ..by(3) };
        for (seed, panic) in [(2, None), (3, Some(off))] {
            let world = world_of(seed, Autoscaling { panic, ..panicking(off) }, no_cycles()).await;
            fill(&world).await;
            world.advance(HOUR).await;
            assert_eq!(panics(&world).await, []);
        }
    });
}

#[test]
fn a_new_version_turns_it_on() {
    run(async {
        let world = world_of(4, Autoscaling { panic: None, ..panicking(by(3)) }, no_cycles()).await;
        let recipe = Recipe { autoscaling: Some(panicking(by(3))), ..recipe(0) };
        world.engine().create_version(ARENA, recipe, "ann").await.unwrap();
        let active = async |world: &World| {
            let record = world.engine().scheduler(ARENA).await.unwrap();
            record.active_version != Version::FIRST
                && world.store().unfinished(&arena()).await.unwrap().is_empty()
        };
        world.run_until("the new version is active", MINUTE, active).await;
        fill(&world).await;
        until_panics(&world, 1).await;
    });
}

#[test]
fn the_next_one_waits_until_its_rooms_are_ready() {
    run(async {
        let world = world_of(5, panicking(by(3)), no_cycles()).await;
        slow_rooms(&world);
        fill(&world).await;
        let first = until_panics(&world, 1).await.remove(0);
        let parked = async |world: &World| matches!(panics(world).await[0].activity, Activity::Parked(_));
        world.run_until("it waits for its rooms", MINUTE, parked).await;
        let Activity::Parked(wait) = panics(&world).await.remove(0).activity else { unreachable!() };
        assert_eq!(wait.what, "3 rooms of a panic to be ready");
        assert!(!is_panic_lock_free(world.store()).await);
        world.advance(Duration::from_secs(15)).await;
        assert_eq!(panics(&world).await.len(), 1, "as many places are taken, and it is under way");
        until_rooms(&world, 13).await;
        fill(&world).await;
        let second = until_panics(&world, 2).await.remove(1);
        assert!(age(second.created_at, first.created_at) >= Millis::from_seconds(20));
    });
}

#[test]
fn or_until_its_time_is_up() {
    run(async {
        let world = world_of(6, panicking(by(1)), no_cycles()).await;
        world.host().set_habits(Habits { ready_after: None, ..Habits::default() });
        fill(&world).await;
        // Ten of eleven places are still too many.
        let panics = until_panics(&world, 2).await;
        let ended = panics[0].ended_at.unwrap();
        assert!(age(ended, panics[0].created_at) >= Millis::from_seconds(30));
        assert!(panics[1].created_at >= ended);
        let text = "added 1 room; 1 of them are not ready after 30";
        assert!(
            panics[0].history.iter().any(|event| event.event.starts_with(text)),
            "{:#?}",
            panics[0].history
        );
    });
}

/// The host answers nothing, for less time than it takes to call its region lost.
#[test]
fn also_if_they_cannot_even_be_started() {
    run(async {
        let hasty = PanicScale { timeout: Millis::from_seconds(5), ..by(3) };
        let world = world_of(16, panicking(hasty), no_cycles()).await;
        world.host().set_host_faults(HostFaults { available: false, ..HostFaults::default() });
        fill(&world).await;
        let first = until_panics(&world, 1).await.remove(0);
        let ended = async |world: &World| panics(world).await[0].ended_at.is_some();
        world.run_until("it has ended", Duration::from_secs(12), ended).await;
        let panic = panics(&world).await.remove(0);
        assert_eq!(panic.id, first.id);
        let text = "no more rooms are made: the panic is older than 5s";
        assert!(said(&panic, text), "{:#?}", panic.history);
        world.host().set_host_faults(HostFaults::default());
        until_panics(&world, 2).await;
        until_rooms(&world, 13).await;
    });
}

#[test]
fn no_more_than_max_leaves() {
    run(async {
        let world = world_of(7, Autoscaling { max: Some(12), ..panicking(by(5)) }, no_cycles()).await;
        fill(&world).await;
        until_panics(&world, 1).await;
        until_rooms(&world, 12).await;
        fill(&world).await;
        world.advance(HOUR).await;
        let panics = panics(&world).await;
        assert_eq!(panics.len(), 1, "at its maximum it does not panic");
        let text = "adding 2 of 5 rooms: there are 10 of at most 12 rooms, counting those being started";
        assert!(said(&panics[0], text), "{:#?}", panics[0].history);
    });
}

#[test]
fn constant_demand_does_not_flap() {
    run(async {
        let eager = PanicScale { limit: 70, ..by(3) };
        let world = world_of(8, panicking(eager), Settings::default()).await;
        fill(&world).await;
        until_rooms(&world, 13).await;
        let before = done(&world).await.len();
        world.advance(HOUR).await;
        let after = done(&world).await;
        let resized: Vec<_> = after[before..].iter().map(|operation| operation.definition.kind()).collect();
        let is_resize =
            |kind: &DefinitionKind| matches!(kind, DefinitionKind::AddRooms | DefinitionKind::RemoveRooms);
        assert!(!resized.iter().any(is_resize), "10 of 13 places are above 70 %: {resized:?}");
    });
}

#[test]
fn nothing_shrinks_before_its_rooms_are_there() {
    run(async {
        let world = world_of(9, panicking(by(6)), Settings::default()).await;
        slow_rooms(&world);
        fill(&world).await;
        until_panics(&world, 1).await;
        for room in world.host().rooms() {
            world.host().end_match(&room.id);
        }
        let removals = async |world: &World| {
            let mut removals = done(world).await;
            removals.extend(work_in_hand(world).await);
            removals.retain(|operation| operation.definition.kind() == DefinitionKind::RemoveRooms);
            removals.len()
        };
        let ready = async |world: &World| {
            let free = is_panic_lock_free(world.store()).await;
            assert!(free || removals(world).await == 0, "a removal while a panic is on its way");
            free
        };
        world.run_until("the panic is over", MINUTE, ready).await;
        until_rooms(&world, 10).await;
        assert!(removals(&world).await > 0);
        let page = fixtures::all_operations();
        let cycles = world.store().operations(&arena(), Stage::Final, page).await.unwrap().operations;
        let mut held = false;
        for cycle in cycles {
            let cycle = world.store().operation(&arena(), cycle.id).await.unwrap().unwrap();
            let text = "surplus of 6 rooms stays for now: no scale-down during a panic";
            held |= said(&cycle, text);
        }
        assert!(held, "and the cycles say why");
    });
}

/// Rooms that end early help nobody: the need stays, and what is tried becomes less.
#[test]
fn rooms_that_crash_are_not_started_by_panics_either() {
    run(async {
        let world = world_of(13, panicking(by(10)), no_cycles()).await;
        let exits = Some(Exit { after: Span::exactly(Duration::from_secs(1)), code: 1 });
        world.host().set_habits(Habits { exits, ..Habits::default() });
        fill(&world).await;
        world.advance(5 * MINUTE).await;
        let first = panics(&world).await;
        assert_eq!(
            first[0].definition,
            Definition::AddRooms { amount: 10 },
            "nobody knows yet that they crash"
        );
        world.advance(5 * MINUTE).await;
        let later = panics(&world).await.split_off(first.len());
        assert!(!later.is_empty(), "the need is still there");
        for panic in later {
            let Definition::AddRooms { amount } = panic.definition else { continue };
            assert!(amount <= 5, "{amount} rooms: {}", panic.reason);
        }
    });
}

#[test]
fn canceled_it_gives_the_lock_back() {
    run(async {
        let world = world_of(10, panicking(by(3)), no_cycles()).await;
        slow_rooms(&world);
        fill(&world).await;
        let first = until_panics(&world, 1).await.remove(0);
        let begun = async |world: &World| panics(world).await[0].status == OperationStatus::InProgress;
        world.run_until("it has begun", MINUTE, begun).await;
        world.engine().cancel_operation(ARENA, &first.id.to_string(), "ann").await.unwrap();
        let panics = until_panics(&world, 2).await;
        assert_eq!(panics[0].status, OperationStatus::Canceled);
        // It is as full as before, and now it is the next one's turn.
        assert!(panics[1].created_at >= panics[0].ended_at.unwrap());
    });
}
