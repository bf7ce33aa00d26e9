//! Where rooms are made and where they go from when something is wrong: regions are lost, rooms are missing, engines die.

use std::time::Duration;

use maestro_core::operation::{Operation, OperationStatus};
use maestro_core::room::RoomStatus;
use maestro_core::scheduler::{OnFailure, Recipe, Rollout};
use maestro_engine::ports::store::RolloutState;
use maestro_engine::services::{RegionOrder, RolloutPhase};
use maestro_simulation::{CrashPoint, Habits, HostFaults, NodePlan, Outage, Span, World};
use serde_json::json;

use super::common::*;
use super::panic::{by, panicking, panics_in};
use super::placement::*;
use super::rollouts::submit;

#[test]
fn an_add_does_not_wait_for_a_region_that_is_lost_meanwhile() {
    run(async {
        let world = world(0, recipe(3), &[ONE, TWO, THREE]).await;
        let latency = Span::exactly(Duration::from_millis(600));
        world.host_of(&region(TWO)).set_host_faults(HostFaults { latency, ..HostFaults::default() });
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

#[test]
fn a_removal_does_not_wait_for_rooms_that_cannot_be_reached() {
    run(async {
        let mut world = World::with_regions(7, &[ONE, TWO]);
        let stubborn = Habits { obeys_after: Some(Span::exactly(5 * MINUTE)), ..Habits::default() };
        world.host_of(&region(TWO)).set_habits(stubborn);
        world.start_engine().await;
        let mut slow_to_go = recipe(4);
        slow_to_go.spec.termination_grace_period = 10 * MINUTE;
        world.engine().create_scheduler(slow_to_go, "ann").await.unwrap();
        settle(&world, 4, MINUTE).await;
        let removal = world.engine().remove_rooms(ARENA, 2, false, "ann").await.unwrap();
        let one_is_gone = async |world: &World| spread(world).await.get(ONE) == Some(&1);
        world.run_until("the other region's room to go", MINUTE, one_is_gone).await;
        world.cut_off(&region(TWO), Outage::Network);
        let removal = finished(&world, removal).await;
        let event = "removed 2 rooms; 1 out of reach: removed when their region is back";
        assert!(removal.history.iter().any(|history| history.event == event), "{:?}", removal.history);
        world.reconnect(&region(TWO));
        settle(&world, 2, 10 * MINUTE).await;
        is_spread(&world, &[(ONE, 1), (TWO, 1)]).await;
    });
}

#[test]
fn a_smaller_size_takes_no_room_that_is_part_of_it() {
    run(async {
        let world = world(1, recipe(10), &[ONE, TWO]).await;
        let engine = world.engine();
        engine.order_region(ONE, RegionOrder::Cordon, "ann", "full").await.unwrap();
        world.cut_off(&region(TWO), Outage::Network);
        world.advance(2 * MINUTE).await;
        is_spread(&world, &[(ONE, 5), (TWO, 5)]).await;
        finished(&world, engine.resize(ARENA, &exactly(6), false, "ann").await.unwrap()).await;
        world.advance(MINUTE).await;
        is_spread(&world, &[(ONE, 5), (TWO, 5)]).await;
        assert_eq!(fleet_size(&world).await, Some(6));
        finished(&world, engine.resize(ARENA, &exactly(2), false, "ann").await.unwrap()).await;
        world.advance(MINUTE).await;
        is_spread(&world, &[(ONE, 2), (TWO, 5)]).await;
    });
}

#[test]
fn a_fleet_that_lacks_rooms_can_be_made_smaller() {
    run(async {
        let world = world(2, placed(0, &[(ONE, 1, Some(3)), (TWO, 1, Some(2))]), &[ONE, TWO]).await;
        let engine = world.engine();
        finished(&world, submit(&world, placed(20, &[(ONE, 1, Some(3)), (TWO, 1, Some(2))])).await).await;
        let full = async |world: &World| spread(world).await.values().sum::<usize>() == 5;
        world.run_until("as many as fit", 5 * MINUTE, full).await;
        let smaller = engine.resize(ARENA, &exactly(4), false, "ann").await.unwrap();
        let data = data_of(&world, smaller, OperationStatus::Finished).await;
        assert_eq!(data, json!({"status": "OK", "deletion": {"count": 1, "regions": {ONE: 1}}}));
        settle(&world, 4, MINUTE).await;
        is_spread(&world, &[(ONE, 2), (TWO, 2)]).await;
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

#[test]
fn a_panic_takes_the_place_that_caps_leave() {
    run(async {
        let mut recipe = placed(0, &[(ONE, 1, Some(7)), (TWO, 1, Some(7))]);
        recipe.autoscaling = Some(panicking(by(10)));
        let mut world = World::with_regions(3, &[ONE, TWO]);
        world.start_engine().await;
        world.engine().create_scheduler(recipe, "ann").await.unwrap();
        let ready = async |world: &World| {
            let rooms = world.engine().rooms(ARENA).await.unwrap();
            rooms.iter().filter(|room| room.status == RoomStatus::Ready).count() == 10
        };
        world.run_until("ten ready rooms", 5 * MINUTE, ready).await;
        for host in world.hosts() {
            host.rooms().iter().for_each(|room| host.begin_match(&room.id));
        }
        world.advance(2 * MINUTE).await;
        let panics = panics_in(world.store()).await;
        assert_eq!(panics[0].data["creation"], json!({"count": 4, "regions": {ONE: 2, TWO: 2}}));
        assert!(panics.iter().all(|panic| panic.status == OperationStatus::Finished), "{panics:?}");
    });
}

#[test]
fn while_a_rollout_is_halted_rooms_go_where_their_own_recipe_says() {
    run(async {
        let rules = Rollout { on_failure: OnFailure::Halt, ..Rollout::default() };
        let bound_to = |name| {
            let mut recipe = Recipe { rollout_rules: Some(rules), ..recipe(4) };
            recipe.spec.region = Some(region(name));
            recipe
        };
        let world = world(4, bound_to(ONE), &[ONE, TWO]).await;
        finished(&world, submit(&world, bound_to(TWO)).await).await;
        world.host_of(&region(TWO)).set_habits(Habits { ready_after: None, ..Habits::default() });
        let halted = async |world: &World| {
            world.engine().rollout(ARENA, None).await.unwrap().state
                == RolloutPhase::Replacing(RolloutState::Halted)
        };
        world.run_until("the rollout to halt", 3 * HOUR, halted).await;
        world.advance(HOUR).await;
        is_spread(&world, &[(ONE, 4)]).await;
        let host = world.host_of(&region(ONE));
        host.crash(&host.rooms()[0].id);
        world.advance(MINUTE).await;
        is_spread(&world, &[(ONE, 4)]).await;
    });
}

/// Nothing that is still there is in the policy, which says nothing about rooms to be taken then.
#[test]
fn what_a_policy_refuses_is_not_asked_for_all_the_time() {
    run(async {
        let world = world(9, recipe(8), &[ONE, TWO]).await;
        world.cut_off(&region(TWO), Outage::Network);
        world.advance(2 * MINUTE).await;
        submit(&world, placed(2, &[(TWO, 1, None)])).await;
        world.advance(MINUTE).await;
        let asked = async |world: &World| {
            let refused = |operation: &Operation| operation.status == OperationStatus::Error;
            done(world).await.into_iter().filter(refused).count()
        };
        let before = asked(&world).await;
        assert!(before > 0);
        world.advance(MINUTE).await;
        let after = asked(&world).await;
        // Each cycle that is due, and as many early ones.
        assert!((1..15).contains(&(after - before)), "{before}, {after}");
    });
}
