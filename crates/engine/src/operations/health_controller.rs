//! health_controller: compares the fleet with what it should be, and enqueues the difference.
//!
//! The plan itself is `maestro_core::plan`; here it is turned into operations, in the transaction that ends this one.
//! A cycle that changes nothing leaves no trace in the default lists.

use async_trait::async_trait;
use maestro_core::operation::{Definition, Operation, Origin, RemovalReason, RoomsToRemove};
use maestro_core::plan::{Counted, Expired, Plan, RolloutCycle};
use maestro_core::rollout::{Removals, RolloutEvent};
use maestro_core::room::{Region, RoomId};
use maestro_core::text::count_of;
use serde_json::{Value, json};

use crate::Engine;
use crate::ports::store::{Change, NewOperation, SchedulerRecord, SchedulerState};
use crate::rooms::reconciling;

use super::fleet::FleetState;
use super::planned_cycle::PlannedCycle;
use super::{Executor, Next, Result, Step, Work, remove_rooms, rollout};

pub(super) struct HealthController;

/// Rooms that a reason names one by one.
const ROOMS_NAMED: usize = 5;

/// What progress says of a cycle.
const SCHEDULED: &str = "scheduled";
const RECONCILED: &str = "reconciled";

#[async_trait]
impl Executor for HealthController {
    async fn step(&self, work: &Work) -> Result<Step> {
        if work.scheduler.state != SchedulerState::InSync {
            return Ok(nothing());
        }
        // One that had to wait, or that something is to be put right for, looks anew.
        let handed = work.planned.as_ref().filter(|planned| planned.is_good_for(work));
        let mut step = Step::default();
        let reconciled = work.operation.progress[RECONCILED].as_bool().unwrap_or(false);
        if handed.is_none() && !reconciled {
            step = reconciling::reconcile(work).await?;
            if !step.history.is_empty() {
                // Written first: a plan must not count rooms that end in its own transaction.
                step.progress = Some(after_reconciling(&work.operation));
                return Ok(step);
            }
        }
        let gathered;
        let planned = match handed {
            Some(planned) => planned,
            None => {
                gathered = prepare_anew(work, &mut step).await?;
                &gathered
            }
        };
        let (fleet, mut scheduler) = (&planned.fleet, planned.scheduler.clone());
        let mut update = scheduler.update();
        let concluded = rollout::conclude(work, planned, &mut scheduler, &mut step).await?;
        let replanned = concluded.then(|| planned.replan(&work.engine, &scheduler));
        let plan = replanned.as_ref().unwrap_or(&planned.plan);
        let (data, events) = decided(&work.engine, &scheduler, fleet, plan);
        step.data = Some(data);
        step.history.extend(events);
        let mut removals = Removals::new(scheduler.rollout.as_ref(), &fleet.locks, work.now());
        let mut enqueued = 0;
        let mut takes_players = false;
        for operation in planned_operations(work, plan, fleet, &scheduler) {
            if operation.definition.removes().is_some()
                && let Err(obstacle) = removals.begin(operation.holder(), &operation.reason)
            {
                step.history.push(format!("deferred: lock {obstacle}: {}", operation.reason));
                continue;
            }
            enqueued += 1;
            takes_players |= remove_rooms::takes_occupied(&operation);
            if shrinks(&operation) && scheduler.autoscaling().is_some() {
                update.last_shrunk_at = Some(work.now());
            }
            step.history.push(operation.created_event());
            step.changes.push(Change::Enqueue(operation));
        }
        let settled = removals.settle();
        let lock_changes = settled.changes.into_iter();
        step.changes.extend(lock_changes.map(|change| work.engine.lock_change(&scheduler.name, change)));
        let acted = concluded || enqueued > 0 || settled.is_new;
        if acted {
            let event = RolloutEvent::CycleActed { took_occupied: takes_players };
            let rollout = work.engine.rollout_write(&scheduler, event, &work.locks)?.rollout;
            update.rollout = (rollout != planned.scheduler.rollout).then_some(rollout);
            // A plan is right for one fleet size, with the operations that go with it, and for one state of a rollout,
            // with its locks. If a person changes them while it is made, it is refused, and the cycle looks again.
            step.changes.push(Change::UpdateScheduler(update));
        }
        step.next = Next::Done { took_action: reconciled || acted };
        Ok(step)
    }
}

