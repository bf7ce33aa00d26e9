//! Fleets in several regions, which are cut off and come back. What is expected holds wherever rooms are placed.

use std::collections::BTreeSet;
use std::time::Duration;

use maestro_core::room::{EndCause, Region, RoomId, RoomStatus};
use maestro_core::scheduler::Recipe;
use maestro_engine::ports::contract::fixtures;
use maestro_engine::ports::store::{Change, Ended, Transaction};
use maestro_engine::services::RegionOrder;
use maestro_simulation::{HostFaults, Outage, World};

use super::common::*;

const REGIONS: [&str; 3] = ["us-east", "eu-west", "sa-east"];
const ROOMS: u32 = 6;

async fn world_of_regions(seed: u64) -> World {
    let mut world = World::with_regions(seed, &REGIONS);
    world.start_engine().await;
    create(&world, ROOMS).await;
    settle(&world, ROOMS, MINUTE).await;
    world
}

/// One that has rooms, and which.
fn some_region(world: &World) -> (Region, BTreeSet<RoomId>) {
    let host = world.hosts().find(|host| !host.rooms().is_empty()).unwrap();
    (host.region().clone(), running_in(world, host.region()))
}

fn running_in(world: &World, region: &Region) -> BTreeSet<RoomId> {
    world.host_of(region).rooms().into_iter().map(|room| room.id).collect()
}

async fn ready_outside(world: &World, lost: &Region) -> usize {
    let listed = world.engine().rooms(ARENA).await.unwrap();
    listed.iter().filter(|room| room.region != *lost && room.status == RoomStatus::Ready).count()
}

#[test]
fn each_region_has_a_host_of_its_own() {
    run(async {
        let world = world_of_regions(1).await;
        assert_eq!(world.regions(), REGIONS.map(|name| Region(name.into())));
        assert_eq!(world.host().region(), &world.regions()[0]);
        assert_eq!(world.rooms().len(), ROOMS as usize);
        for room in world.rooms() {
            let row = world.store().room(&arena(), &room.id).await.unwrap().unwrap();
            assert_eq!(row.region, room.region, "where the registry says");
            assert!(world.host_of(&room.region).schedulers().contains(&arena()));
        }
    });
}

#[test]
fn rooms_of_a_lost_region_live_on_and_are_stood_in_for() {
    for outage in [Outage::Runtime, Outage::Network] {
        run(async {
            let world = world_of_regions(2).await;
            let (lost, rooms) = some_region(&world);
            world.cut_off(&lost, outage);
            let stood_in_for = async |world: &World| ready_outside(world, &lost).await == ROOMS as usize;
            world.run_until("others to stand in", 2 * MINUTE, stood_in_for).await;
            world.advance(10 * MINUTE).await;
            assert_eq!(running_in(&world, &lost), rooms, "{outage:?}: the very same");
            let listed: BTreeSet<_> = ids(&world).await.into_iter().collect();
            assert!(rooms.is_subset(&listed), "{outage:?}: nothing was held against them");
            world.reconnect(&lost);
            settle(&world, ROOMS, 5 * MINUTE).await;
        });
    }
}

#[test]
fn an_outage_that_nobody_notices_moves_nothing() {
    run(async {
        let world = world_of_regions(3).await;
        let (lost, _) = some_region(&world);
        let before = world.rooms();
        world.cut_off(&lost, Outage::Network);
        world.advance(Duration::from_secs(8)).await;
        world.reconnect(&lost);
        world.advance(10 * MINUTE).await;
        assert_eq!(world.rooms(), before);
    });
}

/// That a runtime is slow when an engine starts says nothing about its rooms.
#[test]
fn a_restart_beside_a_region_that_is_silent_for_a_moment_moves_nothing() {
    run(async {
        let mut world = world_of_regions(8).await;
        let (silent, _) = some_region(&world);
        let before = world.rooms();
        world.crash_engine().await;
        world.cut_off(&silent, Outage::Network);
        world.start_engine().await;
        world.advance(Duration::from_secs(8)).await;
        let regions = world.engine().regions().await.unwrap();
        let view = regions.iter().find(|view| view.name == silent).unwrap();
        assert!(!view.reachable && view.reason.starts_with("is not adopted yet: "), "{view:?}");
        assert_eq!(world.rooms(), before, "nothing stands in for it yet");
        world.reconnect(&silent);
        world.advance(10 * MINUTE).await;
        assert_eq!(world.rooms(), before);
    });
}

#[test]
fn one_that_stays_silent_after_a_restart_is_stood_in_for() {
    run(async {
        let mut world = world_of_regions(9).await;
        let (lost, rooms) = some_region(&world);
        world.crash_engine().await;
        world.cut_off(&lost, Outage::Network);
        world.start_engine().await;
        let stood_in_for = async |world: &World| ready_outside(world, &lost).await == ROOMS as usize;
        world.run_until("others to stand in", 2 * MINUTE, stood_in_for).await;
        assert_eq!(running_in(&world, &lost), rooms);
        world.reconnect(&lost);
        settle(&world, ROOMS, 5 * MINUTE).await;
    });
}

