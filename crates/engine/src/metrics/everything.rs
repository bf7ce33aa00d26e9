//! Every metric at least once, for tests that compare the documentation with what is exported: a metric without values is
//! not written at all, and some have values only when something goes wrong.

#![allow(clippy::unwrap_used, reason = "for tests")]

use std::time::Duration;

use maestro_core::autoscaling;
use maestro_core::event::RpcCode;
use maestro_core::invariant::Invariant;
use maestro_core::lock::{Lock, LockKind, Locks, Waiter};
use maestro_core::operation::queue::Eviction;
use maestro_core::operation::{
    Activity, Definition, Operation, OperationStatus, Origin, Rollback, RollbackEnd,
};
use maestro_core::plan::{Counted, Plan};
use maestro_core::region::Region;
use maestro_core::room::{RoomStatus, StatusCounts};
use maestro_core::scheduler::{
    FixedBuffer, ReadyTarget, RoomOccupancy, ScalingPolicy, SchedulerState, Version,
};
use maestro_core::time::Millis;

use crate::Result;
use crate::ports::contract::fixtures::{arena, at, holder, new_operation, recipe, token};
use crate::ports::room_table::FleetCounts;
use crate::ports::runtime::RoomEvent;
use crate::ports::store::{SchedulerRecord, UnreadableScheduler};

use super::fleets::FleetReport;
use super::{Metrics, QueueReport, WorkerFailure};

impl Metrics {
    /// Shows each metric with all of its labels.
    pub fn show_everything(&self) {
        // Whoever adds a metric sees that it is missing here.
        let Self {
            workers_sync,
            no_actions_lost,
            workers: _,
            executions: _,
            rollbacks: _,
            evictions: _,
            failed_adds: _,
            decisions: _,
            panics: _,
            locks_forced: _,
            allocations: _,
            observations: _,
            table_rebuilds: _,
            fleets,
            events,
            regions_reachable: _,
            region_changes: _,
            silent_rooms: _,
            unreadable: _,
            untold: _,
            violations: _,
            before: _,
        } = self;
        workers_sync.inc();
        no_actions_lost.inc();
        self.show_workers();
        let record = record();
        self.panicked(&record);
        self.lock_forced(&record, LockKind::Downscaling);
        self.allocation_answered(&arena(), &Result::Ok(()));
        self.observed(&arena(), &RoomEvent::Up, true);
        self.table_rebuilt(&record.recipe.game, &record.name);
        fleets.show(reports());
        self.show_events();
        events.show_queues(vec![QueueReport::new(&arena(), "matchmaker", None, at(0))]);
        let region = Region::default_region();
        self.region_reachable(&region, true);
        self.region_changed(&region, "reachable");
        self.silent(&region, 1);
        let (name, active_version, why) = (arena(), "v1.0.0".to_owned(), "it is newer".to_owned());
        let unreadable = UnreadableScheduler { name, active_version, fleet_size: 1, created_at: at(0), why };
        self.show_unreadable(&[unreadable]);
        self.show_untold(&[arena()]);
        self.violated(Invariant::PortOnce);
    }

    fn show_workers(&self) {
        let (record, operation) = (record(), operation());
        self.worker_began(arena().as_str());
        self.worker_failed("tennis", &arena(), WorkerFailure::Next);
        self.decided(&record, &plan());
        self.operation_queue(&record, std::slice::from_ref(&operation));
        self.ended("tennis", &operation, OperationStatus::Error, at(1));
        self.evicted("tennis", &operation, Eviction::UnknownDefinition);
    }

    fn show_events(&self) {
        self.event_attempt("SendRoomEvent", RpcCode::Ok, Duration::from_millis(7));
        for (of_player, success) in [(true, true), (true, false), (false, true), (false, false)] {
            self.event_forwarded(&record(), of_player, success, RpcCode::Ok);
        }
        self.ping_not_forwarded(&arena());
        self.event_delivered(&arena(), "matchmaker", Millis(7));
        self.event_dead(&arena(), "matchmaker");
    }
}

fn record() -> SchedulerRecord {
    SchedulerRecord {
        name: arena(),
        state: SchedulerState::InSync,
        active_version: Version::FIRST,
        recipe: recipe(&arena()).into(),
        fleet_size: 1,
        created_at: at(0),
        version_created_at: at(0),
        last_shrunk_at: None,
        rollout: None,
        revision: 1,
    }
}

/// An add_rooms that rolls back.
fn operation() -> Operation {
    let asked = new_operation(1);
    Operation {
        id: asked.id,
        scheduler: asked.scheduler,
        definition: Definition::AddRooms { amount: 1 },
        origin: Origin::Engine,
        priority: false,
        status: OperationStatus::InProgress,
        activity: Activity::Executing,
        rollback: Some(Rollback { then: RollbackEnd::Error, why: "canceled".into() }),
        progress: asked.progress,
        data: serde_json::Value::Null,
        reason: asked.reason,
        fleet_delta: 0,
        created_at: at(0),
        ended_at: None,
        lease: None,
        cancel: None,
        took_action: true,
        history: Vec::new(),
    }
}

fn plan() -> Plan {
    Plan {
        seen: Counted::default(),
        decision: autoscaling::hold(1, 1),
        desired_ready: 1,
        expired: Vec::new(),
        add: 0,
        remove: 0,
        rollout: None,
        held_back: Vec::new(),
        look_again_at: None,
    }
}

/// One fleet for each kind of policy.
fn reports() -> Vec<FleetReport> {
    let ready_target = ReadyTarget::parse("0.5").unwrap();
    let occupancy = ScalingPolicy::RoomOccupancy(RoomOccupancy { ready_target, down_threshold: None });
    let buffer = ScalingPolicy::FixedBuffer(FixedBuffer { amount: 5 });
    [occupancy, buffer].iter().map(report).collect()
}

fn report(policy: &ScalingPolicy) -> FleetReport {
    let mut scheduler = record();
    let mut recipe = recipe(&arena());
    recipe.autoscaling.iter_mut().for_each(|autoscaling| autoscaling.policy = policy.clone());
    scheduler.recipe = recipe.into();
    let mut by_status = StatusCounts::default();
    by_status.add(RoomStatus::Ready);
    let by_region = [(Region::default_region(), by_status)].into();
    let counts = FleetCounts { by_status, by_region, ..FleetCounts::default() };
    FleetReport { scheduler, counts, locks: locks(), at: at(1) }
}

/// One that somebody holds, and for which somebody waits.
fn locks() -> Locks {
    let kind = LockKind::Downscaling;
    let lock = Lock {
        kind,
        holder: holder(1),
        token: token(1),
        acquired_at: at(0),
        expires_at: None,
        reason: "removing rooms".into(),
    };
    let waiter = Waiter { kind, holder: holder(2), since: at(0), until: at(60) };
    Locks { held: vec![lock], waiters: vec![waiter] }
}
