//! What a rollout does to rooms that players are in: how many go at once, when the next ones do, and what it says.

use std::time::Duration;

use maestro_core::operation::{OperationStatus, RemovalReason};
use maestro_core::room::RoomStatus;
use maestro_core::scheduler::{MaxSurge, OccupiedRooms, Recipe, Rollout};
use maestro_core::time::{Millis, Timestamp};
use maestro_engine::ports::store::{Intent, RoomRecord};
use maestro_engine::services::RolloutPhase;
use maestro_simulation::World;

use super::common::*;
use super::rollouts::*;

const ROOMS: u32 = 6;

/// A fleet with players in all of its rooms, and a version that replaces two at once.
async fn occupied_fleet(seed: u64, rules: Rollout) -> (World, Recipe) {
    let world = world_with_fleet(seed, ROOMS).await;
    for room in ids(&world).await {
        world.host().begin_match(&room);
    }
    let occupied = async |world: &World| {
        let rooms = world.engine().rooms(ARENA).await.unwrap();
        rooms.iter().all(|room| room.status == RoomStatus::Occupied)
    };
    world.run_until("players in all rooms", MINUTE, occupied).await;
    let recipe = Recipe { max_surge: MaxSurge::Rooms(2), rollout_rules: Some(rules), ..recipe(ROOMS) };
    (world, another_command(recipe))
}

/// When rooms with players were asked to go, one entry per operation that did: when, and how many.
async fn taken(world: &World) -> Vec<(Timestamp, usize)> {
    let mut rows = ended(world).await;
    rows.extend(world.store().live_rooms(&arena()).await.unwrap());
    let stop = |row: &RoomRecord| match &row.intent {
        Intent::Stop(stop) if stop.cause == Some(RemovalReason::RollingUpdate) && stop.matches > 0 => {
            Some((stop.operation, stop.at))
        }
        Intent::Stop(_) | Intent::Run => None,
    };
    let mut stops: Vec<_> = rows.iter().filter_map(stop).collect();
    stops.sort_by_key(|(operation, at)| (*at, *operation));
    let mut taken: Vec<(Timestamp, usize)> = Vec::new();
    let mut last = None;
    for (operation, at) in stops {
        match taken.last_mut() {
            Some((_, rooms)) if last == Some(operation) => *rooms += 1,
            Some(_) | None => taken.push((at, 1)),
        }
        last = Some(operation);
    }
    taken
}

fn seconds_between(taken: &[(Timestamp, usize)]) -> Vec<f64> {
    let pairs = taken.iter().zip(taken.iter().skip(1));
    pairs.map(|((one, _), (next, _))| next.duration_since(*one).as_secs_f64()).collect()
}

#[test]
fn rooms_with_players_go_at_their_own_pace() {
    run(async {
        let (world, recipe) = occupied_fleet(3, Rollout::default()).await;
        let id = submit(&world, recipe).await;
        ended_as(&world, id, OperationStatus::Finished).await;
        let some_gone = async |world: &World| !taken(world).await.is_empty();
        world.run_until("the first players to lose their room", 10 * MINUTE, some_gone).await;
        let view = world.engine().rollout(ARENA, None).await.unwrap();
        assert_eq!(view.occupied.rooms, ROOMS - 2);
        assert!(!view.occupied.waits_for_match_end);
        let (first, _) = taken(&world).await[0];
        let next = view.occupied.next_at.unwrap().duration_since(first).as_secs_f64();
        assert!((25.0..35.0).contains(&next), "{next}");
        assert!(
            view.waiting_for.contains("4 with players; the next may be ended at "),
            "{}",
            view.waiting_for
        );
        assert!(view.waiting_for.contains("waitForMatchEnd"), "{}", view.waiting_for);
        rollout_over(&world, HOUR).await;
        let taken = taken(&world).await;
        assert_eq!(taken.iter().map(|(_, rooms)| rooms).sum::<usize>(), ROOMS as usize);
        assert!(taken.iter().all(|(_, rooms)| *rooms <= 2), "no more than a surge at once: {taken:?}");
        // Every third cycle of ten seconds.
        let gaps = seconds_between(&taken);
        assert!(gaps.iter().all(|gap| *gap > 25.0), "{gaps:?}");
    });
}

#[test]
fn the_pace_can_be_turned_off() {
    run(async {
        let rules = Rollout { occupied_interval: Millis(0), ..Rollout::default() };
        let (world, recipe) = occupied_fleet(4, rules).await;
        let id = submit(&world, recipe).await;
        ended_as(&world, id, OperationStatus::Finished).await;
        rollout_over(&world, HOUR).await;
        let gaps = seconds_between(&taken(&world).await);
        assert!(gaps.iter().any(|gap| *gap < 10.0), "early cycles take them too: {gaps:?}");
    });
}

/// The time is durable: who dies does not begin anew.
#[test]
fn a_restart_does_not_make_it_faster() {
    for seed in 0..6 {
        run(async {
            let (mut world, recipe) = occupied_fleet(seed, Rollout::default()).await;
            let id = submit(&world, recipe).await;
            ended_as(&world, id, OperationStatus::Finished).await;
            for _ in 0..20 {
                world.advance(Duration::from_secs(7)).await;
                world.crash_engine().await;
                world.start_engine().await;
            }
            rollout_over(&world, HOUR).await;
            let taken = taken(&world).await;
            let gaps = seconds_between(&taken);
            assert!(gaps.iter().all(|gap| *gap > 20.0), "{taken:?}");
        });
    }
}

#[test]
fn players_may_finish_their_match_first() {
    run(async {
        let rules = Rollout { occupied: OccupiedRooms::WaitForMatchEnd, ..Rollout::default() };
        let (world, recipe) = occupied_fleet(5, rules).await;
        let before = ids(&world).await;
        let id = submit(&world, recipe).await;
        ended_as(&world, id, OperationStatus::Finished).await;
        world.advance(10 * MINUTE).await;
        let view = world.engine().rollout(ARENA, None).await.unwrap();
        assert_eq!((view.occupied.rooms, view.occupied.waits_for_match_end), (ROOMS, true));
        assert_eq!(view.occupied.next_at, None);
        assert!(view.waiting_for.contains("which go when their matches end"), "{}", view.waiting_for);
        for room in before {
            world.host().end_match(&room);
        }
        rollout_over(&world, HOUR).await;
        assert_eq!(taken(&world).await, [], "nobody lost a room");
        assert_eq!(world.engine().rollout(ARENA, None).await.unwrap().state, RolloutPhase::None);
    });
}
