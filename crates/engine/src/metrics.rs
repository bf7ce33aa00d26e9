//! Names and labels of the engine's metrics. Where v10 has a metric its name, labels and unit are kept, so that
//! dashboards go on; what v10 got wrong (an operation's id as a label, gauges of schedulers that are gone) is not.

mod events;
#[cfg(feature = "contract")]
mod everything;
mod fleets;
mod per_scheduler;
mod report;
mod workers;

use std::collections::BTreeSet;
use std::time::Duration;

use maestro_core::autoscaling::Outcome;
use maestro_core::event::RpcCode;
use maestro_core::invariant::Invariant;
use maestro_core::lock::LockKind;
use maestro_core::operation::queue::Eviction;
use maestro_core::operation::{DefinitionKind, Operation, OperationStatus};
use maestro_core::plan::Plan;
use maestro_core::region::Region;
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::{Millis, Timestamp, age};
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::ports::runtime::RoomEvent;
use crate::ports::store::{SchedulerRecord, UnreadableScheduler};
use crate::{Error, Result};

use events::{EventMetrics, QueueReport};
use fleets::FleetGauges;
use per_scheduler::{Forgetful, Labels, PerScheduler, and, fleet_labels, labels_of};
pub(crate) use report::{forget_gone, report};
pub(crate) use workers::WorkerFailure;
use workers::WorkerMetrics;

#[derive(Default)]
pub struct Metrics {
    pub(crate) workers_sync: Counter,
    pub(crate) no_actions_lost: Counter,
    workers: WorkerMetrics,
    executions: PerScheduler<Histogram>,
    rollbacks: PerScheduler<Histogram>,
    evictions: PerScheduler<Counter>,
    failed_adds: PerScheduler<Counter>,
    decisions: PerScheduler<Counter>,
    panics: PerScheduler<Counter>,
    locks_forced: PerScheduler<Counter>,
    allocations: PerScheduler<Counter>,
    observations: PerScheduler<Counter>,
    table_rebuilds: PerScheduler<Counter>,
    fleets: FleetGauges,
    events: EventMetrics,
    regions_reachable: Family<Labels, Gauge>,
    region_changes: Family<Labels, Counter>,
    silent_rooms: Family<Labels, Gauge>,
    unreadable: Family<Labels, Gauge>,
    untold: Family<Labels, Gauge>,
    violations: Family<Labels, Counter>,
    /// The schedulers at the last report but one: what counters say stays for one report longer than its scheduler, so
    /// that a scrape sees the last of it.
    before: Mutex<BTreeSet<String>>,
}

impl Metrics {
    pub fn register(&self, r: &mut Registry) {
        let synced = "Times that workers looked for schedulers to own";
        r.register("maestro_workers_sync", synced, self.workers_sync.clone());
        let not_recorded = "Cycles in which nothing was to be done, and that could not be written down";
        r.register("maestro_idle_cycles_not_recorded", not_recorded, self.no_actions_lost.clone());
        self.workers.register(r);
        let execution = "Milliseconds from the creation of an operation to its end";
        r.register("maestro_worker_operation_execution_latency", execution, self.executions.family());
        let rollback = "Milliseconds from the creation of an operation that was rolled back to its end";
        r.register("maestro_worker_operation_rollback_latency", rollback, self.rollbacks.family());
        let evicted = "Operations that were not executed";
        r.register("maestro_worker_operation_evicted", evicted, self.evictions.family());
        let failed = "add_rooms operations that failed";
        r.register("maestro_worker_add_rooms_operation_execution_failed", failed, self.failed_adds.family());
        let decisions = "Decisions of health cycles: scale_up, do_nothing, scale_down";
        r.register("maestro_worker_autoscaling_decisions", decisions, self.decisions.family());
        r.register("maestro_panic", "Panics: bursts of rooms added at once", self.panics.family());
        r.register("maestro_locks_forced", "Locks that people released", self.locks_forced.family());
        let allocations = "Requests of matchmakers for rooms, by what was answered";
        r.register("maestro_allocation_requests", allocations, self.allocations.family());
        let observations = "What runtimes said of rooms, and whether that could be written down";
        r.register("maestro_watcher_number_of_events_processed", observations, self.observations.family());
        let rebuilt =
            "Times that the room table had lost a scheduler, and its owner put its rooms into it again";
        r.register("maestro_room_table_rebuilds", rebuilt, self.table_rebuilds.family());
        r.register_collector(Box::new(self.fleets.clone()));
        self.events.register(r);
        let reachable = "Whether a region can be reached: 1 or 0";
        r.register("maestro_region_reachable", reachable, self.regions_reachable.clone());
        let changes = "How often a region became reachable or unreachable";
        r.register("maestro_region_changes", changes, self.region_changes.clone());
        let silent = "Rooms that stopped pinging together and are not considered dead yet";
        r.register("maestro_region_silent_rooms", silent, self.silent_rooms.clone());
        let unreadable = "Schedulers that this build cannot read and leaves alone with their rooms";
        r.register("maestro_scheduler_unreadable", unreadable, self.unreadable.clone());
        let untold = "Schedulers whose rooms the room table has lost, or does not tell";
        r.register("maestro_room_table_unavailable", untold, self.untold.clone());
        // From the start: an alert on a name that does not exist yet would never fire.
        for invariant in Invariant::ALL {
            drop(self.violations.get_or_create(&invariant_labels(invariant)));
        }
        let violations = "Violations of invariants; anything above 0 is a bug";
        r.register("maestro_invariant_violations", violations, self.violations.clone());
    }

