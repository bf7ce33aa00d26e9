//! Operations: the queue, the slot, the history.

use maestro_core::guards;
use maestro_core::invariant::Invariant;
use maestro_core::operation::queue::UNFINISHED_MAX;
use maestro_core::operation::{
    Activity, CancelRequest, Definition, DefinitionKind, HistoryEvent, Lease, Operation, OperationId,
    OperationStatus, Rollback, Stage, Token,
};
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::Timestamp;
use maestro_engine::ports::store::{
    NewOperation, NoAction, OperationFilter, OperationPage, OperationUpdate, PageRequest, Refusal,
    SchedulerState, VERSION_OPERATIONS,
};
use serde_json::Value;

use super::state::{Queued, State};

impl State {
    pub(super) fn operation(&self, scheduler: &SchedulerName, id: OperationId) -> Option<Operation> {
        let Queued { operation, .. } = self.operations.get(&id)?;
        (operation.scheduler == *scheduler).then(|| operation.clone())
    }

    pub(super) fn unfinished(&self, scheduler: &SchedulerName) -> Vec<Operation> {
        let ids = self.unfinished_ids(scheduler);
        ids.filter_map(|id| Some(self.operations.get(&id)?.operation.clone())).collect()
    }

    pub(super) fn page(
        &self,
        scheduler: &SchedulerName,
        stage: Stage,
        request: PageRequest,
    ) -> OperationPage {
        let PageRequest { page, page_size, newest_first, no_action, only } = request;
        let shown = |operation: &&Operation| {
            operation.status.stage() == stage
                && is_asked_for(&only, operation)
                && (no_action || operation.took_action || !operation.status.is_final())
        };
        let ids: Vec<_> = match stage {
            Stage::Pending | Stage::Active => self.unfinished_ids(scheduler).collect(),
            Stage::Final => self.operation_ids(scheduler),
        };
        let found = ids.iter().filter_map(|id| Some(&self.operations.get(id)?.operation));
        let mut found: Vec<_> = found.filter(shown).collect();
        if newest_first {
            found.reverse();
        }
        let skipped = u64::from(page.saturating_sub(1)) * u64::from(page_size);
        let on_page =
            found.iter().skip(usize::try_from(skipped).unwrap_or(usize::MAX)).take(page_size as usize);
        OperationPage {
            total: u32::try_from(found.len()).unwrap_or(u32::MAX),
            operations: on_page.map(|operation| summary(operation)).collect(),
        }
    }

    /// In the order in which they were enqueued.
    pub(super) fn operation_ids(&self, scheduler: &SchedulerName) -> Vec<OperationId> {
        let bounds = (scheduler.clone(), 0)..=(scheduler.clone(), u64::MAX);
        self.queue.range(bounds).map(|(_, id)| *id).collect()
    }

    fn unfinished_ids(&self, scheduler: &SchedulerName) -> impl Iterator<Item = OperationId> {
        let bounds = (scheduler.clone(), 0)..=(scheduler.clone(), u64::MAX);
        self.unfinished.range(bounds).map(|(_, id)| *id)
    }

    pub(super) fn version_operations(
        &self,
        scheduler: &SchedulerName,
        operations_max: u32,
    ) -> Vec<Operation> {
        let ids = self.operation_ids(scheduler).into_iter().rev();
        ids.filter_map(|id| Some(&self.operations.get(&id)?.operation))
            .filter(|operation| VERSION_OPERATIONS.contains(&operation.definition.kind()))
            .take(operations_max as usize)
            .cloned()
            .collect()
    }

    /// The first one that has not ended.
    fn version_operation(&self, scheduler: &SchedulerName) -> Option<OperationId> {
        let is_one = |queued: &Queued| VERSION_OPERATIONS.contains(&queued.operation.definition.kind());
        self.unfinished_ids(scheduler).find(|id| self.operations.get(id).is_some_and(is_one))
    }

    fn unfinished_deletion(&self, scheduler: &SchedulerName) -> Option<OperationId> {
        let is_one = |queued: &Queued| matches!(queued.operation.definition, Definition::DeleteScheduler);
        self.unfinished_ids(scheduler).find(|id| self.operations.get(id).is_some_and(is_one))
    }

