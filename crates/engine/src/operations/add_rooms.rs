//! add_rooms: first the registry says which rooms are wanted, then the runtime is asked for them, batch by batch.
//!
//! Asked for by a person it is all or nothing: one failure takes the others back, except those that players have
//! entered meanwhile. Asked for by the health controller it keeps what it got: one bad room must not undo 999.

use async_trait::async_trait;
use maestro_core::invariant::rooms_made;
use maestro_core::operation::Definition;
use maestro_core::room::Purpose;

use crate::ports::store::{RolloutState, RoomRecord};
use crate::rooms::starting::{self, Making};
use crate::rooms::stopping;

use super::{Executor, Next, Step, StepError, Work};

pub(super) struct AddRooms;

#[async_trait]
impl Executor for AddRooms {
    async fn step(&self, work: &Work) -> Result<Step, StepError> {
        let store = &work.engine.ports.store;
        let rows = store.rooms_made_by(&work.scheduler.name, work.operation.id).await?;
        work.engine.report(&work.scheduler.name, rooms_made(work.operation.id, amount(work), rows.len()));
        let unstarted: Vec<_> = rows.iter().filter(|row| is_unstarted(row)).cloned().collect();
        if !unstarted.is_empty() {
            return self.start(work, &unstarted).await;
        }
        let failed = rows.iter().filter(|row| row.handle.is_none()).count();
        if failed > 0 && work.operation.origin.is_person() {
            let why = first_failure(&rows);
            return Err(StepError::Failed(format!("{failed} of {} rooms failed: {why}", amount(work))));
        }
        if rows.len() < amount(work) as usize {
            return intend(work, &rows).await;
        }
        finish(work, &rows, failed)
    }

    async fn undo(&self, work: &Work) -> Result<Step, StepError> {
        let store = &work.engine.ports.store;
        let rows = store.rooms_made_by(&work.scheduler.name, work.operation.id).await?;
        let reason = format!("rollback of add_rooms {}", work.operation.id);
        stopping::take_back(work, rows, &reason).await
    }

    async fn wait_is_over(&self, work: &Work) -> Result<bool, StepError> {
        stopping::all_gone(work).await
    }
}

impl AddRooms {
    async fn start(&self, work: &Work, rows: &[RoomRecord]) -> Result<Step, StepError> {
        let started = starting::start(work, rows).await?;
        let mut step = Step::again(started.changes);
        step.history.extend(started.failures);
        Ok(step)
    }
}

/// New rooms are made from the active version; while a rollout is halted, from the last one that was deployed.
async fn intend(work: &Work, rows: &[RoomRecord]) -> Result<Step, StepError> {
    let version = match &work.scheduler.rollout {
        Some(rollout) if rollout.state == RolloutState::Halted => rollout.from,
        Some(_) | None => work.scheduler.active_version,
    };
    let recipe = work.recipe_of(version).await?;
    let making = Making { version, recipe: &recipe, purpose: Purpose::Fleet, amount: amount(work) };
    starting::intend(work, rows, &making).await
}

fn amount(work: &Work) -> u32 {
    match work.operation.definition {
        Definition::AddRooms { amount } => amount,
        _ => 0,
    }
}

fn is_unstarted(row: &RoomRecord) -> bool {
    row.handle.is_none() && row.ended.is_none()
}

fn first_failure(rows: &[RoomRecord]) -> String {
    let failure = |row: &RoomRecord| {
        let ended = row.ended.as_ref().filter(|_| row.handle.is_none())?;
        Some(format!("room {}: {}", row.id, ended.how))
    };
    rows.iter().find_map(failure).unwrap_or_default()
}

fn finish(work: &Work, rows: &[RoomRecord], failed: usize) -> Result<Step, StepError> {
    let added = rows.len() - failed;
    if added == 0 && failed > 0 {
        return Err(StepError::Failed(format!(
            "none of {failed} rooms could be started: {}",
            first_failure(rows)
        )));
    }
    let event = match failed {
        0 => format!("added {added} rooms"),
        failed => format!("added {added} of {} rooms, {failed} failed", amount(work)),
    };
    Ok(Step { next: Next::Done { took_action: true }, ..Step::default() }.with_history(event))
}
