//! The rollout that a deletion ended: kept with the deletion, so that it is there again if that is taken back.

use maestro_core::lock::{Holder, Locks};
use maestro_core::operation::Operation;
use maestro_core::scheduler::{SchedulerName, Version, VersionStatus};
use serde::{Deserialize, Serialize};

use crate::Engine;
use crate::ports::store::{Change, RolloutRecord, RolloutState, SchedulerRecord, SchedulerState};

use super::delete_scheduler::Progress;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Interrupted {
    state: String,
    to: String,
    from: String,
    fleet_size_before: u32,
    note: String,
}

impl Interrupted {
    pub(super) fn of(rollout: &RolloutRecord) -> Self {
        Self {
            state: rollout.state.as_str().into(),
            to: rollout.to.to_string(),
            from: rollout.from.to_string(),
            fleet_size_before: rollout.fleet_size_before,
            note: rollout.note.clone(),
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
            fleet_size_before: self.fleet_size_before,
            note: self.note.clone(),
        };
        (scheduler.rollout.is_none() && scheduler.active_version == rollout.to).then_some(rollout)
    }
}

/// Of a version that fails, or that is left again, it says so already.
pub(crate) fn status_of_replacement(
    scheduler: &SchedulerName,
    rollout: &RolloutRecord,
    status: VersionStatus,
) -> Option<Change> {
    let is_new = rollout.to != rollout.from;
    let goes_on = matches!(rollout.state, RolloutState::Rolling | RolloutState::Paused);
    let (scheduler, version) = (scheduler.clone(), rollout.to);
    (is_new && goes_on).then_some(Change::SetVersionStatus { scheduler, version, status })
}

/// What taking a deletion back means for its scheduler: it is there as before, and so is its rollout. `holder` hands over
/// the locks that it has.
pub(crate) fn take_back_deletion(
    engine: &Engine,
    deletion: &Operation,
    scheduler: &SchedulerRecord,
    holder: Option<Holder>,
    locks: &Locks,
) -> Vec<Change> {
    let name = scheduler.name.clone();
    let from = vec![SchedulerState::Deleting, SchedulerState::InSync];
    let mut changes = vec![Change::SetState { scheduler: name.clone(), from, to: SchedulerState::InSync }];
    let interrupted = Progress::of(deletion).rollout;
    let Some(rollout) = interrupted.and_then(|rollout| rollout.resumed(engine, scheduler)) else {
        return changes;
    };
    changes.extend(engine.rollout_locks(&name, None, Some(&rollout), holder, locks));
    changes.extend(status_of_replacement(&name, &rollout, VersionStatus::Rolling));
    changes.push(Change::SetRollout { scheduler: name, from: None, to: Some(rollout) });
    changes
}
