//! Rooms that nobody hears although they run: many that fall silent together, and pings that were refused.

use std::collections::BTreeSet;
use std::time::Duration;

use maestro_core::room::{Region, RoomId};
use maestro_engine::services::{RegionOrder, RegionView};
use maestro_simulation::{Outage, World};

use super::common::*;

const ROOMS: u32 = 8;

fn region() -> Region {
    Region::default_region()
}

fn running(world: &World) -> BTreeSet<RoomId> {
    world.rooms().into_iter().map(|room| room.id).collect()
}

async fn view(world: &World) -> RegionView {
    world.engine().regions().await.unwrap().remove(0)
}

/// The fleet has as many rooms beside those that are silent.
async fn are_replaced_beside(world: &World, silent: &BTreeSet<RoomId>, size: u32) {
    let replaced = async |world: &World| running(world).difference(silent).count() == size as usize;
    world.run_until("others beside them", 10 * MINUTE, replaced).await;
    assert!(silent.is_subset(&running(world)), "none of them was removed");
}

#[test]
fn rooms_that_fall_silent_together_are_replaced_beside_and_come_back() {
    run(async {
        let world = world_with_fleet(1, ROOMS).await;
        let silent = running(&world);
        world.cut_off(&region(), Outage::Pings);
        are_replaced_beside(&world, &silent, ROOMS).await;
        world.advance(10 * MINUTE).await;
        assert!(silent.is_subset(&running(&world)), "they live on");
        let view = view(&world).await;
        assert!(view.reachable && view.reason.contains("stopped pinging together"), "{view:?}");
        assert!(view.reason.contains("maestro region confirm-lost default"), "{view:?}");
        let history: String = done(&world).await.into_iter().map(|operation| operation.reason).collect();
        assert!(!history.contains("has not pinged"), "{history}");
        world.reconnect(&region());
        // All of them are heard again, and who is too many goes.
        settle(&world, ROOMS, 10 * MINUTE).await;
        assert_eq!(self::view(&world).await.reason, "");
    });
}

#[test]
fn what_is_confirmed_to_be_lost_is_removed() {
    run(async {
        let world = world_with_fleet(2, ROOMS).await;
        let silent = running(&world);
        let confirm =
            async || world.engine().order_region("default", RegionOrder::ConfirmLost, "ann", "gone").await;
        let refused = confirm().await.unwrap_err().to_string();
        assert!(refused.contains("nothing to confirm"), "{refused}");
        world.cut_off(&region(), Outage::Pings);
        are_replaced_beside(&world, &silent, ROOMS).await;
        confirm().await.unwrap();
        let gone = async |world: &World| running(world).is_disjoint(&silent);
        world.run_until("them to be gone", 5 * MINUTE, gone).await;
    });
}

#[test]
fn those_that_nobody_confirms_go_when_their_time_is_over() {
    run(async {
        let world = world_with_fleet(3, ROOMS).await;
        let silent = running(&world);
        world.cut_off(&region(), Outage::Pings);
        world.advance(25 * MINUTE).await;
        assert!(silent.is_subset(&running(&world)));
        let gone = async |world: &World| running(world).is_disjoint(&silent);
        world.run_until("them to be gone", 10 * MINUTE, gone).await;
    });
}

/// Nobody knows then what was silent before: all have the time of a ping, and are silent together again.
#[test]
fn a_restart_does_not_make_them_dead() {
    run(async {
        let mut world = world_with_fleet(4, ROOMS).await;
        let silent = running(&world);
        world.cut_off(&region(), Outage::Pings);
        world.advance(2 * MINUTE).await;
        world.crash_engine().await;
        world.start_engine().await;
        are_replaced_beside(&world, &silent, ROOMS).await;
        world.crash_engine().await;
        world.start_engine().await;
        world.advance(10 * MINUTE).await;
        assert!(silent.is_subset(&running(&world)));
        world.reconnect(&region());
        settle(&world, ROOMS, 10 * MINUTE).await;
    });
}

#[test]
fn a_few_that_fall_silent_are_removed_as_ever() {
    run(async {
        let world = world_with_fleet(5, 4).await;
        let silent = running(&world);
        world.cut_off(&region(), Outage::Pings);
        let gone = async |world: &World| running(world).is_disjoint(&silent);
        world.run_until("them to be gone", 10 * MINUTE, gone).await;
    });
}

/// As many as the rooms API refuses for lack of capacity.
#[test]
fn pings_that_were_refused_are_held_against_no_room() {
    run(async {
        let world = world_with_fleet(7, 3).await;
        let before = running(&world);
        world.cut_off(&region(), Outage::Pings);
        for _ in 0..60 {
            world.engine().pings_refused();
            world.advance(Duration::from_secs(10)).await;
        }
        assert_eq!(running(&world), before, "nobody could hear them");
        let gone = async |world: &World| running(world).is_disjoint(&before);
        world.run_until("them to be gone", 10 * MINUTE, gone).await;
    });
}
