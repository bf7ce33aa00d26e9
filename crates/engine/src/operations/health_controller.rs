//! health_controller: compares the fleet with what it should be, and enqueues the difference.
//!
//! The plan itself is `maestro_core::plan`; here the snapshot is gathered and the plan turned into operations, in
//! the transaction that ends this one. A cycle that changes nothing leaves no trace in the default lists.

use std::collections::BTreeMap;

use async_trait::async_trait;
use maestro_core::operation::{
    Definition, Operation, OperationId, OperationStatus, Origin, RemovalReason, RoomsToRemove, Stage,
};
use maestro_core::plan::{EndedFact, Expired, FleetSnapshot, Plan, RoomFact, plan};
use maestro_core::room::{EndCause, Purpose, RoomId, RoomStatus};

use crate::Engine;
use crate::ports::room_table::RoomView;
use crate::ports::store::{Change, Intent, PageRequest, RoomRecord, SchedulerRecord, SchedulerState};
use crate::rooms::reconciling;

use super::{Executor, Next, Step, StepError, Work, remove_rooms};

pub(super) struct HealthController;

/// Ended rooms that a plan looks back at: enough to see that every attempt fails.
const ENDED_ROOMS_SEEN: usize = 200;
/// Likewise of operations; a longer row of failures does not make the wait longer.
const OPERATIONS_SEEN: u32 = 12;
/// Rooms that a reason names one by one.
const ROOMS_NAMED: usize = 5;

#[async_trait]
impl Executor for HealthController {
    async fn step(&self, work: &Work) -> Result<Step, StepError> {
        if work.scheduler.state != SchedulerState::InSync {
            return Ok(nothing());
        }
        let mut step = reconciling::reconcile(work).await?;
        let reconciled = !step.history.is_empty();
        // Listing a runtime takes its time, and people change the fleet size meanwhile.
        let Some(scheduler) = work.engine.ports.store.scheduler(&work.scheduler.name).await? else {
            return Ok(nothing());
        };
        let fleet = fleet(&work.engine, &scheduler, None).await?;
        let plan = fleet.plan(&work.engine, &scheduler);
        step.history.extend(plan.held.iter().map(ToString::to_string));
        for (definition, reason) in follow_ups(&plan, &fleet) {
            let mut operation =
                work.engine
                    .new_operation(&work.scheduler.name, definition, Origin::Controller);
            operation.priority = true;
            operation.reason = reason;
            let event = format!(
                "created operation {} (id: {}): {}",
                operation.definition.name(),
                operation.id,
                operation.reason
            );
            step.history.push(event);
            step.changes.push(Change::Enqueue(operation));
        }
        step.next = Next::Done {
            took_action: reconciled || !plan.is_empty(),
        };
        if !plan.is_empty() {
            step.changes.push(unchanged_fleet_size(&scheduler));
        }
        Ok(step)
    }
}

fn nothing() -> Step {
    Step {
        next: Next::Done { took_action: false },
        ..Step::default()
    }
}

/// A plan is right for one fleet size and the operations that go with it. If a person changes both while it is made,
/// it is refused, and the cycle looks again.
fn unchanged_fleet_size(scheduler: &SchedulerRecord) -> Change {
    Change::SetFleetSize {
        scheduler: scheduler.name.clone(),
        from: scheduler.fleet_size,
        to: scheduler.fleet_size,
    }
}

/// What the plan asks for, as definitions with their reasons.
fn follow_ups(plan: &Plan, fleet: &Fleet) -> Vec<(Definition, String)> {
    let mut follow_ups = Vec::new();
    let Plan {
        total,
        desired,
        expired,
        add,
        remove,
        held: _,
        look_again_at: _,
    } = plan;
    if !expired.is_empty() {
        let rooms = RoomsToRemove::Ids(expired.iter().map(|gone| gone.room.clone()).collect());
        let definition = Definition::RemoveRooms {
            rooms,
            reason: RemovalReason::ExpiredRoom,
        };
        follow_ups.push((definition, name_some(expired)));
    }
    let counted = format!("{total} rooms of {desired} wanted");
    if *add > 0 {
        let reason = format!("{counted}: +{add}{}", fleet.latest_ends());
        follow_ups.push((Definition::AddRooms { amount: *add }, reason));
    }
    if *remove > 0 {
        let rooms = RoomsToRemove::Amount(*remove);
        let definition = Definition::RemoveRooms {
            rooms,
            reason: RemovalReason::ScaleDown,
        };
        follow_ups.push((definition, format!("{counted}: -{remove}")));
    }
    follow_ups
}

