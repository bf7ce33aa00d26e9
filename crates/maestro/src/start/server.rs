//! The wiring: the one place that knows every adapter.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use futures_util::future::join_all;
use maestro_core::time::Millis;
use maestro_engine::ports::{Ports, Randomness, Runtime};
use maestro_engine::{Engine, Running, Settings, Tasks, WakeUps};
use maestro_forwarder::GrpcSink;
use prometheus_client::registry::Registry;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::config::Config;

use super::apis::{Listeners, serve};
use super::descriptors::Shares;
use super::log_writer::LogWriter;
use super::logging;
use super::metrics;
use super::modules::Module;
use super::regions::{OpenRegion, Regions};
use super::stores::Stores;
use super::system::{SystemClock, owner_name, random_seed};

/// A number for people: whoever stops a server does not wait longer for it.
const COUNT_TIMEOUT: Duration = Duration::from_secs(2);

/// Where processes share stores, others go on when this one stops: for so long it still accepts connections from whoever
/// has not noticed yet that it is not ready.
const DRAIN: Duration = Duration::from_secs(5);

/// The component of `readyz` that says so.
const STOPPING: &str = "server";

/// A server that serves.
pub(super) struct Server {
    regions: Vec<OpenRegion>,
    engine: Running,
    tasks: Tasks,
    /// Others serve as well.
    has_others: bool,
    stop: watch::Sender<bool>,
    apis: Vec<JoinHandle<()>>,
}

impl Server {
    pub(super) async fn start(
        module: Module,
        config: &Config,
        stores: Stores,
        descriptors_max: u64,
        tasks: &Tasks,
        logs: &LogWriter,
    ) -> anyhow::Result<Self> {
        let listeners = Listeners::bind(config, module.served_apis()).await?;
        let parts = module.parts();
        let regions =
            Regions::open(config, parts.needs_runtimes(), &stores, listeners.rooms.as_ref(), tasks).await?;
        let seed = random_seed().context("reading /dev/urandom")?;
        let has_others = stores.wake_up_channel.is_some();
        let owner = owner_name(has_others.then_some(seed));
        let ports = Ports {
            store: stores.store,
            table: stores.table,
            runtimes: Arc::new(regions.runtimes()),
            regions_elsewhere: Arc::new(regions.elsewhere),
            events: Arc::new(GrpcSink::default()),
            clock: Arc::new(SystemClock),
            random: Arc::new(Randomness::from_seed(seed)),
            wake: WakeUps::default(),
            wake_up_channel: stores.wake_up_channel,
        };
        let engine = Engine::new(ports, settings(config), owner, tasks.clone());
        let running = engine.start(parts).await.context("starting the engine")?;
        let serving = listeners.serving_line()?;
        let (stop, stopped) = watch::channel(false);
        let mut registry = Registry::default();
        tasks.register(&mut registry);
        logs.register(&mut registry);
        metrics::register(&mut registry);
        let shares = Shares::of(descriptors_max, config.api.connections_max);
        let apis = serve(config, &engine, tasks, listeners, &shares, registry, &stopped)?;
        logging::print(serving).context("writing to stdout")?;
        Ok(Self { regions: regions.here, engine: running, tasks: tasks.clone(), has_others, stop, apis })
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

    /// Work first, then rooms (if they are to go), then the APIs: rooms that end still want to say so. Whoever finds servers
    /// by their readiness sends no more requests to this one meanwhile.
    pub(super) async fn shut_down(self) {
        let drained = tokio::time::Instant::now() + DRAIN;
        if self.has_others {
            self.tasks.health().not_ready(STOPPING, "is stopping");
        }
        let observing = self.engine.stop_working().await;
        join_all(self.regions.iter().map(|region| region.runtime.shut_down(region.stop_rooms))).await;
        if self.has_others {
            tokio::time::sleep_until(drained).await;
            end_apis(&self.stop, self.apis).await;
            // Until then requests that are open are worked on.
            observing.stop().await;
        } else {
            observing.stop().await;
            end_apis(&self.stop, self.apis).await;
        }
    }
}

/// No more connections are accepted; what is open is finished.
async fn end_apis(stop: &watch::Sender<bool>, apis: Vec<JoinHandle<()>>) {
    stop.send_replace(true);
    for api in apis {
        if api.await.is_err() {
            tracing::error!("an API did not end cleanly");
        }
    }
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
