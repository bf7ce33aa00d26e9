//! HTTP/2 without TLS, for gRPC: many requests on one connection at a time.
//!
//! The bytes of a connection say nothing about its requests, for clients also send signs of life. So a connection is at
//! work while one of its requests is, and idle otherwise. What is idle too long is told to go before it is closed.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::{oneshot, watch};
use tower::Service;

use super::keeping::{Kept, keeping};
use super::{OpenConnection, Shared, receive_body};
use crate::body::{self, BodyError};
use crate::coalesce::Coalesced;
use crate::connections::Connection;
use crate::grpc;
use crate::grpc::stream::{Lasting, Stopping};
use crate::limits::HEADERS_MAX_BYTES;
use crate::preface::Rewound;

/// Requests of one connection at a time. A client with more waits, or opens another connection.
const STREAMS_PER_CONNECTION_MAX: u32 = 256;

/// What a client may send of one body before it is read; a ping fits.
const STREAM_WINDOW_BYTES: u32 = 64 * 1024;

/// The same for all bodies of a connection.
const CONNECTION_WINDOW_BYTES: u32 = 256 * 1024;

/// Answers that last are otherwise kept for clients that have vanished without a word.
const SIGN_OF_LIFE_EVERY: Duration = Duration::from_secs(30);
const SIGN_OF_LIFE_TIMEOUT: Duration = Duration::from_secs(20);

/// How long a client that has to go may take to notice, or for the end of an answer that lasts: a request that it is just
/// sending is then sent elsewhere.
const FAREWELL: Duration = Duration::from_millis(250);

pub(super) async fn serve(
    stream: Rewound<TcpStream>,
    router: Router,
    mut stopping: watch::Receiver<()>,
    open: &OpenConnection,
) -> hyper::Result<()> {
    let asked = Asked {
        router,
        shared: Arc::clone(&open.shared),
        connection: Arc::clone(&open.connection),
        stopping: stopping.clone(),
    };
    let service = service_fn(move |request| asked.clone().answer(request));
    let serving = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_PER_CONNECTION_MAX)
        .max_header_list_size(HEADERS_MAX_BYTES as u32)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .keep_alive_interval(SIGN_OF_LIFE_EVERY)
        .keep_alive_timeout(SIGN_OF_LIFE_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    let mut serving = Coalesced::new(Box::pin(serving));
    tokio::select! {
        biased;
        ended = &mut serving => return ended,
        () = open.connection.cut() => {}
        _ = stopping.changed() => {
            let has_lasting = open.connection.has_lasting();
            serving.future().as_mut().graceful_shutdown();
            tokio::select! {
                biased;
                ended = &mut serving => return ended,
                () = open.connection.cut() => {}
                () = nothing_to_wait_for(&open.connection), if has_lasting => return Ok(()),
            }
        }
    }
    serving.future().as_mut().graceful_shutdown();
    tokio::time::timeout(FAREWELL, serving).await.unwrap_or(Ok(()))
}

/// Returns when the client has had time for the end of all answers that last, and for the last answer of another kind. Who
/// does not read does not take an end either.
async fn nothing_to_wait_for(connection: &Connection) {
    let mut is_over = false;
    loop {
        tokio::time::sleep(FAREWELL).await;
        let was_over = std::mem::replace(&mut is_over, connection.all_last());
        if was_over && is_over {
            return;
        }
    }
}

/// What one request needs, which outlives neither its connection nor its server.
#[derive(Clone)]
struct Asked {
    router: Router,
    shared: Arc<Shared>,
    connection: Arc<Connection>,
    stopping: watch::Receiver<()>,
}

impl Asked {
    async fn answer(mut self, request: Request<Incoming>) -> Result<Response, Infallible> {
        let (mut request, answering) = self.receive(request).await;
        request.extensions_mut().insert(Stopping(self.stopping));
        let mut at_work = AtWork::begin(self.shared, self.connection);
        let Ok(mut response) = self.router.call(request).await;
        if response.extensions_mut().remove::<Lasting>().is_some() {
            at_work.begin_lasting();
            return Ok(keeping(response, (at_work, answering)));
        }
        Ok(response)
    }

    /// Whole, as with HTTP/1; a body that does not come in time is given up by itself. One that is answered piece by piece
    /// ends with the answer at the latest, which holds what is returned beside it.
    async fn receive(&self, request: Request<Incoming>) -> (Request<Body>, Option<oneshot::Sender<()>>) {
        let (parts, incoming) = request.into_parts();
        if grpc::streams_its_request(parts.uri.path()) {
            let (answering, answered) = oneshot::channel();
            let body = Body::new(UntilAnswered { body: incoming, answered: Some(answered) });
            return (Request::from_parts(parts, body), Some(answering));
        }
        let limits = self.shared.connections.limits();
        let max_bytes = limits.body_max_bytes.saturating_add(grpc::FRAME_HEAD_BYTES);
        let received = receive_body(incoming, &self.shared, max_bytes);
        let timeout = limits.read_timeout;
        let body = tokio::time::timeout(timeout, received).await;
        let body = body.unwrap_or_else(|_| body::unreceived(BodyError::TooSlow { timeout }));
        (Request::from_parts(parts, body), None)
    }
}

/// While it is there, its connection is at work.
struct AtWork {
    shared: Arc<Shared>,
    connection: Arc<Connection>,
    lasts: bool,
}

impl AtWork {
    fn begin(shared: Arc<Shared>, connection: Arc<Connection>) -> Self {
        shared.connections.begin_stream(&connection, shared.now());
        Self { shared, connection, lasts: false }
    }

    fn begin_lasting(&mut self) {
        self.lasts = true;
        self.connection.begin_lasting();
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.shared.connections.end_stream(&self.connection, self.lasts, self.shared.now());
    }
}

/// While a lasting answer is there, its connection is at work and its request open.
impl Kept for (AtWork, Option<oneshot::Sender<()>>) {}

/// A body that nobody waits for once its request is answered, however slowly it comes.
struct UntilAnswered {
    body: Incoming,
    /// Nothing is ever sent; closed when there is no answer any more. `None`: that is so.
    answered: Option<oneshot::Receiver<()>>,
}

impl HttpBody for UntilAnswered {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        let is_open = |answered: &mut oneshot::Receiver<()>| Pin::new(answered).poll(context).is_pending();
        if !this.answered.as_mut().is_some_and(is_open) {
            this.answered = None;
            return Poll::Ready(None);
        }
        Pin::new(&mut this.body).poll_frame(context)
    }
}
