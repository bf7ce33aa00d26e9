//! Carries out single steps of operations, from `Starting operation` to the end.
//!
//! Everything that an executor's step did is committed together with its progress, its history and its end.

mod locking;

use std::sync::Arc;
use std::time::Duration;

use maestro_core::lock::Locks;
use maestro_core::operation::queue::Eviction;
use maestro_core::operation::{
    Activity, HistoryEvent, Lease, Operation, OperationStatus, Origin, Rollback, RollbackEnd, Wait,
};
use maestro_core::time::after;

use crate::Engine;
use crate::operations::{Next, PlannedCycle, Result, Step, StepError, Work, executor, rooms_asked_to_go};
use crate::ports::store::{
    Change, Guard, NoAction, OperationUpdate, Refusal, SchedulerRecord, StoreError, Transaction,
};

use super::retries::RetryState;
use super::tenure::Tenure;

/// How often a step may lose a race for a port or an id before the operation gives up.
const RACES_MAX: u32 = 20;
/// How long it waits after each lost race, longer each time: who was faster needs a moment, too.
const RACE_PAUSE: Duration = Duration::from_millis(5);

pub(super) struct Stepper {
    engine: Arc<Engine>,
    guard: Guard,
    tenure: Tenure,
    /// The game of the scheduler, for the metrics' label.
    pub(super) game: String,
    /// Races that the operation at work lost in a row.
    races: u32,
    /// How often in a row the health controller has asked in vain for rooms to go: what was refused is refused again.
    pub(super) removals_failed: u32,
    /// Rooms were added or removed since the controller last asked for something before its time.
    pub(super) made_progress: bool,
    retries: RetryState,
}

impl Stepper {
    pub(super) fn new(engine: Arc<Engine>, guard: Guard, tenure: Tenure) -> Self {
        let (game, races, retries) = (String::new(), 0, RetryState::default());
        Self { engine, guard, tenure, game, races, removals_failed: 0, made_progress: false, retries }
    }

    /// An operation that was looked at and had nothing to do.
    pub(super) fn count_quiet(&self, record: &NoAction) {
        let operation = record.clone().into_operation();
        self.engine.metrics.ended(&self.game, &operation, operation.status, record.at);
    }

    pub(super) fn lease(&self) -> Lease {
        Lease {
            owner: self.engine.owner.clone(),
            token: self.guard.token,
            expires_at: after(self.engine.now(), self.engine.settings.operation_lease_ttl),
        }
    }

    pub(super) async fn evict(&self, operation: &Operation, eviction: Eviction) -> Result {
        self.engine.metrics.evicted(&self.game, operation, eviction);
        let event = format!("Operation evicted: {eviction}");
        self.end(&self.guard, operation, OperationStatus::Evicted, true, Vec::new(), vec![event]).await
    }

    /// With the locks that it needs, if they are free. If not, it waits for them when it takes its first step.
    /// `progress`: what it begins with instead of what it was enqueued with.
    pub(super) async fn start(
        &self,
        scheduler: SchedulerRecord,
        operation: Operation,
        progress: Option<serde_json::Value>,
    ) -> Result {
        let history = self.events(vec!["Starting operation".into()]);
        let mut start =
            vec![Change::StartOperation { operation: operation.id, lease: self.lease(), history }];
        if progress.is_some() {
            let update = OperationUpdate { progress, ..OperationUpdate::of(operation.id) };
            start.push(Change::UpdateOperation(update));
        }
        let locks = self.engine.ports.store.locks(&scheduler.name).await?;
        let work = self.work(scheduler, operation, locks, None);
        let needs = match executor(work.operation.definition.kind()) {
            Some(executor) if work.operation.rollback.is_none() => executor.needs(&work).await?,
            Some(_) | None => Vec::new(),
        };
        let missing = needs.into_iter().filter(|need| !work.has_lock(*need));
        let mut changes = start.clone();
        changes.extend(missing.map(|need| self.take(&work, need.kind)));
        match self.commit("start operation", changes).await {
            Err(StepError::Store(StoreError::Refused(Refusal::LockHeld(_)))) => {
                self.commit("start operation", start).await
            }
            other => other,
        }
    }

    /// See [`Work::still_owner`].
    pub(super) fn still_owner(&self) -> Result {
        self.tenure.check(&self.guard.scheduler)
    }

