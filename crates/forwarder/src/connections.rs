//! ReceiverConnections to receivers, kept per address.
//!
//! An address may stand for many receivers, and for others tomorrow. So it is resolved again now and then, with one
//! connection to each receiver, and calls take turns. A receiver that cannot be reached is skipped for a moment; a
//! connection on which several calls in a row got no answer is made anew.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tonic::Code;
use tonic::transport::{Channel, Endpoint, Uri};

/// How long the result of resolving an address is used.
const RESOLVED_FOR: Duration = Duration::from_secs(30);
/// How long a resolver may take. A call's own deadline may be earlier.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(5);
/// After an address did not resolve: a name that is wrong is not asked for with every event.
const UNRESOLVED_FOR: Duration = Duration::from_secs(1);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Addresses that connections are kept to. Beyond it, the least recently used one is closed.
const ADDRESSES_MAX: usize = 1024;
/// Receivers behind one address.
const RECEIVERS_MAX: usize = 64;
/// How long a receiver that could not be reached is skipped, where there are others.
const SKIPPED_FOR: Duration = Duration::from_secs(1);
/// After this many calls in a row without an answer, a connection is taken for dead: where the network drops all packets,
/// the kernel notices only after a quarter of an hour.
const SILENT_CALLS_MAX: u32 = 3;
/// The kernel notices by itself that the other machine is gone, where no call is under way.
const TCP_KEEPALIVE: Duration = Duration::from_secs(30);

#[derive(Default)]
pub(crate) struct ReceiverConnections(Mutex<BTreeMap<String, Arc<Target>>>);

/// Why there is no receiver to call, in words.
pub(crate) struct Unconnectable(pub(crate) String);

/// One address.
struct Target {
    address: String,
    resolved: Mutex<Resolved>,
    /// One call asks the resolver, and others wait for its answer.
    resolving: tokio::sync::Mutex<()>,
    turn: AtomicUsize,
}

#[derive(Default)]
struct Resolved {
    receivers: BTreeMap<SocketAddr, Arc<ReceiverConnection>>,
    error: Option<String>,
    until: Option<Instant>,
    used_at: Option<Instant>,
}

/// To one receiver.
pub(crate) struct ReceiverConnection {
    endpoint: Endpoint,
    state: Mutex<ConnectionState>,
}

struct ConnectionState {
    channel: Channel,
    /// Calls in a row that got no answer.
    silent: u32,
    skipped_until: Option<Instant>,
}

impl ReceiverConnections {
    /// All receivers of the address, the one to call first, the others to call instead.
    pub(crate) async fn to(&self, address: &str) -> Result<Vec<Arc<ReceiverConnection>>, Unconnectable> {
        self.target(address).receivers().await
    }

    fn target(&self, address: &str) -> Arc<Target> {
        let mut targets = self.0.lock();
        let now = Instant::now();
        if let Some(target) = targets.get(address) {
            target.resolved.lock().used_at = Some(now);
            return target.clone();
        }
        if targets.len() >= ADDRESSES_MAX
            && let Some(oldest) = targets.values().min_by_key(|target| target.resolved.lock().used_at)
        {
            let oldest = oldest.address.clone();
            targets.remove(&oldest);
        }
        let resolved = Resolved { used_at: Some(now), ..Resolved::default() };
        let target = Arc::new(Target {
            address: address.to_owned(),
            resolved: Mutex::new(resolved),
            resolving: tokio::sync::Mutex::default(),
            turn: AtomicUsize::new(0),
        });
        targets.insert(address.to_owned(), target.clone());
        target
    }
}

impl Target {
    async fn receivers(&self) -> Result<Vec<Arc<ReceiverConnection>>, Unconnectable> {
        if let Some(known) = self.known() {
            return known;
        }
        let _one = self.resolving.lock().await;
        // Another call has resolved it meanwhile.
        if let Some(known) = self.known() {
            return known;
        }
        let found = resolve(&self.address).await;
        self.update(found);
        self.known().unwrap_or_else(|| Err(Unconnectable(format!("{} does not resolve", self.address))))
    }

    /// `None`: it has to be resolved.
    fn known(&self) -> Option<Result<Vec<Arc<ReceiverConnection>>, Unconnectable>> {
        let resolved = self.resolved.lock();
        let now = Instant::now();
        if resolved.until.is_none_or(|until| until <= now) {
            return None;
        }
        if resolved.receivers.is_empty() {
            return Some(Err(Unconnectable(resolved.error.clone().unwrap_or_default())));
        }
        let mut receivers: Vec<_> = resolved.receivers.values().cloned().collect();
        drop(resolved);
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % receivers.len();
        receivers.rotate_left(turn);
        // Stable: those that are skipped are still the last resort.
        receivers.sort_by_key(|receiver| receiver.is_skipped(now));
        Some(Ok(receivers))
    }

