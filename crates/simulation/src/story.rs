//! A transaction in words, for the trace: what it is called, whose it is, which operation it is about, and what it
//! changes for that operation, for its locks and for others.
//!
//! An operation is told by its kind and the end of its id. Ids begin with the time: those that are made at about the
//! same moment begin alike, and differ at the end. Whoever searches for the end also finds the whole id in what the
//! engine writes.

#[cfg(test)]
mod tests;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use maestro_core::lock::{Holder, LockKind};
use maestro_core::operation::{Activity, DefinitionKind, HistoryEvent, OperationId, OperationStatus, Wait};
use maestro_core::room::RoomId;
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::Timestamp;
use maestro_engine::ports::store::{Change, NewLock, OperationUpdate, Transaction};

use crate::invariants::{Subject, subject};

pub(crate) use words::seconds;
use words::{ends, numbers, of_other, waits};

/// Events that every operation has: the words around them say the same.
const EXPECTED_EVENTS: [&str; 3] =
    ["Starting operation", "Starting operation rollback", "Operation finished"];

/// What was told so far, as far as later words need it: a transaction knows an operation by its id alone, and does not
/// say which locks are free with its end.
#[derive(Debug, Default)]
pub(crate) struct Story {
    operations: BTreeMap<OperationId, (SchedulerName, DefinitionKind)>,
    held: BTreeMap<(SchedulerName, LockKind), Holder>,
    waiting: BTreeSet<(SchedulerName, LockKind, Holder)>,
    /// All who watch a room tell of its end; the first one is heard.
    ended: BTreeSet<RoomId>,
}

/// What a transaction is called, and what it is about: also if it is never written.
pub(crate) struct Headline<'a> {
    label: &'static str,
    scheduler: Option<&'a SchedulerName>,
    operation: Option<Name>,
}

/// What an operation is known by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Name {
    /// `None`: its beginning was not seen.
    pub(crate) kind: Option<DefinitionKind>,
    pub(crate) id: OperationId,
}

impl Story {
    pub(crate) fn headline<'a>(&'a self, transaction: &'a Transaction) -> Headline<'a> {
        let operation = operation_of(transaction).map(|id| self.name(id));
        let known = || self.operations.get(&operation?.id).map(|(scheduler, _)| scheduler);
        let scheduler = scheduler_of(transaction).or_else(known);
        Headline { label: transaction.label, scheduler, operation }
    }

    /// A transaction that was written, and is remembered.
    pub(crate) fn tell(&mut self, transaction: &Transaction, now: Timestamp) -> String {
        let changes = &transaction.changes;
        let (mut told, mut others) = (Vec::new(), Vec::new());
        let mut about = operation_of(transaction);
        for change in changes {
            if let Change::Enqueue(new) = change {
                self.operations.insert(new.id, (new.scheduler.clone(), new.definition.kind()));
                others.push(format!("new {} ({})", self.name(new.id), new.reason));
                about = about.or(Some(new.id));
            }
        }
        told.push(self.headline(transaction).to_string());
        for change in changes {
            match self.of_operation(change, about, now) {
                Some(phrases) => told.extend(phrases),
                None => {
                    others.extend(self.of_lock(change, about));
                    others.extend(self.of_room(change).or_else(|| of_other(change)));
                }
            }
        }
        told.append(&mut others);
        told.extend(numbers(changes));
        told.join("; ")
    }

    pub(crate) fn name(&self, id: OperationId) -> Name {
        Name { kind: self.operations.get(&id).map(|(_, kind)| *kind), id }
    }

    /// What becomes of an operation, and what its history says of it. The one that the headline names is not named
    /// again. `None`: the change is not about an operation.
    fn of_operation(
        &mut self,
        change: &Change,
        about: Option<OperationId>,
        now: Timestamp,
    ) -> Option<Vec<String>> {
        let (operation, phrase, history) = match change {
            // The headline says it.
            Change::StartOperation { operation, history, .. } => (*operation, None, history),
            Change::UpdateOperation(update) => {
                let phrase = parked(update).map(|wait| waits(wait, now));
                (update.operation, phrase, &update.history)
            }
            Change::RollBack { operation, rollback, history } => {
                let phrase = format!("will undo what it did, and end as {}", rollback.then.status());
                (*operation, Some(phrase), history)
            }
            Change::EndOperation { operation, status, took_action, history, .. } => {
                let freed = self.free(*operation);
                (*operation, Some(format!("{}{freed}", ends(*status, *took_action))), history)
            }
            Change::CancelPending { operation, history, .. } => {
                let freed = self.free(*operation);
                let end = OperationStatus::Canceled;
                (*operation, Some(format!("ends as {end} before it began{freed}")), history)
            }
            Change::RequestCancel { operation, request, history } => {
                (*operation, Some(format!("is asked by {} to end", request.by)), history)
            }
            _ => return None,
        };
        let phrase = match Some(operation) == about {
            true => phrase,
            false => phrase.map(|phrase| format!("{} {phrase}", self.name(operation))),
        };
        let events = history.iter().filter(|event| !is_told(event, change));
        Some(phrase.into_iter().chain(events.map(|event| format!("“{}”", event.event))).collect())
    }

