//! Runtime and registry, compared both ways: what runs and is not wanted is stopped, what is wanted and does not run
//! has ended.
//!
//! The registry is read before and after the runtime is listed, and only rows that were equal both times are acted
//! on: whatever changed in between is being worked on by someone.

use std::collections::BTreeMap;

use maestro_core::room::{Ending, RoomId};

use crate::operations::{Step, StepError, Work};
use crate::ports::runtime::RunningRoom;
use crate::ports::store::{Change, Ended, RoomRecord};

/// Listing a runtime costs; between two times the runtime's own watch tells what happens.
const EVERY: maestro_core::time::Millis = maestro_core::time::Millis::from_seconds(60);

/// Part of a health cycle: the changes and history of what was found. Empty if it is not time yet.
pub(crate) async fn reconcile(work: &Work) -> Result<Step, StepError> {
    let mut step = Step::default();
    if !work
        .engine
        .reconciled
        .is_due(&work.scheduler.name, work.now(), EVERY)
    {
        return Ok(step);
    }
    let store = &work.engine.ports.store;
    let before = by_id(store.live_rooms(&work.scheduler.name).await?);
    let mut running = Vec::new();
    for runtime in work.engine.ports.runtimes.values() {
        running.extend(runtime.list().await?);
    }
    running.retain(|room| room.scheduler == work.scheduler.name);
    let after = by_id(store.live_rooms(&work.scheduler.name).await?);
    stop_unwanted(work, &running, &before, &after, &mut step).await?;
    end_lost(work, &running, &before, &after, &mut step).await?;
    Ok(step)
}

async fn stop_unwanted(
    work: &Work,
    running: &[RunningRoom],
    before: &BTreeMap<RoomId, RoomRecord>,
    after: &BTreeMap<RoomId, RoomRecord>,
    step: &mut Step,
) -> Result<(), StepError> {
    for room in running {
        let why = match (before.get(&room.id), after.get(&room.id)) {
            (None, None) => "the registry does not know it",
            (Some(one), Some(other)) if one == other && is_another(one, room) => {
                "the registry wants another instance"
            }
            _ => continue,
        };
        let grace = work.scheduler.recipe.spec.termination_grace_period;
        for runtime in work.engine.ports.runtimes.values() {
            runtime
                .stop(&room.scheduler, &room.id, Some(&room.handle), grace)
                .await?;
        }
        step.history.push(format!(
            "stopped room {} (pids {:?}): {why}",
            room.id, room.handle.pids
        ));
    }
    Ok(())
}

fn is_another(row: &RoomRecord, running: &RunningRoom) -> bool {
    row.handle
        .as_ref()
        .is_some_and(|handle| handle.detail != running.handle.detail)
}

async fn end_lost(
    work: &Work,
    running: &[RunningRoom],
    before: &BTreeMap<RoomId, RoomRecord>,
    after: &BTreeMap<RoomId, RoomRecord>,
    step: &mut Step,
) -> Result<(), StepError> {
    let unfinished = work.engine.ports.store.unfinished(&work.scheduler.name).await?;
    for (id, row) in after {
        let is_settled = before.get(id) == Some(row);
        let runs = running.iter().any(|room| room.id == *id);
        let being_started = row.handle.is_none() && unfinished.iter().any(|op| op.id == row.operation);
        if !is_settled || runs || being_started {
            continue;
        }
        let ending = Ending::Lost;
        let view = work.engine.ports.table.remove(&row.scheduler, id).await?;
        let ended = Ended {
            at: work.now(),
            how: ending.to_string(),
            cause: ending.cause(),
            was_ready: view.is_some_and(|view| view.was_ready),
        };
        step.history.push(format!("room {id} {ending}"));
        step.changes.push(Change::EndRoom {
            scheduler: row.scheduler.clone(),
            room: id.clone(),
            ended,
        });
    }
    Ok(())
}

fn by_id(rows: Vec<RoomRecord>) -> BTreeMap<RoomId, RoomRecord> {
    rows.into_iter().map(|row| (row.id.clone(), row)).collect()
}
