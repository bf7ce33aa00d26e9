//! A check that never fails proves nothing: with its guard taken out of the engine, each invariant must be named.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use maestro_core::guards;
use maestro_core::invariant::Invariant;
use maestro_core::lock::{Holder, LockKind, Taker};
use maestro_core::operation::{DefinitionKind, OperationId, OperationStatus};
use maestro_core::room::{RoomId, RoomStatus};
use maestro_core::scheduler::{
    Autoscaling, FixedBuffer, OtherParameters, Recipe, ScalingPolicy, SchedulerName,
};
use maestro_core::time::Millis;
use maestro_engine::Settings;
use maestro_engine::ports::contract::{ManualClock, fixtures};
use maestro_engine::ports::store::{
    Change, Guard, NewLock, OperationStore, OperationUpdate, Store, Transaction,
};
use maestro_simulation::scenarios::{self, Kind, Options};
use maestro_simulation::{
    HostFaults, Inspector, MemoryStore, RoomOnHost, SimulatedStore, Trace, VirtualClock, World,
};

use tokio::time::sleep;

use super::common::*;

/// Runs in which the absence of a guard must show.
const SEEDS: u64 = 60;
/// Runs with faults of all kinds, in which the one that matters is rare.
const SEEDS_WITH_FAULTS: u64 = 200;
const CONVERGES_WITHIN: Duration = Duration::from_secs(300);

/// Where the absence of a guard shows.
enum Shown {
    /// In an eventful run of one fleet.
    InARun,
    /// In what a worker writes that has lost its scheduler, or in what it leaves behind.
    AtTheStore,
    /// In a run of this kind, in which calls fail.
    InRunsOf(Kind),
    /// When a room table comes back as it was before players came.
    InAnOldTable,
    /// When somebody tells late what he saw of an earlier instance of a room.
    ByALateWord,
}

fn shown(invariant: Invariant) -> Shown {
    match invariant {
        Invariant::OneExecutor | Invariant::NoLockLeft => Shown::AtTheStore,
        Invariant::CapsKept => Shown::InRunsOf(Kind::Regions),
        Invariant::RenewedStays => Shown::InRunsOf(Kind::Workers),
        Invariant::AcceptedWorkSurvives => Shown::InRunsOf(Kind::Mixed),
        Invariant::HeldOnce
        | Invariant::HeldStays
        | Invariant::AnswersKept
        | Invariant::FirstCome
        | Invariant::HoldsEnd => Shown::InRunsOf(Kind::Matchmakers),
        Invariant::EventsInOrder | Invariant::AcceptedEventsArrive => Shown::InRunsOf(Kind::Events),
        Invariant::OldIsLost => Shown::InAnOldTable,
        Invariant::OwnEnd => Shown::ByALateWord,
        Invariant::LegalTransitions
        | Invariant::EffectOnce
        | Invariant::SurgeBound
        | Invariant::ReadyTarget
        | Invariant::ReadyBeforeOccupied
        | Invariant::OccupiedStays
        | Invariant::ValidationNotCounted
        | Invariant::PortOnce
        | Invariant::TokensGrow
        | Invariant::Converges
        | Invariant::NothingInProgress
        | Invariant::NoUnwantedRoom => Shown::InARun,
    }
}

#[test]
fn without_its_guard_every_invariant_is_named() {
    let mut missed = Vec::new();
    for invariant in Invariant::ALL {
        guards::take_out(invariant);
        let named = match shown(invariant) {
            Shown::InARun => {
                (0..SEEDS).any(|seed| is_named(invariant, &run(eventful_run(seed, Ends::Early)).violations))
            }
            Shown::AtTheStore => is_named(invariant, &run(a_worker_that_lost_its_scheduler())),
            Shown::InAnOldTable => is_named(invariant, &run(a_table_from_before_the_players())),
            Shown::ByALateWord => is_named(invariant, &run(late_words_of_earlier_instances())),
            Shown::InRunsOf(kind) => {
                let options = Options { kind: Some(kind), ..Options::default() };
                (0..SEEDS_WITH_FAULTS)
                    .any(|seed| is_named(invariant, &scenarios::run(seed, &options).violations))
            }
        };
        guards::put_back();
        if !named {
            missed.push(invariant.as_str());
        }
    }
    assert!(missed.is_empty(), "nothing was noticed without the guards of {missed:?}");
}

