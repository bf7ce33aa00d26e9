//! switch_active_version: makes a version the active one, and nothing else. Who replaces rooms is the health
//! controller; that there is something to replace is written in the same transaction.

use async_trait::async_trait;
use maestro_core::lock::LockKind;
use maestro_core::operation::queue::Eviction;
use maestro_core::operation::{Definition, Origin};
use maestro_core::scheduler::{Change as RecipeChange, VersionStatus};

use crate::locks;
use crate::ports::store::{Change, RolloutRecord, RolloutState, VersionRecord};

use super::{Executor, Need, Step, StepError, Work};

pub(super) struct SwitchVersion;

#[async_trait]
impl Executor for SwitchVersion {
    /// A rollout has the recipe until its last old room is gone; who changes the recipe does not wait for that.
    async fn needs(&self, _work: &Work) -> Result<Vec<Need>, StepError> {
        Ok(vec![Need::own_or_lent(LockKind::Config)])
    }

    async fn step(&self, work: &Work) -> Result<Step, StepError> {
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
        let mut written = vec![Change::SetActiveVersion {
            scheduler: name.clone(),
            from: scheduler.active_version,
            to: switch.to,
        }];
        if let Some(size) = new_fleet_size(work, &found) {
            written.push(size);
            written.push(Change::ForgetFleetDeltas { scheduler: name.clone() });
        }
        step.changes = work.while_writing(written);
        begin_rollout(work, &found, work.engine.is_rolling(scheduler).await?, &mut step);
        let mut cycle = work.engine.new_operation(&name, Definition::HealthController, Origin::Engine);
        cycle.reason = format!("version {} is active now", switch.to);
        step.changes.push(Change::Enqueue(cycle));
        // Before it is written: rooms that ping meanwhile are composed by the old number or the new one.
        let matches_max = found.recipe.match_allocation.max_matches;
        work.engine.ports.table.set_matches_max(&name, matches_max).await?;
        Ok(step)
    }
}

/// A version with other `roomsReplicas` sets the fleet size, and a way back from it sets it back to what people had
/// made of it; others leave it as it is.
fn new_fleet_size(work: &Work, found: &VersionRecord) -> Option<Change> {
    let scheduler = &work.scheduler;
    let replicas = found.recipe.rooms_replicas;
    let to = match scheduler.rollout.as_ref().filter(|rollout| rollout.from == found.version) {
        Some(way_back) => way_back.fleet_size_before,
        None => replicas,
    };
    let change = Change::SetFleetSize { scheduler: scheduler.name.clone(), from: scheduler.fleet_size, to };
    (replicas != scheduler.recipe.rooms_replicas).then_some(change)
}

/// A minor change is deployed with its switch, unless rooms are being replaced: then it takes over what is under way.
/// A major one begins a rollout, and supersedes the one before.
fn begin_rollout(work: &Work, found: &VersionRecord, before_is_rolling: bool, step: &mut Step) {
    let scheduler = &work.scheduler;
    let name = scheduler.name.clone();
    let to = found.version;
    let is_major = RecipeChange::between(&scheduler.recipe, &found.recipe) == RecipeChange::Major;
    let status = |version, status, cause: String| Change::SetVersionStatus {
        scheduler: name.clone(),
        version,
        status,
        cause,
    };
    if scheduler.rollout.is_none() && !is_major {
        step.changes.push(status(to, VersionStatus::Deployed, String::new()));
        return;
    }
    let rollout = match &scheduler.rollout {
        None => RolloutRecord {
            state: RolloutState::Rolling,
            to,
            from: scheduler.active_version,
            since: work.now(),
            fleet_size_before: scheduler.fleet_size,
            note: String::new(),
        },
        Some(before) => {
            if before_is_rolling && before.to != to {
                let cause = format!("superseded by {to} (switch_active_version {})", work.operation.id);
                step.changes.push(status(before.to, VersionStatus::Superseded, cause));
                step.history.push(format!("supersedes the rollout of {}", before.to));
            }
            let leads_back = to == before.from;
            // What was paused stays so, unless something quite different begins; what was halted moves again.
            let state = match before.state {
                RolloutState::Paused if leads_back || !is_major => RolloutState::Paused,
                _ if leads_back => RolloutState::RollingBack,
                _ => RolloutState::Rolling,
            };
            let keeps_note = leads_back || state == RolloutState::Paused;
            let note = if keeps_note { before.note.clone() } else { String::new() };
            RolloutRecord { state, to, since: work.now(), note, ..before.clone() }
        }
    };
    if rollout.to != rollout.from {
        step.changes.push(status(to, VersionStatus::Rolling, String::new()));
    }
    step.history.push(format!("rooms of other major versions are replaced by those of {to} from now on"));
    let switch = Some(locks::holder_of(&work.operation));
    let (before, after) = (scheduler.rollout.as_ref(), Some(&rollout));
    step.changes.extend(work.engine.rollout_locks(&name, before, after, switch, &work.locks));
    step.changes.push(Change::SetRollout {
        scheduler: name,
        from: scheduler.rollout.clone(),
        to: Some(rollout),
    });
}