    pub(super) fn enqueue(&mut self, new: NewOperation) -> Result<(), Refusal> {
        let NewOperation {
            id,
            scheduler,
            definition,
            origin,
            priority,
            reason,
            progress,
            fleet_delta,
            only_version_operation,
            created_at,
        } = new;
        let is_deletion = matches!(definition, Definition::DeleteScheduler);
        if self.existing(&scheduler)?.state == SchedulerState::Deleting && !is_deletion {
            return Err(Refusal::SchedulerBeingDeleted(scheduler));
        }
        if self.operations.contains(&id) {
            return Err(Refusal::OperationExists(id));
        }
        if is_deletion && let Some(operation) = self.unfinished_deletion(&scheduler) {
            return Err(Refusal::DeletionUnderWay { scheduler, operation });
        }
        let is_request = origin.is_person() && !is_deletion && !priority;
        if is_request && self.unfinished_ids(&scheduler).count() >= UNFINISHED_MAX as usize {
            return Err(Refusal::QueueFull(scheduler));
        }
        if only_version_operation && let Some(operation) = self.version_operation(&scheduler) {
            return Err(Refusal::VersionOperationUnderWay { scheduler, operation });
        }
        self.last_sequence += 1;
        let sequence = self.last_sequence;
        let operation = Operation {
            id,
            scheduler: scheduler.clone(),
            definition,
            origin,
            priority,
            status: OperationStatus::Pending,
            activity: Activity::Executing,
            rollback: None,
            progress,
            data: Value::Null,
            reason,
            fleet_delta,
            created_at,
            ended_at: None,
            lease: None,
            cancel: None,
            took_action: true,
            history: vec![HistoryEvent { at: created_at, event: "Created".into() }],
        };
        self.queue.put((scheduler.clone(), sequence), id);
        self.unfinished.put((scheduler, sequence), id);
        self.operations.put(id, Queued { sequence, operation, is_record: false });
        Ok(())
    }

    pub(super) fn start_operation(
        &mut self,
        id: OperationId,
        lease: Lease,
        history: Vec<HistoryEvent>,
    ) -> Result<(), Refusal> {
        let scheduler = self.operation_in(id, OperationStatus::Pending)?.scheduler.clone();
        self.take_slot(&scheduler, id)?;
        self.change_operation(id, |operation| {
            operation.status = OperationStatus::InProgress;
            operation.activity = Activity::Executing;
            operation.lease = Some(lease);
            operation.history.extend(history);
        });
        Ok(())
    }

    pub(super) fn update_operation(&mut self, update: OperationUpdate) -> Result<(), Refusal> {
        let OperationUpdate { operation: id, activity, progress, data, lease, history } = update;
        let scheduler = self.operation_in(id, OperationStatus::InProgress)?.scheduler.clone();
        match &activity {
            None => {}
            Some(Activity::Executing) => self.take_slot(&scheduler, id)?,
            Some(Activity::Parked(_)) => self.free_slot(&scheduler, id),
        }
        self.change_operation(id, |operation| {
            replace(&mut operation.activity, activity);
            replace(&mut operation.progress, progress);
            replace(&mut operation.data, data);
            operation.lease = lease.or(operation.lease.take());
            operation.history.extend(history);
        });
        Ok(())
    }

    pub(super) fn end_operation(
        &mut self,
        id: OperationId,
        status: OperationStatus,
        took_action: bool,
        history: Vec<HistoryEvent>,
        at: Timestamp,
    ) -> Result<(), Refusal> {
        let Queued { sequence, operation, .. } =
            self.operations.get(&id).ok_or(Refusal::OperationNotFound(id))?;
        let is = operation.status;
        let is_legal = is.become_(status).is_ok() || !guards::stands(Invariant::LegalTransitions);
        if !status.is_final() || !is_legal {
            return Err(Refusal::WrongStatus { operation: id, is });
        }
        let scheduler = operation.scheduler.clone();
        let position = (scheduler.clone(), *sequence);
        self.unfinished.remove(&position);
        self.free_slot(&scheduler, id);
        self.free_locks_of(&scheduler, id);
        self.change_operation(id, |operation| {
            operation.status = status;
            operation.took_action = took_action;
            operation.ended_at = Some(at);
            operation.lease = None;
            operation.history.extend(history);
        });
        Ok(())
    }

