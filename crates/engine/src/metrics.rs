//! Names and labels of the engine's metrics. Where v10 has a metric its name, labels and unit are kept, so that
//! dashboards go on; what v10 got wrong (an operation's id as a label, gauges of schedulers that are gone) is not.

mod locks;
mod per_scheduler;
mod regions;
mod report;

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use maestro_core::autoscaling::{Decision, Outcome};
use maestro_core::invariant::Invariant;
use maestro_core::operation::queue::Eviction;
use maestro_core::operation::{DefinitionKind, Operation, OperationStatus};
use maestro_core::room::RoomStatus;
use maestro_core::scheduler::{ScalingPolicy, WHOLE};
use maestro_core::time::{Timestamp, age};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::ports::room_table::FleetCounts;
use crate::ports::store::{SchedulerRecord, UnreadableScheduler};

use locks::LockMetrics;
use per_scheduler::{OfScheduler, PerScheduler};
use regions::RegionMetrics;
pub(crate) use report::report;

/// v10's, in milliseconds.
const LATENCY_BUCKETS_MS: [f64; 11] =
    [5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 5000.0, 10000.0];

type Fractions = Gauge<f64, std::sync::atomic::AtomicU64>;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
struct FleetLabels {
    game: String,
    scheduler: String,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
struct ExecutionLabels {
    game: String,
    scheduler: String,
    operation: String,
    success: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
struct EvictionLabels {
    game: String,
    scheduler: String,
    operation: String,
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
struct FailedAddLabels {
    scheduler: String,
    operation: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
struct DecisionLabels {
    game: String,
    scheduler: String,
    decision: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WorkerLabels {
    scheduler: String,
    maestro_component: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SchedulerLabels {
    scheduler: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InvariantLabels {
    invariant: &'static str,
}

pub struct Metrics {
    pub(crate) workers_sync: Counter,
    pub(crate) no_actions_lost: Counter,
    workers: Family<WorkerLabels, Gauge>,
    executions: PerScheduler<ExecutionLabels, Histogram>,
    rollbacks: PerScheduler<ExecutionLabels, Histogram>,
    evictions: PerScheduler<EvictionLabels, Counter>,
    failed_adds: PerScheduler<FailedAddLabels, Counter>,
    rooms: Vec<(&'static str, RoomStatus, Family<FleetLabels, Gauge>)>,
    instances: [(&'static str, Family<FleetLabels, Gauge>); 5],
    decisions: PerScheduler<DecisionLabels, Counter>,
    pub(crate) locks: LockMetrics,
    pub(crate) regions: RegionMetrics,
    panics: PerScheduler<FleetLabels, Counter>,
    /// By what was decided, which is more often than the gauges of fleets are shown.
    desired_rooms: PerScheduler<FleetLabels, Gauge>,
    current_rooms: Family<FleetLabels, Gauge>,
    running_matches: Family<FleetLabels, Gauge>,
    max_matches: Family<FleetLabels, Gauge>,
    ready_target: Family<FleetLabels, Fractions>,
    fixed_buffer: Family<FleetLabels, Gauge>,
    unreadable: Family<SchedulerLabels, Gauge>,
    violations: Family<InvariantLabels, Counter>,
    /// What the gauges show, so that those of schedulers that are gone can be taken away.
    shown: Mutex<BTreeSet<FleetLabels>>,
    /// The schedulers at the last report but one: what counters say stays for one report longer than its scheduler, so
    /// that a scrape sees the last of it.
    before: Mutex<BTreeSet<String>>,
}

impl Default for Metrics {
    fn default() -> Self {
        let latency: fn() -> Histogram = || Histogram::new(LATENCY_BUCKETS_MS);
        let room = |name, status| (name, status, Family::default());
        let violations = Family::<InvariantLabels, Counter>::default();
        // From the start: an alert on a name that does not exist yet would never fire.
        for invariant in Invariant::ALL {
            drop(violations.get_or_create(&invariant_labels(invariant)));
        }
        Self {
            workers_sync: Counter::default(),
            no_actions_lost: Counter::default(),
            workers: Family::default(),
            executions: PerScheduler::new(latency),
            rollbacks: PerScheduler::new(latency),
            evictions: PerScheduler::default(),
            failed_adds: PerScheduler::default(),
            rooms: vec![
                room("maestro_worker_gru_ready", RoomStatus::Ready),
                room("maestro_worker_gru_pending", RoomStatus::Pending),
                room("maestro_worker_gru_unready", RoomStatus::Unready),
                room("maestro_worker_gru_terminating", RoomStatus::Terminating),
                room("maestro_worker_gru_error", RoomStatus::Error),
                room("maestro_worker_gru_occupied", RoomStatus::Occupied),
                room("maestro_worker_gru_active", RoomStatus::Active),
                room("maestro_worker_gru_allocated", RoomStatus::Allocated),
            ],
            instances: [
                ("maestro_worker_instance_ready", Family::default()),
                ("maestro_worker_instance_pending", Family::default()),
                ("maestro_worker_instance_unknown", Family::default()),
                ("maestro_worker_instance_terminating", Family::default()),
                ("maestro_worker_instance_error", Family::default()),
            ],
            decisions: PerScheduler::default(),
            locks: LockMetrics::default(),
            regions: RegionMetrics::default(),
            panics: PerScheduler::default(),
            desired_rooms: PerScheduler::default(),
            current_rooms: Family::default(),
            running_matches: Family::default(),
            max_matches: Family::default(),
            ready_target: Family::default(),
            fixed_buffer: Family::default(),
            unreadable: Family::default(),
            violations,
            shown: Mutex::default(),
            before: Mutex::default(),
        }
    }
}

impl Metrics {
    pub fn register(&self, registry: &mut Registry) {
        let r = registry;
        r.register("maestro_workers_sync", "Looks for new schedulers", self.workers_sync.clone());
        r.register(
            "maestro_idle_cycles_not_recorded",
            "Cycles in which nothing was to be done, and that could not be written down",
            self.no_actions_lost.clone(),
        );
        r.register("maestro_current_workers", "Schedulers that are worked on here", self.workers.clone());
        r.register(
            "maestro_worker_operation_execution_latency",
            "Milliseconds from the creation of an operation to its end",
            self.executions.family(),
        );
        r.register(
            "maestro_worker_operation_rollback_latency",
            "Milliseconds from the creation of an operation that turned round to its end",
            self.rollbacks.family(),
        );
        r.register(
            "maestro_worker_operation_evicted",
            "Operations that were not executed",
            self.evictions.family(),
        );
        r.register(
            "maestro_worker_add_rooms_operation_execution_failed",
            "add_rooms operations that failed",
            self.failed_adds.family(),
        );
        for (name, status, family) in &self.rooms {
            r.register(*name, format!("Rooms that are {status}"), family.clone());
        }
        for (name, family) in &self.instances {
            r.register(*name, "Rooms by what the runtime says of their instance", family.clone());
        }
        r.register(
            "maestro_worker_autoscaling_decisions",
            "Decisions of health cycles: scale_up, do_nothing, scale_down",
            self.decisions.family(),
        );
        r.register("maestro_panic", "Bursts of rooms that were asked for in need", self.panics.family());
        r.register("maestro_worker_desired_rooms", "Rooms wanted", self.desired_rooms.family());
        r.register("maestro_worker_current_rooms", "Rooms there", self.current_rooms.clone());
        r.register("maestro_worker_running_matches", "Matches running", self.running_matches.clone());
        r.register("maestro_worker_max_matches", "Matches that a room holds", self.max_matches.clone());
        r.register("maestro_worker_ready_target", "Share of rooms to stand ready", self.ready_target.clone());
        r.register("maestro_worker_fixed_buffer", "Rooms to stand ready", self.fixed_buffer.clone());
        r.register(
            "maestro_scheduler_unreadable",
            "Schedulers that this build cannot read and leaves alone with their rooms",
            self.unreadable.clone(),
        );
        self.locks.register(r);
        self.regions.register(r);
        r.register(
            "maestro_invariant_violations",
            "Times that something was seen which must never be; a bug, if it is not 0",
            self.violations.clone(),
        );
    }

    /// Those that cannot be read now, and no others.
    pub(crate) fn show_unreadable(&self, unreadable: &[UnreadableScheduler]) {
        self.unreadable.clear();
        for scheduler in unreadable {
            self.unreadable.get_or_create(&SchedulerLabels { scheduler: scheduler.name.to_string() }).set(1);
        }
    }

    /// How often an invariant was seen not to hold.
    pub fn violations(&self, invariant: Invariant) -> u64 {
        self.violations.get_or_create(&invariant_labels(invariant)).get()
    }

    pub(crate) fn violated(&self, invariant: Invariant) {
        self.violations.get_or_create(&invariant_labels(invariant)).inc();
    }

    pub(crate) fn worker_began(&self, scheduler: &str) {
        self.workers.get_or_create(&worker_labels(scheduler)).set(1);
    }

    pub(crate) fn worker_ended(&self, scheduler: &str) {
        self.workers.remove(&worker_labels(scheduler));
    }

    pub(crate) fn ended(&self, game: &str, operation: &Operation, status: OperationStatus, at: Timestamp) {
        let is_finished = status == OperationStatus::Finished;
        let labels = ExecutionLabels {
            game: game.to_owned(),
            scheduler: operation.scheduler.to_string(),
            operation: operation.definition.name().to_owned(),
            success: if is_finished { "true" } else { "false" },
        };
        let millis = age(at, operation.created_at).0 as f64;
        if operation.rollback.is_some() {
            self.rollbacks.of(&labels).observe(millis);
        }
        self.executions.of(&labels).observe(millis);
        if operation.definition.kind() == DefinitionKind::AddRooms && status == OperationStatus::Error {
            let operation_name = DefinitionKind::AddRooms.name();
            let labels =
                FailedAddLabels { scheduler: operation.scheduler.to_string(), operation: operation_name };
            self.failed_adds.of(&labels).inc();
        }
    }

    /// What a health cycle decided. The words stand in the operation's history; here they are counted.
    pub(crate) fn decided(&self, scheduler: &SchedulerRecord, decision: &Decision) {
        let (game, name) = (scheduler.recipe.game.clone(), scheduler.name.to_string());
        let labels = FleetLabels { game: game.clone(), scheduler: name.clone() };
        self.desired_rooms.of(&labels).set(decision.desired.into());
        let decision = match decision.outcome() {
            Outcome::ScaleUp(_) => "scale_up",
            Outcome::DoNothing => "do_nothing",
            Outcome::ScaleDown(_) => "scale_down",
        };
        self.decisions.of(&DecisionLabels { game, scheduler: name, decision }).inc();
    }

    pub(crate) fn panicked(&self, scheduler: &SchedulerRecord) {
        let (game, scheduler) = (scheduler.recipe.game.clone(), scheduler.name.to_string());
        self.panics.of(&FleetLabels { game, scheduler }).inc();
    }

    pub(crate) fn evicted(&self, game: &str, operation: &Operation, eviction: Eviction) {
        let labels = EvictionLabels {
            game: game.to_owned(),
            scheduler: operation.scheduler.to_string(),
            operation: operation.definition.name().to_owned(),
            reason: match eviction {
                Eviction::UnknownDefinition => "no_operation_executor_found",
                Eviction::SchedulerBeingDeleted
                | Eviction::SecondHealthController
                | Eviction::AlreadyActive(_)
                | Eviction::NoLongerActive(_) => "should_not_execute",
            },
        };
        self.evictions.of(&labels).inc();
    }

    fn show(&self, scheduler: &SchedulerRecord, counts: &FleetCounts) -> FleetLabels {
        let labels =
            FleetLabels { game: scheduler.recipe.game.clone(), scheduler: scheduler.name.to_string() };
        let set = |family: &Family<FleetLabels, Gauge>, value: u64| {
            family.get_or_create(&labels).set(i64::try_from(value).unwrap_or(i64::MAX));
        };
        for (_, status, family) in &self.rooms {
            set(family, counts.by_status.of(*status).into());
        }
        let instances = &counts.by_instance;
        let by_instance =
            [instances.ready, instances.pending, instances.unknown, instances.terminating, instances.error];
        for ((_, family), value) in self.instances.iter().zip(by_instance) {
            set(family, value.into());
        }
        let there = counts.by_status.iter().filter(|(status, _)| status.counts());
        set(&self.current_rooms, there.map(|(_, rooms)| u64::from(rooms)).sum());
        set(&self.running_matches, counts.matches);
        set(&self.max_matches, scheduler.recipe.match_allocation.max_matches.into());
        // The recipe before may have had another policy: what is not said any more is not shown.
        match scheduler.recipe.autoscaling.as_ref().map(|autoscaling| &autoscaling.policy) {
            Some(ScalingPolicy::RoomOccupancy(policy)) => {
                let target = policy.ready_target.units() as f64 / WHOLE as f64;
                self.ready_target.get_or_create(&labels).set(target);
                self.fixed_buffer.remove(&labels);
            }
            Some(ScalingPolicy::FixedBuffer(policy)) => {
                set(&self.fixed_buffer, policy.amount.into());
                self.ready_target.remove(&labels);
            }
            None => {
                self.ready_target.remove(&labels);
                self.fixed_buffer.remove(&labels);
            }
        }
        labels
    }

    fn hide(&self, labels: &FleetLabels) {
        let rooms = self.rooms.iter().map(|(_, _, family)| family);
        let instances = self.instances.iter().map(|(_, family)| family);
        let others = [&self.current_rooms, &self.running_matches, &self.max_matches, &self.fixed_buffer];
        for family in rooms.chain(instances).chain(others) {
            family.remove(labels);
        }
        self.ready_target.remove(labels);
    }
}

impl Metrics {
    /// Takes away what is told of schedulers that are gone; `schedulers` are those that there are.
    fn forget_gone(&self, schedulers: BTreeSet<String>) {
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        let is_kept = |scheduler: &str| schedulers.contains(scheduler) || before.contains(scheduler);
        self.executions.keep(is_kept);
        self.rollbacks.keep(is_kept);
        self.evictions.keep(is_kept);
        self.failed_adds.keep(is_kept);
        self.decisions.keep(is_kept);
        self.desired_rooms.keep(is_kept);
        self.panics.keep(is_kept);
        self.locks.keep(is_kept);
        *before = schedulers;
    }
}

macro_rules! scheduler_labels {
    ($($labels:ty),*) => {
        $(impl OfScheduler for $labels {
            fn scheduler(&self) -> &str {
                &self.scheduler
            }
        })*
    };
}

scheduler_labels!(FleetLabels, ExecutionLabels, EvictionLabels, FailedAddLabels, DecisionLabels);

fn invariant_labels(invariant: Invariant) -> InvariantLabels {
    InvariantLabels { invariant: invariant.as_str() }
}

fn worker_labels(scheduler: &str) -> WorkerLabels {
    WorkerLabels { scheduler: scheduler.to_owned(), maestro_component: "operation_execution" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_told_of_schedulers_that_are_gone() {
        let metrics = Metrics::default();
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let tell = |scheduler: &str| {
            let (game, scheduler) = ("chess".to_owned(), scheduler.to_owned());
            let operation = "add_rooms".to_owned();
            let (game2, name2) = (game.clone(), scheduler.clone());
            metrics.panics.of(&FleetLabels { game: game.clone(), scheduler: scheduler.clone() }).inc();
            let labels = DecisionLabels { game: game2, scheduler: name2, decision: "scale_up" };
            metrics.decisions.of(&labels).inc();
            let labels = FailedAddLabels { scheduler: scheduler.clone(), operation: "add_rooms" };
            metrics.failed_adds.of(&labels).inc();
            let labels = ExecutionLabels { game, scheduler, operation, success: "true" };
            metrics.executions.of(&labels).observe(7.0);
            metrics.rollbacks.of(&ExecutionLabels { success: "false", ..labels }).observe(7.0);
        };
        tell("arena");
        tell("bazaar");
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let text = || {
            let mut text = String::new();
            prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
            text
        };
        metrics.forget_gone(names(&["arena", "bazaar"]));
        metrics.forget_gone(names(&["arena"]));
        assert!(text().contains("bazaar"), "a scrape may see the last of it");
        metrics.forget_gone(names(&["arena"]));
        assert!(!text().contains("bazaar"), "{}", text());
        assert_eq!(text().lines().filter(|line| line.contains("arena")).count(), 3 + 2 * 14);
        // Told once more after it is gone, it goes again.
        tell("bazaar");
        metrics.forget_gone(names(&["arena"]));
        assert!(!text().contains("bazaar"));
    }

    #[test]
    fn every_invariant_is_there_from_the_start() {
        let metrics = Metrics::default();
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        metrics.violated(Invariant::PortOnce);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for invariant in Invariant::ALL {
            let times = u8::from(invariant == Invariant::PortOnce);
            let line = format!("maestro_invariant_violations_total{{invariant=\"{invariant}\"}} {times}\n");
            assert!(text.contains(&line), "{line} is missing in {text}");
        }
    }
}