    /// One step of the operation that holds the slot. True: it gave the slot up, ended or parked. `planned`: what a health
    /// cycle begins with.
    pub(super) async fn advance(
        &mut self,
        scheduler: SchedulerRecord,
        operation: Operation,
        planned: Option<PlannedCycle>,
    ) -> Result<bool> {
        if let (Some(cancel), None) = (&operation.cancel, &operation.rollback) {
            let why = format!("canceled by {}", cancel.by);
            self.roll_back(&operation, RollbackEnd::Canceled, why).await?;
            return Ok(false);
        }
        let Some(executor) = executor(operation.definition.kind()) else {
            return self.give_up(&operation, "no executor is known for it".into()).await;
        };
        let locks = self.engine.ports.store.locks(&scheduler.name).await?;
        let mut work = self.work(scheduler, operation, locks, planned);
        let outcome = match work.operation.rollback {
            None => match self.hold_locks(executor, &mut work).await {
                Ok(None) => executor.step(&work).await,
                Ok(Some(instead)) => Ok(instead),
                Err(error) => Err(error),
            },
            Some(_) => executor.undo(&work).await,
        };
        let committed = match outcome {
            Ok(step) => self.commit_step(&work, step).await,
            Err(error) => Err(error),
        };
        let operation = work.operation;
        match committed {
            Ok(gave_up_slot) => {
                self.races = 0;
                self.retries.forget(operation.id);
                Ok(gave_up_slot)
            }
            Err(error) => self.on_step_error(&operation, error).await,
        }
    }

    pub(super) fn work(
        &self,
        scheduler: SchedulerRecord,
        operation: Operation,
        locks: Locks,
        planned: Option<PlannedCycle>,
    ) -> Work {
        let (engine, guard, tenure) = (self.engine.clone(), self.guard.clone(), self.tenure.clone());
        Work { engine, guard, scheduler, operation, locks, tenure, planned }
    }

    async fn commit_step(&mut self, work: &Work, step: Step) -> Result<bool> {
        let operation = &work.operation;
        let Step { mut changes, progress, data, mut history, reconciled, next } = step;
        let activity = match next {
            Next::Done { took_action } => {
                if data.is_some() {
                    let update = OperationUpdate { data, ..OperationUpdate::of(operation.id) };
                    changes.push(Change::UpdateOperation(update));
                }
                let (status, took_action, event) = match &operation.rollback {
                    None => (OperationStatus::Finished, took_action, "Operation finished"),
                    Some(rollback) => {
                        let event = "Operation rollback flow execution finished with success";
                        (rollback.then.status(), true, event)
                    }
                };
                history.push(event.into());
                self.end(&work.guard, operation, status, took_action, changes, history).await?;
                if is_removal_of_controller(operation) && operation.rollback.is_none() {
                    self.removals_failed = 0;
                }
                self.made_progress |= operation.rollback.is_none() && changed_fleet(operation);
                if reconciled {
                    self.engine.reconciled.done(&operation.scheduler, self.engine.now());
                }
                return Ok(true);
            }
            Next::Again => None,
            Next::Park(wait) => Some(Activity::Parked(wait)),
        };
        let parked = activity.is_some();
        let (history, unchanged) = (self.events(history), OperationUpdate::of(operation.id));
        let update = OperationUpdate { activity, progress, data, history, ..unchanged };
        changes.push(Change::UpdateOperation(update));
        self.commit_under(&work.guard, "step", changes).await?;
        Ok(parked)
    }

    /// A step that did not go through: try again, or roll back.
    async fn on_step_error(&mut self, operation: &Operation, error: StepError) -> Result<bool> {
        match error {
            StepError::Failed(why) => return self.give_up(operation, why).await,
            StepError::Store(StoreError::Refused(refusal)) if refusal.is_race() => {
                self.races += 1;
                if self.races > RACES_MAX {
                    self.races = 0;
                    // What the fleet needs is not taken back for being late.
                    if operation.definition.adds().is_some() && !operation.origin.is_person() {
                        self.wait_for_answer(operation, refusal.to_string()).await?;
                        return Ok(true);
                    }
                    return self.give_up(operation, refusal.to_string()).await;
                }
                tokio::time::sleep(RACE_PAUSE * self.races).await;
            }
            StepError::NotNow(obstacle) => {
                self.wait_for_answer(operation, obstacle).await?;
                return Ok(true);
            }
            // It would be refused again, and meanwhile it would hold the slot.
            StepError::Store(StoreError::Refused(refusal)) if refusal.is_for_good() => {
                return self.give_up(operation, refusal.to_string()).await;
            }
            error @ (StepError::Store(_) | StepError::Lost(_)) => return Err(error),
        }
        Ok(false)
    }

