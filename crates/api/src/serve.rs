//! Serving a router on a listener: HTTP/1.1 and HTTP/2, bounded waits, and an end that lets running requests finish.

mod http2;
mod keeping;
mod lasting;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{SemaphorePermit, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::io::InspectReader;
use tower::Service;

use crate::body::{self, BodyError};
use crate::coalesce::Coalesced;
use crate::connections::{Connection, ConnectionLimits, Connections};
use crate::edge;
use crate::grpc::stream::{Lasting, Stopping};
use crate::metrics::ListenerMetrics;
use crate::preface::{self, HttpVersion, Rewound};

/// How long to wait when no connection can be accepted, usually because all file descriptors are in use: that
/// passes only when some are given back.
const ACCEPT_RETRY_AFTER: Duration = Duration::from_millis(100);

/// How often to look for connections that took too long: deadlines are seconds.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// How long a client may take for the end of an answer that lasts: that is on its way already.
const FAREWELL: Duration = Duration::from_millis(250);

/// A log line about refused connections at most this often: whoever fills up a server must not fill up its log.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// What is served, and to how many.
#[derive(Clone)]
pub struct Listening {
    /// Shared, so that it stays open while the task that accepts from it is started again.
    pub listener: Arc<TcpListener>,
    pub router: Router,
    pub limits: ConnectionLimits,
    pub metrics: ListenerMetrics,
    /// Called when a client that may have had something to send was turned away for lack of capacity.
    pub on_refused: Arc<dyn Fn() + Send + Sync>,
}

impl Listening {
    /// Has the default limits, and metrics that nobody reads.
    pub fn new(listener: TcpListener, router: Router) -> Self {
        Self {
            listener: Arc::new(listener),
            router,
            limits: ConnectionLimits::default(),
            metrics: ListenerMetrics::default(),
            on_refused: Arc::new(|| {}),
        }
    }
}

/// Serves until `shutdown` is ready. Then nothing new is accepted, idle connections are closed, and requests that are
/// being worked on have `grace` to end before they are dropped.
pub async fn serve(listening: Listening, shutdown: impl Future<Output = ()>, grace: Duration) {
    let Listening { listener, router, limits, metrics, on_refused } = listening;
    let (stop, stopping) = watch::channel(());
    let mut server = Server {
        shared: Arc::new(Shared {
            connections: Connections::new(limits),
            opened_at: Instant::now(),
            on_refused,
        }),
        router,
        metrics,
        stopping,
        tasks: JoinSet::new(),
        told_at: None,
    };
    let mut look = tokio::time::interval(CHECK_INTERVAL);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut shutdown = pin!(shutdown);
    let mut retry_at = None;
    loop {
        tokio::select! {
            biased;
            () = &mut shutdown => break,
            // Ended ones are taken out, or the set would grow with every connection there ever was.
            Some(_) = server.tasks.join_next() => {}
            _ = look.tick() => server.look(),
            accepted = accept(&listener, retry_at.take()) => match accepted {
                Ok((stream, address)) => server.open(stream, address),
                Err(error) => retry_at = server.not_accepted(&error),
            }
        }
    }
    drop(listener);
    drop(stop);
    let mut tasks = server.tasks;
    let all_ended = async { while tasks.join_next().await.is_some() {} };
    if tokio::time::timeout(grace, all_ended).await.is_err() {
        tracing::warn!(connections = tasks.len(), ?grace, "dropping requests that did not end in time");
    }
}

async fn accept(listener: &TcpListener, not_before: Option<Instant>) -> io::Result<(TcpStream, IpAddr)> {
    if let Some(not_before) = not_before {
        tokio::time::sleep_until(not_before).await;
    }
    let (stream, address) = listener.accept().await?;
    Ok((stream, address.ip()))
}

struct Server {
    shared: Arc<Shared>,
    router: Router,
    metrics: ListenerMetrics,
    stopping: watch::Receiver<()>,
    tasks: JoinSet<()>,
    /// When the log was last told that somebody was turned away.
    told_at: Option<Instant>,
}

/// What the tasks of connections need.
struct Shared {
    connections: Connections,
    opened_at: Instant,
    on_refused: Arc<dyn Fn() + Send + Sync>,
}

impl Shared {
    fn now(&self) -> Duration {
        self.opened_at.elapsed()
    }
}

impl Server {
    fn open(&mut self, stream: TcpStream, address: IpAddr) {
        let opened = self.shared.connections.open(address, self.shared.now());
        if opened.refused {
            self.refused("all connections are in use");
        }
        // Dropped where there is no capacity: it is closed then.
        if let Some(connection) = opened.connection {
            let guard = OpenConnection { shared: Arc::clone(&self.shared), connection };
            self.tasks.spawn(serve_connection(stream, self.router.clone(), self.stopping.clone(), guard));
        }
    }

