//! Where rooms are made and where they go from when something is wrong: regions are lost, rooms are missing, engines die.

use std::time::Duration;

use maestro_core::operation::OperationStatus;
use maestro_simulation::{CrashPoint, Manners, NodePlan, Outage, Span, World};
use serde_json::json;

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

/// Where the room table outlives an engine, so do its claims.
#[test]
fn what_was_decided_is_kept_through_a_crash_at_every_write_of_a_resize() {
    for write in 1..=25 {
        run(async {
            let mut world = world(write, recipe(6), &[ONE, TWO]).await;
            world.stop_engine().await;
            let crash = Some(CrashPoint::Before(write));
            world.start_node(NodePlan { crash, ..NodePlan::PLAIN }).await.unwrap();
            let asked = world.ask(world.engine().resize(ARENA, &exactly(2), false, "ann")).await;
            world.crashed(MINUTE).await;
            world.crash_engine().await;
            world.start_node(NodePlan::PLAIN).await.unwrap();
            let Some(Ok(id)) = asked else { return };
            let data = data_of(&world, id, OperationStatus::Finished).await;
            assert_eq!(data["deletion"], json!({"count": 4, "regions": {ONE: 2, TWO: 2}}), "write {write}");
        });
    }
}