    /// Those that cannot be read now, and no others.
    pub(crate) fn show_unreadable(&self, unreadable: &[UnreadableScheduler]) {
        show_only(&self.unreadable, unreadable.iter().map(|scheduler| &scheduler.name));
    }

    /// Those of whose rooms the room table says nothing now, and no others.
    fn show_untold(&self, untold: &[SchedulerName]) {
        show_only(&self.untold, untold.iter());
    }

    /// How often an invariant was seen not to hold.
    pub fn violations(&self, invariant: Invariant) -> u64 {
        self.violations.get_or_create(&invariant_labels(invariant)).get()
    }

    pub(crate) fn violated(&self, invariant: Invariant) {
        self.violations.get_or_create(&invariant_labels(invariant)).inc();
    }

    pub(crate) fn worker_began(&self, scheduler: &str) {
        self.workers.began(scheduler);
    }

    pub(crate) fn worker_ended(&self, scheduler: &str) {
        self.workers.ended(scheduler);
    }

    pub(crate) fn worker_failed(&self, game: &str, scheduler: &SchedulerName, failure: WorkerFailure) {
        self.workers.failed(game, scheduler.as_str(), failure);
    }

    /// The operations of a scheduler that have not ended.
    pub(crate) fn operation_queue(&self, scheduler: &SchedulerRecord, unfinished: &[Operation]) {
        self.workers.queue(scheduler, unfinished);
    }

    pub(crate) fn ended(&self, game: &str, operation: &Operation, status: OperationStatus, at: Timestamp) {
        let success = (status == OperationStatus::Finished).to_string();
        let labels = and(operation_labels(game, operation), "success", success);
        let millis = age(at, operation.created_at).0 as f64;
        if operation.rollback.is_some() {
            self.rollbacks.of(&labels).observe(millis);
        }
        self.executions.of(&labels).observe(millis);
        if operation.definition.kind() == DefinitionKind::AddRooms && status == OperationStatus::Error {
            let scheduler = vec![("scheduler", operation.scheduler.to_string())];
            self.failed_adds.of(&and(scheduler, "operation", operation.definition.name())).inc();
        }
    }

    /// What a health cycle decided. The words stand in the operation's history; here they are counted.
    pub(crate) fn decided(&self, scheduler: &SchedulerRecord, plan: &Plan) {
        self.workers.decided(scheduler, plan);
        let decision = match plan.decision.outcome() {
            Outcome::ScaleUp(_) => "scale_up",
            Outcome::DoNothing => "do_nothing",
            Outcome::ScaleDown(_) => "scale_down",
        };
        self.decisions.of(&and(labels_of(scheduler), "decision", decision)).inc();
    }

    pub(crate) fn panicked(&self, scheduler: &SchedulerRecord) {
        self.panics.of(&labels_of(scheduler)).inc();
    }

    /// What a matchmaker was answered. Names of schedulers that do not exist are not for clients to invent; wrong requests
    /// are counted with their status.
    pub(crate) fn allocation_answered<T>(&self, scheduler: &SchedulerName, answer: &Result<T>) {
        let outcome = match answer {
            Ok(_) => "allocated",
            Err(Error::NoRooms(_)) => "no_rooms",
            Err(Error::TooMany(_)) => "too_many",
            Err(Error::Unavailable { .. }) => "unavailable",
            Err(
                Error::Invalid(_)
                | Error::Violations(_)
                | Error::NotFound(_)
                | Error::AlreadyExists(_)
                | Error::Conflict(_)
                | Error::Precondition(_),
            ) => return,
        };
        let labels = vec![("scheduler", scheduler.to_string()), ("outcome", outcome.to_owned())];
        self.allocations.of(&labels).inc();
    }

    /// Something that a runtime saw was written down, or could not be.
    pub(crate) fn observed(&self, scheduler: &SchedulerName, event: &RoomEvent, success: bool) {
        let event = match event {
            RoomEvent::Pending => "added",
            RoomEvent::Up | RoomEvent::GoingDown => "updated",
            RoomEvent::Ended(_) => "deleted",
        };
        let scheduler = vec![("scheduler", scheduler.to_string())];
        let labels = and(and(scheduler, "instanceEventType", event), "success", success.to_string());
        self.observations.of(&labels).inc();
    }