    pub(super) fn cancel_pending(
        &mut self,
        id: OperationId,
        history: Vec<HistoryEvent>,
        at: Timestamp,
    ) -> Result<(), Refusal> {
        self.operation_in(id, OperationStatus::Pending)?;
        self.end_operation(id, OperationStatus::Canceled, true, history, at)
    }

    pub(super) fn request_cancel(
        &mut self,
        id: OperationId,
        request: CancelRequest,
        history: Vec<HistoryEvent>,
    ) -> Result<(), Refusal> {
        self.operation_in(id, OperationStatus::InProgress)?;
        self.change_operation(id, |operation| {
            operation.cancel.get_or_insert(request);
            operation.history.extend(history);
        });
        Ok(())
    }

    pub(super) fn roll_back(
        &mut self,
        id: OperationId,
        rollback: Rollback,
        history: Vec<HistoryEvent>,
    ) -> Result<(), Refusal> {
        let queued = self.operations.get(&id).ok_or(Refusal::OperationNotFound(id))?;
        let is = queued.operation.status;
        if is.is_final() {
            return Err(Refusal::WrongStatus { operation: id, is });
        }
        self.change_operation(id, |operation| {
            if let (Activity::Parked(wait), None) = (&mut operation.activity, &operation.rollback) {
                wait.until = Timestamp::UNIX_EPOCH;
            }
            operation.rollback.get_or_insert(rollback);
            operation.history.extend(history);
        });
        Ok(())
    }

    pub(super) fn forget_fleet_deltas(&mut self, scheduler: &SchedulerName, before: Option<OperationId>) {
        let sequence = |id: &OperationId| self.operations.get(id).map(|queued| queued.sequence);
        let limit = before.map(|before| sequence(&before).unwrap_or(0));
        let is_earlier = |id: &OperationId| limit.is_none_or(|limit| sequence(id) < Some(limit));
        let ids: Vec<_> = self.unfinished_ids(scheduler).filter(is_earlier).collect();
        for id in ids {
            self.change_operation(id, |operation| operation.fleet_delta = 0);
        }
    }

    pub(super) fn forget_operations(
        &mut self,
        scheduler: Option<&SchedulerName>,
        ended_before: Timestamp,
        no_action_before: Timestamp,
    ) {
        let ids = match scheduler {
            Some(name) => self.operation_ids(name),
            None => self
                .operations
                .iter()
                .filter(|(_, queued)| !self.schedulers.contains(&queued.operation.scheduler))
                .map(|(id, _)| *id)
                .collect(),
        };
        for id in ids {
            let queued = self.operations.get(&id);
            if queued.is_some_and(|queued| is_to_be_forgotten(queued, ended_before, no_action_before)) {
                self.forget_operation(id);
            }
        }
    }

