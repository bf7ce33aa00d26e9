//! Operations that meet what others have begun, or a region that is away: nobody waits for somebody who waits for them,
//! and what was accepted is done.

use std::time::Duration;

use maestro_core::lock::{Holder, LockKind};
use maestro_core::operation::{Activity, OperationStatus};
use maestro_core::room::Region;
use maestro_core::scheduler::PortRange;
use maestro_engine::Settings;
use maestro_engine::ports::store::{Intent, RoomRecord};
use maestro_simulation::{HostFaults, NodePlan, Outage, World};

use super::common::*;
use super::locks::{V2, operation, says, until_held};
use super::rollouts::{another_command, ended_as, submit};

const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

async fn rows(world: &World) -> Vec<RoomRecord> {
    world.store().live_rooms(&arena()).await.unwrap()
}

fn is_asked_to_go(row: &RoomRecord) -> bool {
    matches!(row.intent, Intent::Stop(_))
}

/// The engine dies after two rooms were written down as leaving and before anybody was asked. The next one does not know
/// the other rooms, so the removal waits without its lock; then a rollout has it, which must not wait for the two.
#[test]
fn a_removal_that_waits_has_asked_those_that_it_chose() {
    run(async {
        let mut world = world_with_fleet(31, 10).await;
        let removal = world.engine().remove_rooms(ARENA, 2, false, "ann").await.unwrap();
        until(&world, async |world: &World| rows(world).await.iter().any(is_asked_to_go)).await;
        world.crash_engine().await;
        assert_eq!(world.host().rooms().len(), 10, "nobody was asked");
        world.lose_table();
        world.start_engine().await;
        submit(&world, another_command(recipe(8))).await;
        until_held(&world, LockKind::Config, Holder::Rollout(V2)).await;
        ended_as(&world, removal, OperationStatus::Finished).await;
        settle(&world, 8, 5 * MINUTE).await;
    });
}

#[test]
fn what_is_undone_does_not_wait_for_a_region() {
    run(async {
        let mut world = World::with_regions(32, &["eu-west", "us-east"]);
        world.start_engine().await;
        create(&world, 0).await;
        settle(&world, 0, MINUTE).await;
        // Of a batch, those in one region are started, and the others never are.
        let (near, far) = (Region("eu-west".into()), Region("us-east".into()));
        world.host_of(&far).set_host_faults(HostFaults { available: false, ..HostFaults::default() });
        let add = world.engine().add_rooms(ARENA, 4, false, "ann").await.unwrap();
        let started = async |world: &World| {
            rows(world).await.iter().filter(|row| row.region == near && row.handle.is_some()).count() == 2
        };
        world.run_until("two rooms to be there", MINUTE, started).await;
        world.cut_off(&near, Outage::Network);
        world.cut_off(&far, Outage::Network);
        let ended = ended_as(&world, add, OperationStatus::Error).await;
        assert!(
            says(&ended, "2 rooms out of reach: removed when their region is back"),
            "{:#?}",
            ended.history
        );
        world.engine().delete_scheduler_by_force(ARENA, "ann").await.unwrap();
        let gone = async |world: &World| world.store().scheduler(&arena()).await.unwrap().is_none();
        world.run_until("the scheduler to be gone", 5 * MINUTE, gone).await;
    });
}

/// Rooms that an addition has written down and could not start yet are as good as any others that serve nobody.
#[test]
fn what_others_take_from_an_addition_is_no_failure_of_it() {
    run(async {
        let world = world_with_fleet(33, 10).await;
        let add = world.engine().add_rooms(ARENA, 10, false, "ann").await.unwrap();
        until(&world, async |world: &World| rows(world).await.len() == 20).await;
        world.host().set_host_faults(HostFaults { available: false, ..HostFaults::default() });
        let waits = async |world: &World| operation(world, add).await.is_parked();
        world.run_until("the addition to wait", MINUTE, waits).await;
        let removal = world.engine().remove_rooms(ARENA, 5, false, "bob").await.unwrap();
        let chosen =
            async |world: &World| rows(world).await.iter().filter(|row| is_asked_to_go(row)).count() == 5;
        world.run_until("five to be asked to go", 10 * SECOND, chosen).await;
        let unstarted = |row: &RoomRecord| row.handle.is_none();
        assert!(rows(&world).await.iter().filter(|row| is_asked_to_go(row)).all(unstarted));
        world.host().set_host_faults(HostFaults::default());
        let ended = ended_as(&world, add, OperationStatus::Finished).await;
        assert!(says(&ended, "5 of them were asked to go before they were started"), "{:#?}", ended.history);
        ended_as(&world, removal, OperationStatus::Finished).await;
        settle(&world, 15, MINUTE).await;
    });
}