/// What rooms did meanwhile is told when the region is back.
#[test]
fn a_room_that_ends_in_a_lost_region_is_replaced_when_that_is_known() {
    run(async {
        let world = world_of_regions(4).await;
        let (lost, rooms) = some_region(&world);
        let victim = rooms.first().unwrap();
        world.cut_off(&lost, Outage::Runtime);
        world.host_of(&lost).crash(victim);
        world.advance(5 * MINUTE).await;
        assert!(ids(&world).await.contains(victim), "nobody can know");
        world.reconnect(&lost);
        settle(&world, ROOMS, 5 * MINUTE).await;
        assert!(!ids(&world).await.contains(victim));
    });
}

#[test]
fn what_is_forgotten_by_force_is_stopped_when_its_region_is_back() {
    run(async {
        let world = world_of_regions(5).await;
        let (lost, rooms) = some_region(&world);
        world.cut_off(&lost, Outage::Network);
        world.advance(MINUTE).await;
        world.engine().delete_scheduler_by_force(ARENA, "ann").await.unwrap();
        let gone = async |world: &World| world.store().scheduler(&arena()).await.unwrap().is_none();
        world.run_until("the scheduler to be gone", 5 * MINUTE, gone).await;
        assert_eq!(running_in(&world, &lost), rooms);
        world.reconnect(&lost);
        world.run_until("no room", 5 * MINUTE, async |world| world.rooms().is_empty()).await;
    });
}

#[test]
fn a_cordoned_region_gets_no_new_rooms() {
    run(async {
        let world = world_of_regions(6).await;
        let (closed, rooms) = some_region(&world);
        world.engine().order_region(closed.as_str(), RegionOrder::Cordon, "ann", "slow").await.unwrap();
        world.engine().add_rooms(ARENA, 4, false, "ann").await.unwrap();
        settle(&world, ROOMS + 4, 2 * MINUTE).await;
        assert_eq!(running_in(&world, &closed), rooms);
    });
}

/// The check itself: an engine that takes what it cannot see for gone is told on.
#[test]
fn a_room_that_is_written_off_unseen_is_noticed() {
    run(async {
        let world = world_of_regions(7).await;
        let (lost, rooms) = some_region(&world);
        let write_off = async |room: &RoomId| {
            let (at, how) = (world.now(), "lost".into());
            let ended = Ended { at, how, cause: EndCause::Unknown, was_ready: true };
            let end = Change::EndRoom { scheduler: arena(), room: room.clone(), instance: None, ended };
            world
                .engine()
                .ports()
                .store
                .commit(Transaction::of_no_scheduler("room ended", vec![end]))
                .await
                .unwrap();
        };
        let mut rooms = rooms.iter();
        // It runs, and whoever wrote that could have looked.
        write_off(rooms.next().unwrap()).await;
        // Nobody was told that it is gone, which is noticed as well.
        let is_noticed =
            || world.violations().iter().any(|violation| violation.starts_with("unseen-rooms-stay: "));
        assert!(!is_noticed(), "{:?}", world.violations());
        world.cut_off(&lost, Outage::Runtime);
        write_off(rooms.next().unwrap()).await;
        assert!(is_noticed(), "{:?}", world.violations());
    });
}

/// Where no scheduler that is wanted can have a place, nothing can be done; one that is being deleted needs none.
#[test]
fn a_region_without_places_is_not_adopted_whatever_is_being_deleted() {
    run(async {
        let world = world_of_regions(14).await;
        let doomed = Recipe { name: fixtures::bystander(), ..recipe(0) };
        world.engine().create_scheduler(doomed, "ann").await.unwrap();
        settle(&world, ROOMS, MINUTE).await;
        let lost = world.regions()[0].clone();
        world.cut_off(&lost, Outage::Runtime);
        let is_lost = async |world: &World| {
            let regions = world.engine().regions().await.unwrap();
            regions.iter().any(|view| view.name == lost && !view.reachable)
        };
        world.run_until("the region to be lost", 2 * MINUTE, is_lost).await;
        // It waits for the region.
        let doomed = fixtures::bystander();
        world.engine().delete_scheduler(doomed.as_str(), "ann").await.unwrap();
        world
            .host_of(&lost)
            .set_host_faults(HostFaults { refuses_schedulers: true, ..HostFaults::default() });
        world.reconnect(&lost);
        world.advance(2 * MINUTE).await;
        assert!(is_lost(&world).await, "no room can be started there");
        world.host_of(&lost).set_host_faults(HostFaults::default());
        let gone = async |world: &World| world.store().scheduler(&doomed).await.unwrap().is_none();
        world.run_until("the other scheduler to be gone", 2 * MINUTE, gone).await;
        settle(&world, ROOMS, 5 * MINUTE).await;
    });
}
