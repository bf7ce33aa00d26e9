//! Executors: how each definition is carried out, one file each.
//!
//! An executor is a small state machine over durable progress. Each call does one bounded step under the fencing
//! token and says what comes next; the worker commits the step's changes together with the progress. Killed between
//! any two steps, it is called again with the same progress, so every step can be repeated.

mod add_rooms;
mod create_scheduler;
mod create_version;
mod delete_scheduler;
mod facts;
mod fleet;
mod health_controller;
mod placing;
mod planned_cycle;
mod remove_rooms;
mod resize;
mod rollout;
mod storage_clean_up;
mod switch_version;
pub(crate) mod validation_attempts;

use std::sync::Arc;

use async_trait::async_trait;
use maestro_core::lock::{Holder, Lock, LockKind, Locks};
use maestro_core::operation::{DefinitionKind, Operation, Wait};
use maestro_core::rollout::Refused;
use maestro_core::scheduler::{Recipe, SchedulerName, Version};
use maestro_core::time::{Millis, Timestamp, after};

use crate::Engine;
use crate::ports::room_table::TableError;
use crate::ports::runtime::RuntimeError;
use crate::ports::store::{Change, Guard, RoomRecord, SchedulerRecord, StoreError};
use crate::worker::Tenure;

pub(crate) use create_scheduler::forget_unless_deleting;
pub(crate) use create_version::begin as begin_version;
pub(crate) use delete_scheduler::{Progress as DeletionProgress, take_back as take_back_deletion};
pub(crate) use facts::occupied_pace;
pub(crate) use fleet::fleet as whole_fleet;
pub(crate) use health_controller::{decided, scheduled};
pub(crate) use planned_cycle::{Finding, PlannedCycle};
pub(crate) use remove_rooms::rooms_asked_to_go;
pub(crate) use storage_clean_up::{forget_no_action, forget_operations, nothing_to_clean_up};

#[async_trait]
pub(crate) trait Executor: Send + Sync {
    /// The named locks without which the next step forward must not be made, in the order of taking.
    async fn needs(&self, _work: &Work) -> Result<Vec<LockNeed>> {
        Ok(Vec::new())
    }

    /// What it owes others before it waits for a lock.
    async fn before_it_waits(&self, _work: &Work) -> Result {
        Ok(())
    }

    /// One bounded step forward.
    async fn step(&self, work: &Work) -> Result<Step>;

    /// One bounded step back, after a failure or a cancellation. Most have nothing to undo.
    async fn undo(&self, _work: &Work) -> Result<Step> {
        Ok(Step::done())
    }

    /// Whether a parked operation may go on. It is asked without the slot, so it only looks.
    async fn wait_is_over(&self, _work: &Work) -> Result<bool> {
        Ok(true)
    }
}

/// A lock without which a step must not be made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LockNeed {
    pub(crate) kind: LockKind,
    /// A rollout that has it lets others work under it.
    pub(crate) lent_by_rollout: bool,
}

impl LockNeed {
    fn own(kind: LockKind) -> Self {
        Self { kind, lent_by_rollout: false }
    }

    fn own_or_lent(kind: LockKind) -> Self {
        Self { kind, lent_by_rollout: true }
    }

    pub(crate) fn is_met_by(self, lock: &Lock, holder: Holder) -> bool {
        let is_lent = self.lent_by_rollout && lock.holder.is_rollout();
        lock.kind == self.kind && (lock.holder == holder || is_lent)
    }
}

/// What an executor works on.
pub(crate) struct Work {
    pub(crate) engine: Arc<Engine>,
    pub(crate) guard: Guard,
    pub(crate) scheduler: SchedulerRecord,
    pub(crate) operation: Operation,
    /// As they were when the step began.
    pub(crate) locks: Locks,
    pub(crate) tenure: Tenure,
    /// Of a health cycle: what it begins with, unless that is not true any more.
    pub(crate) planned: Option<PlannedCycle>,
}

/// What one step did and what comes next; committed in one transaction.
#[derive(Default)]
pub(crate) struct Step {
    pub(crate) changes: Vec<Change>,
    pub(crate) progress: Option<serde_json::Value>,
    /// Decision data, if this step took a decision.
    pub(crate) data: Option<serde_json::Value>,
    pub(crate) history: Vec<String>,
    /// It compared runtime and registry: noted when its changes are written.
    pub(crate) reconciled: bool,
    pub(crate) next: Next,
}

#[derive(Default)]
pub(crate) enum Next {
    /// More to do: keep the slot.
    #[default]
    Again,
    /// Nothing to do before this: give up the slot.
    Park(Wait),
    Done {
        took_action: bool,
    },
}