    /// One call of a receiver.
    pub(crate) fn event_attempt(&self, method: &'static str, code: RpcCode, took: Duration) {
        self.events.attempt(method, code, took);
    }

    /// What a room was told of an event that it sent.
    pub(crate) fn event_forwarded(
        &self,
        record: &SchedulerRecord,
        of_player: bool,
        success: bool,
        code: RpcCode,
    ) {
        self.events.forwarded(record, of_player, success, code);
    }

    pub(crate) fn ping_not_forwarded(&self, scheduler: &SchedulerName) {
        self.events.ping_not_forwarded(scheduler);
    }

    pub(crate) fn event_delivered(&self, scheduler: &SchedulerName, forwarder: &str, waited: Millis) {
        self.events.delivered(scheduler, forwarder, waited);
    }

    pub(crate) fn event_dead(&self, scheduler: &SchedulerName, forwarder: &str) {
        self.events.died(scheduler, forwarder);
    }

    pub(crate) fn lock_forced(&self, scheduler: &SchedulerRecord, kind: LockKind) {
        self.locks_forced.of(&and(labels_of(scheduler), "lock", kind.as_str())).inc();
    }

    pub(crate) fn table_rebuilt(&self, game: &str, scheduler: &SchedulerName) {
        self.table_rebuilds.of(&fleet_labels(game, scheduler.as_str())).inc();
    }

    pub(crate) fn evicted(&self, game: &str, operation: &Operation, eviction: Eviction) {
        let reason = match eviction {
            Eviction::UnknownDefinition => "no_operation_executor_found",
            Eviction::SchedulerBeingDeleted
            | Eviction::SecondHealthController
            | Eviction::AlreadyActive(_)
            | Eviction::NoLongerActive(_) => "should_not_execute",
        };
        self.evictions.of(&and(operation_labels(game, operation), "reason", reason)).inc();
    }

    pub(crate) fn region_reachable(&self, region: &Region, is_reachable: bool) {
        self.regions_reachable.get_or_create(&region_labels(region)).set(is_reachable.into());
    }

    pub(crate) fn region_changed(&self, region: &Region, to: &'static str) {
        self.region_changes.get_or_create(&and(region_labels(region), "to", to)).inc();
    }

    fn silent(&self, region: &Region, rooms: usize) {
        let rooms = i64::try_from(rooms).unwrap_or(i64::MAX);
        self.silent_rooms.get_or_create(&region_labels(region)).set(rooms);
    }

    /// Takes away what is told of schedulers that are gone; `schedulers` are those that there are.
    fn forget_gone(&self, schedulers: BTreeSet<String>) {
        let mut before = self.before.lock();
        let is_kept = |scheduler: &str| schedulers.contains(scheduler) || before.contains(scheduler);
        let of_schedulers: [&dyn Forgetful; 10] = [
            &self.executions,
            &self.rollbacks,
            &self.evictions,
            &self.failed_adds,
            &self.decisions,
            &self.panics,
            &self.locks_forced,
            &self.allocations,
            &self.observations,
            &self.table_rebuilds,
        ];
        let of_others = self.events.of_schedulers().into_iter().chain(self.workers.of_schedulers());
        for metrics in of_schedulers.into_iter().chain(of_others) {
            metrics.keep(&is_kept);
        }
        *before = schedulers;
    }
}

fn show_only<'a>(gauge: &Family<Labels, Gauge>, schedulers: impl Iterator<Item = &'a SchedulerName>) {
    gauge.clear();
    for scheduler in schedulers {
        gauge.get_or_create(&vec![("scheduler", scheduler.to_string())]).set(1);
    }
}

fn operation_labels(game: &str, operation: &Operation) -> Labels {
    and(fleet_labels(game, operation.scheduler.as_str()), "operation", operation.definition.name())
}

fn invariant_labels(invariant: Invariant) -> Labels {
    vec![("invariant", invariant.as_str().to_owned())]
}

fn region_labels(region: &Region) -> Labels {
    vec![("region", region.to_string())]
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
            let labels = fleet_labels("chess", scheduler);
            metrics.panics.of(&labels).inc();
            metrics.decisions.of(&and(labels.clone(), "decision", "scale_up")).inc();
            let failed = and(vec![("scheduler", scheduler.to_owned())], "operation", "add_rooms");
            metrics.failed_adds.of(&failed).inc();
            metrics.executions.of(&and(labels.clone(), "success", "true")).observe(7.0);
            metrics.rollbacks.of(&and(labels, "success", "false")).observe(7.0);
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