#[test]
fn with_all_guards_nothing_is_named() {
    for seed in 0..seeds(SEEDS) {
        let outcome = run(eventful_run(seed, Ends::Early));
        assert_eq!(outcome.violations, Vec::<String>::new(), "seed {seed}");
        assert_eq!(outcome.counted, BTreeSet::new(), "seed {seed}");
    }
    assert_eq!(run(a_worker_that_lost_its_scheduler()), Vec::<String>::new());
    assert_eq!(run(a_table_from_before_the_players()), Vec::<String>::new());
    assert_eq!(run(late_words_of_earlier_instances()), Vec::<String>::new());
}

/// What an engine sees of itself, and counts in its metrics.
#[test]
fn engines_count_what_they_can_see() {
    for invariant in [
        Invariant::EffectOnce,
        Invariant::SurgeBound,
        Invariant::ReadyTarget,
        Invariant::OccupiedStays,
        Invariant::ValidationNotCounted,
        Invariant::PortOnce,
    ] {
        guards::take_out(invariant);
        let counts = |seed| run(eventful_run(seed, Ends::AtRest)).counted.contains(&invariant);
        let counted = (0..SEEDS).any(counts);
        guards::put_back();
        assert!(counted, "{invariant} was never counted");
    }
}

fn is_named(invariant: Invariant, violations: &[String]) -> bool {
    let prefix = format!("{invariant}: ");
    violations.iter().any(|violation| violation.starts_with(&prefix))
}

/// How long a run goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// When something is found.
    Early,
    AtRest,
}

struct RunOutcome {
    /// What the inspector found.
    violations: Vec<String>,
    /// What the engines have counted.
    counted: BTreeSet<Invariant>,
}

/// Players come and go, people resize, submit and cancel, rooms and engines die; then nothing fails any more.
async fn eventful_run(seed: u64, ends: Ends) -> RunOutcome {
    let mut random = fastrand::Rng::with_seed(seed);
    // Several batches for one operation.
    let settings = Settings { rooms_add_batch: 2, ..Settings::default() };
    let mut world = World::with_settings(seed, settings);
    world.start_engine().await;
    let is_autoscaled = seed.is_multiple_of(2);
    let recipe = first_recipe(&mut random, is_autoscaled);
    world.engine().create_scheduler(recipe, "ann").await.unwrap();
    pause(30_000..30_001, &mut random).await;
    let mut counted = BTreeSet::new();
    for _ in 0..random.u32(10..30) {
        if random.u32(0..10) == 0 {
            counted.extend(counted_by(&world));
            world.crash_engine().await;
            pause(0..15_000, &mut random).await;
            world.start_engine().await;
        }
        something_happens(&world, &mut random, is_autoscaled).await;
        pause(0..8_000, &mut random).await;
        if ends == Ends::Early && !world.inspector().violations().is_empty() {
            break;
        }
    }
    if ends == Ends::AtRest || world.inspector().violations().is_empty() {
        come_to_rest(&world).await;
    }
    counted.extend(counted_by(&world));
    RunOutcome { violations: world.inspector().violations(), counted }
}

fn counted_by(world: &World) -> impl Iterator<Item = Invariant> {
    let metrics = world.engine().metrics();
    Invariant::ALL.into_iter().filter(|invariant| metrics.violations(*invariant) > 0)
}

async fn come_to_rest(world: &World) {
    quiesce(world);
    let rest = async {
        while !is_calm(world).await {
            sleep(Duration::from_secs(1)).await;
        }
    };
    let came_to_rest = tokio::time::timeout(CONVERGES_WITHIN, rest).await.is_ok();
    let ping_timeout = world.settings().room_ping_timeout;
    world.inspector().at_rest(world.store(), &world.host().rooms(), ping_timeout).await;
    if !came_to_rest {
        world.inspector().not_converged(&format!("no rest within {CONVERGES_WITHIN:?}")).await;
    }
}

