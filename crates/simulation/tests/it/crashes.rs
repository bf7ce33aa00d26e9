//! The engine dies at any point, again and again; what comes after it picks up what it left.

use std::collections::BTreeMap;
use std::time::Duration;

use super::common::*;
use maestro_core::operation::{OperationStatus, Origin};
use maestro_core::room::RoomId;
use maestro_core::scheduler::VersionStatus;
use maestro_engine::ports::store::SchedulerState;
use maestro_simulation::{CrashPoint, HostFaults, Span, World};

/// More than the ownership of a dead engine lasts, a ping timeout, a cycle, a removal and a back-off.
const CONVERGES_WITHIN: Duration = Duration::from_secs(600);
/// What must have happened often in all seeds together, or they prove little.
const RARE: [&str; 7] = [
    "crash: Before",
    "crash: After",
    "store: take over",
    "store: wake operation",
    "store: request resize",
    "store: room ended",
    "asked to end",
];

#[test]
fn crashes_at_random_points_leave_nothing_behind() {
    let mut seen = BTreeMap::new();
    for seed in 0..seeds(200) {
        for line in run(troubled_life(seed)) {
            for event in RARE {
                *seen.entry(event).or_insert(0) += u32::from(line.contains(event));
            }
        }
    }
    let missed: Vec<_> = seen.iter().filter(|(_, times)| **times < 10).collect();
    assert!(missed.is_empty(), "too little happens in these runs: {missed:?}");
}

#[test]
fn the_same_seed_gives_the_same_life() {
    for seed in [0, 1, 7, 42, 4711] {
        let one = run(troubled_life(seed));
        let other = run(troubled_life(seed));
        let first_difference = one.iter().zip(&other).position(|(one, other)| one != other);
        assert_eq!(first_difference, None, "seed {seed}");
        assert_eq!(one.len(), other.len(), "seed {seed}");
        assert!(one.len() > 50, "{} lines: something happened", one.len());
    }
}

#[test]
fn a_crash_at_every_write_of_a_fleets_beginning() {
    for write in 1..=25 {
        for point in [CrashPoint::Before(write), CrashPoint::After(write)] {
            run(async {
                let mut world = World::new(write);
                world.start_engine_until(Some(point)).await;
                let created = world.ask(world.engine().create_scheduler(recipe(5), "ann")).await;
                world.crashed(30 * Duration::from_secs(1)).await;
                world.crash_engine().await;
                world.start_engine().await;
                if created.is_none() && world.store().scheduler(&arena()).await.unwrap().is_none() {
                    // Nobody was told that it was done, and it was not.
                    create(&world, 5).await;
                }
                settle(&world, 5, CONVERGES_WITHIN).await;
                check_history(&world, 5).await;
            });
        }
    }
}

#[test]
fn a_crash_at_every_write_of_a_persons_add_and_remove() {
    for write in 1..=20 {
        for point in [CrashPoint::Before(write), CrashPoint::After(write)] {
            run(async {
                let mut world = world_with_fleet(write, 4).await;
                world.stop_engine().await;
                world.start_engine_until(Some(point)).await;
                // A clean stop gave up the scheduler, so the work begins at once; rooms are heard of again first.
                world.ask(world.engine().add_rooms(ARENA, 3, false, "ann")).await;
                world.crashed(30 * Duration::from_secs(1)).await;
                world.crash_engine().await;
                world.start_engine_until(Some(point)).await;
                world.ask(world.engine().remove_rooms(ARENA, 2, false, "bob")).await;
                world.crashed(30 * Duration::from_secs(1)).await;
                world.crash_engine().await;
                world.start_engine().await;
                world.run_until("rest", CONVERGES_WITHIN, is_at_rest).await;
                check_history(&world, 4).await;
            });
        }
    }
}

#[test]
fn a_crash_at_every_write_of_a_deletion() {
    for write in 1..=20 {
        for point in [CrashPoint::Before(write), CrashPoint::After(write)] {
            run(async {
                let mut world = world_with_fleet(write, 4).await;
                world.stop_engine().await;
                world.start_engine_until(Some(point)).await;
                let asked = world.ask(world.engine().delete_scheduler(ARENA, "ann")).await;
                world.crashed(30 * Duration::from_secs(1)).await;
                world.crash_engine().await;
                world.start_engine().await;
                let state = world.store().scheduler(&arena()).await.unwrap().map(|record| record.state);
                if asked.is_none() && state == Some(SchedulerState::InSync) {
                    world.engine().delete_scheduler(ARENA, "ann").await.unwrap();
                }
                let gone = async |world: &World| world.store().scheduler(&arena()).await.unwrap().is_none();
                world.run_until("the scheduler to be gone", CONVERGES_WITHIN, gone).await;
                assert_eq!(world.host().rooms(), [], "after {point:?}");
                assert!(world.host().schedulers().is_empty(), "after {point:?}");
                assert_eq!(world.store().all_live_rooms().await.unwrap(), []);
                let kept = done(&world).await;
                assert_eq!(kept.len(), 1);
                assert_eq!(kept[0].status, OperationStatus::Finished);
            });
        }
    }
}

