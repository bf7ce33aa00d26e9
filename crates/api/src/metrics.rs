//! The metrics of the APIs, by v10's names.
//!
//! No request looks up a label: each route resolves its own cells when the router is built or when an outcome is
//! first seen, and after that only touches the numbers behind them.

use std::array;
use std::sync::OnceLock;
use std::time::Duration;

use axum::http::{Method, StatusCode};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Metric, Registry};

/// The metrics of all APIs. Cheap to clone.
#[derive(Clone)]
pub struct Metrics {
    duration: Family<Labels, Histogram, fn() -> Histogram>,
    size: Family<Labels, Histogram, fn() -> Histogram>,
    in_flight: Family<Labels, Gauge>,
    failed_pings: Family<Labels, Counter>,
    connections: Family<Labels, Gauge>,
    connections_cut: Family<Labels, Counter>,
    connections_refused: Family<Labels, Counter>,
}

/// The cells of one listener.
#[derive(Clone, Default)]
pub struct ListenerMetrics {
    pub(crate) connections: Gauge,
    pub(crate) cut: Counter,
    pub(crate) refused: Counter,
}

const PING_FAILURES: &str = "maestro_api_ping_handler_update_room_failures";

type Labels = Vec<(&'static str, String)>;

impl Metrics {
    pub fn register(r: &mut Registry) -> Self {
        // What v10's library has by default.
        let seconds = || Histogram::new([0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0]);
        let bytes = || Histogram::new(exponential_buckets(100.0, 10.0, 8));
        let durations = Family::new_with_constructor(seconds as fn() -> _);
        let sizes = Family::new_with_constructor(bytes as fn() -> _);
        let pings = "Pings that were answered with success false";
        let in_flight = "Requests that are being worked on";
        let cut = "Connections that were closed because their client was too slow";
        let refused = "Connections that were refused for lack of capacity";
        Self {
            duration: registered(r, "http_request_duration_seconds", "How long requests took", durations),
            size: registered(r, "http_response_size_bytes", "How long the bodies of responses were", sizes),
            in_flight: registered(r, "http_requests_inflight", in_flight, Family::default()),
            failed_pings: registered(r, PING_FAILURES, pings, Family::default()),
            connections: registered(r, "http_connections", "Open connections", Family::default()),
            connections_cut: registered(r, "http_connections_cut", cut, Family::default()),
            connections_refused: registered(r, "http_connections_refused", refused, Family::default()),
        }
    }

    /// The cells of the listener of this service.
    pub fn listener(&self, service: &'static str) -> ListenerMetrics {
        let labels = vec![("service", service.to_owned())];
        ListenerMetrics {
            connections: self.connections.get_or_create_owned(&labels),
            cut: self.connections_cut.get_or_create_owned(&labels),
            refused: self.connections_refused.get_or_create_owned(&labels),
        }
    }

    /// The cells of the route with this path, as the router writes it.
    pub(crate) fn route(&self, service: &'static str, path: &str) -> RouteMetrics {
        let handler = handler(path);
        let labels = vec![("service", service.to_owned()), ("handler", handler.clone())];
        RouteMetrics {
            in_flight: self.in_flight.get_or_create_owned(&labels),
            outcomes: array::from_fn(|_| array::from_fn(|_| OnceLock::new())),
            families: self.clone(),
            labels,
            handler,
        }
    }

    pub(crate) fn failed_pings(&self, scheduler: &str) -> Counter {
        self.failed_pings.get_or_create_owned(&scheduler_label(scheduler))
    }

    pub(crate) fn forget_failed_pings(&self, scheduler: &str) {
        self.failed_pings.remove(&scheduler_label(scheduler));
    }
}

fn scheduler_label(scheduler: &str) -> Labels {
    vec![("scheduler", scheduler.to_owned())]
}

fn registered<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}

/// A route's path as v10's metrics spell it.
fn handler(path: &str) -> String {
    let names = [
        ("{scheduler_name}", ":schedulerName"),
        ("{operation_id}", ":operationID"),
        ("{room_id}", ":roomID"),
        ("{room_name}", ":roomID"),
        ("{lock_key}", ":lockKey"),
    ];
    let spelled = |path: String, (ours, v10s)| path.replace(ours, v10s);
    names.into_iter().fold(path.to_owned(), spelled)
}

