//! Several engines on one store, one host and one room table.

use std::time::Duration;

use maestro_core::room::{InstanceStatus, RoomStatus};
use maestro_simulation::{Habits, NodeNumber, NodePlan, Skew, Span, World};

use super::common::*;

const SECOND: Duration = Duration::from_secs(1);

/// The first is the one that works, the others wait for it to fail.
async fn world_of(seed: u64, nodes: u64, rooms: u32) -> (World, Vec<NodeNumber>) {
    let mut world = World::new(seed);
    let mut started = Vec::new();
    for number in 0..nodes {
        let skew = Skew { millis: number as i64 * 1_500 - 1_500 };
        started.push(world.start_node(NodePlan { skew, ..NodePlan::PLAIN }).await.unwrap());
    }
    create(&world, rooms).await;
    settle(&world, rooms, MINUTE).await;
    (world, started)
}

async fn owner(world: &World) -> String {
    let workforce = world.store().workers().await.unwrap();
    workforce.ownerships.into_iter().map(|ownership| ownership.owner).collect()
}

#[test]
fn a_lost_room_table_throws_nobody_out() {
    run(async {
        let (world, _) = world_of(1, 2, 10).await;
        let rooms = world.host().rooms();
        for room in &rooms[..5] {
            world.host().begin_match(&room.id);
        }
        world.advance(10 * MINUTE).await;
        world.lose_table();
        let heard_again = async |world: &World| {
            let counts = world.engine().ports().table.counts(&arena()).await;
            counts.is_ok_and(|counts| counts.unknown == 0 && counts.matches == 5)
        };
        let took = world.run_until("all rooms to be heard of again", MINUTE, heard_again).await;
        assert!(took > SECOND, "{took:?}: rooms ping every ten seconds");
        for room in &rooms[..5] {
            world.host().end_match(&room.id);
        }
        world.advance(10 * MINUTE).await;
        let ids = |rooms: Vec<maestro_simulation::RoomOnHost>| -> Vec<_> {
            rooms.into_iter().map(|room| room.id).collect()
        };
        assert_eq!(ids(world.host().rooms()), ids(rooms), "the very same");
    });
}

/// Two engines watch a room that comes up, and what one of them saw before arrives after what the other saw then.
#[test]
fn a_late_observation_does_not_keep_a_room_from_players() {
    run(async {
        let (world, _) = world_of(12, 2, 1).await;
        let ready_after = Some(Span::exactly(2 * SECOND));
        world.host().set_habits(Habits { ready_after, ..Habits::default() });
        world.engine().add_rooms(ARENA, 1, false, "ann").await.unwrap();
        let table = &world.engine().ports().table;
        let find = async |status| {
            let rooms = table.rooms(&arena()).await.unwrap();
            rooms.into_iter().find(|room| room.status == status).map(|room| room.id)
        };
        let is_up = async |_: &World| find(RoomStatus::Unready).await.is_some();
        world.run_until("the new room to be up", 10 * SECOND, is_up).await;
        let room = find(RoomStatus::Unready).await.unwrap();
        table.observe(&arena(), &room, InstanceStatus::Pending).await.unwrap();
        assert_eq!(find(RoomStatus::Pending).await, Some(room));
        settle(&world, 2, 15 * SECOND).await;
    });
}

#[test]
fn a_frozen_engine_is_replaced_and_writes_nothing_when_it_wakes() {
    run(async {
        let (mut world, nodes) = world_of(2, 3, 5).await;
        let first = owner(&world).await;
        let frozen = *nodes.iter().find(|number| format!("engine-{number}") == first).unwrap();
        world.freeze(frozen);
        let moved = async |world: &World| owner(world).await != first;
        // The ownership's time, the clocks' difference and one look.
        world.run_until("another owner", 25 * SECOND, moved).await;
        let other = *nodes.iter().find(|number| **number != frozen).unwrap();
        world.engine_of(other).unwrap().add_rooms(ARENA, 2, false, "ann").await.unwrap();
        let grown = async |world: &World| world.host().rooms().len() == 7;
        world.run_until("seven rooms", MINUTE, grown).await;
        world.thaw(frozen);
        world.advance(5 * MINUTE).await;
        settle(&world, 7, MINUTE).await;
        world.crash_node(other).await;
        world.advance(MINUTE).await;
        settle(&world, 7, MINUTE).await;
    });
}
