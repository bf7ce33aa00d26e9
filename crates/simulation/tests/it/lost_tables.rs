//! What goes on while the room table has lost a fleet, and what waits.

use std::time::Duration;

use maestro_core::allocation::AllocationRequest;
use maestro_core::room::{PingStatus, RoomStatus};
use maestro_engine::Parts;
use maestro_engine::ports::room_table::{Ping, PingError, TableError};
use maestro_engine::{Error, Settings};
use maestro_simulation::{NodePlan, World};

use super::common::*;

const ROOMS: u32 = 4;
const SECOND: Duration = Duration::from_secs(1);

/// A fleet whose table is lost, and an engine that only answers.
async fn world_without_worker(seed: u64) -> World {
    let mut world = world_with_fleet(seed, ROOMS).await;
    world.crash_engine().await;
    world.start_node(NodePlan { parts: Parts::ROOMS_API, ..NodePlan::PLAIN }).await.unwrap();
    world.lose_table();
    world
}

#[test]
fn readers_are_told_what_the_registry_says() {
    run(async {
        let world = world_without_worker(1).await;
        let engine = world.engine();
        let rooms = engine.rooms(ARENA).await.unwrap();
        assert_eq!(rooms.len(), ROOMS as usize);
        assert!(rooms.iter().all(|room| room.status == RoomStatus::Pending && !room.host.is_empty()));
        let one = engine.room(ARENA, rooms[0].id.as_str()).await.unwrap();
        assert_eq!((one.status, one.pids), (RoomStatus::Pending, rooms[0].pids.clone()));
        let infos = engine.fleet_infos(None).await.unwrap();
        assert_eq!((infos[0].counts.by_status.total(), infos[0].counts.unknown), (ROOMS, ROOMS));
        let overviews = engine.fleet_overviews(&Default::default()).await.unwrap();
        assert_eq!(overviews[0].wanted, ROOMS);
        assert!(engine.room_address(ARENA, one.id.as_str()).await.is_ok());
    });
}

#[test]
fn nothing_is_given_away_or_heard() {
    run(async {
        let world = world_without_worker(2).await;
        let engine = world.engine();
        let refused = engine.allocate(ARENA, AllocationRequest::default()).await.unwrap_err();
        let Error::Unavailable { what, .. } = &refused else { panic!("{refused:?}") };
        assert!(what.contains("the room table has lost what it knew of scheduler arena"), "{what}");
        let rooms = engine.rooms(ARENA).await.unwrap();
        let ping = Ping::of(ARENA, rooms[0].id.as_str(), PingStatus::Ready);
        assert_eq!(engine.ping(ping).await, Err(PingError::Table(TableError::Lost(arena()))));
        // There is no such scheduler, and nothing to wait for.
        let missing = engine.allocate("nowhere", AllocationRequest::default()).await;
        assert!(matches!(missing, Err(Error::NotFound(_))), "{missing:?}");
    });
}

#[test]
fn the_owner_puts_the_rooms_into_the_table_again() {
    run(async {
        let mut world = world_without_worker(3).await;
        let before = world.host().rooms();
        world.start_node(NodePlan { parts: Parts::WORKER, ..NodePlan::PLAIN }).await.unwrap();
        settle(&world, ROOMS, MINUTE).await;
        let ids = |rooms: &[maestro_simulation::RoomOnHost]| -> Vec<_> {
            rooms.iter().map(|room| room.id.clone()).collect()
        };
        assert_eq!(ids(&world.host().rooms()), ids(&before), "the very same");
    });
}

/// Pings that are refused wake the owner, which would look only with its next cycle.
#[test]
fn a_refused_ping_is_enough_to_begin() {
    run(async {
        let settings = Settings { health_controller_interval: 10 * MINUTE, ..Settings::default() };
        let world = world_with_settings(4, ROOMS, settings).await;
        world.advance(MINUTE).await;
        world.lose_table();
        // Rooms ping every ten seconds.
        settle(&world, ROOMS, 30 * SECOND).await;
    });
}
