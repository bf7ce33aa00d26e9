//! The wiring: the one place that knows every adapter.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use futures_util::future::join_all;
use maestro_core::room::Region;
use maestro_core::time::Millis;
use maestro_engine::ports::{Ports, Randomness, Runtime};
use maestro_engine::{Engine, Parts, Running, Settings, Tasks, WakeUps};
use maestro_forwarder::GrpcSink;
use maestro_runtime_process::{ProcessRuntime, ProcessScanner};
use maestro_store_embedded::{EmbeddedStore, Failpoints, MemoryRoomTable, OpenError, server_of};
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::config::{Config, RuntimeKind};

use super::apis::{Listeners, serve, url};
use super::descriptors::Shares;
use super::log_writer::LogWriter;
use super::logging;
use super::room_user::room_user;
use super::system::{SystemClock, default_rooms_max, owner_name, random_seed};

/// Tests kill the process, or fill the disk, at writes that this variable names; see `maestro_store_embedded`. A build
/// without the feature `failpoints` refuses to start with it.
const FAILPOINT_VARIABLE: &str = "MAESTRO_FAILPOINT";

/// A number for people: whoever stops a server does not wait longer for it.
const COUNT_TIMEOUT: Duration = Duration::from_secs(2);

/// A server that serves.
pub(super) struct Server {
    regions: Vec<OpenRegion>,
    engine: Running,
    stop: watch::Sender<bool>,
    apis: Vec<JoinHandle<()>>,
}

/// A region of processes.
struct OpenRegion {
    name: Region,
    runtime: Arc<ProcessRuntime>,
    /// Its rooms end with this server.
    stop_rooms: bool,
}

impl Server {
    pub(super) async fn start(
        config: &Config,
        store: EmbeddedStore,
        descriptors_max: u64,
        tasks: &Tasks,
        logs: &LogWriter,
    ) -> anyhow::Result<Self> {
        let listeners = Listeners::bind(config).await?;
        let regions = open_regions(config, store.store_id(), &listeners.rooms, tasks).await?;
        store.report_to(tasks.health().clone());
        let store = Arc::new(store);
        let ports = Ports {
            store: store.clone(),
            table: Arc::new(MemoryRoomTable::new()),
            runtimes: Arc::new(runtimes(&regions)),
            events: Arc::new(GrpcSink::default()),
            clock: Arc::new(SystemClock),
            random: Arc::new(Randomness::from_seed(random_seed().context("reading /dev/urandom")?)),
            wake: WakeUps::default(),
        };
        let engine = Engine::new(ports, settings(config), owner_name(), tasks.clone());
        let running = engine.start(Parts::ALL).await.context("starting the engine")?;
        let serving = listeners.serving_line()?;
        let (stop, stopped) = watch::channel(false);
        let mut registry = Registry::default();
        tasks.register(&mut registry);
        logs.register(&mut registry);
        let shares = Shares::of(descriptors_max, config.api.connections_max);
        let apis = serve(config, &engine, tasks, listeners, &shares, registry, &stopped)?;
        logging::print(serving).context("writing to stdout")?;
        Ok(Self { regions, engine: running, stop, apis })
    }

    /// Tells whoever stops this server what becomes of its rooms.
    pub(super) async fn say_what_becomes_of_rooms(&self) {
        let counting = self.regions.iter().map(async |region| {
            let listed = tokio::time::timeout(COUNT_TIMEOUT, region.runtime.list()).await;
            (region.stop_rooms, listed.ok().and_then(Result::ok).map_or(0, |rooms| rooms.len()))
        });
        let counts = join_all(counting).await;
        let of = |stop: bool| counts.iter().filter(|(stops, _)| *stops == stop).map(|(_, rooms)| rooms).sum();
        let (go_on, end): (usize, usize) = (of(false), of(true));
        if end > 0 {
            tracing::info!(rooms = end, "stopping the rooms (stopRoomsOnShutdown)");
        }
        if go_on > 0 {
            tracing::info!(
                rooms = go_on,
                "the rooms keep running, and the next start on this data directory adopts them; to end rooms, delete their \
                 scheduler (maestro scheduler delete NAME), or start with \
                 adapters.runtime.process.stopRoomsOnShutdown set to true and stop again"
            );
        }
    }

    /// Work first, then rooms (if they are to go), then the APIs: rooms that end still want to say so.
    pub(super) async fn shut_down(self) {
        let observing = self.engine.stop_working().await;
        join_all(self.regions.iter().map(|region| region.runtime.shut_down(region.stop_rooms))).await;
        observing.stop().await;
        self.stop.send_replace(true);
        for api in self.apis {
            if api.await.is_err() {
                tracing::error!("an API did not end cleanly");
            }
        }
    }
}

/// Opens the data directory; the error says who has it, or what is wrong with it.
pub(super) fn open_store(
    directory: &Path,
    stop_unknown_rooms: bool,
    tasks: &Tasks,
) -> anyhow::Result<EmbeddedStore> {
    let failpoints = match std::env::var(FAILPOINT_VARIABLE) {
        Ok(text) => text.parse::<Failpoints>().map_err(anyhow::Error::msg).context(FAILPOINT_VARIABLE)?,
        Err(_) => Failpoints::default(),
    };
    let open = || {
        let options = maestro_store_embedded::Options {
            clock: Arc::new(SystemClock),
            failpoints: failpoints.clone(),
            rooms_of: Some(|store_id| maestro_runtime_process::rooms_of_store(store_id, server_of)),
            tasks: tasks.clone(),
            ..maestro_store_embedded::Options::default()
        };
        EmbeddedStore::open_with(directory, options)
    };
    match open() {
        Err(OpenError::Abandoned(rooms)) if stop_unknown_rooms => {
            tracing::warn!(store_id = rooms.store_id, rooms = ?rooms.rooms, "stopping rooms of a store that is gone");
            maestro_runtime_process::end_rooms_of_store(&rooms.store_id, server_of)?;
            Ok(open()?)
        }
        other => Ok(other?),
    }
}

