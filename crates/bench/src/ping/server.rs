//! The rooms API of a server: its ports are wired as in production. The engine works on the fleet or does not.

use std::collections::BTreeMap;
use std::future::pending;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use maestro_api::{AllowedHosts, Context, Listening, Metrics, RoomsOptions, rooms_router, serve};
use maestro_core::room::Region;
use maestro_core::time::Timestamp;
use maestro_engine::ports::event_sink::NoEventSink;
use maestro_engine::ports::runtime::{Handle, RunningRoom};
use maestro_engine::ports::{Clock, Ports, Randomness, RoomTable, Runtime as RoomRuntime};
use maestro_engine::{Engine, Parts, Running, Settings, Tasks, WakeUps};
use maestro_runtime_process::{ProcessRuntime, ProcessScanner};
use maestro_store_embedded::{EmbeddedStore, MemoryRoomTable};
use prometheus_client::registry::Registry;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

use crate::cpu::{self, Cores, ThreadTimes};
use crate::{fleet, registry};

use super::still::StillRuntime;

pub(super) struct Server {
    pub(super) address: SocketAddr,
    runtime: Runtime,
    _engine: Option<Running>,
    _directory: TempDir,
}

/// Whether someone looks after the fleet whose rooms ping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Worker {
    Away,
    AtWork,
}

struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn since_boot(&self) -> Duration {
        rustix::time::clock_gettime(rustix::time::ClockId::Boottime).try_into().unwrap_or_default()
    }
}

impl Server {
    /// On one thread: it has one core.
    pub(super) fn start(
        rooms: u32,
        cores: Option<Cores>,
        directory: &Path,
        worker: Worker,
    ) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir_in(directory)?;
        let pin = move || {
            if let Some(cores) = cores {
                cpu::pin(cores.server);
            }
        };
        let runtime =
            Builder::new_multi_thread().worker_threads(1).on_thread_start(pin).enable_all().build()?;
        let (address, running) = runtime.block_on(async {
            let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
            let address = listener.local_addr()?;
            let ports = match worker {
                Worker::Away => ports(directory.path(), rooms).await?,
                Worker::AtWork => ports_of_fleet(directory.path(), rooms).await?,
            };
            let engine = Engine::new(ports, Settings::default(), "bench".into(), Tasks::default());
            let running = match worker {
                Worker::Away => None,
                Worker::AtWork => Some(engine.start(Parts::ALL).await?),
            };
            let random = Randomness::from_seed(7);
            let context = Context {
                engine,
                metrics: Metrics::register(&mut Registry::default()),
                new_request_id: Arc::new(move || random.draw()),
                allowed_hosts: AllowedHosts::default(),
            };
            let options = RoomsOptions { empty_route: true, ..RoomsOptions::default() };
            let router = rooms_router(&context, &options);
            tokio::spawn(serve(Listening::new(listener, router), pending(), Duration::ZERO));
            anyhow::Ok((address, running))
        })?;
        Ok(Self { address, runtime, _engine: running, _directory: directory })
    }

    /// Of the one thread that serves.
    pub(super) fn times(&self) -> anyhow::Result<ThreadTimes> {
        let asked = self.runtime.spawn(async { ThreadTimes::now() });
        self.runtime.block_on(asked).context("asking the server's thread")?
    }
}

async fn ports(directory: &Path, rooms: u32) -> anyhow::Result<Ports> {
    let store = EmbeddedStore::open(directory)?;
    let region = Region::default_region();
    let options = maestro_runtime_process::Options {
        directory: directory.into(),
        data_directory: directory.into(),
        store_id: store.store_id().to_owned(),
        region: region.clone(),
        host: "127.0.0.1".into(),
        // No room is started here.
        rooms_api_url: "http://127.0.0.1:8070".into(),
        log_limit_bytes: 1024 * 1024,
        working_directory: directory.into(),
        scanner: ProcessScanner::new(None),
        tasks: Tasks::default(),
        rooms_directory: None,
        user: None,
        server_of: maestro_store_embedded::server_of,
        scheduler_log_limit_bytes: 1 << 30,
        ended_rooms_max: 1000,
        rooms_max: u32::MAX,
        log_keeper: Vec::new(),
    };
    let runtime: Arc<dyn RoomRuntime> = ProcessRuntime::open(options).await?;
    let table = MemoryRoomTable::new();
    for index in 0..rooms {
        let room = fleet::new_room(&fleet::scheduler(), &region, index);
        table.insert(room).await?;
    }
    Ok(wired(store, table, region, runtime))
}

/// With the fleet in the registry, and all its rooms running.
async fn ports_of_fleet(directory: &Path, rooms: u32) -> anyhow::Result<Ports> {
    let store = EmbeddedStore::open(directory)?;
    let handles = registry::gone(rooms);
    registry::fill(&store, &handles).await?;
    let scheduler = fleet::scheduler();
    let running = |(index, handle): (u32, Handle)| {
        let id = fleet::room_id(&scheduler, index);
        RunningRoom { id, scheduler: scheduler.clone(), handle }
    };
    let region = Region::default_region();
    let rooms = (0..).zip(handles).map(running).collect();
    let runtime = Arc::new(StillRuntime { region: region.clone(), rooms });
    Ok(wired(store, MemoryRoomTable::new(), region, runtime))
}

fn wired(
    store: EmbeddedStore,
    table: MemoryRoomTable,
    region: Region,
    runtime: Arc<dyn RoomRuntime>,
) -> Ports {
    Ports {
        store: Arc::new(store),
        table: Arc::new(table),
        runtimes: Arc::new(BTreeMap::from([(region, runtime)])),
        events: Arc::new(NoEventSink),
        clock: Arc::new(SystemClock),
        random: Arc::new(Randomness::from_seed(7)),
        wake: WakeUps::default(),
    }
}
