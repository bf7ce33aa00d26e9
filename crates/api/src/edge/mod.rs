//! The edge: what happens to every request of a router, whatever it asks for.
//!
//! One service around each route instead of a stack of layers: it refuses what web pages send and what is too much, gives
//! the request an id, bounds its time, catches its panics, counts it, and writes the one log line about it. Pings go
//! through here too, so nothing hashes a label or formats a text that is not needed.

mod request_id;

use std::any::Any;
use std::convert::Infallible;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::HttpBody;
use axum::extract::Request;
use axum::handler::Handler;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use maestro_core::allocation::WAIT_MAX;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tower::Service;
use tower::layer::layer_fn;
use tracing::{Instrument, Span};

use self::request_id::RequestId;
use crate::error::{self, ApiError, Cause, Code};
use crate::grpc::stream::{self, Farewell, Stopping};
use crate::grpc::{self, Kind};
use crate::limits::{HEADERS_MAX, HEADERS_MAX_BYTES, URL_MAX_BYTES};
use crate::metrics::{Metrics, RouteMetrics};
use crate::origin::{self, AllowedHosts};

/// Where the ids of requests come from that bring none.
pub type NewRequestId = Arc<dyn Fn() -> u64 + Send + Sync>;

/// A path and its methods.
pub(crate) type Route<S> = (&'static str, MethodRouter<S>);

/// Called when a request is refused for lack of capacity.
pub(crate) type OnRefused = Arc<dyn Fn() + Send + Sync>;

/// Requests to these may wait for something before they are worked on.
const PATIENT_ROUTES: [&str; 2] =
    ["/schedulers/{scheduler_name}/allocations", "/maestro.api.v1.AllocationsService/CreateAllocations"];

/// Requests to these are answered as long as somebody listens.
const LASTING_ROUTES: [&str; 1] = ["/events"];

/// Whether the answer to a request for this path may last.
pub(crate) fn lasts(path: &str) -> bool {
    LASTING_ROUTES.contains(&path)
}

/// The edge of one router.
pub(crate) struct Edge {
    /// `management-api` or `rooms-api`, in metrics and logs.
    pub(crate) service: &'static str,
    pub(crate) allowed_hosts: AllowedHosts,
    pub(crate) request_timeout: Duration,
    /// One for each request that is worked on.
    pub(crate) permits: Arc<Semaphore>,
    /// One for each request that may wait for something. However many do, pings are worked on.
    pub(crate) waiting: Arc<Semaphore>,
    /// One for each answer that lasts.
    pub(crate) streams: Arc<Semaphore>,
    pub(crate) new_request_id: NewRequestId,
    /// At which level requests become spans: what happens in them then carries their id.
    pub(crate) spans: Spans,
    pub(crate) metrics: Metrics,
    pub(crate) on_refused: OnRefused,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Spans {
    Always,
    /// Ten thousand pings a second are not worth a span each.
    WhenDebugging,
}

impl Edge {
    /// A router behind this edge. What matches none of its routes goes through the edge too, under one name.
    pub(crate) fn router<S>(
        self: &Arc<Self>,
        routes: Vec<Route<S>>,
        methods: Vec<grpc::Route<S>>,
        state: S,
    ) -> Router
    where
        S: Clone + Send + Sync + 'static,
    {
        let of_http = routes.into_iter().map(|(path, methods)| {
            let wire = if lasts(path) { Wire::SentEvents } else { Wire::Http };
            (path, methods, wire)
        });
        let of_grpc = methods.into_iter().map(|route| (route.path, route.methods, Wire::Grpc(route.kind)));
        let mut router = Router::new();
        for (path, methods, wire) in of_http.chain(of_grpc) {
            let guard = self.guard(path, wire);
            let guarded = layer_fn(move |inner| Guarded { guard: Arc::clone(&guard), inner });
            router = router.route(path, methods.fallback(error::method_not_allowed).layer(guarded));
        }
        let guard = self.guard("unmatched", Wire::Either);
        let unmatched = Guarded { guard, inner: error::not_found.with_state(()) };
        router.fallback_service(unmatched).with_state(state)
    }

    fn guard(self: &Arc<Self>, path: &str, wire: Wire) -> Arc<Guard> {
        let metrics = self.metrics.route(self.service, path);
        let is_patient = PATIENT_ROUTES.contains(&path);
        let waits = if is_patient { WAIT_MAX.as_duration() } else { Duration::ZERO };
        let timeout = self.request_timeout + waits;
        Arc::new(Guard { edge: Arc::clone(self), metrics, wire, timeout, is_patient })
    }

    /// Refuses what may not be asked, or is too much, before anything of it is done.
    fn admit(&self, request: &Request, permits: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, ApiError> {
        let url_bytes = request.uri().path_and_query().map_or(0, |url| url.as_str().len());
        if url_bytes > URL_MAX_BYTES {
            let message = format!("url: longer than {URL_MAX_BYTES} bytes");
            return Err(ApiError::invalid(message).with_status(StatusCode::URI_TOO_LONG));
        }
        let headers = request.headers();
        let header_bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        if headers.len() > HEADERS_MAX || header_bytes > HEADERS_MAX_BYTES {
            let message =
                format!("headers: more than {HEADERS_MAX}, or longer than {HEADERS_MAX_BYTES} bytes");
            return Err(ApiError::invalid(message).with_status(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE));
        }
        origin::check(request, &self.allowed_hosts)?;
        Arc::clone(permits).try_acquire_owned().map_err(|_| {
            if Arc::ptr_eq(permits, &self.streams) {
                return ApiError::too_many_streams();
            }
            // A ping would not have been refused for others.
            if Arc::ptr_eq(permits, &self.permits) {
                (self.on_refused)();
            }
            ApiError::too_many_requests()
        })
    }
}

/// How a route is asked and answered.
#[derive(Debug, Clone, Copy)]
enum Wire {
    Http,
    /// Server-sent events.
    SentEvents,
    Grpc(Kind),
    /// As the request says.
    Either,
}

/// The edge of one route.
struct Guard {
    edge: Arc<Edge>,
    metrics: RouteMetrics,
    wire: Wire,
    timeout: Duration,
    /// It may wait for something before it is worked on.
    is_patient: bool,
}

/// What goes with a request that is worked on.
struct Admitted {
    permit: OwnedSemaphorePermit,
    timeout: Timeout,
    /// For an answer that lasts.
    stream: Option<StreamBounds>,
}

/// How long an answer may take.
#[derive(Debug, Clone, Copy)]
struct Timeout {
    time: Duration,
    /// The caller does not wait longer, so it is no failure of ours.
    is_callers: bool,
}

impl Timeout {
    fn ours_or(ours: Duration, callers: Option<Duration>) -> Self {
        match callers {
            Some(time) if time < ours => Self { time, is_callers: true },
            Some(_) | None => Self { time: ours, is_callers: false },
        }
    }
}

struct StreamBounds {
    lasts_max: Option<Duration>,
    stopping: Option<Stopping>,
    farewell: Farewell,
}

impl Guard {
    /// Refuses what may not be asked, or is too much.
    fn admit(&self, request: &Request) -> Result<Admitted, ApiError> {
        let edge = &self.edge;
        let permit = edge.admit(request, self.permits())?;
        let stopping = || request.extensions().get().cloned();
        let timeout = Timeout::ours_or(self.timeout, None);
        let kind = match self.wire {
            Wire::Grpc(kind) => kind,
            Wire::Http | Wire::Either => return Ok(Admitted { permit, timeout, stream: None }),
            Wire::SentEvents => {
                let (lasts_max, farewell) = (None, Farewell::Comment);
                let stream = Some(StreamBounds { lasts_max, stopping: stopping(), farewell });
                return Ok(Admitted { permit, timeout, stream });
            }
        };
        grpc::check(request)?;
        let asked = grpc::timeout(request.headers())?;
        let stream = match kind {
            Kind::Unary => None,
            Kind::Stream { lasts_max } => Some(StreamBounds {
                lasts_max: lasts_max.into_iter().chain(asked).min(),
                stopping: stopping(),
                farewell: Farewell::Status,
            }),
        };
        Ok(Admitted { permit, timeout: Timeout::ours_or(self.timeout, asked), stream })
    }

    fn permits(&self) -> &Arc<Semaphore> {
        match self.wire {
            Wire::SentEvents | Wire::Grpc(Kind::Stream { .. }) => &self.edge.streams,
            Wire::Http | Wire::Grpc(Kind::Unary) | Wire::Either if self.is_patient => &self.edge.waiting,
            Wire::Http | Wire::Grpc(Kind::Unary) | Wire::Either => &self.edge.permits,
        }
    }

    /// Whether errors are answered as gRPC has them.
    fn answers_grpc(&self, request: &Request) -> bool {
        match self.wire {
            Wire::Http | Wire::SentEvents => false,
            Wire::Grpc(_) | Wire::Either => grpc::is_grpc(request.headers()),
        }
    }
}

#[derive(Clone)]
struct Guarded<S> {
    guard: Arc<Guard>,
    inner: S,
}

impl<S> Service<Request> for Guarded<S>
where
    S: Service<Request, Error = Infallible>,
    S::Response: IntoResponse,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, context: &mut TaskContext<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let guard = Arc::clone(&self.guard);
        let exchange = Exchange::begin(&guard.edge, &request);
        let in_flight = guard.metrics.begin();
        let answers_grpc = guard.answers_grpc(&request);
        let work = guard.admit(&request).map(|admitted| (admitted, self.inner.call(request)));
        Box::pin(async move {
            let answered = match work {
                Ok((Admitted { permit, timeout, stream }, future)) => {
                    let span = exchange.span(&guard.edge);
                    let answered = bounded(future, timeout).instrument(span).await;
                    match (answered, stream) {
                        // A refusal is whole.
                        (Ok(response), Some(bounds)) if response.status().is_success() => {
                            let StreamBounds { lasts_max, stopping, farewell } = bounds;
                            Ok(stream::bounded(response, lasts_max, stopping, farewell, (permit, in_flight)))
                        }
                        (answered, _) => answered,
                    }
                }
                Err(refused) => Err(refused),
            };
            let response = match answered {
                Ok(response) => response,
                Err(error) if answers_grpc => grpc::status::refusal(error),
                Err(error) => error.into_response(),
            };
            Ok(exchange.end(&guard, response))
        })
    }
}

/// The answer, or what stands for it if it panics or takes too long.
async fn bounded<F, R>(work: F, timeout: Timeout) -> Result<Response, ApiError>
where
    F: Future<Output = Result<R, Infallible>>,
    R: IntoResponse,
{
    let caught = AssertUnwindSafe(work).catch_unwind();
    let Timeout { time, is_callers } = timeout;
    match tokio::time::timeout(time, caught).await {
        Ok(Ok(Ok(response))) => Ok(response.into_response()),
        Ok(Err(panic)) => Err(ApiError::new(Code::Internal, "internal error; see the log of the server")
            .with_cause(format!("panicked: {}", panic_text(panic.as_ref())))),
        Err(_) => {
            let message = format!("no answer within {time:?}; the request may still be carried out");
            let error = ApiError::new(Code::DeadlineExceeded, message);
            Err(if is_callers { error } else { error.with_cause(format!("no answer within {time:?}")) })
        }
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("with something that is not a text")
}

/// One request and its answer, as the log and the metrics see it.
struct Exchange {
    method: Method,
    uri: Uri,
    request_id: RequestId,
    started_at: Instant,
}

impl Exchange {
    fn begin(edge: &Edge, request: &Request) -> Self {
        Self {
            method: request.method().clone(),
            uri: request.uri().clone(),
            request_id: RequestId::of(request.headers(), &*edge.new_request_id),
            started_at: Instant::now(),
        }
    }

    fn span(&self, edge: &Edge) -> Span {
        let request_id = self.request_id.as_str();
        match edge.spans {
            Spans::Always => tracing::info_span!("request", request_id),
            Spans::WhenDebugging => tracing::debug_span!("request", request_id),
        }
    }

    fn end(self, guard: &Guard, mut response: Response) -> Response {
        let duration = self.started_at.elapsed();
        let status = match guard.wire {
            Wire::Http | Wire::SentEvents => response.status(),
            Wire::Grpc(_) | Wire::Either => grpc::status::http_status(&response),
        };
        let bytes = response.body().size_hint().exact().unwrap_or(0);
        guard.metrics.observe(&self.method, status, duration, bytes);
        let cause = response.extensions_mut().remove::<Cause>();
        self.log(guard, status, duration, cause.as_ref());
        self.request_id.put_into(response.headers_mut());
        response
    }

    fn log(&self, guard: &Guard, status: StatusCode, duration: Duration, cause: Option<&Cause>) {
        macro_rules! line {
            ($level:ident, $message:literal $(, $field:ident = $value:expr)*) => {
                tracing::$level!(
                    service = guard.edge.service,
                    handler = guard.metrics.handler(),
                    method = self.method.as_str(),
                    path = self.uri.path(),
                    status = status.as_u16(),
                    duration_us = duration.as_micros() as u64,
                    request_id = self.request_id.as_str(),
                    $($field = $value,)*
                    $message
                )
            };
        }
        match cause {
            Some(cause) => line!(error, "request failed", error = cause.0.as_str()),
            // Also a request that was refused under load: metrics count those, and a loud line for each would be
            // more load.
            None => line!(debug, "request"),
        }
    }
}

#[cfg(test)]
mod tests;
