//! What a worker says of the schedulers that it owns. Gauges go with the ownership: the next owner shows its own.

use std::fmt;

use maestro_core::operation::{Operation, OperationStatus};
use maestro_core::plan::{Expiry, Plan};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::ports::store::SchedulerRecord;

use super::per_scheduler::{Forgetful, Labels, PerScheduler, and, fleet_labels, labels_of};

#[derive(Default)]
pub(super) struct WorkerMetrics {
    current: Family<Labels, Gauge>,
    failures: PerScheduler<Counter>,
    /// By what was decided, which is more often than the gauges of fleets are shown.
    desired_rooms: PerScheduler<Gauge>,
    termination_timeouts: PerScheduler<Gauge>,
    terminated: PerScheduler<Gauge>,
    oldest_operations: PerScheduler<Gauge>,
}

/// What a worker could not do with an operation now, and tries again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkerFailure {
    Next,
    Start,
    Advance,
}

impl fmt::Display for WorkerFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Next => "next_operation_failed",
            Self::Start => "start_operation_failed",
            Self::Advance => "advance_operation_failed",
        })
    }
}

impl WorkerMetrics {
    pub(super) fn register(&self, r: &mut Registry) {
        r.register("maestro_current_workers", "Schedulers that are worked on here", self.current.clone());
        let failures = "Times that a worker could not go on with a scheduler, and tried again later";
        let name = "maestro_worker_operation_execution_worker_failed";
        r.register(name, failures, self.failures.family());
        r.register("maestro_worker_desired_rooms", "Rooms wanted", self.desired_rooms.family());
        let timeouts = "Rooms that said that they are terminating, and did not end in time";
        r.register(
            "maestro_worker_rooms_with_termination_timeout",
            timeouts,
            self.termination_timeouts.family(),
        );
        let terminated = "Rooms that said that they are terminated";
        r.register("maestro_worker_rooms_properly_terminated", terminated, self.terminated.family());
        let oldest = "When the oldest unfinished operation was created";
        r.register("maestro_operation_oldest_timestamp_seconds", oldest, self.oldest_operations.family());
    }

    pub(super) fn of_schedulers(&self) -> [&dyn Forgetful; 5] {
        let Self { current: _, failures, desired_rooms, termination_timeouts, terminated, oldest_operations } =
            self;
        [failures, desired_rooms, termination_timeouts, terminated, oldest_operations]
    }

    pub(super) fn began(&self, scheduler: &str) {
        self.current.get_or_create(&worker_labels(scheduler)).set(1);
    }

    pub(super) fn ended(&self, scheduler: &str) {
        self.current.remove(&worker_labels(scheduler));
        let gauges: [&dyn Forgetful; 4] =
            [&self.desired_rooms, &self.termination_timeouts, &self.terminated, &self.oldest_operations];
        for gauge in gauges {
            gauge.keep(&|other| other != scheduler);
        }
    }

    pub(super) fn failed(&self, game: &str, scheduler: &str, failure: WorkerFailure) {
        let labels = and(fleet_labels(game, scheduler), "reason", failure.to_string());
        self.failures.of(&labels).inc();
    }

    pub(super) fn decided(&self, scheduler: &SchedulerRecord, plan: &Plan) {
        let labels = labels_of(scheduler);
        self.desired_rooms.of(&labels).set(plan.decision.desired.into());
        let (mut timeouts, mut terminated) = (0, 0);
        for expired in &plan.expired {
            match expired.why {
                Expiry::StillTerminating { .. } => timeouts += 1,
                Expiry::Terminated => terminated += 1,
                Expiry::NeverReady { .. } | Expiry::Silent { .. } | Expiry::Error => {}
            }
        }
        self.termination_timeouts.of(&labels).set(timeouts);
        self.terminated.of(&labels).set(terminated);
    }

    /// `unfinished`: all of them.
    pub(super) fn queue(&self, scheduler: &SchedulerRecord, unfinished: &[Operation]) {
        for status in [OperationStatus::Pending, OperationStatus::InProgress] {
            let labels = and(labels_of(scheduler), "status", status.as_str());
            let of_status = unfinished.iter().filter(|operation| operation.status == status);
            match of_status.map(|operation| operation.created_at).min() {
                Some(oldest) => drop(self.oldest_operations.of(&labels).set(oldest.as_second())),
                None => self.oldest_operations.remove(&labels),
            }
        }
    }
}

fn worker_labels(scheduler: &str) -> Labels {
    let component = "operation_execution".to_owned();
    vec![("scheduler", scheduler.to_owned()), ("maestro_component", component)]
}
