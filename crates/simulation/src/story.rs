//! A transaction in words, for the trace: whose it is, what it is called, and what history it writes.

use std::fmt;

use maestro_core::operation::HistoryEvent;
use maestro_core::scheduler::SchedulerName;
use maestro_engine::ports::store::{Change, NewOperation, RegionRecord, Transaction};

use crate::invariants::{Subject, subject};

pub(crate) struct Told<'a>(pub(crate) &'a Transaction);

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Transaction { label, guard: _, changes } = self.0;
        f.write_str(label)?;
        if let Some(scheduler) = scheduler_of(self.0) {
            write!(f, " of {scheduler}")?;
        }
        let (mut rooms, mut stops) = (0, 0);
        for change in changes {
            match change {
                Change::Enqueue(new) => write_new(f, new)?,
                Change::SetActiveVersion { from, to, .. } => write!(f, "; active version {from} → {to}")?,
                Change::SetFleetSize { from, to, .. } if from != to => {
                    write!(f, "; fleet size {from} → {to}")?;
                }
                // Only a check that it is still the same.
                Change::SetRollout { from, to, .. } if from == to => {}
                Change::SetRollout { to: Some(rollout), .. } => {
                    write!(f, "; rollout to {} is {}", rollout.to, rollout.state.as_str())?;
                }
                Change::SetRollout { to: None, .. } => f.write_str("; no rollout any more")?,
                Change::TakeLock(new) => write!(f, "; lock {} taken", new.kind.as_str())?,
                Change::RevokeLock { kind, .. } => write!(f, "; lock {} revoked", kind.as_str())?,
                Change::DeleteScheduler { .. } => f.write_str("; the scheduler is gone")?,
                Change::EndRoom { room, ended, .. } => write!(f, "; room {room} {}", ended.how)?,
                Change::SetRegion {
                    to: RegionRecord { name, cordoned, draining, by, reason, .. }, ..
                } => {
                    let state = match (cordoned, draining) {
                        (_, true) => "is drained",
                        (true, false) => "is cordoned",
                        (false, false) => "may have new rooms",
                    };
                    write!(f, "; region {name} {state}, by {by}: {reason}")?;
                }
                Change::IntendRoom(_) => rooms += 1,
                Change::IntendStop { .. } => stops += 1,
                Change::CreateScheduler(_)
                | Change::SetState { .. }
                | Change::SetFleetSize { .. }
                | Change::AdjustFleetSize { .. }
                | Change::SetVersionStatus { .. }
                | Change::InsertVersion { .. }
                | Change::DeleteVersion { .. }
                | Change::SetLastShrunk { .. }
                | Change::StartOperation { .. }
                | Change::UpdateOperation(_)
                | Change::TurnRound { .. }
                | Change::EndOperation { .. }
                | Change::CancelPending { .. }
                | Change::RequestCancel { .. }
                | Change::ForgetOperations { .. }
                | Change::ForgetFleetDeltas { .. }
                | Change::AwaitLock { .. }
                | Change::StopAwaiting { .. }
                | Change::ReleaseLock { .. }
                | Change::RoomStarted { .. }
                | Change::ForgetRooms { .. } => {}
            }
        }
        if rooms > 0 {
            write!(f, "; {rooms} rooms wanted")?;
        }
        if stops > 0 {
            write!(f, "; {stops} rooms are to go")?;
        }
        changes.iter().flat_map(history).try_for_each(|event| write!(f, "; {}", event.event))
    }
}

fn write_new(f: &mut fmt::Formatter<'_>, new: &NewOperation) -> fmt::Result {
    write!(f, "; new {} {} ({})", new.definition.name(), new.id, new.reason)
}

fn history(change: &Change) -> &[HistoryEvent] {
    match change {
        Change::StartOperation { history, .. }
        | Change::TurnRound { history, .. }
        | Change::EndOperation { history, .. }
        | Change::CancelPending { history, .. }
        | Change::RequestCancel { history, .. } => history,
        Change::UpdateOperation(update) => &update.history,
        _ => &[],
    }
}

/// Whose scheduler is changed, where the transaction says it.
pub(crate) fn scheduler_of(transaction: &Transaction) -> Option<&SchedulerName> {
    let Transaction { label: _, guard, changes } = transaction;
    guard.as_ref().map(|guard| &guard.scheduler).or_else(|| changes.iter().find_map(changed_scheduler))
}

fn changed_scheduler(change: &Change) -> Option<&SchedulerName> {
    match subject(change)? {
        Subject::Scheduler(scheduler) => Some(scheduler),
        Subject::Operation(_) => None,
    }
}
