//! The rollout tables of the specification on the running engine: cycles by the clock only, rooms ready by the next one,
//! and players who lose their room enter another.

use std::time::Duration;

use maestro_core::operation::{OperationStatus, Stage};
use maestro_core::room::RoomStatus;
use maestro_core::scheduler::{
    Autoscaling, OtherParameters, ReadyTarget, Recipe, RoomOccupancy, ScalingPolicy,
};
use maestro_engine::Settings;
use maestro_engine::ports::contract::fixtures;
use maestro_simulation::World;

use super::common::*;
use super::rollouts::{another_command, ended_as, submit};

pub(crate) fn half_ready() -> Option<Autoscaling> {
    let ready_target = ReadyTarget::parse("0.5").unwrap();
    let policy = ScalingPolicy::RoomOccupancy(RoomOccupancy { ready_target, down_threshold: None });
    let other_parameters = OtherParameters::default();
    let panic = None;
    Some(Autoscaling {
        enabled: true,
        min: 1,
        max: None,
        cooldown_seconds: 0,
        policy,
        other_parameters,
        panic,
    })
}

async fn plays_table(table: &str, ready: u32, occupied: u32) {
    let cycle = Duration::from_secs(30);
    let settings =
        Settings { health_controller_interval: cycle, early_wake_up: false, ..Settings::default() };
    let world = world_with_settings(7, ready + occupied, settings).await;
    keep_occupied(&world, occupied as usize).await;
    let recipe = Recipe { autoscaling: half_ready(), ..another_command(recipe(ready + occupied)) };
    let id = submit(&world, recipe).await;
    ended_as(&world, id, OperationStatus::Finished).await;
    for (index, row) in maestro_testkit::rollout_table(table).iter().enumerate() {
        let data = next_cycle(&world, index).await;
        let number = |part: &str, key: &str| data[part][key].as_u64().unwrap_or(0);
        let decision = |key| number("decision", key);
        let new = if data["rollout"].is_null() { decision("total") } else { number("rollout", "new") };
        let seen = [
            decision("ready"),
            decision("occupied"),
            decision("total"),
            new,
            decision("desired"),
            decision("desiredReady"),
            number("rollout", "toSurge"),
            number("rollout", "toBeDeleted"),
        ];
        assert_eq!(seen, row.map(u64::from), "loop {}", index + 1);
        keep_occupied(&world, occupied as usize).await;
    }
}

/// The decision data of the `index`-th cycle since the version became active. Players find their places meanwhile.
async fn next_cycle(world: &World, index: usize) -> serde_json::Value {
    let cycles = async |world: &World| {
        let page = fixtures::all_operations();
        let page = world.store().operations(&arena(), Stage::Final, page).await.unwrap();
        let since_switch = page
            .operations
            .into_iter()
            .skip_while(|operation| operation.definition.name() != "switch_active_version");
        let cycles = since_switch.filter(|operation| operation.definition.name() == "health_controller");
        cycles.map(|cycle| cycle.data).collect::<Vec<_>>()
    };
    world.run_until("the next cycle", 5 * MINUTE, async |world| cycles(world).await.len() > index).await;
    // What it asked for is done well before the next one.
    world.advance(Duration::from_secs(10)).await;
    cycles(world).await[index].clone()
}

async fn keep_occupied(world: &World, occupied: usize) {
    let rooms = world.engine().rooms(ARENA).await.unwrap();
    let with = |status| rooms.iter().filter(move |room| room.status == status);
    let missing = occupied.saturating_sub(with(RoomStatus::Occupied).count());
    let mut ready: Vec<_> = with(RoomStatus::Ready).collect();
    ready.sort_by_key(|room| std::cmp::Reverse(room.version));
    for room in ready.into_iter().take(missing) {
        world.host().begin_match(&room.id);
    }
    let full = async |world: &World| {
        let rooms = world.engine().rooms(ARENA).await.unwrap();
        rooms.iter().filter(|room| room.status == RoomStatus::Occupied).count() == occupied
    };
    world.run_until("players in their rooms", MINUTE, full).await;
}

#[test]
fn the_downscale_of_the_specification() {
    run(plays_table("downscale", 20, 5));
}

#[test]
fn the_upscale_of_the_specification() {
    run(plays_table("upscale", 5, 20));
}