/// Listing a runtime takes its time, and people change things meanwhile: the scheduler is read anew, too.
async fn prepare_anew(work: &Work, step: &mut Step) -> Result<PlannedCycle> {
    let (engine, name, is_scheduled) = (&work.engine, &work.scheduler.name, is_scheduled(&work.operation));
    let planned = PlannedCycle::prepare(engine, name, is_scheduled).await?;
    if planned.fleet.orphans.is_empty() {
        return Ok(planned);
    }
    give_back(work, &planned.fleet, step).await?;
    PlannedCycle::prepare(engine, name, is_scheduled).await
}

/// What a cycle says of its plan, as data and in words.
pub(crate) fn decided(
    engine: &Engine,
    scheduler: &SchedulerRecord,
    fleet: &FleetState,
    plan: &Plan,
) -> (Value, Vec<String>) {
    engine.watch_plan(&scheduler.name, &fleet.rows, plan);
    engine.metrics.decided(scheduler, plan);
    let held = plan.held_back.iter().map(ToString::to_string);
    (decision_data(plan), std::iter::once(summary(plan)).chain(held).collect())
}

/// What a cycle begins with that comes when it is time for one, not because something changed.
pub(crate) fn scheduled() -> Value {
    json!({ SCHEDULED: true })
}

/// It has put something right, and is to plan now.
fn after_reconciling(cycle: &Operation) -> Value {
    json!({ SCHEDULED: is_scheduled(cycle), RECONCILED: true })
}

pub(super) fn is_scheduled(operation: &Operation) -> bool {
    operation.progress[SCHEDULED].as_bool().unwrap_or(false)
}

fn shrinks(operation: &NewOperation) -> bool {
    matches!(operation.definition, Definition::RemoveRooms { reason: RemovalReason::ScaleDown, .. })
}

/// No other operation of this scheduler executes now, so nobody is about to have these rooms go.
async fn give_back(work: &Work, fleet: &FleetState, step: &mut Step) -> Result {
    work.still_owner()?;
    for (operation, rooms) in &fleet.orphans {
        work.engine.ports.table.unclaim(&work.scheduler.name, *operation, rooms).await?;
        let rooms: Vec<&str> = rooms.iter().map(RoomId::as_str).collect();
        step.history.push(format!("back in service: {}; operation {operation} has ended", rooms.join(", ")));
    }
    Ok(())
}

fn nothing() -> Step {
    Step { next: Next::Done { took_action: false }, ..Step::default() }
}

/// What was seen, what the formula gave, what clamped it, what it comes to.
fn summary(plan: &Plan) -> String {
    let Plan { seen, decision, desired_ready, .. } = plan;
    format!(
        "{}{}, {} ready, {} occupied; {}; {desired_ready} must be ready; {}",
        count_of(seen.total, "room"),
        not_reached(seen),
        seen.ready,
        seen.occupied,
        decision.reason(),
        decision.outcome()
    )
}

/// Rooms that are there and not counted.
fn not_reached(seen: &Counted) -> String {
    let unreachable = match seen.unreachable {
        0 => String::new(),
        rooms => format!(" (and {rooms} in regions that cannot be reached)"),
    };
    match seen.silent {
        0 => unreachable,
        rooms => format!("{unreachable} (and {rooms} that stopped pinging together)"),
    }
}

/// The decision as `GET …/autoscaling` shows it, at the time when the cycle ended, and beside it the numbers of the rollout's cycle.
fn decision_data(plan: &Plan) -> Value {
    let mut data = json!({ "decision": {
        "total": plan.seen.total,
        "occupied": plan.seen.occupied,
        "ready": plan.seen.ready,
        "desired": plan.decision.desired,
        "desiredReady": plan.desired_ready,
        "decision": plan.decision.outcome().to_string(),
        "reason": plan.decision.reason(),
    }});
    if let Some(cycle) = &plan.rollout {
        data["rollout"] = json!({
            "new": plan.seen.total.saturating_sub(plan.seen.old),
            "toSurge": cycle.surge,
            "toBeDeleted": cycle.replaced.len(),
        });
    }
    data
}