    /// An operation that goes forward rolls back; one that rolls back already ends where it is. True: it has ended.
    async fn give_up(&mut self, operation: &Operation, why: String) -> Result<bool> {
        let Some(rollback) = &operation.rollback else {
            self.roll_back(operation, RollbackEnd::Error, why).await?;
            return Ok(false);
        };
        let event = format!("Operation rollback flow execution failed, reason: {why}");
        self.end(&self.guard, operation, rollback.then.status(), true, Vec::new(), vec![event]).await?;
        Ok(true)
    }

    async fn roll_back(&mut self, operation: &Operation, then: RollbackEnd, why: String) -> Result {
        let event = match then {
            RollbackEnd::Error => format!("operation execution failed: {why}"),
            RollbackEnd::Canceled => format!("Operation {why}"),
        };
        tracing::info!(
            scheduler_name = %operation.scheduler, operation_id = %operation.id,
            operation_definition = operation.definition.name(), why, "operation rolls back"
        );
        let history = self.events(vec![event, "Starting operation rollback".into()]);
        let turn = Change::RollBack { operation: operation.id, rollback: Rollback { then, why }, history };
        self.commit("roll back", vec![turn]).await?;
        if is_removal_of_controller(operation) && then == RollbackEnd::Error {
            self.removals_failed = self.removals_failed.saturating_add(1);
        }
        Ok(())
    }

    /// Parks the operation, so that others execute, unless its kind keeps others out (`makes_way`).
    async fn wait_for_answer(&mut self, operation: &Operation, obstacle: String) -> Result {
        let retry = self.retries.retry(operation.id);
        tracing::warn!(
            scheduler_name = %operation.scheduler, operation_id = %operation.id,
            operation_definition = operation.definition.name(), obstacle, retry_in = ?retry, "waits for an answer"
        );
        let until = after(self.engine.now(), retry.into());
        let mut update = OperationUpdate::of(operation.id);
        let what = format!("an answer: {obstacle}");
        update.activity = Some(Activity::Parked(Wait { what, until, unanswered: true }));
        // An obstacle is worth one line, not one for each time it is met.
        if self.retries.is_news(operation.id, &obstacle) {
            update.history = self.events(vec![format!("waiting, and trying again: {obstacle}")]);
        }
        self.commit("wait for an answer", vec![Change::UpdateOperation(update)]).await?;
        self.retries.note(operation.id, obstacle);
        Ok(())
    }

    async fn end(
        &self,
        guard: &Guard,
        operation: &Operation,
        status: OperationStatus,
        took_action: bool,
        mut changes: Vec<Change>,
        history: Vec<String>,
    ) -> Result {
        let at = self.engine.now();
        if status != OperationStatus::Finished {
            changes.extend(self.engine.take_back_fleet_size(operation));
        }
        let history = self.events(history);
        changes.push(Change::EndOperation { operation: operation.id, status, took_action, history, at });
        // A scheduler goes together with everything that is left of it: its end must be written before.
        changes.sort_by_key(|change| matches!(change, Change::DeleteScheduler { .. }));
        self.commit_under(guard, "end operation", changes).await?;
        self.engine.metrics.ended(&self.game, operation, status, at);
        if took_action {
            tracing::info!(
                scheduler_name = %operation.scheduler, operation_id = %operation.id,
                operation_definition = operation.definition.name(), %status, "operation ended"
            );
        }
        Ok(())
    }

    fn events(&self, events: Vec<String>) -> Vec<HistoryEvent> {
        let at = self.engine.now();
        events.into_iter().map(|event| HistoryEvent { at, event }).collect()
    }

    async fn commit(&self, label: &'static str, changes: Vec<Change>) -> Result {
        self.commit_under(&self.guard, label, changes).await
    }

    async fn commit_under(&self, guard: &Guard, label: &'static str, changes: Vec<Change>) -> Result {
        let transaction = Transaction::guarded(label, guard.clone(), changes);
        Ok(self.engine.commit(transaction).await?)
    }
}

/// Rooms were made, or asked to go.
fn changed_fleet(operation: &Operation) -> bool {
    operation.definition.adds().is_some()
        || (operation.definition.removes().is_some() && rooms_asked_to_go(operation) > 0)
}

fn is_removal_of_controller(operation: &Operation) -> bool {
    operation.origin == Origin::Controller && operation.definition.removes().is_some()
}
