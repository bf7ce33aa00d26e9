//! The rooms API of a server: its ports are wired as in production. The engine works on the fleet or does not.

mod still;

use std::collections::BTreeMap;
use std::future::{Future, pending};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use axum::Router;
use maestro_api::{AllowedHosts, Context, Listening, Metrics, RoomsOptions, rooms_router, serve};
use maestro_core::room::Region;
use maestro_core::scheduler::Forwarder;
use maestro_core::time::Timestamp;
use maestro_engine::ports::runtime::{Handle, RunningRoom};
use maestro_engine::ports::{Clock, Ports, Randomness, RoomTable, Runtime as RoomRuntime};
use maestro_engine::{Engine, Parts, Running, Settings, Tasks, WakeUps};
use maestro_forwarder::GrpcSink;
use maestro_runtime_process::{ProcessRuntime, ProcessScanner};
use maestro_store_embedded::{EmbeddedStore, MemoryRoomTable};
use prometheus_client::registry::Registry;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

use crate::cpu::{self, Cores, ThreadTimes};
use crate::{fleet, registry};

use still::StillRuntime;

/// A server with one fleet.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) engine: Arc<Engine>,
    runtime: Runtime,
    /// Where the engine works, if that is not where the server serves.
    _beside: Option<Runtime>,
    _running: Option<Running>,
    _directory: TempDir,
}

pub(crate) struct Setup<'a> {
    pub(crate) rooms: u32,
    pub(crate) cores: Option<Cores>,
    /// On which disk.
    pub(crate) directory: &'a Path,
    pub(crate) worker: Worker,
    pub(crate) forwarders: Vec<Forwarder>,
}

/// Whether someone looks after the fleet whose rooms ping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Worker {
    Away,
    AtWork,
    /// At work on a thread of its own: the server's thread does nothing but serve.
    Beside,
}

struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    /// Since it was asked for the first time: a benchmark does not sleep, and valgrind cannot run what asks the kernel for
    /// more.
    fn since_boot(&self) -> Duration {
        static BEGAN: OnceLock<Instant> = OnceLock::new();
        BEGAN.get_or_init(Instant::now).elapsed()
    }
}

impl Server {
    /// On one thread: it has one core.
    pub(crate) fn start(setup: &Setup<'_>) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir_in(setup.directory)?;
        let cores = setup.cores;
        let pin = move || {
            if let Some(cores) = cores {
                cpu::pin(cores.server);
            }
        };
        let runtime =
            Builder::new_multi_thread().worker_threads(1).on_thread_start(pin).enable_all().build()?;
        let beside = match setup.worker {
            Worker::Away | Worker::AtWork => None,
            Worker::Beside => Some(Builder::new_multi_thread().worker_threads(1).enable_all().build()?),
        };
        let works_on = beside.as_ref().unwrap_or(&runtime);
        let (engine, running) = works_on.block_on(start_engine(setup, directory.path()))?;
        let address = runtime.block_on(serve_rooms(engine.clone()))?;
        Ok(Self { address, engine, runtime, _beside: beside, _running: running, _directory: directory })
    }

    /// Of the one thread that serves.
    pub(crate) fn times(&self) -> anyhow::Result<ThreadTimes> {
        let asked = self.runtime.spawn(async { ThreadTimes::now() });
        self.runtime.block_on(asked).context("asking the server's thread")?
    }

    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }
}

async fn start_engine(setup: &Setup<'_>, directory: &Path) -> anyhow::Result<(Arc<Engine>, Option<Running>)> {
    let ports = match setup.worker {
        Worker::Away => ports(directory, setup.rooms).await?,
        Worker::AtWork | Worker::Beside => {
            ports_of_fleet(directory, setup.rooms, setup.forwarders.clone()).await?
        }
    };
    let engine = Engine::new(ports, Settings::default(), "bench".into(), Tasks::default());
    let running = match setup.worker {
        Worker::Away => None,
        Worker::AtWork | Worker::Beside => Some(engine.start(Parts::ALL).await?),
    };
    Ok((engine, running))
}

/// An engine that does nothing by itself but tell forwarders, with rooms that have started and not pinged yet.
pub(crate) async fn engine_that_only_answers(
    directory: &Path,
    rooms: u32,
    forwarders: Vec<Forwarder>,
) -> anyhow::Result<(Arc<Engine>, Running)> {
    let ports = ports_of_fleet(directory, rooms, forwarders).await?;
    insert_rooms(&*ports.table, rooms).await?;
    let engine = Engine::new(ports, Settings::default(), "bench".into(), Tasks::default());
    let running = engine.start(Parts::ROOMS_API).await?;
    Ok((engine, running))
}

async fn serve_rooms(engine: Arc<Engine>) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(serve(Listening::new(listener, rooms_api(engine)), pending(), Duration::ZERO));
    Ok(address)
}

pub(crate) fn rooms_api(engine: Arc<Engine>) -> Router {
    let random = Randomness::from_seed(7);
    let context = Context {
        engine,
        metrics: Metrics::register(&mut Registry::default()),
        new_request_id: Arc::new(move || random.draw()),
        allowed_hosts: AllowedHosts::default(),
    };
    let options = RoomsOptions { empty_route: true, ..RoomsOptions::default() };
    rooms_router(&context, &options)
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
    insert_rooms(&table, rooms).await?;
    Ok(wired(store, table, region, runtime))
}

async fn insert_rooms(table: &dyn RoomTable, rooms: u32) -> anyhow::Result<()> {
    let (scheduler, region) = (fleet::scheduler(), Region::default_region());
    table.begin_rebuild(&scheduler).await?;
    for index in 0..rooms {
        table.insert(fleet::new_room(&scheduler, &region, index)).await?;
    }
    table.end_rebuild(&scheduler).await?;
    Ok(())
}

/// With the fleet in the registry, and all its rooms running.
async fn ports_of_fleet(directory: &Path, rooms: u32, forwarders: Vec<Forwarder>) -> anyhow::Result<Ports> {
    let store = EmbeddedStore::open(directory)?;
    let handles = registry::gone(rooms);
    registry::fill(&store, &handles, forwarders).await?;
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
        events: Arc::new(GrpcSink::default()),
        clock: Arc::new(SystemClock),
        random: Arc::new(Randomness::from_seed(7)),
        wake: WakeUps::default(),
        regions_elsewhere: Arc::default(),
        wake_up_channel: None,
    }
}