fn first_recipe(random: &mut fastrand::Rng, is_autoscaled: bool) -> Recipe {
    let policy = ScalingPolicy::FixedBuffer(FixedBuffer { amount: 3 });
    let other_parameters = OtherParameters::default();
    let autoscaling = Autoscaling {
        enabled: true,
        min: 4,
        max: None,
        cooldown_seconds: 0,
        policy,
        other_parameters,
        panic: None,
    };
    Recipe { autoscaling: is_autoscaled.then_some(autoscaling), ..recipe(random.u32(4..9)) }
}

async fn pause(millis: std::ops::Range<u64>, random: &mut fastrand::Rng) {
    sleep(Duration::from_millis(random.u64(millis))).await;
}

async fn something_happens(world: &World, random: &mut fastrand::Rng, is_autoscaled: bool) {
    let (engine, host) = (world.engine(), world.host());
    let amount = random.u32(1..6);
    let rooms = host.rooms();
    let room = |random: &mut fastrand::Rng| rooms.get(random.usize(0..rooms.len().max(1)));
    match random.u32(0..14) {
        0 | 1 => accepted(world, engine.add_rooms(ARENA, amount, is_autoscaled, "ann").await.ok()),
        2 => accepted(world, engine.remove_rooms(ARENA, amount.min(2), is_autoscaled, "bob").await.ok()),
        3 => cancel_something(world, random).await,
        4 | 5 => submit(world, random).await,
        6 => host.invent(&arena(), &RoomId::new(&format!("arena-{}", random.u32(..))), Vec::new()),
        7 => room(random).into_iter().for_each(|room| host.crash(&room.id)),
        8 | 9 => rooms.iter().take(amount as usize).for_each(|room| host.end_match(&room.id)),
        _ => rooms.iter().rev().take(amount as usize).for_each(|room| host.begin_match(&room.id)),
    }
}

fn accepted(world: &World, answer: Option<OperationId>) {
    if let Some(operation) = answer {
        world.inspector().accepted(ARENA, operation);
    }
}

/// A new version, mostly a major one.
async fn submit(world: &World, random: &mut fastrand::Rng) {
    let Ok(record) = world.engine().scheduler(ARENA).await else { return };
    let mut recipe = Recipe::clone(&record.recipe);
    match random.u32(0..4) {
        0 => recipe.forwarders.clear(),
        _ => recipe.spec.containers[0].image = format!("example/game:{}", random.u32(..)),
    }
    accepted(world, world.engine().create_version(ARENA, recipe, "eve").await.ok());
}

async fn cancel_something(world: &World, random: &mut fastrand::Rng) {
    let work = work_in_hand(world).await;
    if !work.is_empty() {
        let id = work[random.usize(0..work.len())].id.to_string();
        let _ = world.engine().cancel_operation(ARENA, &id, "eve").await;
    }
}

fn quiesce(world: &World) {
    world.host().set_host_faults(HostFaults::default());
    for room in world.host().rooms() {
        (0..room.matches).for_each(|_| world.host().end_match(&room.id));
    }
}

/// As many ready rooms as wanted, all of one version, and nothing left to do.
async fn is_calm(world: &World) -> bool {
    let (Ok(record), Ok(listed)) = (world.engine().scheduler(ARENA).await, world.engine().rooms(ARENA).await)
    else {
        return false;
    };
    let size = record.autoscaling().map_or(record.fleet_size, |autoscaling| autoscaling.min);
    let on_host = world.host().rooms().len();
    listed.len() == size as usize
        && on_host == listed.len()
        && listed.iter().all(|room| room.status == RoomStatus::Ready)
        && record.rollout.is_none()
        && work_in_hand(world).await.is_empty()
        && nobody_waits(world).await
}

async fn nobody_waits(world: &World) -> bool {
    world.store().locks(&arena()).await.is_ok_and(|locks| locks.waiters.is_empty())
}

