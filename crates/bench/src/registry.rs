//! A durable fleet: a scheduler and its rooms, written through the store's port as the engine would write them.

use std::sync::Arc;

use maestro_core::operation::Token;
use maestro_core::room::{HostPort, Purpose, Region};
use maestro_core::scheduler::{Forwarder, Protocol, Recipe, SchedulerName, Version, VersionStatus};
use maestro_engine::documents::recipe_from_json;
use maestro_engine::ports::Store;
use maestro_engine::ports::runtime::Handle;
use maestro_engine::ports::store::{
    Change, NewRoomRecord, NewScheduler, SchedulerState, SchedulerUpdate, Transaction,
};
use serde_json::{Value, json};

use crate::fleet;

/// One port for each room of the largest fleet that is written.
const FIRST_PORT: u16 = 20_000;
const LAST_PORT: u16 = 29_999;

/// Greater than any pid that Linux gives away.
const FIRST_PID: u32 = 4_194_305;

/// Rooms written at once.
const BATCH: usize = 1000;

pub(crate) const CONTAINER: &str = "game";

/// One room for each handle.
pub(crate) async fn fill(
    store: &dyn Store,
    rooms: &[Handle],
    forwarders: Vec<Forwarder>,
) -> anyhow::Result<()> {
    let scheduler = fleet::scheduler();
    let new = NewScheduler {
        recipe: Arc::new(Recipe { forwarders, ..recipe(rooms.len())? }),
        version: Version::FIRST,
        version_status: VersionStatus::Deployed,
        at: fleet::at(0),
    };
    let changes = vec![Change::CreateScheduler(new), in_sync(scheduler)];
    store.commit(Transaction::of_no_scheduler("bench", changes)).await?;
    let rooms: Vec<(u32, &Handle)> = (0..).zip(rooms).collect();
    for batch in rooms.chunks(BATCH) {
        let changes = batch.iter().flat_map(|(index, handle)| room(*index, handle));
        let transaction = Transaction::of_no_scheduler("bench", changes.collect());
        store.commit(transaction).await?;
    }
    Ok(())
}

/// Schedulers that want no rooms, named by [`idle_scheduler`].
pub(crate) async fn fill_idle(store: &dyn Store, schedulers: u32) -> anyhow::Result<()> {
    let mut changes = Vec::new();
    for index in 0..schedulers {
        let recipe = recipe_from_json(&document(&idle_scheduler(index), 0))?;
        let scheduler = recipe.name.clone();
        let new = NewScheduler {
            recipe: Arc::new(recipe),
            version: Version::FIRST,
            version_status: VersionStatus::Deployed,
            at: fleet::at(0),
        };
        changes.push(Change::CreateScheduler(new));
        changes.push(in_sync(scheduler));
    }
    store.commit(Transaction::of_no_scheduler("bench", changes)).await?;
    Ok(())
}

/// Of one that was just created.
fn in_sync(scheduler: SchedulerName) -> Change {
    let state = Some(SchedulerState::InSync);
    Change::UpdateScheduler(SchedulerUpdate { state, ..SchedulerUpdate::of(scheduler, 0) })
}

pub(crate) fn idle_scheduler(index: u32) -> String {
    format!("battle-royale-{index:04}")
}

/// Rooms that have ended while nobody watched.
pub(crate) fn gone(rooms: u32) -> Vec<Handle> {
    (0..rooms).map(|index| handle(FIRST_PID + index, 4711)).collect()
}

/// As the process runtime writes it. The start time is in clock ticks since boot.
pub(crate) fn handle(pid: u32, start_time: u64) -> Handle {
    Handle {
        host: "127.0.0.1".into(),
        pids: vec![pid],
        detail: json!([{ "container": CONTAINER, "pid": pid, "startTime": start_time }]),
    }
}

/// Wanted, and started.
fn room(index: u32, handle: &Handle) -> [Change; 2] {
    let scheduler = fleet::scheduler();
    let id = fleet::room_id(&scheduler, index);
    let port = HostPort {
        name: "game".into(),
        protocol: Protocol::Udp,
        container_port: 7777,
        host_port: FIRST_PORT + index as u16,
    };
    let wanted = NewRoomRecord {
        id: id.clone(),
        scheduler: scheduler.clone(),
        version: Version::FIRST,
        region: Region::default_region(),
        regions_beside: Vec::new(),
        purpose: Purpose::Fleet,
        ports: vec![port],
        operation: fleet::operation(index),
        token: Token(1),
        created_at: fleet::at(0),
    };
    let started = Change::RoomStarted { scheduler, room: id, handle: handle.clone() };
    [Change::IntendRoom(wanted), started]
}

fn recipe(rooms: usize) -> anyhow::Result<Recipe> {
    Ok(recipe_from_json(&document(fleet::scheduler().as_str(), rooms))?)
}

/// Its command does not exist: a server that is measured and then killed must leave no rooms behind.
pub(crate) fn document(name: &str, rooms: usize) -> Value {
    json!({
        "name": name,
        "game": "battle-royale",
        "roomsReplicas": rooms,
        "maxSurge": "10%",
        "portRange": { "start": FIRST_PORT, "end": LAST_PORT },
        "spec": {
            "terminationGracePeriod": "5s",
            "containers": [{
                "name": CONTAINER,
                "image": "example/battle-royale:1",
                "imagePullPolicy": "IfNotPresent",
                "command": ["no-room-of-a-benchmark-ever-runs"],
                "requests": { "memory": "64Mi", "cpu": "100m" },
                "limits": { "memory": "128Mi", "cpu": "200m" },
                "ports": [{ "name": "game", "protocol": "udp", "port": 7777 }],
            }],
        },
    })
}
