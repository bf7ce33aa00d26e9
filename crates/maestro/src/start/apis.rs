//! The three APIs of a server: where they listen, and what serves them.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use maestro_api::{AllowedHosts, ConnectionLimits, Context, Limits, Listening};
use maestro_engine::ports::Randomness;
use maestro_engine::{Engine, Importance, Tasks};
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::config::{Config, ServedApis};

use super::descriptors::Shares;
use super::system::{machine_names, random_seed};

/// Those of the APIs that this process serves.
pub(super) struct Listeners {
    management: Option<TcpListener>,
    pub(super) rooms: Option<TcpListener>,
    internal: TcpListener,
}

/// The line that scripts wait for.
#[derive(serde::Serialize)]
struct Serving {
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    management: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rooms: Option<String>,
    internal: String,
}

impl Listeners {
    pub(super) async fn bind(config: &Config, served: ServedApis) -> anyhow::Result<Self> {
        let (management, rooms, internal) = (&config.management_api, &config.rooms_api, &config.internal_api);
        let (serves_management, serves_rooms) = match served {
            ServedApis::Both => (true, true),
            ServedApis::Management => (true, false),
            ServedApis::Rooms => (false, true),
            ServedApis::Neither => (false, false),
        };
        Ok(Self {
            management: match serves_management {
                true => Some(bind("managementApi", &management.host, management.port).await?),
                false => None,
            },
            rooms: match serves_rooms {
                true => Some(bind("roomsApi", &rooms.host, rooms.port).await?),
                false => None,
            },
            internal: bind("internalApi", &internal.host, internal.port).await?,
        })
    }

    pub(super) fn serving_line(&self) -> anyhow::Result<String> {
        let Self { management, rooms, internal } = self;
        let management = management.as_ref().map(url).transpose()?;
        let rooms = rooms.as_ref().map(url).transpose()?;
        Ok(serde_json::to_string(&Serving { event: "serving", management, rooms, internal: url(internal)? })?)
    }
}

async fn bind(key: &str, host: &str, port: u16) -> anyhow::Result<TcpListener> {
    TcpListener::bind((host, port)).await.with_context(|| {
        format!("{key}: cannot listen on {host}:{port}; choose another {key}.port (0 picks a free one)")
    })
}

/// The URL of a listener; one that listens everywhere is reached on the loopback from here.
pub(super) fn url(listener: &TcpListener) -> io::Result<String> {
    let mut address = listener.local_addr()?;
    if address.ip().is_unspecified() {
        address.set_ip([127, 0, 0, 1].into());
    }
    Ok(format!("http://{address}"))
}

pub(super) fn serve(
    config: &Config,
    engine: &Arc<Engine>,
    tasks: &Tasks,
    listeners: Listeners,
    shares: &Shares,
    mut registry: Registry,
    stopped: &watch::Receiver<bool>,
) -> anyhow::Result<Vec<JoinHandle<()>>> {
    engine.metrics().register(&mut registry);
    let metrics = maestro_api::Metrics::register(&mut registry);
    let request_ids = Randomness::from_seed(random_seed().context("reading /dev/urandom")?);
    let allowed_hosts = AllowedHosts::new(config.own_hosts().chain(machine_names()));
    let context = Context {
        engine: engine.clone(),
        metrics: metrics.clone(),
        new_request_id: Arc::new(move || request_ids.draw()),
        allowed_hosts: allowed_hosts.clone(),
    };
    let limits = |limits: Limits| Limits {
        request_timeout: config.api.request_timeout.min(limits.request_timeout),
        ..limits
    };
    let body_max_bytes = usize::try_from(config.api.body_limit_bytes).unwrap_or(usize::MAX);
    let management = Limits { body_max_bytes, ..limits(Limits::MANAGEMENT) };
    let rooms = maestro_api::RoomsOptions { limits: limits(Limits::ROOMS), ..Default::default() };
    let readiness = {
        let engine = engine.clone();
        move || {
            let engine = engine.clone();
            async move { engine.readiness().await }
        }
    };
    let listening = |service, listener, router, connections_max, limits: &Limits| Listening {
        listener: Arc::new(listener),
        router,
        limits: connection_limits(config, connections_max, limits),
        metrics: metrics.listener(service),
        on_refused: Arc::new(|| {}),
    };
    let mut apis = Vec::new();
    if let Some(listener) = listeners.management {
        let router = maestro_api::management_router(&context, &management);
        let listening = listening("management-api", listener, router, shares.management, &management);
        apis.push(("management API", listening));
    }
    if let Some(listener) = listeners.rooms {
        let router = maestro_api::rooms_router(&context, &rooms);
        let listening = listening("rooms-api", listener, router, shares.rooms, &rooms.limits);
        let for_pings = engine.clone();
        let on_refused = Arc::new(move || for_pings.pings_refused());
        apis.push(("rooms API", Listening { on_refused, ..listening }));
    }
    let router = maestro_api::internal_router(Arc::new(registry), readiness, allowed_hosts);
    let internal = listening("internal-api", listeners.internal, router, shares.internal, &Limits::ROOMS);
    apis.push(("internal API", internal));
    let grace = config.api.graceful_shutdown_timeout;
    let serve = |(name, listening)| serve_api(tasks, name, listening, stopped, grace);
    Ok(apis.into_iter().map(serve).collect())
}

/// The listener outlives a crash of who accepts from it, but not the shutdown: who connects then is refused.
fn serve_api(
    tasks: &Tasks,
    name: &'static str,
    listening: Listening,
    stopped: &watch::Receiver<bool>,
    grace: Duration,
) -> JoinHandle<()> {
    let kept = Arc::new(Mutex::new(Some(listening)));
    let told_to_stop = stopped.clone();
    let make = move || {
        let (kept, mut stopped) = (kept.clone(), told_to_stop.clone());
        let listening = kept.lock().clone();
        let shutdown = async move {
            // An error means that the sender is gone, which is an end too.
            drop(stopped.wait_for(|stopped| *stopped).await);
            kept.lock().take();
        };
        async move {
            if let Some(listening) = listening {
                maestro_api::serve(listening, shutdown, grace).await;
            }
        }
    };
    tasks.supervise(name, Importance::Process, stopped.clone(), make)
}

fn connection_limits(config: &Config, connections_max: usize, limits: &Limits) -> ConnectionLimits {
    let incomplete = config.api.incomplete_connections_max;
    ConnectionLimits {
        connections_max,
        incomplete_per_address_max: usize::try_from(incomplete).unwrap_or(usize::MAX),
        read_timeout: config.api.request_read_timeout,
        idle_timeout: config.api.idle_timeout,
        body_max_bytes: limits.body_max_bytes,
        // As much as those that are worked on may have.
        bodies_max_bytes: limits.body_max_bytes.saturating_mul(limits.requests_max),
    }
}