    fn look(&self) {
        let cut = self.shared.connections.cut_overdue(self.shared.now());
        self.metrics.cut.inc_by(cut as u64);
        self.metrics.connections.set(self.shared.connections.count().try_into().unwrap_or(i64::MAX));
    }

    /// When to try again.
    fn not_accepted(&mut self, error: &io::Error) -> Option<Instant> {
        // A client that was gone before it was accepted concerns only itself.
        if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset) {
            return None;
        }
        // Idle connections give back their descriptors: a client that comes now has something to send.
        self.shared.connections.make_room(self.shared.now());
        self.refused(&error.to_string());
        Some(Instant::now() + ACCEPT_RETRY_AFTER)
    }

    fn refused(&mut self, error: &str) {
        (self.shared.on_refused)();
        self.metrics.refused.inc();
        let now = Instant::now();
        if self.told_at.is_none_or(|before| now.duration_since(before) >= TELL_EVERY) {
            self.told_at = Some(now);
            let connections = self.shared.connections.count();
            tracing::error!(error, connections, "connections are refused");
        }
    }
}

/// Counts until it is dropped.
struct OpenConnection {
    shared: Arc<Shared>,
    connection: Arc<Connection>,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.shared.connections.close(&self.connection);
    }
}

async fn serve_connection(
    stream: TcpStream,
    router: Router,
    mut stopping: watch::Receiver<()>,
    open: OpenConnection,
) {
    // Answers are small and whole: waiting for more to send only makes them late.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let detected = tokio::select! {
        biased;
        detected = preface::detect(stream) => detected,
        () = open.connection.cut() => return,
        // Nothing that was sent completely is left without an answer.
        _ = stopping.changed() => return,
    };
    let ended = match detected {
        Ok((HttpVersion::Http1, stream)) => http1(stream, router, stopping, &open).await,
        Ok((HttpVersion::Http2, stream)) => http2::serve(stream, router, stopping, &open).await,
        Err(error) => {
            tracing::debug!(%error, "connection ended");
            return;
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended");
    }
}

async fn http1(
    stream: Rewound<TcpStream>,
    router: Router,
    mut stopping: watch::Receiver<()>,
    open: &OpenConnection,
) -> hyper::Result<()> {
    let (shared, connection) = (&open.shared, &open.connection);
    let stream = InspectReader::new(stream, |bytes| {
        // At the end of the stream there are none.
        if !bytes.is_empty() {
            connection.receive(|| shared.now());
        }
    });
    let stopped = stopping.clone();
    let service = service_fn(|request: Request<Incoming>| {
        let mut router = router.clone();
        let stopping = edge::lasts(request.uri().path()).then(|| Stopping(stopped.clone()));
        async move {
            let mut request = receive(request, shared).await;
            if let Some(stopping) = stopping {
                request.extensions_mut().insert(stopping);
            }
            shared.connections.work(connection, shared.now());
            let Ok(mut response) = router.call(request).await;
            if response.extensions_mut().remove::<Lasting>().is_some() {
                return Ok(lasting::watched(response, open));
            }
            shared.connections.rest(connection, shared.now());
            Ok::<_, Infallible>(response)
        }
    });
    // Deadlines are kept by whoever looks at all connections: hyper's own would cost each request a timer.
    let serving =
        http1::Builder::new().header_read_timeout(None).serve_connection(TokioIo::new(stream), service);
    let mut serving = Coalesced::new(Box::pin(serving));
    tokio::select! {
        biased;
        ended = &mut serving => ended,
        () = connection.cut() => Ok(()),
        _ = stopping.changed() => {
            serving.future().as_mut().graceful_shutdown();
            tokio::select! {
                biased;
                ended = serving => ended,
                () = connection.cut() => Ok(()),
                () = tokio::time::sleep(FAREWELL), if connection.is_streaming() => Ok(()),
            }
        }
    }
}

/// A request is worked on only when it has come completely: one that never does must not keep others out.
async fn receive(request: Request<Incoming>, shared: &Shared) -> Request<Body> {
    let (parts, incoming) = request.into_parts();
    let body = receive_body(incoming, shared, shared.connections.limits().body_max_bytes).await;
    Request::from_parts(parts, body)
}

/// The whole body, or one that says why it did not come.
async fn receive_body(incoming: Incoming, shared: &Shared, max_bytes: usize) -> Body {
    if incoming.is_end_stream() {
        return Body::empty();
    }
    // Held until the body is complete, or its connection ends.
    let mut kept: Option<SemaphorePermit<'_>> = None;
    let keep = |bytes| {
        let Some(more) = shared.connections.keep(bytes) else { return false };
        match &mut kept {
            Some(kept) => kept.merge(more),
            None => kept = Some(more),
        }
        true
    };
    match body::receive(incoming, max_bytes, keep).await {
        Ok(whole) => Body::from(whole),
        Err(error) => {
            if matches!(error, BodyError::NoCapacity) {
                (shared.on_refused)();
            }
            body::unreceived(error)
        }
    }
}
