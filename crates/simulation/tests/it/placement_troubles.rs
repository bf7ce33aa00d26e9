//! Where rooms are made and where they go from when something is wrong: regions are lost, rooms are missing, engines die.

use std::time::Duration;

use maestro_simulation::{Manners, Outage, Span, World};

use super::common::*;
use super::placement::*;

#[test]
fn an_add_does_not_wait_for_a_region_that_is_lost_meanwhile() {
    run(async {
        let world = world(0, recipe(3), &[ONE, TWO, THREE]).await;
        let latency = Span::exactly(Duration::from_millis(600));
        world.host_of(&region(TWO)).set_manners(Manners { latency, ..Manners::default() });
        world.engine().add_rooms(ARENA, 6, false, "ann").await.unwrap();
        let is_starting = async |world: &World| {
            let rows = world.store().live_rooms(&arena()).await.unwrap();
            rows.iter().any(|row| row.region == region(TWO) && row.handle.is_none())
        };
        world.run_until("rooms to be written down", MINUTE, is_starting).await;
        world.cut_off(&region(TWO), Outage::Network);
        world.advance(3 * MINUTE).await;
        let waiting = work_in_hand(&world).await;
        assert!(waiting.is_empty(), "{waiting:?}");
    });
}