/// A fleet, people who change its size, rooms that crash, and engines that die; then no more faults. Returns what happened.
async fn troubled_life(seed: u64) -> Vec<String> {
    let mut random = fastrand::Rng::with_seed(seed);
    let size = random.u32(1..10);
    let mut world = world_with_fleet(seed, size).await;
    for _ in 0..random.u32(1..5) {
        world.crash_engine().await;
        world.advance(Duration::from_millis(random.u64(0..20_000))).await;
        let number = random.u64(1..40);
        let crash = match random.u32(0..3) {
            0 => None,
            1 => Some(CrashPoint::Before(number)),
            _ => Some(CrashPoint::After(number)),
        };
        // An engine does not start on a host that does not answer.
        world.host().set_host_faults(HostFaults::default());
        world.start_engine_until(crash).await;
        for _ in 0..random.u32(0..6) {
            let pause = Duration::from_millis(random.u64(0..15_000));
            if world.crashed(pause).await {
                break;
            }
            something_happens(&world, &mut random).await;
        }
    }
    world.crash_engine().await;
    quiesce(&world);
    world.start_engine().await;
    world.run_until("rest after the faults", CONVERGES_WITHIN, is_at_rest).await;
    check_history(&world, size).await;
    let rooms = world.host().rooms();
    world.advance(5 * MINUTE).await;
    assert_eq!(world.host().rooms(), rooms, "seed {seed}: it stays at rest");
    world.trace().lines()
}

/// People want something, or something goes wrong.
async fn something_happens(world: &World, random: &mut fastrand::Rng) {
    let amount = random.u32(1..5);
    let (engine, host) = (world.engine(), world.host());
    let rooms = host.rooms();
    if random.u32(0..3) == 0 || rooms.is_empty() {
        match random.u32(0..4) {
            0 | 1 => drop(world.ask(engine.add_rooms(ARENA, amount, false, "ann")).await),
            2 => drop(world.ask(engine.remove_rooms(ARENA, amount, false, "bob")).await),
            _ => cancel_something(world, random).await,
        }
        return;
    }
    let room = &rooms[random.usize(0..rooms.len())].id;
    match random.u32(0..9) {
        0 => host.crash(room),
        1 => host.lose(room),
        2 => host.silence(room),
        3 => host.begin_match(room),
        4 => host.end_match(room),
        5 => host.invent(&arena(), &RoomId::new(&format!("arena-{}", random.u32(..))), Vec::new()),
        6 => host.set_host_faults(HostFaults { available: random.bool(), ..HostFaults::default() }),
        7 => host.set_host_faults(HostFaults {
            refuses_starts: Some("there is no such program".into()),
            ..HostFaults::default()
        }),
        _ => host.set_host_faults(HostFaults { latency: Span::millis(0, 3_000), ..HostFaults::default() }),
    }
}

async fn cancel_something(world: &World, random: &mut fastrand::Rng) {
    let work = work_in_hand(world).await;
    if !work.is_empty() {
        let id = work[random.usize(0..work.len())].id.to_string();
        world.ask(world.engine().cancel_operation(ARENA, &id, "eve")).await;
    }
}

/// Nothing goes wrong any more, and all players go home.
fn quiesce(world: &World) {
    world.host().set_host_faults(HostFaults::default());
    for room in world.host().rooms() {
        for _ in 0..room.matches {
            world.host().end_match(&room.id);
        }
    }
}

/// What people asked for and was done is what the fleet size came to; nothing is left half done.
async fn check_history(world: &World, begun_with: u32) {
    let ping_timeout = world.settings().room_ping_timeout;
    world.inspector().at_rest(world.store(), &world.host().rooms(), ping_timeout).await;
    world.check();
    let done = done(world).await;
    let by_people = done.iter().filter(|operation| matches!(operation.origin, Origin::Person(_)));
    let finished = by_people.filter(|operation| operation.status == OperationStatus::Finished);
    let expected = i64::from(begun_with) + finished.map(|operation| operation.fleet_delta).sum::<i64>();
    let size = fleet_size(world).await.map(i64::from);
    if size != Some(expected) {
        world.fail(&format!("the fleet size is {size:?}, and the history says {expected}"));
    }
    // A removal that ends otherwise does not call back the rooms it chose: they go, and are replaced.
    let grown = done.iter().map(|operation| match operation.status {
        OperationStatus::Finished => operation.fleet_delta.max(0),
        _ => operation.fleet_delta.abs(),
    });
    let largest = i64::from(begun_with) + grown.sum::<i64>();
    let most = world.host().most_rooms(&arena());
    if most as i64 > largest {
        world.fail(&format!("there were {most} rooms at once, and never more than {largest} were wanted"));
    }
    let (versions, _) = world.store().versions(&arena()).await.unwrap();
    assert_eq!(versions[0].status, VersionStatus::Deployed);
    for operation in done {
        assert_eq!(operation.lease, None, "{operation:?}");
        assert!(operation.ended_at.is_some());
    }
}
