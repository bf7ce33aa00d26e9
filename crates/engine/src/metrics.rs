//! Names and labels of the engine's metrics. Where v10 has a metric its name is kept, so that dashboards go on.

use maestro_core::operation::queue::Eviction;
use maestro_core::operation::{Operation, OperationStatus};
use maestro_core::time::{Timestamp, age};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// v10's, in milliseconds.
const LATENCY_BUCKETS_MS: [f64; 11] = [
    5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 5000.0, 10000.0,
];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ExecutionLabels {
    pub scheduler: String,
    pub operation: String,
    pub success: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct EvictionLabels {
    pub scheduler: String,
    pub operation: String,
    pub reason: &'static str,
}

pub struct Metrics {
    pub(crate) workers_sync: Counter,
    executions: Family<ExecutionLabels, Histogram, fn() -> Histogram>,
    evictions: Family<EvictionLabels, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        let latency: fn() -> Histogram = || Histogram::new(LATENCY_BUCKETS_MS);
        Self {
            workers_sync: Counter::default(),
            executions: Family::new_with_constructor(latency),
            evictions: Family::default(),
        }
    }
}

impl Metrics {
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "maestro_workers_sync",
            "How often the workers looked for schedulers",
            self.workers_sync.clone(),
        );
        registry.register(
            "maestro_worker_operation_execution_latency",
            "Milliseconds from the creation of an operation to its end",
            self.executions.clone(),
        );
        registry.register(
            "maestro_worker_operation_evicted",
            "Operations that were not executed, by reason",
            self.evictions.clone(),
        );
    }

    pub(crate) fn ended(&self, operation: &Operation, status: OperationStatus, at: Timestamp) {
        let labels = ExecutionLabels {
            scheduler: operation.scheduler.to_string(),
            operation: operation.definition.name().to_owned(),
            success: if status == OperationStatus::Finished {
                "true"
            } else {
                "false"
            },
        };
        let millis = age(at, operation.created_at).0;
        self.executions.get_or_create(&labels).observe(millis as f64);
    }

    pub(crate) fn evicted(&self, operation: &Operation, eviction: Eviction) {
        let labels = EvictionLabels {
            scheduler: operation.scheduler.to_string(),
            operation: operation.definition.name().to_owned(),
            reason: match eviction {
                Eviction::UnknownDefinition => "no_operation_executor_found",
                Eviction::SchedulerBeingDeleted | Eviction::SecondHealthController => "should_not_execute",
            },
        };
        self.evictions.get_or_create(&labels).inc();
    }
}
