//! The rooms API alone, with rooms that wait for pings, to measure what a ping costs:
//!
//! ```text
//! cargo run --release -p maestro-api --example ping_server
//! wrk -t2 -c64 -d10 http://127.0.0.1:8070/bench/empty
//! wrk -t2 -c64 -d10 -s ping.lua http://127.0.0.1:8070        # PUT /scheduler/arena/rooms/arena-{0..9999}/ping
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use maestro_api::{Context, Metrics, RoomsOptions, rooms_router, serve};
use maestro_core::room::{InstanceStatus, Purpose, Region, RoomId};
use maestro_core::scheduler::{SchedulerName, Version};
use maestro_core::time::Timestamp;
use maestro_engine::ports::room_table::NewRoom;
use maestro_engine::ports::{Clock, Ports, Randomness};
use maestro_engine::{Engine, Settings, Tasks};
use maestro_simulation::MemoryStore;
use maestro_store_embedded::MemoryRoomTable;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

/// As in the real server.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROOMS: u32 = 10_000;

struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let random = Arc::new(Randomness::from_seed(1));
    let ports = Ports {
        store: Arc::new(MemoryStore::new()),
        table: Arc::new(MemoryRoomTable::new()),
        runtimes: Arc::new(BTreeMap::new()),
        clock: Arc::new(SystemClock),
        random: Arc::clone(&random),
    };
    for number in 0..ROOMS {
        let room = NewRoom {
            scheduler: SchedulerName::parse("arena")?,
            id: RoomId::new(&format!("arena-{number}")),
            version: Version::FIRST,
            region: Region::default_region(),
            purpose: Purpose::Fleet,
            instance: InstanceStatus::Ready,
            created_at: Timestamp::now(),
            matches_max: 1,
            known: true,
        };
        ports.table.insert(room).await?;
    }
    let context = Context {
        engine: Engine::new(ports, Settings::default(), "ping_server".into(), Tasks::default()),
        metrics: Metrics::register(&mut Registry::default()),
        new_request_id: Arc::new(move || random.draw()),
    };
    let options = RoomsOptions { empty_route: true, ..RoomsOptions::default() };
    let listener = TcpListener::bind("127.0.0.1:8070").await?;
    let never = std::future::pending();
    serve(listener, rooms_router(&context, &options), never, Duration::ZERO).await;
    Ok(())
}