fn name_some(expired: &[Expired]) -> String {
    let named = expired
        .iter()
        .take(ROOMS_NAMED)
        .map(|gone| format!("room {} {}", gone.room, gone.why));
    let mut text = named.collect::<Vec<_>>().join("; ");
    if expired.len() > ROOMS_NAMED {
        text += &format!("; and {} more", expired.len() - ROOMS_NAMED);
    }
    text
}

/// Everything known about a fleet at one moment, gathered from registry, room table and queue.
pub(crate) struct Fleet {
    /// Rows of live rooms of the fleet.
    pub(crate) rows: Vec<RoomRecord>,
    pub(crate) facts: Vec<RoomFact>,
    pub(crate) claimed_by: BTreeMap<RoomId, OperationId>,
    ended: Vec<RoomRecord>,
    failed_adds: Vec<EndedFact>,
    adding: u32,
    removing: u32,
    /// By how much the fleet size will be another one when those operations have ended that turned round.
    taken_back: i64,
}

/// The plan of this moment, without carrying it out: what an early wake-up asks.
pub(crate) async fn fleet_plan(engine: &Engine, scheduler: &SchedulerRecord) -> Result<Plan, StepError> {
    Ok(fleet(engine, scheduler, None).await?.plan(engine, scheduler))
}

/// `without` is the operation that asks: its own wishes are not on their way to someone else.
pub(crate) async fn fleet(
    engine: &Engine,
    scheduler: &SchedulerRecord,
    without: Option<OperationId>,
) -> Result<Fleet, StepError> {
    let store = &engine.ports.store;
    let mut rows = store.live_rooms(&scheduler.name).await?;
    rows.retain(|row| row.purpose == Purpose::Fleet);
    let views = engine.ports.table.rooms(&scheduler.name).await?;
    let views: BTreeMap<RoomId, RoomView> = views.into_iter().map(|view| (view.id.clone(), view)).collect();
    let facts = rows
        .iter()
        .map(|row| fact(engine, row, views.get(&row.id)))
        .collect();
    let claimed = |view: &RoomView| Some((view.id.clone(), view.claimed_by?));
    let claimed_by = views.values().filter_map(claimed).collect();
    let ended = store.ended_rooms(&scheduler.name, ENDED_ROOMS_SEEN).await?;
    let failed_adds = failed_adds(engine, scheduler).await?;
    let mut fleet = Fleet {
        rows,
        facts,
        claimed_by,
        ended,
        failed_adds,
        adding: 0,
        removing: 0,
        taken_back: 0,
    };
    for operation in store.unfinished(&scheduler.name).await? {
        if Some(operation.id) != without {
            fleet.count_on_their_way(engine, &operation).await?;
        }
    }
    Ok(fleet)
}

/// Adds that failed before they had rooms to fail with (no free port, say): they are attempts too.
async fn failed_adds(engine: &Engine, scheduler: &SchedulerRecord) -> Result<Vec<EndedFact>, StepError> {
    let latest = PageRequest {
        page: 1,
        page_size: OPERATIONS_SEEN,
        newest_first: true,
        no_action: false,
    };
    let page = engine
        .ports
        .store
        .operations(&scheduler.name, Stage::Final, latest)
        .await?;
    let mut failed = Vec::new();
    for operation in page.operations {
        let Definition::AddRooms { amount } = operation.definition else {
            continue;
        };
        if operation.status != OperationStatus::Error || operation.origin.is_person() {
            continue;
        }
        if !engine
            .ports
            .store
            .rooms_made_by(&scheduler.name, operation.id)
            .await?
            .is_empty()
        {
            continue;
        }
        failed.push(EndedFact {
            rooms: amount,
            operation: operation.id,
            created_at: operation.created_at,
            ended_at: operation.ended_at.unwrap_or(operation.created_at),
            cause: EndCause::Failed,
            was_ready: false,
        });
    }
    Ok(failed)
}

