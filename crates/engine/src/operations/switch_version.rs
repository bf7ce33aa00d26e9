//! switch_active_version: makes a version the active one, with the fleet size that goes with it. The health controller
//! replaces the rooms; that there is something to replace is written in the same transaction.

use async_trait::async_trait;
use maestro_core::lock::LockKind;
use maestro_core::operation::queue::Eviction;
use maestro_core::operation::{Definition, Operation, OperationId, Origin};
use maestro_core::rollout::{RolloutEvent, Switched};
use maestro_core::scheduler::{RecipeChange, SizeBaseline, SizeFacts, SizeOnSwitch, fleet_size_on_switch};
use serde::{Deserialize, Serialize};

use crate::ports::store::{Change, SchedulerRecord, SchedulerUpdate, VersionRecord};

use super::{Executor, LockNeed, Result, Step, StepError, Work};

pub(super) struct SwitchVersion;

#[async_trait]
impl Executor for SwitchVersion {
    /// A rollout has the recipe until its last old room is gone; who changes the recipe does not wait for that.
    async fn needs(&self, _work: &Work) -> Result<Vec<LockNeed>> {
        Ok(vec![LockNeed::own_or_lent(LockKind::Config)])
    }

    async fn step(&self, work: &Work) -> Result<Step> {
        let Definition::SwitchVersion(switch) = &work.operation.definition else {
            return Ok(Step::done());
        };
        let scheduler = &work.scheduler;
        let name = scheduler.name.clone();
        // It may have waited for a lock while someone decided otherwise.
        if let Some(left) = switch.only_from.filter(|from| *from != scheduler.active_version) {
            return Ok(Step::done().with_history(Eviction::NoLongerActive(left).to_string()));
        }
        let missing = || StepError::Failed(format!("version {} of {name} does not exist", switch.to));
        let found = work.engine.ports.store.version(&name, switch.to).await?.ok_or_else(missing)?;
        let mut step = Step::done();
        let reason = size_on_switch(&work.operation, switch);
        let size = new_fleet_size(scheduler, &found, reason);
        let is_resized = size.after != scheduler.fleet_size;
        if is_resized {
            step.history.push(format!("fleet size {} → {}", scheduler.fleet_size, size.after));
        }
        if let Some(before) = sets_anew(&work.operation, scheduler, &found, reason) {
            step.changes.push(Change::ForgetFleetDeltas { scheduler: name.clone(), before });
        }
        let switched = Switched {
            to: switch.to,
            is_major: RecipeChange::between(&scheduler.recipe, &found.recipe) == RecipeChange::Major,
            fleet_size: size,
            is_rolling: work.engine.is_rolling(scheduler).await?,
            by: work.operation.holder(),
        };
        let event = RolloutEvent::Switched(switched);
        let rollout = work.engine.rollout_write(scheduler, event, &work.locks)?;
        step.changes.push(Change::UpdateScheduler(SchedulerUpdate {
            active_version: Some(switch.to),
            fleet_size: is_resized.then_some(size.after),
            ..rollout.update
        }));
        step.changes.extend(rollout.changes);
        step.history.extend(rollout.history);
        let mut cycle = work.engine.new_operation(&name, Definition::HealthController, Origin::Engine);
        cycle.reason = format!("version {} is active now", switch.to);
        step.changes.push(Change::Enqueue(cycle));
        // Before it is written: rooms that ping meanwhile are composed by the old number or the new one.
        let matches_max = found.recipe.match_allocation.max_matches;
        work.engine.ports.table.set_matches_max(&name, matches_max).await?;
        Ok(step)
    }
}

/// What a switch begins with that was enqueued by the operation that made its version.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Progress {
    new_version: Option<NewVersion>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct NewVersion {
    /// That made it.
    operation: String,
    /// The fleet size when it was submitted, if it was submitted with a number of rooms.
    stated_at: Option<u32>,
}

pub(super) fn of_new_version(operation: OperationId, stated_at: Option<u32>) -> serde_json::Value {
    let progress = Progress { new_version: Some(NewVersion { operation: operation.to_string(), stated_at }) };
    serde_json::to_value(progress).unwrap_or_default()
}

fn new_version(operation: &Operation) -> Option<NewVersion> {
    let progress: Option<Progress> = serde_json::from_value(operation.progress.clone()).ok();
    progress?.new_version
}

fn size_on_switch(operation: &Operation, switch: &maestro_core::operation::SwitchVersion) -> SizeOnSwitch {
    match new_version(operation) {
        _ if switch.only_from.is_some() => SizeOnSwitch::Back,
        Some(NewVersion { stated_at: Some(submitted_at), .. }) => SizeOnSwitch::Stated { submitted_at },
        Some(NewVersion { stated_at: None, .. }) => SizeOnSwitch::Kept,
        None => SizeOnSwitch::IfRecipesDiffer,
    }
}

fn new_fleet_size(scheduler: &SchedulerRecord, found: &VersionRecord, reason: SizeOnSwitch) -> SizeBaseline {
    let facts = SizeFacts {
        now: scheduler.fleet_size,
        left: scheduler.recipe.rooms_replicas,
        entered: found.recipe.rooms_replicas,
        baseline: scheduler.rollout.as_ref().map(|rollout| rollout.fleet_size),
    };
    fleet_size_on_switch(reason, facts)
}

/// After a switch that takes the fleet size from the recipe, operations that changed the size before must not take their
/// part back when they fail. Returns which ones to forget: `Some(None)` all of them, `Some(id)` those enqueued before `id`.
/// If the size was kept or returned to, their part is still in it.
fn sets_anew(
    operation: &Operation,
    scheduler: &SchedulerRecord,
    found: &VersionRecord,
    reason: SizeOnSwitch,
) -> Option<Option<OperationId>> {
    let differs = found.recipe.rooms_replicas != scheduler.recipe.rooms_replicas;
    match reason {
        SizeOnSwitch::Stated { .. } => {
            Some(new_version(operation).and_then(|version| OperationId::parse(&version.operation)))
        }
        SizeOnSwitch::IfRecipesDiffer => differs.then_some(None),
        SizeOnSwitch::Kept | SizeOnSwitch::Back => None,
    }
}
