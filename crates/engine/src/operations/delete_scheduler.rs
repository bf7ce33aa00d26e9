//! delete_scheduler: waits for what is under way to end, ends all rooms, and leaves nothing but its own record.
//!
//! That the scheduler is being deleted was written when it was asked for, so nothing new begins meanwhile.
//!
//! Regions that cannot be reached are waited for. Asked for by force, it forgets what is there: rooms that run on are
//! stopped as unwanted when their region is back.

use async_trait::async_trait;
use maestro_core::lock::{Holder, LockKind, Locks};
use maestro_core::operation::{
    CancelRequest, HistoryEvent, Operation, OperationId, OperationStatus, RollbackEnd,
};
use maestro_core::rollout::{Refused, RolloutEvent, RolloutRecord, RolloutState};
use maestro_core::scheduler::{SizeBaseline, Version};
use maestro_core::text::count_of;
use maestro_core::time::Millis;
use serde::{Deserialize, Serialize};

use crate::Engine;
use crate::events::orphaned::orphan_events;
use crate::ports::store::{Change, Intent, RoomRecord, SchedulerRecord, SchedulerState, SchedulerUpdate};
use crate::rollouts::RolloutWrite;
use crate::rooms::stopping::{self, HeldRooms};

use super::{Executor, LockNeed, Result, Step, Work};

pub(super) struct DeleteScheduler;

/// How long it waits before it looks again at operations that have to end, or at regions that have to come back; both
/// wake it anyway.
const LOOK_AGAIN: Millis = Millis::from_seconds(5);

/// What a deletion begins with.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Progress {
    /// It may become so when it is asked for again.
    force: bool,
    #[serde(default)]
    rollout: Option<Interrupted>,
}

impl Progress {
    /// `rollout`: the one that it ends; its version may still be `rolling`.
    pub(crate) fn new(force: bool, rollout: Option<&RolloutRecord>, is_rolling: bool) -> Self {
        Self { force, rollout: rollout.map(|rollout| Interrupted::of(rollout, is_rolling)) }
    }

    pub(crate) fn of(deletion: &Operation) -> Self {
        serde_json::from_value(deletion.progress.clone()).unwrap_or_default()
    }

    pub(crate) fn by_force(self) -> Self {
        Self { force: true, ..self }
    }

    pub(crate) fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// The rollout that a deletion ended: kept with it, so that it is there again if the deletion is taken back, or fails.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Interrupted {
    state: String,
    to: String,
    from: String,
    fleet_size_before: u32,
    /// Not in what an older Maestro wrote: then nobody has changed the size meanwhile.
    #[serde(default)]
    fleet_size_after: Option<u32>,
    note: String,
    /// Its version was still `rolling`: of one that had failed, or was left again, the version says so itself.
    was_rolling: bool,
}

impl Interrupted {
    fn of(rollout: &RolloutRecord, was_rolling: bool) -> Self {
        Self {
            state: rollout.state.as_str().into(),
            to: rollout.to.to_string(),
            from: rollout.from.to_string(),
            fleet_size_before: rollout.fleet_size.before,
            fleet_size_after: Some(rollout.fleet_size.after),
            note: rollout.note.clone(),
            was_rolling,
        }
    }

    fn rollout(&self, deletion: &Operation, scheduler: &SchedulerRecord) -> Option<RolloutRecord> {
        Some(RolloutRecord {
            state: RolloutState::parse(&self.state)?,
            to: Version::parse(&self.to).ok()?,
            from: Version::parse(&self.from).ok()?,
            since: deletion.created_at,
            fleet_size: SizeBaseline {
                before: self.fleet_size_before,
                after: self.fleet_size_after.unwrap_or(scheduler.fleet_size),
            },
            occupied_at: None,
            note: self.note.clone(),
        })
    }
}

/// Brings the rollout back that the deletion ended, with what there is to say about it. `by` hands over the locks that
/// it has. `is_wanted`: so is the scheduler.
pub(crate) fn take_back(
    engine: &Engine,
    deletion: &Operation,
    scheduler: &SchedulerRecord,
    by: Option<Holder>,
    locks: &Locks,
    is_wanted: bool,
) -> Result<(Vec<Change>, Vec<String>), Refused> {
    let interrupted = Progress::of(deletion).rollout;
    let ended = interrupted.and_then(|ended| Some((ended.rollout(deletion, scheduler)?, ended.was_rolling)));
    let (mut update, mut changes, mut history) = (scheduler.update(), Vec::new(), Vec::new());
    if let Some((rollout, was_rolling)) = ended {
        let event = RolloutEvent::DeletionTakenBack { rollout, was_rolling, by };
        RolloutWrite { update, changes, history, .. } = engine.rollout_write(scheduler, event, locks)?;
    }
    let state = is_wanted.then_some(SchedulerState::InSync);
    changes.push(Change::UpdateScheduler(SchedulerUpdate { state, ..update }));
    Ok((changes, history))
}

/// Deletes everything of the scheduler but the operation `keep`, and events that wait: what was accepted is still delivered.
pub(super) fn forget(record: &SchedulerRecord, keep: OperationId) -> [Change; 2] {
    [orphan_events(record), Change::DeleteScheduler { scheduler: record.name.clone(), keep }]
}