/// The engine dies while an addition waits in its queue, and the next one has not seen the region yet.
#[test]
fn accepted_work_waits_for_a_region_that_is_not_adopted_yet() {
    run(async {
        let mut world = world_with_fleet(34, 3).await;
        world.crash_engine().await;
        world.host().set_host_faults(HostFaults { available: false, ..HostFaults::default() });
        world.start_node(NodePlan::PLAIN).await.unwrap();
        let add = world.engine().add_rooms(ARENA, 2, false, "ann").await.unwrap();
        let version = submit(&world, another_command(recipe(5))).await;
        world
            .run_until("both to wait", 12 * SECOND, async |world: &World| {
                let waits = async |id| match operation(world, id).await.activity {
                    Activity::Parked(wait) => wait.what.contains("is not adopted yet"),
                    Activity::Executing => false,
                };
                waits(add).await && waits(version).await
            })
            .await;
        world.host().set_host_faults(HostFaults::default());
        ended_as(&world, add, OperationStatus::Finished).await;
        ended_as(&world, version, OperationStatus::Finished).await;
        settle(&world, 5, 5 * MINUTE).await;
    });
}

/// To the millisecond.
pub(crate) async fn until(world: &World, what: impl AsyncFn(&World) -> bool) {
    for _ in 0..60_000 {
        if what(world).await {
            return;
        }
        world.advance(MILLISECOND).await;
    }
    panic!("not within a minute");
}

/// They were written down long ago; that is not when they began.
#[test]
fn rooms_that_are_started_late_have_their_time() {
    run(async {
        let mut world = World::new(35);
        world.start_engine().await;
        create(&world, 5).await;
        until(&world, async |world: &World| rows(world).await.len() == 5).await;
        world.crash_engine().await;
        world.advance(10 * MINUTE).await;
        world.start_engine().await;
        settle(&world, 5, 2 * MINUTE).await;
        assert_eq!(ended(&world).await, [], "those that were started stay");
    });
}

#[test]
fn a_validation_room_has_its_time_after_a_restart() {
    run(async {
        let settings = Settings { room_validation_attempts: 1, ..Settings::default() };
        let mut world = world_with_settings(36, 2, settings).await;
        let version = submit(&world, another_command(recipe(2))).await;
        let tried = async |world: &World| world.host().rooms().len() == 3;
        until(&world, tried).await;
        world.crash_engine().await;
        world.advance(10 * MINUTE).await;
        world.start_engine().await;
        ended_as(&world, version, OperationStatus::Finished).await;
    });
}

/// The creation would leave nothing of the scheduler, and the deletion that was accepted meanwhile is to be read.
#[test]
fn a_creation_that_is_undone_leaves_a_deletion_its_work() {
    run(async {
        let mut world = World::new(37);
        world.start_engine().await;
        world.host().set_host_faults(HostFaults { available: false, ..HostFaults::default() });
        create(&world, 2).await;
        let created = world.store().unfinished(&arena()).await.unwrap().remove(0).id;
        world.advance(SECOND).await;
        world.engine().cancel_operation(ARENA, &created.to_string(), "ann").await.unwrap();
        let turned = async |world: &World| operation(world, created).await.rollback.is_some();
        world.run_until("the creation to roll back", MINUTE, turned).await;
        let deletion = world.engine().delete_scheduler(ARENA, "bob").await.unwrap();
        world.host().set_host_faults(HostFaults::default());
        ended_as(&world, deletion, OperationStatus::Finished).await;
    });
}

#[test]
fn a_region_without_ports_keeps_no_rooms_from_the_others() {
    run(async {
        let mut world = World::with_regions(38, &["eu-west", "us-east"]);
        world.start_engine().await;
        let mut recipe = recipe(4);
        recipe.port_range = Some(PortRange { start: 40_000, end: 40_019 });
        for port in 40_000..40_020 {
            world.host_of(&Region("eu-west".into())).occupy_port(port);
        }
        world.engine().create_scheduler(recipe, "ann").await.unwrap();
        let made = async |world: &World| world.rooms().len() == 2;
        world.run_until("those of the other region", MINUTE, made).await;
    });
}
