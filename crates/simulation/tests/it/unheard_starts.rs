//! Rooms whose start nobody could write down: they are found, and count as what they are.

use maestro_core::room::RoomStatus;
use maestro_core::time::{Millis, after};
use maestro_engine::ports::store::{Change, NewAllocation, Transaction};
use maestro_simulation::{Habits, HostFaults, NodePlan, Phase, Span, World};

use super::common::*;
use super::waits::until;

const ROOMS: u32 = 3;

/// A world whose host has started the rooms of a fleet and answers nobody since. The rooms are heard.
async fn world_of_unheard_starts(seed: u64) -> World {
    let mut world = World::new(seed);
    world.start_engine().await;
    // All take as long, so that none has answered when the last has begun.
    world.host().set_host_faults(HostFaults { latency: Span::millis(20, 20), ..HostFaults::default() });
    create(&world, ROOMS).await;
    until(&world, async |world: &World| world.rooms().len() == ROOMS as usize).await;
    world.host().set_host_faults(HostFaults { available: false, ..HostFaults::default() });
    let all_pinged = async |world: &World| {
        let rooms = world.engine().rooms(ARENA).await.unwrap();
        rooms.iter().filter(|room| room.last_ping_at.is_some()).count() == ROOMS as usize
    };
    world.run_until("all rooms to be heard", MINUTE, all_pinged).await;
    let rows = world.store().live_rooms(&arena()).await.unwrap();
    assert!(rows.iter().all(|row| row.handle.is_none()), "{rows:#?}");
    world
}

#[test]
fn rooms_that_are_found_running_are_ready_soon() {
    for (seed, table_is_lost) in [(51, false), (52, true)] {
        run(async {
            let world = world_of_unheard_starts(seed).await;
            if table_is_lost {
                world.lose_table();
            }
            world.host().set_host_faults(HostFaults::default());
            // Those that did not count as ready would be replaced, and the new ones settle as well, but later.
            settle(&world, ROOMS, MINUTE).await;
            assert_eq!(ended(&world).await, []);
        });
    }
}

#[test]
fn rooms_that_are_made_again_are_not_ready_by_what_the_earlier_ones_said() {
    run(async {
        let mut world = world_of_unheard_starts(53).await;
        world.crash_engine().await;
        for room in world.rooms() {
            world.host().lose(&room.id);
        }
        world.host().set_habits(Habits { ready_after: None, ..Habits::default() });
        world.host().set_host_faults(HostFaults::default());
        // The room table outlives it, as one that several share.
        world.start_node(NodePlan::PLAIN).await.unwrap();
        let made_again = async |world: &World| {
            let rows = world.store().live_rooms(&arena()).await.unwrap();
            rows.iter().all(|row| row.handle.is_some())
        };
        world.run_until("the rooms to be made again", MINUTE, made_again).await;
        let rooms = world.engine().rooms(ARENA).await.unwrap();
        assert!(rooms.iter().all(|room| room.status != RoomStatus::Ready), "{rooms:#?}");
        assert_eq!(world.rooms().len(), ROOMS as usize);
    });
}

/// The worker that started the room went away before it could write that down, and a matchmaker was given the room meanwhile.
#[test]
fn a_room_that_was_given_away_is_recalled_so_that_its_hold_ends() {
    run(async {
        let world = world_of_unheard_starts(55).await;
        let store = &world.engine().ports().store;
        let row = world.store().live_rooms(&arena()).await.unwrap().remove(0);
        let (random, now) = (&world.engine().ports().random, world.engine().ports().clock.now());
        let given = NewAllocation {
            id: random.allocation_id(now),
            scheduler: arena(),
            room: row.id.clone(),
            number: row.claim_number.next(),
            matches_max: 1,
            request: None,
            created_at: now,
            expires_at: after(now, Millis::from_seconds(30)),
            metadata: None,
        };
        store.commit(Transaction::new("test", &arena(), vec![Change::Allocate(given)])).await.unwrap();
        world.lose_table();
        for operation in world.store().unfinished(&arena()).await.unwrap() {
            if operation.definition.adds().is_some() {
                world.engine().cancel_operation(ARENA, &operation.id.to_string(), "ann").await.unwrap();
            }
        }
        world.host().set_host_faults(HostFaults::default());
        let is_over = async |world: &World| {
            let store = world.store();
            let adds = store.unfinished(&arena()).await.unwrap();
            let adds = adds.iter().any(|operation| operation.rollback.is_some());
            !adds && store.open_allocations(None).await.unwrap().is_empty()
        };
        world.run_until("the hold to end, and the canceled operation", 5 * MINUTE, is_over).await;
        settle(&world, ROOMS, MINUTE).await;
    });
}

#[test]
fn what_only_a_dead_worker_would_have_seen_is_looked_at_again() {
    run(async {
        let mut world = World::new(54);
        world.host().set_habits(Habits { up_after: Span::millis(1_000, 1_000), ..Habits::default() });
        let owner = world.start_node(NodePlan::PLAIN).await.unwrap();
        create(&world, ROOMS).await;
        world.start_node(NodePlan::PLAIN).await.unwrap();
        let started = async |world: &World| {
            let rows = world.store().live_rooms(&arena()).await.unwrap();
            rows.iter().filter(|row| row.handle.is_some()).count() == ROOMS as usize
        };
        until(&world, started).await;
        world.crash_node(owner).await;
        assert!(world.rooms().iter().all(|room| room.phase == Phase::Starting));
        settle(&world, ROOMS, MINUTE).await;
        assert_eq!(ended(&world).await, []);
    });
}
