//! What was told before, as far as later events need it. All of it may be forgotten: what is missing is read from the
//! store, and an event that only repeats what was told is told again.

use std::collections::BTreeMap;
use std::sync::Arc;

use maestro_core::allocation::AllocationId;
use maestro_core::operation::OperationId;
use maestro_core::room::RoomId;
use maestro_core::scheduler::SchedulerName;
use maestro_core::stream::{Decision, Happened, RolloutChange};

/// Operations, and allocations, that are remembered. Beyond that the oldest is forgotten.
const REMEMBERED_MAX: usize = 50_000;

#[derive(Default)]
pub(super) struct Known {
    /// Those that have not ended. Ids are in the order of their time.
    operations: BTreeMap<OperationId, KnownOperation>,
    /// Those that are open.
    allocations: BTreeMap<AllocationId, RoomId>,
    decisions: BTreeMap<SchedulerName, Arc<Decision>>,
    rollouts: BTreeMap<SchedulerName, RolloutChange>,
}

#[derive(Debug, Clone)]
pub(super) struct KnownOperation {
    pub(super) scheduler: SchedulerName,
    pub(super) definition: Arc<str>,
}

impl Known {
    /// What begins: its end will not say what it was.
    pub(super) fn remember(&mut self, scheduler: Option<&SchedulerName>, what: &Happened) {
        if let (Happened::OperationChanged { operation, definition, .. }, Some(scheduler)) = (what, scheduler)
        {
            self.remember_operation(*operation, scheduler, definition);
        }
        if let Happened::AllocationHeld { allocation, room, .. } = what {
            remember(&mut self.allocations, *allocation, room.clone());
        }
    }

    pub(super) fn remember_operation(
        &mut self,
        operation: OperationId,
        scheduler: &SchedulerName,
        definition: &str,
    ) {
        let known = KnownOperation { scheduler: scheduler.clone(), definition: definition.into() };
        remember(&mut self.operations, operation, known);
    }

    pub(super) fn operation(&self, operation: OperationId) -> Option<&KnownOperation> {
        self.operations.get(&operation)
    }

    pub(super) fn forget_operation(&mut self, operation: OperationId) {
        self.operations.remove(&operation);
    }

    pub(super) fn take_allocation(&mut self, allocation: AllocationId) -> Option<RoomId> {
        self.allocations.remove(&allocation)
    }

    /// False: it is what was decided the last time.
    pub(super) fn is_news(&mut self, scheduler: &SchedulerName, decision: &Arc<Decision>) -> bool {
        self.decisions.insert(scheduler.clone(), decision.clone()).as_ref() != Some(decision)
    }

    /// False: nothing of it that people are told is different.
    pub(super) fn is_other_rollout(&mut self, scheduler: &SchedulerName, rollout: &RolloutChange) -> bool {
        self.rollouts.insert(scheduler.clone(), rollout.clone()).as_ref() != Some(rollout)
    }

    pub(super) fn take_rollout(&mut self, scheduler: &SchedulerName) -> Option<RolloutChange> {
        self.rollouts.remove(scheduler)
    }

    pub(super) fn forget_scheduler(&mut self, scheduler: &SchedulerName) {
        self.decisions.remove(scheduler);
        self.rollouts.remove(scheduler);
    }
}

fn remember<K: Ord, V>(known: &mut BTreeMap<K, V>, key: K, value: V) {
    known.insert(key, value);
    if known.len() > REMEMBERED_MAX {
        known.pop_first();
    }
}
