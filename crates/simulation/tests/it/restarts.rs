//! What an engine makes of a fleet that lived on without it. Unknown is not zero.

use std::time::Duration;

use maestro_core::operation::OperationStatus;
use maestro_core::room::{EndCause, RoomStatus};
use maestro_engine::ports::store::{Change, Transaction};
use maestro_simulation::{Phase, World};

use super::common::*;

const SECOND: Duration = Duration::from_secs(1);

/// Someone wants another fleet size while no engine is there.
async fn adjust_fleet_size(world: &World, delta: i64) {
    let scheduler = arena();
    let change = Change::AdjustFleetSize { scheduler, delta, of: None };
    let transaction = Transaction::of_no_scheduler("test", vec![change]);
    world.store().commit(transaction).await.unwrap();
}

#[test]
fn rooms_live_on_and_are_adopted_again() {
    run(async {
        let mut world = world_with_fleet(1, 10).await;
        let rooms = world.host().rooms();
        for _ in 0..3 {
            world.crash_engine().await;
            world.advance(MINUTE).await;
            world.start_engine().await;
            settle(&world, 10, MINUTE).await;
        }
        assert_eq!(world.host().rooms(), rooms, "the very same");
        assert!(ended(&world).await.is_empty());
    });
}

#[test]
fn nothing_is_scaled_down_before_every_room_was_heard_of() {
    run(async {
        let mut world = world_with_fleet(2, 10).await;
        world.crash_engine().await;
        adjust_fleet_size(&world, -5).await;
        world.advance(MINUTE).await;
        world.start_engine().await;
        let mut waited = 0;
        loop {
            let counts = world.engine().ports().table.counts(&arena()).await.unwrap();
            if counts.unknown == 0 {
                break;
            }
            waited += 1;
            let all_stay = world.host().rooms().iter().all(|room| room.phase == Phase::Up);
            assert!(all_stay, "{} rooms are unknown", counts.unknown);
            world.advance(Duration::from_millis(20)).await;
        }
        assert!(waited > 100, "rooms ping every ten seconds");
        settle(&world, 5, MINUTE).await;
    });
}

#[test]
fn players_are_not_thrown_out_by_a_restart() {
    run(async {
        let mut world = world_with_fleet(3, 10).await;
        let rooms = world.host().rooms();
        for room in &rooms {
            world.host().begin_match(&room.id);
        }
        world.crash_engine().await;
        adjust_fleet_size(&world, -7).await;
        world.start_engine().await;
        world.advance(10 * MINUTE).await;
        assert_eq!(world.host().rooms().len(), 10, "all serve players");
        let listed = world.engine().rooms(ARENA).await.unwrap();
        assert!(listed.iter().all(|room| room.status == RoomStatus::Occupied));
        for room in &rooms {
            world.host().end_match(&room.id);
        }
        settle(&world, 3, MINUTE).await;
    });
}

#[test]
fn rooms_that_ended_while_nobody_watched_are_replaced() {
    run(async {
        let mut world = world_with_fleet(4, 10).await;
        world.crash_engine().await;
        for room in &world.host().rooms()[..4] {
            world.host().crash(&room.id);
        }
        world.advance(MINUTE).await;
        world.start_engine().await;
        settle(&world, 10, MINUTE).await;
        let gone = ended(&world).await;
        assert_eq!(gone.len(), 4);
        for room in gone {
            let end = room.ended.unwrap();
            assert_eq!(end.how, "ended while nobody watched; how is not known");
            assert_eq!(end.cause, EndCause::Unknown);
        }
    });
}

#[test]
fn rooms_that_fell_silent_while_nobody_listened_expire() {
    run(async {
        let mut world = world_with_fleet(5, 6).await;
        world.crash_engine().await;
        let silent = world.host().rooms()[0].id.clone();
        world.host().silence(&silent);
        world.advance(30 * MINUTE).await;
        world.start_engine().await;
        world.advance(3 * MINUTE).await;
        let there = |world: &World| world.host().rooms().iter().any(|room| room.id == silent);
        assert!(there(&world), "it has the time of a ping timeout to be heard of");
        world.advance(2 * MINUTE).await;
        assert!(!there(&world));
        settle(&world, 6, MINUTE).await;
    });
}

#[test]
fn a_clean_stop_hands_over_at_once() {
    run(async {
        let mut world = world_with_fleet(6, 3).await;
        world.stop_engine().await;
        world.start_engine().await;
        world.engine().add_rooms(ARENA, 2, false, "ann").await.unwrap();
        let started = async |world: &World| world.host().rooms().len() == 5;
        let took = world.run_until("five rooms", MINUTE, started).await;
        assert!(took < 2 * SECOND, "{took:?}: nobody waits for a lease that was given up");
    });
}

#[test]
fn after_a_crash_the_next_one_waits_for_the_lease_and_no_longer() {
    run(async {
        let mut world = world_with_fleet(7, 3).await;
        world.crash_engine().await;
        world.start_engine().await;
        world.engine().add_rooms(ARENA, 2, false, "ann").await.unwrap();
        let started = async |world: &World| world.host().rooms().len() == 5;
        let took = world.run_until("five rooms", MINUTE, started).await;
        // The ownership's TTL and one sweep.
        assert!(took < 21 * SECOND, "{took:?}");
    });
}

/// Nobody could hear what rooms said in a time that never was, and nobody waits for one to come again.
#[test]
fn a_clock_that_is_set_costs_no_room_and_no_time() {
    const TEN_MINUTES_MS: i64 = 600_000;
    run(async {
        let mut world = world_with_fleet(41, 5).await;
        for (millis, rooms) in [(TEN_MINUTES_MS, 6), (-2 * TEN_MINUTES_MS, 7)] {
            world.leap_clock(millis);
            world.advance(5 * MINUTE).await;
            assert_eq!(ended(&world).await, [], "{millis}");
            world.engine().add_rooms(ARENA, 1, false, "ann").await.unwrap();
            settle(&world, rooms, MINUTE).await;
        }
        let add = world.engine().add_rooms(ARENA, 1, false, "ann").await.unwrap();
        world.leap_clock(-TEN_MINUTES_MS);
        world.crash_engine().await;
        world.start_engine().await;
        settle(&world, 8, MINUTE).await;
        let add = world.store().operation(&arena(), add).await.unwrap().unwrap();
        assert_eq!(add.status, OperationStatus::Finished);
    });
}
