//! The fleet follows the players.

use std::time::Duration;

use maestro_core::operation::Definition;
use maestro_core::room::{RoomId, RoomStatus};
use maestro_core::scheduler::{
    Autoscaling, FixedBuffer, OtherParameters, ReadyTarget, Recipe, RoomOccupancy, ScalingPolicy,
};
use maestro_engine::{Error, Settings};
use maestro_simulation::World;

use super::common::*;

fn occupancy(target: &str, min: u32, max: Option<u32>) -> Autoscaling {
    let ready_target = ReadyTarget::parse(target).unwrap();
    let policy = ScalingPolicy::RoomOccupancy(RoomOccupancy { ready_target, down_threshold: None });
    let other_parameters = OtherParameters::default();
    Autoscaling { enabled: true, min, max, cooldown_seconds: 0, policy, other_parameters, panic: None }
}

async fn world_of(seed: u64, autoscaling: Autoscaling, settings: Settings) -> World {
    let mut world = World::with_settings(seed, settings);
    world.start_engine().await;
    let recipe = Recipe { autoscaling: Some(autoscaling), ..recipe(0) };
    world.engine().create_scheduler(recipe, "ann").await.unwrap();
    world
}

async fn rooms_in(world: &World, status: RoomStatus) -> Vec<RoomId> {
    let rooms = world.engine().rooms(ARENA).await.unwrap();
    rooms.into_iter().filter(|room| room.status == status).map(|room| room.id).collect()
}

async fn until_rooms(world: &World, ready: usize, occupied: usize, bound: Duration) {
    let what = format!("{ready} ready and {occupied} occupied rooms");
    let reached = async |world: &World| {
        rooms_in(world, RoomStatus::Ready).await.len() == ready
            && rooms_in(world, RoomStatus::Occupied).await.len() == occupied
            && work_in_hand(world).await.is_empty()
    };
    world.run_until(&what, bound, reached).await;
}

#[test]
fn players_come_and_go() {
    run(async {
        let world = world_of(1, occupancy("0.5", 2, Some(20)), Settings::default()).await;
        until_rooms(&world, 2, 0, MINUTE).await;
        for (players, ready) in [(2, 2), (4, 4), (8, 8), (12, 8)] {
            let occupied = rooms_in(&world, RoomStatus::Occupied).await.len();
            for room in rooms_in(&world, RoomStatus::Ready).await.iter().take(players - occupied) {
                world.host().begin_match(room);
            }
            until_rooms(&world, ready, players, MINUTE).await;
        }
        let players = rooms_in(&world, RoomStatus::Occupied).await;
        for room in &players[..9] {
            world.host().end_match(room);
        }
        until_rooms(&world, 3, 3, MINUTE).await;
        let left = rooms_in(&world, RoomStatus::Occupied).await;
        assert!(left.iter().all(|room| players.contains(room)), "nobody who plays had to go");
        let decisions = world.engine().autoscaling_decisions(ARENA).await.unwrap();
        let said = |text: &str| decisions.iter().any(|decision| decision.reason.contains(text));
        assert!(said("12 occupied at readyTarget 0.5 → 24; max 20 → 20"), "{decisions:#?}");
        assert!(said("0 occupied at readyTarget 0.5 → 0; min 2 → 2"));
    });
}

#[test]
fn a_thousand_rooms_by_a_limit_of_a_hundred_and_fifty() {
    let settings = Settings { rooms_add_limit: 150, ..Settings::default() };
    run(async {
        let world = world_of(2, occupancy("0.5", 1000, None), settings).await;
        until_rooms(&world, 1000, 0, 10 * MINUTE).await;
        let mut amounts = Vec::new();
        for operation in done(&world).await {
            if let Definition::AddRooms { amount } = operation.definition {
                amounts.push(amount);
            }
        }
        assert_eq!(amounts, [150, 150, 150, 150, 150, 150, 100]);
    });
}

#[test]
fn a_fixed_buffer_stands_ready() {
    run(async {
        let policy = ScalingPolicy::FixedBuffer(FixedBuffer { amount: 3 });
        let world =
            world_of(3, Autoscaling { policy, ..occupancy("0.5", 1, None) }, Settings::default()).await;
        until_rooms(&world, 3, 0, MINUTE).await;
        for room in rooms_in(&world, RoomStatus::Ready).await {
            world.host().begin_match(&room);
        }
        until_rooms(&world, 3, 3, MINUTE).await;
    });
}

#[test]
fn a_cooldown_keeps_rooms_for_a_while() {
    run(async {
        let calm = Autoscaling { cooldown_seconds: 600, ..occupancy("0.5", 1, None) };
        let world = world_of(4, calm, Settings::default()).await;
        until_rooms(&world, 1, 0, MINUTE).await;
        // The first scale-down is free, the next one waits.
        for (players, bound) in [(1, MINUTE), (0, MINUTE), (1, MINUTE), (0, 11 * MINUTE)] {
            let playing = rooms_in(&world, RoomStatus::Occupied).await;
            match players {
                0 => world.host().end_match(&playing[0]),
                _ => world.host().begin_match(&rooms_in(&world, RoomStatus::Ready).await[0]),
            }
            if bound > MINUTE {
                world.advance(5 * MINUTE).await;
                assert_eq!(rooms_in(&world, RoomStatus::Ready).await.len(), 2);
            }
            until_rooms(&world, 1, players, bound).await;
        }
    });
}

#[test]
fn by_hand_only_with_force() {
    run(async {
        let world = world_of(5, occupancy("0.5", 2, Some(5)), Settings::default()).await;
        until_rooms(&world, 2, 0, MINUTE).await;
        let refused = world.engine().add_rooms(ARENA, 1, false, "ann").await.unwrap_err();
        assert!(matches!(refused, Error::Conflict(_)), "{refused}");
        world.engine().add_rooms(ARENA, 1, true, "ann").await.unwrap();
        until_rooms(&world, 2, 0, 5 * MINUTE).await;
    });
}
