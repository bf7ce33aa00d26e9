//! Metrics of events on their way to matchmakers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use maestro_core::event::RpcCode;
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::{Millis, Timestamp, age};
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::Registry;

use crate::ports::store::{EventQueue, SchedulerRecord};

use super::fleets::encode;
use super::per_scheduler::{Begin, Forgetful, LATENCY_BUCKETS_MS, Labels, PerScheduler, and, labels_of};

pub(super) struct EventMetrics {
    /// Milliseconds, as in v10.
    attempts: Family<Labels, Histogram, fn() -> Histogram>,
    /// Of rooms and of players; failed and successful ones.
    forwarded: [[PerScheduler<Counter>; 2]; 2],
    pings_not_forwarded: PerScheduler<Counter>,
    delivered: PerScheduler<Seconds>,
    dead: PerScheduler<Counter>,
    queues: QueueGauges,
}

impl Default for EventMetrics {
    fn default() -> Self {
        Self {
            attempts: Family::new_with_constructor(|| Histogram::new(LATENCY_BUCKETS_MS)),
            forwarded: Default::default(),
            pings_not_forwarded: PerScheduler::default(),
            delivered: PerScheduler::default(),
            dead: PerScheduler::default(),
            queues: QueueGauges::default(),
        }
    }
}

/// From the moment an event is queued to its delivery: from at once to a day.
#[derive(Debug, Clone)]
pub(super) struct Seconds(Histogram);

impl Begin for Seconds {
    fn begin() -> Self {
        Self(Histogram::new([
            0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 60.0, 300.0, 1800.0, 3600.0, 21_600.0, 86_400.0,
        ]))
    }
}

impl EncodeMetric for Seconds {
    fn encode(&self, encoder: MetricEncoder<'_>) -> fmt::Result {
        self.0.encode(encoder)
    }

    fn metric_type(&self) -> MetricType {
        self.0.metric_type()
    }
}

impl TypedMetric for Seconds {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EventMetrics {
    pub(super) fn register(&self, r: &mut Registry) {
        let attempts = "Milliseconds that calls of receivers took";
        r.register("maestro_worker_grpc_request_latency", attempts, self.attempts.clone());
        let names = [
            ["maestro_api_failed_room_event_forwarding", "maestro_api_success_room_event_forwarding"],
            ["maestro_api_failed_player_event_forwarding", "maestro_api_success_player_event_forwarding"],
        ];
        let help = ["Events that were answered with success false", "Events that were forwarded, or queued"];
        for (names, metrics) in names.iter().zip(&self.forwarded) {
            for ((name, help), metric) in names.iter().zip(help).zip(metrics) {
                r.register(*name, help, metric.family());
            }
        }
        let pings = "Pings that could not be forwarded to a receiver";
        r.register("maestro_api_failed_ping_forwarding", pings, self.pings_not_forwarded.family());
        let delivered = "Seconds from the moment an event was queued to its delivery";
        r.register("maestro_event_delivery_seconds", delivered, self.delivered.family());
        r.register("maestro_event_dead", "Queued events that became dead letters", self.dead.family());
        r.register_collector(Box::new(self.queues.clone()));
    }

    pub(super) fn of_schedulers(&self) -> [&dyn Forgetful; 7] {
        let [[one, two], [three, four]] = &self.forwarded;
        [one, two, three, four, &self.pings_not_forwarded, &self.delivered, &self.dead]
    }

    pub(super) fn attempt(&self, method: &'static str, code: RpcCode, took: Duration) {
        let service = "GRPCForwarder".to_owned();
        let labels = vec![("service", service), ("method", method.to_owned()), ("code", code.to_string())];
        self.attempts.get_or_create(&labels).observe(took.as_secs_f64() * 1000.0);
    }

    pub(super) fn forwarded(&self, record: &SchedulerRecord, of_player: bool, success: bool, code: RpcCode) {
        let metric = &self.forwarded[usize::from(of_player)][usize::from(success)];
        metric.of(&and(labels_of(record), "code", code.as_str())).inc();
    }

    pub(super) fn ping_not_forwarded(&self, scheduler: &SchedulerName) {
        self.pings_not_forwarded.of(&vec![("scheduler", scheduler.to_string())]).inc();
    }

    pub(super) fn delivered(&self, scheduler: &SchedulerName, forwarder: &str, waited: Millis) {
        let seconds = waited.as_duration().as_secs_f64();
        self.delivered.of(&forwarder_labels(scheduler, forwarder)).0.observe(seconds);
    }

    pub(super) fn died(&self, scheduler: &SchedulerName, forwarder: &str) {
        self.dead.of(&forwarder_labels(scheduler, forwarder)).inc();
    }

    pub(super) fn show_queues(&self, queues: Vec<QueueReport>) {
        *self.queues.0.lock() = queues;
    }
}

fn forwarder_labels(scheduler: &SchedulerName, forwarder: &str) -> Labels {
    vec![("scheduler", scheduler.to_string()), ("forwarder", forwarder.to_owned())]
}

/// A queue, as a report saw it.
#[derive(Debug)]
pub(super) struct QueueReport {
    labels: Labels,
    waiting: u32,
    oldest_seconds: f64,
}

impl QueueReport {
    /// `queue`: `None` if nothing waits.
    pub(super) fn new(
        scheduler: &SchedulerName,
        forwarder: &str,
        queue: Option<&EventQueue>,
        now: Timestamp,
    ) -> Self {
        let oldest = queue.and_then(|queue| queue.oldest_at).map(|at| age(now, at).as_duration());
        Self {
            labels: forwarder_labels(scheduler, forwarder),
            waiting: queue.map_or(0, |queue| queue.waiting),
            oldest_seconds: oldest.unwrap_or_default().as_secs_f64(),
        }
    }
}

#[derive(Debug, Clone, Default)]
struct QueueGauges(Arc<Mutex<Vec<QueueReport>>>);

impl Collector for QueueGauges {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let queues = self.0.lock();
        let waiting = queues.iter().map(|queue| (queue.labels.clone(), f64::from(queue.waiting)));
        encode(&mut encoder, "maestro_event_queue_length", "Events that wait for a forwarder", waiting)?;
        let oldest = queues.iter().map(|queue| (queue.labels.clone(), queue.oldest_seconds));
        encode(&mut encoder, "maestro_event_oldest_seconds", "How long the oldest of them has waited", oldest)
    }
}