    pub(super) fn schedulers_in_hand(&self) -> u32 {
        let is_in_hand = |operation: &Operation| {
            let kinds = [DefinitionKind::CreateScheduler, DefinitionKind::DeleteScheduler];
            kinds.contains(&operation.definition.kind()) && !operation.is_parked()
        };
        let unfinished = self.unfinished.range(..).filter_map(|(_, id)| self.operations.get(id));
        let number = unfinished.filter(|queued| is_in_hand(&queued.operation)).count();
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    pub(super) fn has_operations_to_forget(
        &self,
        scheduler: &SchedulerName,
        ended_before: Timestamp,
        no_action_before: Timestamp,
    ) -> bool {
        let mut queued = self.operation_ids(scheduler).into_iter().filter_map(|id| self.operations.get(&id));
        queued.any(|queued| is_to_be_forgotten(queued, ended_before, no_action_before))
    }

    pub(super) fn record_no_action(&mut self, new: NoAction) -> Result<(), Refusal> {
        if self.existing(&new.scheduler)?.state == SchedulerState::Deleting {
            return Err(Refusal::SchedulerBeingDeleted(new.scheduler));
        }
        if self.operations.contains(&new.id) {
            return Err(Refusal::OperationExists(new.id));
        }
        self.last_sequence += 1;
        let (sequence, operation) = (self.last_sequence, new.into_operation());
        self.queue.put((operation.scheduler.clone(), sequence), operation.id);
        self.operations.put(operation.id, Queued { sequence, operation, is_record: true });
        Ok(())
    }

    pub(super) fn forget_no_action(&mut self, before: Timestamp) {
        let is_old = |queued: &Queued| {
            queued.is_record && queued.operation.ended_at.is_some_and(|ended| ended < before)
        };
        let old = self.operations.iter().filter(|(_, queued)| is_old(queued));
        let old: Vec<OperationId> = old.map(|(id, _)| *id).collect();
        for id in old {
            self.forget_operation(id);
        }
    }

    pub(super) fn forget_operation(&mut self, id: OperationId) {
        if let Some(Queued { sequence, operation, .. }) = self.operations.remove(&id) {
            self.free_slot(&operation.scheduler, id);
            let position = (operation.scheduler, sequence);
            self.queue.remove(&position);
            self.unfinished.remove(&position);
        }
    }

    pub(super) fn renew_leases(&mut self, scheduler: &SchedulerName, token: Token, until: Timestamp) {
        let ids: Vec<_> = self.unfinished_ids(scheduler).collect();
        for id in ids {
            let lease = |queued: &Queued| queued.operation.lease.as_ref().map(|lease| lease.token);
            if self.operations.get(&id).and_then(lease) != Some(token) {
                continue;
            }
            self.change_operation(id, |operation| {
                if let Some(lease) = &mut operation.lease {
                    lease.expires_at = until;
                }
            });
        }
    }

    fn operation_in(&self, id: OperationId, status: OperationStatus) -> Result<&Operation, Refusal> {
        let queued = self.operations.get(&id);
        let operation = &queued.ok_or(Refusal::OperationNotFound(id))?.operation;
        if operation.status == status || !guards::stands(Invariant::LegalTransitions) {
            Ok(operation)
        } else {
            Err(Refusal::WrongStatus { operation: id, is: operation.status })
        }
    }

    fn change_operation(&mut self, id: OperationId, change: impl FnOnce(&mut Operation)) {
        self.operations.change(&id, |queued| change(&mut queued.operation));
    }

    fn take_slot(&mut self, scheduler: &SchedulerName, id: OperationId) -> Result<(), Refusal> {
        match self.slots.get(scheduler) {
            Some(by) if *by != id => Err(Refusal::SlotTaken { by: *by }),
            Some(_) => Ok(()),
            None => {
                self.slots.put(scheduler.clone(), id);
                Ok(())
            }
        }
    }

    fn free_slot(&mut self, scheduler: &SchedulerName, id: OperationId) {
        if self.slots.get(scheduler) == Some(&id) {
            self.slots.remove(scheduler);
        }
    }
}

fn is_to_be_forgotten(queued: &Queued, ended_before: Timestamp, no_action_before: Timestamp) -> bool {
    let Queued { operation, is_record, .. } = queued;
    let is_old = |at| at < ended_before || (!operation.took_action && at < no_action_before);
    !is_record && operation.ended_at.is_some_and(is_old)
}

fn replace<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

/// What lists show of an operation.
fn summary(operation: &Operation) -> Operation {
    Operation { history: Vec::new(), progress: Value::Null, ..operation.clone() }
}

fn is_asked_for(filter: &OperationFilter, operation: &Operation) -> bool {
    let OperationFilter { kind, status, since, id } = filter;
    kind.is_none_or(|kind| operation.definition.kind() == kind)
        && status.is_none_or(|status| operation.status == status)
        && since.is_none_or(|since| operation.created_at >= since)
        && id.is_none_or(|prefix| {
            let (first, last) = prefix.bounds();
            (first..=last).contains(&operation.id)
        })
}
