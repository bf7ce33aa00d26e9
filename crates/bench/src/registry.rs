//! A durable fleet: a scheduler and its rooms, written through the store's port as the engine would write them.

use std::sync::Arc;

use maestro_core::operation::Token;
use maestro_core::room::{HostPort, Purpose, Region};
use maestro_core::scheduler::{Protocol, Recipe, Version, VersionStatus};
use maestro_engine::documents::recipe_from_json;
use maestro_engine::ports::Store;
use maestro_engine::ports::runtime::Handle;
use maestro_engine::ports::store::{Change, NewRoomRecord, NewScheduler, SchedulerState, Transaction};
use serde_json::json;

use crate::fleet;

/// One port for each room of the largest fleet that is written.
const FIRST_PORT: u16 = 20_000;
const LAST_PORT: u16 = 29_999;

/// Greater than any pid that Linux gives away: the rooms of this fleet never run.
const FIRST_PID: u32 = 4_194_305;

/// Rooms written at once.
const BATCH: u32 = 1000;

pub(crate) async fn fill(store: &dyn Store, rooms: u32) -> anyhow::Result<()> {
    let scheduler = fleet::scheduler();
    let new = NewScheduler {
        recipe: Arc::new(recipe(rooms)?),
        version: Version::FIRST,
        version_status: VersionStatus::Deployed,
        at: fleet::at(0),
    };
    let made = Change::SetState {
        scheduler,
        from: vec![SchedulerState::Creating],
        to: SchedulerState::InSync,
    };
    let changes = vec![Change::CreateScheduler(new), made];
    store.commit(Transaction::new("bench", changes)).await?;
    for first in (0..rooms).step_by(BATCH as usize) {
        let batch = first..rooms.min(first + BATCH);
        let changes = batch.flat_map(room).collect();
        store.commit(Transaction::new("bench", changes)).await?;
    }
    Ok(())
}

pub(crate) fn handle(index: u32) -> Handle {
    let (pid, start_time) = (FIRST_PID + index, 4_711_000 + index);
    Handle {
        host: "127.0.0.1".into(),
        pids: vec![pid],
        detail: json!([{ "container": "game", "pid": pid, "startTime": start_time }]),
    }
}

/// Wanted, and started.
fn room(index: u32) -> [Change; 2] {
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
        purpose: Purpose::Fleet,
        ports: vec![port],
        operation: fleet::operation(index),
        token: Token(1),
        created_at: fleet::at(0),
    };
    let started = Change::RoomStarted {
        scheduler,
        room: id,
        handle: handle(index),
    };
    [Change::IntendRoom(wanted), started]
}

/// Its command does not exist: a server that is measured and then killed must leave no rooms behind.
fn recipe(rooms: u32) -> anyhow::Result<Recipe> {
    let document = json!({
        "name": fleet::scheduler().as_str(),
        "game": "battle-royale",
        "roomsReplicas": rooms,
        "maxSurge": "10%",
        "portRange": { "start": FIRST_PORT, "end": LAST_PORT },
        "spec": {
            "terminationGracePeriod": "5s",
            "containers": [{
                "name": "game",
                "image": "example/battle-royale:1",
                "imagePullPolicy": "IfNotPresent",
                "command": ["no-room-of-a-benchmark-ever-runs"],
                "requests": { "memory": "64Mi", "cpu": "100m" },
                "limits": { "memory": "128Mi", "cpu": "200m" },
                "ports": [{ "name": "game", "protocol": "udp", "port": 7777 }],
            }],
        },
    });
    Ok(recipe_from_json(&document)?)
}
