//! An operation: one piece of work on one scheduler. It has a definition (what was asked for), a status, a history (what
//! happened), a lease (who works on it) and a reason.

mod definition;
pub mod explain;
mod id;
pub mod queue;
mod status;
#[cfg(test)]
pub(crate) mod testing;

use crate::lock::Holder;
use crate::scheduler::SchedulerName;
use crate::time::Timestamp;

pub use definition::{Definition, DefinitionKind, RemovalReason, RoomsToRemove, SwitchVersion};
pub use id::{IdPrefix, OperationId};
pub use status::{IllegalTransition, OperationStatus, Stage};

/// The whole of an operation, as a store returns it.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    pub id: OperationId,
    pub scheduler: SchedulerName,
    pub definition: Definition,
    pub origin: Origin,
    /// Priority operations go before the others.
    pub priority: bool,
    pub status: OperationStatus,
    /// What an operation in progress is doing; meaningless in any other status.
    pub activity: Activity,
    /// Set once it rolls back: what it will end as when its rollback is done.
    pub rollback: Option<Rollback>,
    /// What its executor has to remember between two steps; only the executor reads it.
    pub progress: serde_json::Value,
    /// Decisions of the policies, `{"status":"OK","creation":{…}}`.
    pub data: serde_json::Value,
    /// Why it was asked for, with the numbers it was decided on.
    pub reason: String,
    /// By how much asking for it changed the fleet size; taken back if it does not finish.
    pub fleet_delta: i64,
    pub created_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub lease: Option<Lease>,
    pub cancel: Option<CancelRequest>,
    /// False: it changed nothing, so lists leave it out and retention drops it early.
    pub took_action: bool,
    pub history: Vec<HistoryEvent>,
}

/// Who asked for an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Someone outside, by the name they gave.
    Person(String),
    /// The health controller: what it asks for keeps what it got.
    Controller,
    /// A panic: nearly all rooms were occupied. It keeps what it got, too.
    Panic,
    /// The engine's own clockwork.
    Engine,
}

/// What an operation in progress is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Activity {
    /// It holds its scheduler's slot: no other one executes.
    Executing,
    /// It only waits for the outside and has given up the slot.
    Parked(Wait),
}

/// What a parked operation waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// In words, shown as `waitingFor`.
    pub what: String,
    /// When it looks again, even if nothing happened.
    pub until: Timestamp,
    /// Something did not answer: only asking again can tell whether it does now.
    pub unanswered: bool,
}

/// An operation that rolls back undoes what it did, and then ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rollback {
    pub then: RollbackEnd,
    pub why: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RollbackEnd {
    Error,
    Canceled,
}

/// Time-limited ownership. The token is what every write of the owner is checked against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub owner: String,
    pub token: Token,
    pub expires_at: Timestamp,
}

/// A fencing token, from one sequence for the whole store: a later owner has a greater one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token(pub u64);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CancelRequest {
    pub by: String,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryEvent {
    pub at: Timestamp,
    pub event: String,
}

impl Operation {
    /// Who it is as the holder of locks.
    pub fn holder(&self) -> Holder {
        Holder::Operation { kind: self.definition.kind(), id: self.id }
    }

    /// Why it did not finish, or will not: what rolled it back, else the last event of its history. `None`: it
    /// finished, may still do so, or was read without its history.
    pub fn cause(&self) -> Option<&str> {
        if let Some(rollback) = &self.rollback {
            return Some(&rollback.why);
        }
        match self.status {
            OperationStatus::Pending | OperationStatus::InProgress | OperationStatus::Finished => None,
            OperationStatus::Evicted | OperationStatus::Error | OperationStatus::Canceled => {
                self.history.last().map(|last| last.event.as_str())
            }
        }
    }

    pub fn is_parked(&self) -> bool {
        self.status == OperationStatus::InProgress && matches!(self.activity, Activity::Parked(_))
    }

    pub fn is_executing(&self) -> bool {
        self.status == OperationStatus::InProgress && self.activity == Activity::Executing
    }

    /// None begins beside it: it has the slot, or waits for an answer without which nothing else may be done.
    pub fn keeps_others_out(&self) -> bool {
        let waits_alone = match &self.activity {
            Activity::Parked(wait) => wait.unanswered && !self.definition.kind().makes_way(),
            Activity::Executing => false,
        };
        self.is_executing() || self.is_parked() && waits_alone
    }
}

impl Origin {
    pub fn is_person(&self) -> bool {
        matches!(self, Self::Person(_))
    }
}

impl RollbackEnd {
    pub fn status(self) -> OperationStatus {
        match self {
            Self::Error => OperationStatus::Error,
            Self::Canceled => OperationStatus::Canceled,
        }
    }
}
