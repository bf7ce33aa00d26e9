//! The HTTP APIs: management for people and tools, rooms for game rooms, internal for probes and scrapers.
//!
//! HTTP/JSON as clients of Maestro v10 speak it. This crate translates and nothing else: paths and bodies in, one call
//! of the [`Engine`], its answer or error out. Every request goes through one edge (limits, ids, panics, metrics).

mod answer;
mod body;
mod coalesce;
mod connections;
#[cfg(test)]
mod contract;
mod edge;
mod error;
mod internal;
mod limits;
mod management;
mod metrics;
mod origin;
mod port;
mod request;
mod rooms;
mod serve;
mod view;
mod warning;
mod watched;

use std::sync::Arc;

use maestro_engine::Engine;

use edge::{Edge, OnRefused, ServiceInfo, Spans};

pub use connections::ConnectionLimits;
pub use edge::NewRequestId;
pub use internal::internal_router;
pub use limits::Limits;
pub use management::management_router;
pub use metrics::{ListenerMetrics, Metrics};
pub use origin::AllowedHosts;
pub use rooms::{RoomsOptions, rooms_router};
pub use serve::{Listening, serve};

/// What the routers stand on.
#[derive(Clone)]
pub struct Context {
    pub engine: Arc<Engine>,
    pub metrics: Metrics,
    pub new_request_id: NewRequestId,
    pub allowed_hosts: AllowedHosts,
}

impl Context {
    fn edge(&self, service: &'static str, limits: &Limits, spans: Spans, on_refused: OnRefused) -> Edge {
        let service = ServiceInfo { name: service, allowed_hosts: self.allowed_hosts.clone(), on_refused };
        Edge::new(service, limits, &self.metrics, &self.new_request_id, spans)
    }
}
