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
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tower::Service;
use tower::layer::layer_fn;
use tracing::{Instrument, Span};

use self::request_id::RequestId;
use crate::error::{self, ApiError, Cause, Code};
use crate::limits::{HEADERS_MAX, HEADERS_MAX_BYTES, URL_MAX_BYTES};
use crate::metrics::{Metrics, RouteMetrics};
use crate::origin::{self, AllowedHosts};

/// Where the ids of requests come from that bring none.
pub type NewRequestId = Arc<dyn Fn() -> u64 + Send + Sync>;

/// A path and its methods.
pub(crate) type Route<S> = (&'static str, MethodRouter<S>);

/// Called when a request is refused for lack of capacity.
pub(crate) type OnRefused = Arc<dyn Fn() + Send + Sync>;

/// The edge of one router.
pub(crate) struct Edge {
    /// `management-api` or `rooms-api`, in metrics and logs.
    pub(crate) service: &'static str,
    pub(crate) allowed_hosts: AllowedHosts,
    pub(crate) request_timeout: Duration,
    /// One for each request that is worked on.
    pub(crate) permits: Arc<Semaphore>,
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
    pub(crate) fn router<S>(self: &Arc<Self>, routes: Vec<Route<S>>, state: S) -> Router
    where
        S: Clone + Send + Sync + 'static,
    {
        let mut router = Router::new();
        for (path, methods) in routes {
            let guard = self.guard(path);
            let guarded = layer_fn(move |inner| Guarded { guard: Arc::clone(&guard), inner });
            router = router.route(path, methods.fallback(error::method_not_allowed).layer(guarded));
        }
        let unmatched = Guarded { guard: self.guard("unmatched"), inner: error::not_found.with_state(()) };
        router.fallback_service(unmatched).with_state(state)
    }

    fn guard(self: &Arc<Self>, path: &str) -> Arc<Guard> {
        let metrics = self.metrics.route(self.service, path);
        Arc::new(Guard { edge: Arc::clone(self), metrics })
    }

    /// Refuses what may not be asked, or is too much, before anything of it is done.
    fn admit(&self, request: &Request) -> Result<OwnedSemaphorePermit, ApiError> {
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
        Arc::clone(&self.permits).try_acquire_owned().map_err(|_| {
            (self.on_refused)();
            ApiError::too_many_requests()
        })
    }
}

/// The edge of one route.
struct Guard {
    edge: Arc<Edge>,
    metrics: RouteMetrics,
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
        let admitted = guard.edge.admit(&request);
        let work = admitted.map(|permit| (permit, self.inner.call(request)));
        Box::pin(async move {
            let response = match work {
                Ok((permit, future)) => {
                    let span = exchange.span(&guard.edge);
                    let response = bounded(future, guard.edge.request_timeout).instrument(span).await;
                    drop(permit);
                    response
                }
                Err(refused) => refused.into_response(),
            };
            drop(in_flight);
            Ok(exchange.end(&guard, response))
        })
    }
}

/// The answer, or what stands for it if it panics or takes too long.
async fn bounded<F, R>(work: F, timeout: Duration) -> Response
where
    F: Future<Output = Result<R, Infallible>>,
    R: IntoResponse,
{
    let caught = AssertUnwindSafe(work).catch_unwind();
    match tokio::time::timeout(timeout, caught).await {
        Ok(Ok(Ok(response))) => response.into_response(),
        Ok(Err(panic)) => ApiError::new(Code::Internal, "internal error; see the log of the server")
            .with_cause(format!("panicked: {}", panic_text(panic.as_ref())))
            .into_response(),
        Err(_) => {
            let message = format!("no answer within {timeout:?}; the request may still be carried out");
            ApiError::new(Code::DeadlineExceeded, message)
                .with_cause(format!("no answer within {timeout:?}"))
                .into_response()
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
        let status = response.status();
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
