//! The only way in which a rollout changes: an event, what `maestro_core::rollout` makes of it, and that as changes of a
//! transaction.

use maestro_core::lock::Locks;
use maestro_core::operation::{Definition, OperationId};
use maestro_core::rollout::{
    Refused, RolloutContext, RolloutEvent, RolloutRecord, SwitchBack, VersionChange, transition,
};
use maestro_core::scheduler::VersionStatus;

use crate::Engine;
use crate::ports::store::{Change, NewOperation, SchedulerRecord, SchedulerUpdate, StoreError};

/// What becomes of a rollout.
pub(crate) struct RolloutWrite {
    pub(crate) rollout: Option<RolloutRecord>,
    /// To be written in any case: what was decided is right for the scheduler of the record only.
    pub(crate) update: SchedulerUpdate,
    /// Everything else that goes with it.
    pub(crate) changes: Vec<Change>,
    /// The operation that leads back.
    pub(crate) switch_back: Option<OperationId>,
    pub(crate) history: Vec<String>,
}

impl Engine {
    pub(crate) fn rollout_write(
        &self,
        record: &SchedulerRecord,
        event: RolloutEvent<'_>,
        locks: &Locks,
    ) -> Result<RolloutWrite, Refused> {
        let SchedulerRecord { name, active_version, rollout, .. } = record;
        let context = RolloutContext { scheduler: name, active: *active_version, locks, now: self.now() };
        let next = transition(rollout.as_ref(), event, &context)?;
        let mut history = next.history;
        let mut changes: Vec<Change> =
            next.locks.into_iter().map(|change| self.lock_change(name, change)).collect();
        for VersionChange { version, status, cause } in next.versions {
            changes.push(Change::SetVersionStatus { scheduler: name.clone(), version, status, cause });
        }
        let is_another = next.rollout != *rollout;
        let update = SchedulerUpdate { rollout: is_another.then(|| next.rollout.clone()), ..record.update() };
        let switch_back = next.switch_back.map(|SwitchBack { switch, origin, reason }| {
            let operation = self.new_operation(name, Definition::SwitchVersion(switch), origin);
            // Before a version that waits in the queue: that one would be active by the time one goes back.
            let operation = NewOperation { priority: true, reason, ..operation };
            history.push(operation.created_event());
            let id = operation.id;
            changes.push(Change::Enqueue(operation));
            id
        });
        Ok(RolloutWrite { rollout: next.rollout, update, changes, switch_back, history })
    }

    /// The version of the rollout under way is still `rolling`: one that failed or was canceled says so already.
    pub(crate) async fn is_rolling(&self, record: &SchedulerRecord) -> Result<bool, StoreError> {
        let Some(rollout) = &record.rollout else { return Ok(false) };
        let version = self.ports.store.version(&record.name, rollout.to).await?;
        Ok(version.is_some_and(|version| version.status == VersionStatus::Rolling))
    }
}