/// What the plan asks for, as operations with their reasons.
fn planned_operations(
    work: &Work,
    plan: &Plan,
    fleet: &FleetState,
    scheduler: &SchedulerRecord,
) -> Vec<NewOperation> {
    let Plan {
        seen,
        decision,
        desired_ready: _,
        expired,
        add,
        remove,
        rollout,
        held_back: _,
        look_again_at: _,
    } = plan;
    let mut operations = Vec::new();
    if !expired.is_empty() {
        let ids = expired.iter().map(|gone| gone.room.clone()).collect();
        let removal = removal(work, RoomsToRemove::Ids(ids), RemovalReason::ExpiredRoom, name_some(expired));
        operations.push(NewOperation { priority: true, ..removal });
    }
    let counted = format!("{} of {}{}", seen.total, count_of(decision.desired, "room"), not_reached(seen));
    let because = match scheduler.autoscaling() {
        Some(_) => format!(" ({})", decision.reason()),
        None => String::new(),
    };
    if *add > 0 {
        let reason = match rollout {
            None => format!("{counted}{because}: adding {add}{}", fleet.latest_ends()),
            Some(cycle) => surge_reason(&purpose(scheduler, plan, fleet), plan, cycle),
        };
        let addition = planned(work, Definition::AddRooms { amount: *add }, reason);
        operations.push(NewOperation { priority: true, ..addition });
    }
    if *remove > 0 {
        let reason = format!("{counted}{because}: removing {remove}");
        let removal = removal(work, RoomsToRemove::Amount(*remove), RemovalReason::ScaleDown, reason);
        operations.push(NewOperation { priority: true, ..removal });
    }
    if let Some(cycle) = rollout {
        operations.extend(replacements(work, &purpose(scheduler, plan, fleet), plan, cycle));
    }
    operations
}

/// What rooms are replaced for, and why they go then.
struct Purpose {
    what: String,
    reason: RemovalReason,
}

fn purpose(scheduler: &SchedulerRecord, plan: &Plan, fleet: &FleetState) -> Purpose {
    if plan.seen.old > plan.seen.draining {
        let what = format!("rollout to {}", scheduler.active_version);
        return Purpose { what, reason: RemovalReason::RollingUpdate };
    }
    let drained: Vec<&str> = fleet.places.drained().map(Region::as_str).collect();
    Purpose { what: format!("drain of {}", drained.join(", ")), reason: RemovalReason::Drain }
}

fn surge_reason(purpose: &Purpose, plan: &Plan, cycle: &RolloutCycle) -> String {
    let Plan { seen, add, .. } = plan;
    format!(
        "{}: {} of {}, {} of them old; surge of at most {}: adding {add}",
        purpose.what,
        seen.total,
        count_of(cycle.desired, "room"),
        seen.old,
        cycle.surge_max
    )
}

fn replacements(work: &Work, purpose: &Purpose, plan: &Plan, cycle: &RolloutCycle) -> Vec<NewOperation> {
    let replaced: Vec<RoomId> = cycle.replaced.iter().map(|replaced| replaced.room.clone()).collect();
    let ready = format!("{} ready, {} must be", plan.seen.ready, cycle.desired_ready);
    let Purpose { what, reason: why } = purpose;
    let mut operations = Vec::new();
    if !replaced.is_empty() {
        let with_players = cycle.replaced.iter().filter(|replaced| replaced.serves_players).count();
        let (players, progress) = match with_players {
            0 => (String::new(), Value::Null),
            rooms => (format!(", {rooms} of them with players"), remove_rooms::may_take_occupied()),
        };
        let reason = format!("{what}: {ready}; removing {}{players}", count_of(replaced.len(), "old room"));
        let removal = removal(work, RoomsToRemove::Ids(replaced), *why, reason);
        operations.push(NewOperation { progress, ..removal });
    }
    if !cycle.surplus.is_empty() {
        let reason =
            format!("{what}: {ready}; removing {} above the surge", count_of(cycle.surplus.len(), "room"));
        operations.push(removal(work, RoomsToRemove::Ids(cycle.surplus.clone()), *why, reason));
    }
    operations
}

fn removal(work: &Work, rooms: RoomsToRemove, why: RemovalReason, reason: String) -> NewOperation {
    planned(work, Definition::RemoveRooms { rooms, reason: why }, reason)
}

fn planned(work: &Work, definition: Definition, reason: String) -> NewOperation {
    let operation = work.engine.new_operation(&work.scheduler.name, definition, Origin::Controller);
    NewOperation { reason, ..operation }
}

fn name_some(expired: &[Expired]) -> String {
    let named = expired.iter().take(ROOMS_NAMED).map(|gone| format!("room {} {}", gone.room, gone.why));
    let mut text = named.collect::<Vec<_>>().join("; ");
    if expired.len() > ROOMS_NAMED {
        text += &format!("; and {} more", expired.len() - ROOMS_NAMED);
    }
    text
}