    /// Connections to receivers that are still there stay. What cannot be resolved now leaves the old ones in place.
    fn update(&self, found: Result<Vec<(SocketAddr, Endpoint)>, String>) {
        let mut resolved = self.resolved.lock();
        let now = Instant::now();
        match found {
            Ok(found) => {
                let mut before = std::mem::take(&mut resolved.receivers);
                let kept = |(at, endpoint): (SocketAddr, Endpoint)| {
                    let connection =
                        before.remove(&at).unwrap_or_else(|| Arc::new(ReceiverConnection::lazy(endpoint)));
                    (at, connection)
                };
                resolved.receivers = found.into_iter().take(RECEIVERS_MAX).map(kept).collect();
                resolved.error = None;
                resolved.until = Some(now + RESOLVED_FOR);
            }
            Err(error) => {
                tracing::debug!(address = self.address, error, "address of a forwarder not resolved");
                resolved.error = Some(error);
                resolved.until = Some(now + UNRESOLVED_FOR);
            }
        }
    }
}

/// `host:port`, with or without the scheme that gRPC or HTTP write before it.
async fn resolve(address: &str) -> Result<Vec<(SocketAddr, Endpoint)>, String> {
    let plain = ["dns:///", "passthrough:///", "http://"]
        .iter()
        .find_map(|scheme| address.strip_prefix(scheme))
        .unwrap_or(address)
        .trim_end_matches('/');
    let origin: Uri = format!("http://{plain}")
        .parse()
        .map_err(|_| format!("{address:?} is not an address; write it as host:port"))?;
    if origin.port().is_none() || origin.path() != "/" {
        return Err(format!("{address:?} is not an address; write it as host:port"));
    }
    let looked_up = tokio::time::timeout(RESOLVE_TIMEOUT, tokio::net::lookup_host(plain)).await;
    let found = match looked_up {
        Ok(Ok(found)) => found.collect::<Vec<_>>(),
        Ok(Err(error)) => return Err(format!("cannot resolve {address}: {error}")),
        Err(_) => return Err(format!("cannot resolve {address}: no answer within {RESOLVE_TIMEOUT:?}")),
    };
    let endpoint = |at: SocketAddr| {
        let endpoint = Endpoint::from_shared(format!("http://{at}")).map_err(|error| error.to_string())?;
        let endpoint = endpoint
            .origin(origin.clone())
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_keepalive(Some(TCP_KEEPALIVE))
            .tcp_nodelay(true);
        Ok((at, endpoint))
    };
    found.into_iter().map(endpoint).collect()
}

impl ReceiverConnection {
    /// Connects with the first call.
    fn lazy(endpoint: Endpoint) -> Self {
        let channel = endpoint.connect_lazy();
        Self { endpoint, state: Mutex::new(ConnectionState { channel, silent: 0, skipped_until: None }) }
    }

    pub(crate) fn channel(&self) -> Channel {
        self.state.lock().channel.clone()
    }

    fn is_skipped(&self, now: Instant) -> bool {
        self.state.lock().skipped_until.is_some_and(|until| until > now)
    }

    /// Counts a call that begins. If the guard is dropped before the call has ended, there was no answer in time.
    pub(crate) fn begin_call(&self) -> CallGuard<'_> {
        CallGuard { connection: Some(self) }
    }

    fn ended(&self, failure: Option<Code>) {
        let mut state = self.state.lock();
        match failure {
            Some(Code::Unavailable) => {
                state.silent = 0;
                state.skipped_until = Some(Instant::now() + SKIPPED_FOR);
            }
            Some(Code::DeadlineExceeded | Code::Cancelled) => {
                state.silent += 1;
                if state.silent >= SILENT_CALLS_MAX {
                    state.silent = 0;
                    state.channel = self.endpoint.connect_lazy();
                }
            }
            _ => {
                state.silent = 0;
                state.skipped_until = None;
            }
        }
    }
}

pub(crate) struct CallGuard<'a> {
    connection: Option<&'a ReceiverConnection>,
}

impl CallGuard<'_> {
    /// `failure`: what the call failed with.
    pub(crate) fn ended(mut self, failure: Option<Code>) {
        if let Some(connection) = self.connection.take() {
            connection.ended(failure);
        }
    }
}

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.ended(Some(Code::DeadlineExceeded));
        }
    }
}