impl Fleet {
    pub(crate) fn plan(&self, engine: &Engine, scheduler: &SchedulerRecord) -> Plan {
        let mut ended: Vec<EndedFact> = self.ended.iter().filter_map(ended_fact).collect();
        ended.extend_from_slice(&self.failed_adds);
        ended.sort_by_key(|fact| std::cmp::Reverse(fact.ended_at));
        plan(&FleetSnapshot {
            now: engine.now(),
            fleet_size: self.size_to_be(scheduler),
            rooms: &self.facts,
            adding: self.adding,
            removing: self.removing,
            ended: &ended,
            limits: engine.settings.limits(),
        })
    }

    /// Rooms that stay and have not been heard of since a restart.
    pub(crate) fn unknown(&self) -> usize {
        let unknown = self.facts.iter().filter(|room| !room.known && !room.leaving);
        unknown.count()
    }

    /// What an operation that turned round asked for does not count any more, although its fleet size stands until it
    /// has ended: otherwise a cancelled addition would be made again while its rooms go.
    fn size_to_be(&self, scheduler: &SchedulerRecord) -> u32 {
        let size = i64::from(scheduler.fleet_size) + self.taken_back;
        u32::try_from(size.max(0)).unwrap_or(u32::MAX)
    }

    /// Rooms of unfinished adds count as pending, rooms of unfinished removals as gone; otherwise two plans in a
    /// row would ask for the same rooms twice.
    async fn count_on_their_way(&mut self, engine: &Engine, operation: &Operation) -> Result<(), StepError> {
        if operation.rollback.is_some() {
            self.taken_back -= operation.fleet_delta;
            return Ok(());
        }
        let in_progress = operation.status == OperationStatus::InProgress;
        match &operation.definition {
            Definition::AddRooms { amount } => {
                let made = match in_progress {
                    true => engine
                        .ports
                        .store
                        .rooms_made_by(&operation.scheduler, operation.id)
                        .await?
                        .len(),
                    false => 0,
                };
                self.adding += amount.saturating_sub(u32::try_from(made).unwrap_or(u32::MAX));
            }
            Definition::RemoveRooms {
                rooms: RoomsToRemove::Amount(amount),
                ..
            } => {
                let progress = remove_rooms::progress_of(operation);
                if !progress.chosen {
                    self.removing += amount.saturating_sub(progress.asked);
                }
            }
            Definition::RemoveRooms {
                rooms: RoomsToRemove::Ids(ids),
                ..
            } => {
                for fact in self.facts.iter_mut().filter(|fact| ids.contains(&fact.id)) {
                    fact.leaving = true;
                }
            }
            Definition::CreateScheduler { .. }
            | Definition::DeleteScheduler
            | Definition::HealthController
            | Definition::StorageCleanUp
            | Definition::Unknown { .. } => {}
        }
        Ok(())
    }

    /// How the latest rooms ended, so that a replacement says what it replaces.
    fn latest_ends(&self) -> String {
        let Some(latest) = self.ended.first() else {
            return String::new();
        };
        let Some(ended) = &latest.ended else {
            return String::new();
        };
        format!("; the latest to end was room {}: {}", latest.id, ended.how)
    }
}

fn fact(engine: &Engine, row: &RoomRecord, view: Option<&RoomView>) -> RoomFact {
    let unknown_since = engine.listening_since.max(row.created_at);
    let base = RoomFact {
        id: row.id.clone(),
        status: RoomStatus::Pending,
        version: row.version,
        created_at: row.created_at,
        heard_at: Some(unknown_since),
        known: row.handle.is_none(),
        was_ready: false,
        leaving: row.intent != Intent::Run,
    };
    match view {
        None => base,
        Some(view) => RoomFact {
            status: view.status,
            heard_at: view.last_ping_at.or((!view.known).then_some(unknown_since)),
            known: view.known,
            was_ready: view.was_ready,
            leaving: base.leaving || view.claimed_by.is_some(),
            ..base
        },
    }
}

fn ended_fact(row: &RoomRecord) -> Option<EndedFact> {
    let ended = row.ended.as_ref()?;
    Some(EndedFact {
        rooms: 1,
        operation: row.operation,
        created_at: row.created_at,
        ended_at: ended.at,
        cause: ended.cause,
        was_ready: ended.was_ready,
    })
}
