//! The APIs, HTTP and gRPC: management for people and tools, rooms for game rooms, internal for probes and scrapers.
//!
//! They speak HTTP and JSON as clients of Maestro v10 do, and gRPC on the same ports. This crate translates and decides
//! nothing: a message comes in, one method of the [`Engine`] is called, and its answer or error goes out. A handler is a
//! function of a message; `http.rs` makes messages of paths, queries and bodies, and `grpc` reads them as they are.
//! `docs/api.md` lists all paths.
//!
//! - [`management_router`], [`rooms_router`] and [`internal_router`] each make a router from a [`Context`].
//! - Every request passes one edge, which limits bodies and concurrency ([`Limits`]), gives each request an id, turns panics
//!   into answers, and counts ([`Metrics`]). It also refuses what web pages of other origins send ([`AllowedHosts`]).
//! - [`serve`] runs a router on a listener. It knows all connections, their deadlines, and which of them to close first when
//!   there are too many ([`ConnectionLimits`]). A request reaches the router only when it has arrived completely.
//! - One table in `error.rs` maps errors of the engine to HTTP statuses and gRPC codes.
//!
//! Reading and writing the messages themselves is the business of `maestro-proto`.
//!
//! # Example
//!
//! A router for the rooms API, from what the wiring in `crates/maestro/src/start/server.rs` has put together:
//!
//! ```
//! use std::sync::Arc;
//!
//! use maestro_api::{AllowedHosts, Context, Metrics, RoomsOptions, rooms_router};
//! use maestro_engine::Engine;
//! use prometheus_client::registry::Registry;
//!
//! fn router(engine: Arc<Engine>, registry: &mut Registry) -> axum::Router {
//!     let context = Context {
//!         engine,
//!         metrics: Metrics::register(registry),
//!         new_request_id: Arc::new(|| 1),
//!         allowed_hosts: AllowedHosts::default(),
//!     };
//!     rooms_router(&context, &RoomsOptions::default())
//! }
//! ```

mod allocations;
mod answer;
mod body;
mod coalesce;
mod connections;
#[cfg(test)]
mod contract;
mod edge;
mod error;
mod grpc;
mod http;
mod internal;
mod limits;
mod management;
mod metrics;
mod origin;
mod page;
mod preface;
mod request;
mod rooms;
mod serve;
mod stream;
mod warning;

use std::sync::Arc;

use maestro_engine::Engine;
use tokio::sync::Semaphore;

use edge::{Edge, OnRefused, Spans};

pub use connections::ConnectionLimits;
pub use edge::NewRequestId;
pub use internal::{internal_router, metrics_text};
pub use limits::Limits;
pub use management::management_router;
pub use metrics::{ListenerMetrics, Metrics};
pub use origin::AllowedHosts;
pub use rooms::{RoomsOptions, rooms_router};
pub use serve::{Listening, serve};

/// What all routers need.
#[derive(Clone)]
pub struct Context {
    pub engine: Arc<Engine>,
    pub metrics: Metrics,
    pub new_request_id: NewRequestId,
    pub allowed_hosts: AllowedHosts,
}

impl Context {
    fn edge(&self, service: &'static str, limits: &Limits, spans: Spans, on_refused: OnRefused) -> Arc<Edge> {
        Arc::new(Edge {
            service,
            allowed_hosts: self.allowed_hosts.clone(),
            request_timeout: limits.request_timeout,
            permits: Arc::new(Semaphore::new(limits.requests_max)),
            waiting: Arc::new(Semaphore::new(limits::WAITING_MAX)),
            streams: Arc::new(Semaphore::new(limits::STREAMS_MAX)),
            new_request_id: Arc::clone(&self.new_request_id),
            spans,
            metrics: self.metrics.clone(),
            on_refused,
        })
    }
}