async fn open_regions(
    config: &Config,
    store_id: &str,
    rooms_api: &TcpListener,
    tasks: &Tasks,
) -> anyhow::Result<Vec<OpenRegion>> {
    let (for_all, data_dir) = (&config.process_runtime, &config.storage.data_dir);
    let user = room_user(config)?;
    let scanner = ProcessScanner::new(user.as_ref().map(|user| user.user_id));
    let working_directory = std::env::current_dir().context("finding the working directory")?;
    let own_url = url(rooms_api)?;
    let mut regions = Vec::new();
    for (name, region) in &config.regions {
        let RuntimeKind::Process = region.runtime;
        let directory = region.directory(name, data_dir);
        let rooms_api_url = region.rooms_api_url.as_ref().or(for_all.rooms_api_url.as_ref());
        // What a region leaves unset is as for all regions.
        let options = maestro_runtime_process::Options {
            log_keeper: log_keeper(&directory),
            directory,
            data_directory: data_dir.clone(),
            store_id: store_id.to_owned(),
            region: name.clone(),
            host: region.host.as_ref().unwrap_or(&for_all.host).clone(),
            rooms_api_url: rooms_api_url.unwrap_or(&own_url).clone(),
            log_limit_bytes: region.log_limit_bytes.unwrap_or(for_all.log_limit_bytes),
            working_directory: working_directory.clone(),
            scanner: scanner.clone(),
            rooms_max: region.rooms_max.unwrap_or_else(|| share_of_rooms(config)),
            rooms_directory: for_all.rooms_dir.clone(),
            user: user.clone(),
            server_of,
            tasks: tasks.clone(),
            scheduler_log_limit_bytes: for_all.scheduler_log_limit_bytes,
            ended_rooms_max: usize::try_from(for_all.ended_rooms_max).unwrap_or(usize::MAX),
        };
        let runtime = ProcessRuntime::open(options).await;
        let runtime = runtime.with_context(|| format!("opening the process runtime of region {name}"))?;
        let stop_rooms = region.stop_rooms_on_shutdown.unwrap_or(for_all.stop_rooms_on_shutdown);
        regions.push(OpenRegion { name: name.clone(), runtime, stop_rooms });
    }
    Ok(regions)
}

/// All regions of processes are on this machine: those that say nothing share what is left by those that do.
fn share_of_rooms(config: &Config) -> u32 {
    let all = config.process_runtime.rooms_max.unwrap_or_else(default_rooms_max);
    let own: u32 = config.regions.values().filter_map(|region| region.rooms_max).fold(0, u32::saturating_add);
    let sharing = config.regions.values().filter(|region| region.rooms_max.is_none()).count();
    let sharing = u32::try_from(sharing).unwrap_or(u32::MAX).max(1);
    (all.saturating_sub(own) / sharing).max(1)
}

/// This very program, also when its file has been replaced meanwhile. The directory is for people who look at `ps`.
fn log_keeper(directory: &Path) -> Vec<OsString> {
    vec!["/proc/self/exe".into(), crate::LOG_KEEPER.into(), directory.into()]
}

fn runtimes(regions: &[OpenRegion]) -> BTreeMap<Region, Arc<dyn Runtime>> {
    let runtime = |region: &OpenRegion| (region.name.clone(), region.runtime.clone() as Arc<dyn Runtime>);
    regions.iter().map(runtime).collect()
}

fn settings(config: &Config) -> Settings {
    let millis = |duration: Duration| Millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX));
    let (workers, operations, rooms) = (&config.workers, &config.operations, &config.room_manager);
    Settings {
        health_controller_interval: workers.health_controller_interval,
        early_wake_up: workers.early_wake_up,
        storage_clean_up_interval: workers.storage_cleanup_interval,
        sync_interval: workers.sync_interval,
        ownership_ttl: millis(workers.ownership_ttl),
        operation_lease_ttl: millis(config.operation_manager.lease_ttl),
        lock_ttl: millis(config.locks.ttl),
        lock_wait_timeout: millis(config.locks.wait_timeout),
        downscaling_timeout: millis(config.locks.downscaling_timeout),
        stop_timeout: workers.stop_timeout,
        room_initialization_timeout: millis(rooms.initialization_timeout),
        room_ping_timeout: millis(rooms.ping_timeout),
        mass_silence_timeout: millis(rooms.mass_silence_timeout),
        room_deletion_timeout: millis(rooms.deletion_timeout),
        room_validation_timeout: millis(rooms.validation_timeout),
        room_validation_attempts: rooms.validation_attempts,
        room_validation_accepts_occupied: rooms.validation_accepts_occupied,
        room_allocation_ttl: millis(rooms.allocation_ttl),
        allocation_queue_max: config.allocation.queue_max as usize,
        rooms_add_limit: operations.add_limit,
        rooms_add_batch: operations.add_batch_size,
        room_start_timeout: operations.add_timeout,
        rooms_remove_limit: operations.remove_limit,
        operations_kept: millis(operations.retention_final),
        no_action_kept: millis(operations.retention_no_action),
        rooms_kept: millis(operations.retention_rooms),
        events_kept: millis(config.events.keep_for),
        events_queue_max: config.events.queue_max,
        ..Settings::default()
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Sources, load};

    use super::*;

    #[test]
    fn what_nobody_configures_is_as_the_engine_has_it() {
        let config = load(&Sources::default()).unwrap().config;
        assert_eq!(settings(&config), Settings::default());
    }
}