    /// `None` also for what changes nothing: a lock that stays with its holder, a place that there never was.
    fn of_lock(&mut self, change: &Change, about: Option<OperationId>) -> Option<String> {
        match change {
            Change::TakeLock(new) => self.take(new, about),
            Change::AwaitLock { scheduler, waiter } => {
                let place = (scheduler.clone(), waiter.kind, waiter.holder);
                let who = who(waiter.holder, about);
                self.waiting.insert(place).then(|| format!("{who}gets in line for lock {}", waiter.kind))
            }
            Change::StopAwaiting { scheduler, kind, holder } => {
                let who = who(*holder, about);
                let was_there = self.waiting.remove(&(scheduler.clone(), *kind, *holder));
                was_there.then(|| format!("{who}gives up its place in line for lock {kind}"))
            }
            Change::ReleaseLock { scheduler, kind, holder } => {
                let key = (scheduler.clone(), *kind);
                self.held.get(&key).filter(|held| *held == holder)?;
                self.held.remove(&key);
                Some(format!("{}gives up lock {kind}", who(*holder, about)))
            }
            Change::RevokeLock { scheduler, kind, .. } => {
                let from = self.held.remove(&(scheduler.clone(), *kind));
                Some(match from {
                    Some(holder) => format!("lock {kind} is taken away from {}", short(holder)),
                    None => format!("lock {kind} is taken away from its holder"),
                })
            }
            Change::DeleteScheduler { scheduler, .. } => {
                self.held.retain(|(name, _), _| name != scheduler);
                self.waiting.retain(|(name, _, _)| name != scheduler);
                None
            }
            _ => None,
        }
    }

    fn of_room(&mut self, change: &Change) -> Option<String> {
        let Change::EndRoom { room, ended, .. } = change else { return None };
        Some(match self.ended.insert(room.clone()) {
            true => format!("room {room} {}", ended.how),
            false => format!("room {room} had ended already"),
        })
    }

    fn take(&mut self, new: &NewLock, about: Option<OperationId>) -> Option<String> {
        let NewLock { scheduler, kind, taker, .. } = new;
        let holder = taker.holder;
        for gone in [Some(holder), taker.instead_of].into_iter().flatten() {
            self.waiting.remove(&(scheduler.clone(), *kind, gone));
        }
        match self.held.insert((scheduler.clone(), *kind), holder) {
            Some(before) if before == holder => None,
            Some(before) if Some(before) == taker.instead_of => {
                Some(format!("lock {kind} goes from {} to {}", short(before), short(holder)))
            }
            Some(before) => {
                Some(format!("{}takes lock {kind}, which ran out for {}", who(holder, about), short(before)))
            }
            None => Some(format!("{}takes lock {kind}", who(holder, about))),
        }
    }

    /// The locks and places of an operation that ends.
    fn free(&mut self, operation: OperationId) -> String {
        let is_its = |holder: &Holder| holder.operation() == Some(operation);
        self.waiting.retain(|(_, _, holder)| !is_its(holder));
        let mut freed = Vec::new();
        self.held.retain(|(_, kind), holder| {
            if is_its(holder) {
                freed.push(kind.as_str());
            }
            !is_its(holder)
        });
        match freed.as_slice() {
            [] => String::new(),
            [one] => format!(", and gives up lock {one}"),
            several => format!(", and gives up locks {}", several.join(" and ")),
        }
    }
}

fn parked(update: &OperationUpdate) -> Option<&Wait> {
    match update.activity.as_ref()? {
        Activity::Parked(wait) => Some(wait),
        Activity::Executing => None,
    }
}

/// The words beside it say the same.
fn is_told(event: &HistoryEvent, change: &Change) -> bool {
    let is_wait = match change {
        Change::UpdateOperation(update) => {
            parked(update).is_some_and(|wait| event.event.strip_prefix("waiting for ") == Some(&wait.what))
        }
        _ => false,
    };
    is_wait || EXPECTED_EVENTS.contains(&event.event.as_str())
}

/// Nothing for whom the headline names.
fn who(holder: Holder, about: Option<OperationId>) -> String {
    match about.is_some() && holder.operation() == about {
        true => String::new(),
        false => format!("{} ", short(holder)),
    }
}

fn short(holder: Holder) -> String {
    match holder {
        Holder::Operation { kind, id } => Name { kind: Some(kind), id }.to_string(),
        Holder::Rollout(_) | Holder::HealthController => holder.to_string(),
    }
}

impl fmt::Display for Headline<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { label, scheduler, operation } = self;
        f.write_str(label)?;
        if let Some(scheduler) = scheduler {
            write!(f, " of {scheduler}")?;
        }
        match operation {
            Some(name) => write!(f, ": {name}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [.., a, b, c, d] = *self.id.as_bytes();
        let kind = self.kind.map_or("operation", DefinitionKind::as_str);
        write!(f, "{kind} {:08x}", u32::from_be_bytes([a, b, c, d]))
    }
}

/// The operation that is worked on; if none is, the first one that something is asked of.
fn operation_of(transaction: &Transaction) -> Option<OperationId> {
    let worked_on = |change: &Change| match change {
        Change::StartOperation { operation, .. } | Change::EndOperation { operation, .. } => Some(*operation),
        Change::UpdateOperation(update) => Some(update.operation),
        _ => None,
    };
    let any = |change: &Change| match subject(change)? {
        Subject::Scheduler(_) => None,
        Subject::Operation(operation) => Some(operation),
    };
    let changes = &transaction.changes;
    changes.iter().find_map(worked_on).or_else(|| changes.iter().find_map(any))
}

/// Whose scheduler is changed, where the transaction says it.
pub(crate) fn scheduler_of(transaction: &Transaction) -> Option<&SchedulerName> {
    transaction.scheduler.as_ref().or_else(|| transaction.changes.iter().find_map(changed_scheduler))
}

fn changed_scheduler(change: &Change) -> Option<&SchedulerName> {
    match subject(change)? {
        Subject::Scheduler(scheduler) => Some(scheduler),
        Subject::Operation(_) => None,
    }
}