/// Any other method is counted under the last one: a label's values are not for clients to invent.
const METHODS: [&str; 6] = ["GET", "POST", "PUT", "PATCH", "DELETE", "OTHER"];

/// The statuses that these APIs answer with.
const STATUSES: [StatusCode; 12] = [
    StatusCode::OK,
    StatusCode::BAD_REQUEST,
    StatusCode::FORBIDDEN,
    StatusCode::NOT_FOUND,
    StatusCode::METHOD_NOT_ALLOWED,
    StatusCode::CONFLICT,
    StatusCode::PAYLOAD_TOO_LARGE,
    StatusCode::URI_TOO_LONG,
    StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
    StatusCode::INTERNAL_SERVER_ERROR,
    StatusCode::SERVICE_UNAVAILABLE,
    StatusCode::GATEWAY_TIMEOUT,
];

/// The cells of one route.
pub(crate) struct RouteMetrics {
    in_flight: Gauge,
    outcomes: [[OnceLock<OutcomeMetrics>; STATUSES.len()]; METHODS.len()],
    families: Metrics,
    labels: Labels,
    handler: String,
}

struct OutcomeMetrics {
    duration: Histogram,
    size: Histogram,
}

impl RouteMetrics {
    pub(crate) fn handler(&self) -> &str {
        &self.handler
    }

    /// Counts a request as being worked on until the guard goes, also when its client hangs up.
    pub(crate) fn begin(&self) -> InFlight {
        self.in_flight.inc();
        InFlight(self.in_flight.clone())
    }

    pub(crate) fn observe(&self, method: &Method, status: StatusCode, duration: Duration, bytes: u64) {
        let method = method_index(method);
        let record = |outcome: &OutcomeMetrics| {
            outcome.duration.observe(duration.as_secs_f64());
            outcome.size.observe(bytes as f64);
        };
        match STATUSES.iter().position(|known| *known == status) {
            Some(known) => {
                record(self.outcomes[method][known].get_or_init(|| self.outcome(METHODS[method], status)));
            }
            None => record(&self.outcome(METHODS[method], status)),
        }
    }

    fn outcome(&self, method: &'static str, status: StatusCode) -> OutcomeMetrics {
        let mut labels = self.labels.clone();
        labels.extend([("method", method.to_owned()), ("code", status.as_u16().to_string())]);
        OutcomeMetrics {
            duration: self.families.duration.get_or_create_owned(&labels),
            size: self.families.size.get_or_create_owned(&labels),
        }
    }
}

fn method_index(method: &Method) -> usize {
    let other = METHODS.len() - 1;
    METHODS[..other].iter().position(|known| *known == method.as_str()).unwrap_or(other)
}

pub(crate) struct InFlight(Gauge);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn names_and_labels_are_v10s() {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        let route = metrics.route("management-api", "/schedulers/{scheduler_name}");
        let in_flight = route.begin();
        route.observe(&Method::GET, StatusCode::OK, Duration::from_millis(7), 250);
        let odd = Method::from_bytes(b"BREW").unwrap();
        route.observe(&odd, StatusCode::IM_A_TEAPOT, Duration::ZERO, 0);
        metrics.failed_pings("arena").inc();

        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let route = r#"service="management-api",handler="/schedulers/:schedulerName""#;
        for line in [
            &format!(r#"http_requests_inflight{{{route}}} 1"#),
            &format!(
                r#"http_request_duration_seconds_bucket{{le="0.01",{route},method="GET",code="200"}} 1"#
            ),
            &format!(r#"http_response_size_bytes_sum{{{route},method="GET",code="200"}} 250.0"#),
            &format!(r#"http_response_size_bytes_count{{{route},method="OTHER",code="418"}} 1"#),
            r#"maestro_api_ping_handler_update_room_failures_total{scheduler="arena"} 1"#,
        ] {
            assert!(text.lines().any(|have| have == line), "{line}\nis not in\n{text}");
        }

        drop(in_flight);
        text.clear();
        encode(&mut text, &registry).unwrap();
        assert!(text.contains(&format!("http_requests_inflight{{{route}}} 0")));
    }
}