/// What a part of a step answers.
pub(crate) type Result<T = (), E = StepError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub(crate) enum StepError {
    /// It cannot be done: the operation rolls back and ends as `error`.
    #[error("{0}")]
    Failed(String),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Something does not answer: the step is tried again.
    #[error("{0}")]
    NotNow(String),
    /// The room table has lost this scheduler: the step is tried again when its rooms are in the table again.
    #[error("{}", TableError::Lost(.0.clone()))]
    Lost(SchedulerName),
}

pub(crate) fn executor(kind: DefinitionKind) -> Option<&'static dyn Executor> {
    Some(match kind {
        DefinitionKind::CreateScheduler => &create_scheduler::CreateScheduler,
        DefinitionKind::DeleteScheduler => &delete_scheduler::DeleteScheduler,
        DefinitionKind::CreateVersion => &create_version::CreateVersion,
        DefinitionKind::SwitchVersion => &switch_version::SwitchVersion,
        DefinitionKind::AddRooms | DefinitionKind::CreateRoom => &add_rooms::AddRooms,
        DefinitionKind::RemoveRooms => &remove_rooms::RemoveRooms,
        DefinitionKind::Resize => &resize::Resize,
        DefinitionKind::HealthController => &health_controller::HealthController,
        DefinitionKind::StorageCleanUp => &storage_clean_up::StorageCleanUp,
        DefinitionKind::Unknown => return None,
    })
}

impl Step {
    pub(crate) fn done() -> Self {
        Self { next: Next::Done { took_action: true }, ..Self::default() }
    }

    pub(crate) fn again(changes: Vec<Change>) -> Self {
        Self { changes, ..Self::default() }
    }

    pub(crate) fn park(what: String, until: Timestamp) -> Self {
        Self { next: Next::Park(Wait { what, until, unanswered: false }), ..Self::default() }
    }

    pub(crate) fn with_history(mut self, event: impl Into<String>) -> Self {
        self.history.push(event.into());
        self
    }
}

impl Work {
    pub(crate) fn now(&self) -> Timestamp {
        self.engine.now()
    }

    /// The recipe that a room was, or is to be, made from: the active version may be another by now.
    pub(crate) async fn recipe_of(&self, version: Version) -> Result<Arc<Recipe>> {
        if version == self.scheduler.active_version {
            return Ok(self.scheduler.recipe.clone());
        }
        let found = self.engine.ports.store.version(&self.scheduler.name, version).await?;
        let missing = || StepError::Failed(format!("version {version} of {} is gone", self.scheduler.name));
        found.map(|version| version.recipe).ok_or_else(missing)
    }

    /// All rooms that this operation has made, ended ones too.
    async fn made_rooms(&self) -> Result<Vec<RoomRecord>, StoreError> {
        self.engine.ports.store.rooms_made_by(&self.scheduler.name, self.operation.id).await
    }

    pub(crate) fn in_time(&self, span: Millis) -> Timestamp {
        after(self.now(), span)
    }

    pub(crate) fn has_lock(&self, need: LockNeed) -> bool {
        let holder = self.operation.holder();
        self.locks.held(need.kind).is_some_and(|lock| need.is_met_by(lock, holder))
    }

    /// To be asked before anything that cannot be fenced: who slept too long must not start or stop rooms, even if
    /// nobody else has begun to.
    pub(crate) fn still_owner(&self) -> Result {
        self.tenure.check(&self.scheduler.name)
    }
}

impl From<TableError> for StepError {
    fn from(error: TableError) -> Self {
        match error {
            unavailable @ TableError::Unavailable(_) => Self::NotNow(unavailable.to_string()),
            TableError::Lost(scheduler) => Self::Lost(scheduler),
        }
    }
}

/// The rollout changed after the step had read it. The next try reads it again.
impl From<Refused> for StepError {
    fn from(refused: Refused) -> Self {
        Self::NotNow(refused.to_string())
    }
}

impl From<RuntimeError> for StepError {
    fn from(error: RuntimeError) -> Self {
        match error {
            RuntimeError::Refused(why) | RuntimeError::Full(why) => Self::Failed(why),
            unavailable @ RuntimeError::Unavailable(_) => Self::NotNow(unavailable.to_string()),
        }
    }
}

impl From<crate::Error> for StepError {
    fn from(error: crate::Error) -> Self {
        Self::NotNow(error.to_string())
    }
}

/// Of what only looks: nothing was tried that could have failed.
impl From<StepError> for crate::Error {
    fn from(error: StepError) -> Self {
        match error {
            StepError::Store(error) => error.into(),
            StepError::Failed(what) | StepError::NotNow(what) => Self::Unavailable { what, source: None },
            StepError::Lost(scheduler) => TableError::Lost(scheduler).into(),
        }
    }
}