#[async_trait]
impl Executor for DeleteScheduler {
    /// What is under way is asked to end first: it may hold the lock.
    async fn needs(&self, work: &Work) -> Result<Vec<LockNeed>> {
        let alone = other_operations(work).await?.is_empty();
        Ok(if alone { vec![LockNeed::own(LockKind::Downscaling)] } else { Vec::new() })
    }

    async fn step(&self, work: &Work) -> Result<Step> {
        let others = other_operations(work).await?;
        if !others.is_empty() {
            return Ok(wait_for_others(work, &others));
        }
        let rows = work.engine.ports.store.live_rooms(&work.scheduler.name).await?;
        let staying: Vec<_> = rows.iter().filter(|row| row.intent == Intent::Run).collect();
        if !staying.is_empty() {
            let batch = staying.iter().take(stopping::ROOMS_PER_STEP);
            let changes = batch
                .map(|row| stopping::intend_stop(work, row, "delete_scheduler", HeldRooms::MayGo))
                .collect();
            return Ok(Step::again(changes));
        }
        let lost = lost(work, &rows);
        if is_forced(work) && !lost.is_empty() {
            let event =
                format!("forgot {} by force: their region cannot be reached", count_of(lost.len(), "room"));
            let changes = lost.into_iter().flat_map(|row| stopping::give_up(work, row)).collect();
            return Ok(Step::again(changes).with_history(event));
        }
        if !rows.is_empty() {
            return stopping::stop_and_wait(work, &rows).await;
        }
        self.forget(work).await
    }

    /// If it was canceled, the scheduler is wanted again and its fleet grows. If it failed, the scheduler stays `deleting`.
    /// The rollout is restored in both cases, because a later deletion that is canceled could not restore it. Rooms whose
    /// end is written down go either way, and the runtime may not know that yet.
    async fn undo(&self, work: &Work) -> Result<Step> {
        let canceled =
            work.operation.rollback.as_ref().is_some_and(|turn| turn.then == RollbackEnd::Canceled);
        stopping::stop_leaving(work).await?;
        let mut step = Step::done();
        let Work { engine, operation, scheduler, locks, .. } = work;
        let holder = Some(operation.holder());
        (step.changes, step.history) = take_back(engine, operation, scheduler, holder, locks, canceled)?;
        Ok(step)
    }

    async fn wait_is_over(&self, work: &Work) -> Result<bool> {
        if !other_operations(work).await?.is_empty() {
            return Ok(false);
        }
        let rows = work.engine.ports.store.live_rooms(&work.scheduler.name).await?;
        match is_forced(work) && !lost(work, &rows).is_empty() {
            true => Ok(true),
            false if rows.is_empty() => Ok(is_forced(work) || work.engine.regions.all_reachable()),
            false => Ok(rows.iter().any(|row| row.intent == Intent::Run)),
        }
    }
}

impl DeleteScheduler {
    async fn forget(&self, work: &Work) -> Result<Step> {
        let scheduler = &work.scheduler.name;
        let ports = &work.engine.ports;
        let (reachable, lost): (Vec<_>, Vec<_>) =
            ports.runtimes.iter().partition(|(region, _)| work.engine.regions.is_reachable(region));
        if !lost.is_empty() && !is_forced(work) {
            let names = lost.iter().map(|(region, _)| region.as_str()).collect::<Vec<_>>().join(", ");
            return Ok(Step::park(format!("region {names} to be reached"), work.in_time(LOOK_AGAIN)));
        }
        let reachable: Vec<_> = reachable.into_iter().map(|(_, runtime)| runtime).collect();
        stopping::stop_unknown(work, &reachable).await?;
        for runtime in reachable {
            runtime.delete_scheduler(scheduler).await?;
        }
        ports.table.remove_scheduler(scheduler).await?;
        let mut step = Step::done();
        step.changes.extend(forget(&work.scheduler, work.operation.id));
        Ok(step)
    }
}

fn is_forced(work: &Work) -> bool {
    Progress::of(&work.operation).force
}

fn lost<'a>(work: &Work, rows: &'a [RoomRecord]) -> Vec<&'a RoomRecord> {
    rows.iter().filter(|row| work.engine.regions.is_lost(&row.region)).collect()
}

async fn other_operations(work: &Work) -> Result<Vec<Operation>> {
    let mut unfinished = work.engine.ports.store.unfinished(&work.scheduler.name).await?;
    unfinished.retain(|operation| operation.id != work.operation.id);
    Ok(unfinished)
}

/// Pending ones are evicted by the queue; those in progress are asked to roll back.
fn wait_for_others(work: &Work, others: &[Operation]) -> Step {
    let at = work.now();
    let by = format!("delete_scheduler {}", work.operation.id);
    let running =
        others.iter().filter(|other| other.status == OperationStatus::InProgress && other.cancel.is_none());
    let cancels = running.map(|other| Change::RequestCancel {
        operation: other.id,
        request: CancelRequest { by: by.clone(), at },
        history: vec![HistoryEvent { at, event: format!("Cancellation asked for by {by}") }],
    });
    let changes = cancels.collect();
    let what = format!("{} to end", count_of(others.len(), "operation"));
    Step { changes, ..Step::park(what, work.in_time(LOOK_AGAIN)) }
}
