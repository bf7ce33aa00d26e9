//! Rooms that nobody hears although they run: many that fall silent together, and pings that were refused.

use std::collections::BTreeSet;
use std::time::Duration;

use maestro_core::operation::OperationStatus;
use maestro_core::room::{Region, RoomId, RoomStatus};
use maestro_core::scheduler::VersionStatus;
use maestro_engine::Parts;
use maestro_engine::ports::store::RolloutState;
use maestro_engine::services::{RegionOrder, RegionView, RolloutPhase, SchedulerFilter};
use maestro_simulation::{NodePlan, Outage, World};

use super::common::*;
use super::rollouts::{another_command, ended_as, rollout_over, statuses, submit};

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
        assert!(history.contains("(and 8 that stopped pinging together)"), "{history}");
        shown_as_silent(&world, &silent).await;
        world.reconnect(&region());
        // All of them are heard again, and who is too many goes.
        settle(&world, ROOMS, 10 * MINUTE).await;
        assert_eq!(self::view(&world).await.reason, "");
    });
}

/// Wherever one looks.
async fn shown_as_silent(world: &World, silent: &BTreeSet<RoomId>) {
    let rooms = world.engine().rooms(ARENA).await.unwrap();
    let shown: BTreeSet<_> =
        rooms.iter().filter(|room| room.silent.is_some()).map(|room| room.id.clone()).collect();
    assert_eq!(shown, *silent);
    let fleets = world.engine().fleet_overviews(&SchedulerFilter::default()).await.unwrap();
    let problem = fleets[0].problem.as_ref().unwrap();
    assert_eq!(problem.word, "silent", "{problem:?}");
    let ready = fleets[0].info.counts.by_status.of(RoomStatus::Ready);
    assert_eq!(ready, 0, "nobody is heard");
}

/// Those that replace them are not heard either. That is no fault of theirs.
#[test]
fn rooms_that_start_where_nobody_is_heard_have_not_failed() {
    run(async {
        let world = world_with_fleet(8, ROOMS).await;
        let silent = running(&world);
        world.cut_off(&region(), Outage::Pings);
        are_replaced_beside(&world, &silent, ROOMS).await;
        let all = running(&world);
        world.advance(15 * MINUTE).await;
        assert_eq!((running(&world), ended(&world).await.len()), (all, 0), "the same ones, all the time");
        // Nor is what they could not say held against them afterwards.
        world.engine().order_region("default", RegionOrder::ConfirmLost, "ann", "gone").await.unwrap();
        let gone = async |world: &World| running(world).is_disjoint(&silent);
        world.run_until("the silent ones to be gone", MINUTE, gone).await;
        let beside = running(&world);
        world.reconnect(&region());
        settle(&world, ROOMS, MINUTE).await;
        assert_eq!(running(&world), beside);
    });
}

/// Where others are heard they have failed: as soon as the region is not silent any more.
#[test]
fn rooms_that_stay_unheard_after_that_have_failed() {
    run(async {
        let world = world_with_fleet(9, ROOMS).await;
        let silent = running(&world);
        world.cut_off(&region(), Outage::Pings);
        are_replaced_beside(&world, &silent, ROOMS).await;
        world.engine().order_region("default", RegionOrder::ConfirmLost, "ann", "gone").await.unwrap();
        let failed = async |world: &World| ended(world).await.iter().any(|row| !silent.contains(&row.id));
        world.run_until("others to fail", 10 * MINUTE, failed).await;
    });
}

#[test]
fn a_rollout_outlives_a_silence() {
    run(async {
        let world = world_with_fleet(10, ROOMS).await;
        let id = submit(&world, another_command(recipe(ROOMS))).await;
        ended_as(&world, id, OperationStatus::Finished).await;
        world.cut_off(&region(), Outage::Pings);
        let waits = async |world: &World| {
            let view = world.engine().rollout(ARENA, None).await.unwrap();
            view.waiting_for
                .contains("in region default that stopped pinging together to ping, or to be removed at")
        };
        world.run_until("the rollout to wait for silent rooms", 10 * MINUTE, waits).await;
        // Longer than five rooms in a row would take to fail.
        world.advance(15 * MINUTE).await;
        let view = world.engine().rollout(ARENA, None).await.unwrap();
        assert_eq!(view.state, RolloutPhase::Replacing(RolloutState::Rolling), "{view:?}");
        world.reconnect(&region());
        rollout_over(&world, 30 * MINUTE).await;
        assert_eq!(statuses(&world).await["v2.0.0"], VersionStatus::Deployed);
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

/// An engine that makes no plans has not noticed by itself.
#[test]
fn who_only_answers_requests_can_confirm_it() {
    run(async {
        let mut world = world_with_fleet(11, ROOMS).await;
        let api = world.start_node(NodePlan { parts: Parts::ROOMS_API, ..NodePlan::PLAIN }).await.unwrap();
        let silent = running(&world);
        world.cut_off(&region(), Outage::Pings);
        are_replaced_beside(&world, &silent, ROOMS).await;
        let engine = world.engine_of(api).unwrap();
        engine.order_region("default", RegionOrder::ConfirmLost, "ann", "gone").await.unwrap();
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