/// Players come to most rooms of a fleet, the room table comes back from a dump of before, and a person takes away as many
/// rooms as were idle then.
async fn a_table_from_before_the_players() -> Vec<String> {
    const ROOMS: u32 = 10;
    let mut world = World::new(1);
    world.start_engine().await;
    create(&world, ROOMS).await;
    settle(&world, ROOMS, MINUTE).await;
    world.dump_table();
    let rooms = world.host().rooms();
    // All but two, which are neither the first nor the last.
    let busy = rooms[..4].iter().chain(&rooms[6..]);
    busy.for_each(|room| world.host().begin_match(&room.id));
    world.advance(MINUTE).await;
    world.bring_back_old_table();
    world.engine().remove_rooms(ARENA, 2, false, "ann").await.unwrap();
    // What goes wrong is told below.
    sleep(MINUTE).await;
    let stay = world.host().rooms().iter().filter(|room| room.matches > 0).count();
    assert_eq!(stay == rooms.len() - 2, guards::stands(Invariant::OldIsLost), "{stay} rooms with players");
    world.inspector().violations()
}

async fn late_words_of_earlier_instances() -> Vec<String> {
    const ROOMS: u32 = 3;
    let mut world = World::new(1);
    world.start_engine().await;
    create(&world, ROOMS).await;
    settle(&world, ROOMS, MINUTE).await;
    let rooms = world.host().rooms();
    rooms.iter().for_each(|room| world.host().recall_earlier_instance(&room.id));
    // What goes wrong is told below.
    sleep(MINUTE).await;
    let ids = |rooms: &[RoomOnHost]| rooms.iter().map(|room| room.id.clone()).collect::<Vec<_>>();
    let same = ids(&world.host().rooms()) == ids(&rooms);
    assert_eq!(same, guards::stands(Invariant::OwnEnd));
    world.inspector().violations()
}

/// Two workers on one store: the first pauses for too long, the second takes over, and the first writes on. The
/// operation that it had begun is ended by the second, and its lock with it.
async fn a_worker_that_lost_its_scheduler() -> Vec<String> {
    let trace = Trace::begin(VirtualClock::begin());
    let inspector = Inspector::new(trace.clone());
    let clock = Arc::new(ManualClock::begin());
    let memory = MemoryStore::on_clock(clock.clone());
    let reach =
        |node: &str| SimulatedStore::watched(memory.clone(), node, inspector.clone(), trace.clone(), 1);
    let (first, second) = (reach("first"), reach("second"));
    let (arena, ttl): (SchedulerName, Millis) = (fixtures::arena(), Millis::from_seconds(10));
    let requested = vec![
        Change::CreateScheduler(fixtures::new_scheduler(&arena)),
        Change::Enqueue(fixtures::new_operation(1)),
    ];
    first.commit(Transaction::of_no_scheduler("request", requested)).await.unwrap();
    let lost = first.own(&arena, "first", ttl).await.unwrap().unwrap();
    let guard = |token| Guard { scheduler: arena.clone(), token, operation: None, locks: Vec::new() };
    let holder = Holder::Operation { kind: DefinitionKind::AddRooms, id: fixtures::operation_id(1) };
    let lock = Change::TakeLock(NewLock {
        scheduler: arena.clone(),
        kind: LockKind::Downscaling,
        taker: Taker::of(holder),
        reason: "rooms on their way".into(),
        ttl: None,
    });
    let begun = vec![fixtures::start(1), lock];
    first.commit(Transaction::guarded("start operation", guard(lost), begun)).await.unwrap();

    clock.advance(ttl);
    let token = second.own(&arena, "second", ttl).await.unwrap().unwrap();
    let late = vec![Change::UpdateOperation(OperationUpdate::of(fixtures::operation_id(1)))];
    let refused = first.commit(Transaction::guarded("step", guard(lost), late)).await;
    assert_eq!(refused.is_err(), guards::stands(Invariant::OneExecutor));
    let end = vec![fixtures::end(1, OperationStatus::Finished)];
    second.commit(Transaction::guarded("end operation", guard(token), end)).await.unwrap();
    inspector.at_rest(&*memory, &[], Millis::from_seconds(60)).await;
    inspector.violations()
}
