//! The rollout that a deletion ended: kept with the deletion, so that it is there again if that is taken back, or fails.

use maestro_core::lock::{Holder, Locks};
use maestro_core::operation::Operation;
use maestro_core::scheduler::{SizeBaseline, Version, VersionStatus};
use serde::{Deserialize, Serialize};

use crate::Engine;
use crate::ports::store::{Change, RolloutRecord, RolloutState, SchedulerRecord};

use super::delete_scheduler::Progress;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Interrupted {
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
    pub(super) fn of(rollout: &RolloutRecord, was_rolling: bool) -> Self {
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

    /// As it was, but that it begins now: it was at rest meanwhile. `None`: the scheduler has another version, or
    /// another rollout, by now.
    fn resumed(&self, engine: &Engine, scheduler: &SchedulerRecord) -> Option<RolloutRecord> {
        let rollout = RolloutRecord {
            state: RolloutState::parse(&self.state)?,
            to: Version::parse(&self.to).ok()?,
            from: Version::parse(&self.from).ok()?,
            since: engine.now(),
            fleet_size: SizeBaseline {
                before: self.fleet_size_before,
                after: self.fleet_size_after.unwrap_or(scheduler.fleet_size),
            },
            // It was at rest for longer than rooms with players have to wait.
            occupied_at: None,
            note: self.note.clone(),
        };
        (scheduler.rollout.is_none() && scheduler.active_version == rollout.to).then_some(rollout)
    }
}

/// Brings the rollout back that the deletion ended, with a line that says so. `holder` hands over the locks that it has.
pub(crate) fn bring_back_rollout(
    engine: &Engine,
    deletion: &Operation,
    scheduler: &SchedulerRecord,
    holder: Option<Holder>,
    locks: &Locks,
) -> Option<(Vec<Change>, String)> {
    let interrupted = Progress::of(deletion).rollout?;
    let rollout = interrupted.resumed(engine, scheduler)?;
    let name = scheduler.name.clone();
    let event = format!("the rollout of {} is there again, {}", rollout.to, rollout.state.as_str());
    let mut changes = engine.rollout_locks(&name, None, Some(&rollout), holder, locks);
    if interrupted.was_rolling {
        let (scheduler, version, status) = (name.clone(), rollout.to, VersionStatus::Rolling);
        changes.push(Change::SetVersionStatus { scheduler, version, status, cause: String::new() });
    }
    changes.push(Change::SetRollout { scheduler: name, from: None, to: Some(rollout) });
    Some((changes, event))
}
