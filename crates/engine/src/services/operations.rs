//! Operations: list, read, cancel.

use maestro_core::lock::Locks;
use maestro_core::operation::{
    CancelRequest, DefinitionKind, HistoryEvent, Operation, OperationId, OperationStatus, Stage, queue,
};
use maestro_core::scheduler::SchedulerName;

use crate::operations::{forget_unless_deleting, take_back_deletion};
use crate::ports::store::{
    Change, OperationPage, PageRequest, SchedulerRecord, SchedulerState, StoreError, Transaction,
};
use crate::{Engine, Error, Result};

use super::{ATTEMPTS, changes_too_fast, known_name};

#[derive(Debug, Clone)]
pub struct OperationList {
    pub page: u32,
    pub page_size: u32,
    pub total: u32,
    pub operations: Vec<OperationView>,
}

#[derive(Debug, Clone)]
pub struct OperationView {
    pub operation: Operation,
    /// What it waits for, if it is not at work and not at its end.
    pub waiting_for: Option<String>,
    /// Why it did not finish, or will not.
    pub cause: Option<String>,
}

impl Engine {
    /// One page of the final operations; of the other stages there is one page with all of them.
    pub async fn operations(
        &self,
        scheduler: &str,
        stage: Stage,
        page: PageRequest,
    ) -> Result<OperationList> {
        let Ok(name) = known_name(scheduler) else {
            return Ok(OperationList { page: 1, page_size: 0, total: 0, operations: Vec::new() });
        };
        let store = &self.ports.store;
        let OperationPage { total, operations } = store.operations(&name, stage, page).await?;
        let operations = self.views(&name, stage, operations).await?;
        let (page, page_size) = match stage {
            Stage::Final => (page.page, page.page_size),
            Stage::Pending | Stage::Active => (1, total),
        };
        Ok(OperationList { page, page_size, total, operations })
    }

    pub async fn operation(&self, scheduler: &str, id: &str) -> Result<OperationView> {
        let missing = || Error::NotFound(format!("operation {id} not found in scheduler {scheduler}"));
        let name = known_name(scheduler)?;
        let parsed = OperationId::parse(id);
        let found = match parsed {
            Some(id) => self.ports.store.operation(&name, id).await?,
            None => None,
        };
        let Some(operation) = found else {
            // Operations outlive their scheduler. Only if there is no such operation is a missing scheduler the reason.
            self.scheduler(scheduler).await?;
            return Err(missing());
        };
        let stage = operation.status.stage();
        let mut views = self.views(&name, stage, vec![operation]).await?;
        views.pop().ok_or_else(missing)
    }

    /// With what they wait for now, which depends on their stage.
    async fn views(
        &self,
        scheduler: &SchedulerName,
        stage: Stage,
        operations: Vec<Operation>,
    ) -> Result<Vec<OperationView>> {
        let store = &self.ports.store;
        let (unfinished, locks) = match stage {
            Stage::Pending => match store.unfinished(scheduler).await {
                // One of them cannot be read: what the others wait for is that it can.
                Err(StoreError::Unreadable(_)) => (Vec::new(), Locks::default()),
                unfinished => (unfinished?, Locks::default()),
            },
            Stage::Active => (Vec::new(), store.locks(scheduler).await?),
            Stage::Final => (Vec::new(), Locks::default()),
        };
        let now = self.now();
        let mut views = Vec::with_capacity(operations.len());
        for operation in operations {
            let waiting_for = queue::waiting_for(&operation, &unfinished, &locks, now);
            let cause = self.cause(&operation).await?;
            views.push(OperationView { operation, waiting_for, cause });
        }
        Ok(views)
    }

    /// Lists are read without histories, and what never began has its cause nowhere else.
    async fn cause(&self, operation: &Operation) -> Result<Option<String>> {
        let cause = operation.cause().map(str::to_owned);
        let is_elsewhere = match operation.status {
            OperationStatus::Evicted | OperationStatus::Error | OperationStatus::Canceled => cause.is_none(),
            OperationStatus::Pending | OperationStatus::InProgress | OperationStatus::Finished => false,
        };
        if !is_elsewhere {
            return Ok(cause);
        }
        let whole = self.ports.store.operation(&operation.scheduler, operation.id).await?;
        Ok(whole.and_then(|whole| whole.cause().map(str::to_owned)))
    }

    /// A pending operation is canceled at once. One in progress is asked to roll back: it ends as `canceled` when
    /// what it did is undone.
    pub async fn cancel_operation(&self, scheduler: &str, id: &str, user: &str) -> Result {
        for _ in 0..ATTEMPTS {
            let operation = self.operation(scheduler, id).await?.operation;
            if operation.status.is_final() {
                let status = operation.status;
                let text = format!("cannot cancel operation since status \"{status}\" is a final status");
                return Err(Error::Conflict(text));
            }
            let record = self.ports.store.scheduler(&operation.scheduler).await?;
            let locks = self.ports.store.locks(&operation.scheduler).await?;
            self.stream.remember(&operation);
            if self.accepted(self.cancel(&operation, record.as_ref(), &locks, user)?).await? {
                self.ports.wake.queue_changed(&operation.scheduler);
                tracing::info!(scheduler_name = scheduler, operation_id = id, user, "cancellation requested");
                return Ok(());
            }
        }
        Err(changes_too_fast(scheduler))
    }

    fn cancel(
        &self,
        operation: &Operation,
        record: Option<&SchedulerRecord>,
        locks: &Locks,
        user: &str,
    ) -> Result<Transaction> {
        let at = self.now();
        let id = operation.id;
        if operation.status == OperationStatus::InProgress {
            let event = format!("Cancellation asked for by {user}");
            let request = CancelRequest { by: user.into(), at };
            let history = vec![HistoryEvent { at, event }];
            let change = Change::RequestCancel { operation: id, request, history };
            return Ok(Transaction::new("request cancel", &operation.scheduler, vec![change]));
        }
        let mut history = vec![format!("Canceled by {user} before it began")];
        let mut changes = Vec::new();
        let asks = |kind| operation.definition.kind() == kind;
        // Canceling a pending delete takes it back, canceling a pending create leaves nothing.
        if let Some(record) = record.filter(|_| asks(DefinitionKind::DeleteScheduler)) {
            let (back, events) = take_back_deletion(self, operation, record, None, locks, true)?;
            changes.extend(back);
            history.extend(events);
        }
        let stays = |record: &&SchedulerRecord| record.state == SchedulerState::Deleting;
        if let Some(record) = record.filter(|record| asks(DefinitionKind::CreateScheduler) && !stays(record))
        {
            changes.extend(forget_unless_deleting(record, id));
        }
        changes.extend(self.take_back_fleet_size(operation));
        let history = history.into_iter().map(|event| HistoryEvent { at, event }).collect();
        changes.insert(0, Change::CancelPending { operation: id, history, at });
        Ok(Transaction::new("cancel pending", &operation.scheduler, changes))
    }

    /// Undoes what asking for the operation did to the fleet size: part of every end but `finished`.
    pub(crate) fn take_back_fleet_size(&self, operation: &Operation) -> Option<Change> {
        let Operation { id, scheduler, fleet_delta, .. } = operation;
        if *fleet_delta == 0 {
            return None;
        }
        let (delta, of) = (-fleet_delta, Some(*id));
        Some(Change::AdjustFleetSize { scheduler: scheduler.clone(), delta, of })
    }
}
