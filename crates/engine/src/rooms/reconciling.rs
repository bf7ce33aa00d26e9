//! Compares runtime and registry in both directions: rooms that run and are not wanted are stopped, and rooms that are
//! wanted and do not run have ended.
//!
//! The rooms of a region that does not answer stay as they are, and other regions do not wait for it.

use std::collections::BTreeSet;

use maestro_core::room::{Ending, InstanceStatus, RoomId};
use maestro_core::scheduler::{RestartPolicy, SchedulerName};
use maestro_core::time::Millis;

use crate::Engine;
use crate::allocations::settling;
use crate::events::room_gone::room_gone_events;
use crate::operations::{Result, Step, StepError, Work};
use crate::ports::room_table::{RoomAddress, RoomView, was_ready};
use crate::ports::runtime::{Handle, RunningRoom};
use crate::ports::store::{Change, Ended, RoomRecord};
use crate::rooms::{recovery, stopping};

use super::census::{Census, Fault, Unwanted};

/// Listing a runtime costs; between two times the runtime's own watch tells what happens.
const EVERY: Millis = Millis::from_seconds(60);
/// What rooms and runtime say may differ for long, while one of several containers is started again and again, say.
const EVERY_IF_CONTRADICTED: Millis = Millis::from_seconds(1);

/// Whether it is time to compare again. `is_contradicted`: see [`RoomView::is_contradicted`].
pub(crate) fn is_due(engine: &Engine, scheduler: &SchedulerName, is_contradicted: bool) -> bool {
    let every = if is_contradicted { EVERY_IF_CONTRADICTED } else { EVERY };
    engine.reconciled.is_due(scheduler, engine.now(), every)
}

/// Part of a health cycle: the changes and history of what was found. Empty if it is not time yet. What the room table
/// has lost is put back each time: rooms that are not in it are not heard.
pub(crate) async fn reconcile(work: &Work) -> Result<Step> {
    let mut step = Step::default();
    let views = recovery::recall(&work.engine, &work.scheduler).await?;
    let is_contradicted = views.iter().any(RoomView::is_contradicted);
    if !is_due(&work.engine, &work.scheduler.name, is_contradicted) {
        return Ok(step);
    }
    settling::reconcile(&work.engine, &work.scheduler.name).await?;
    let census = Census::take(&work.engine, Some(&work.scheduler.name)).await?;
    stop_unwanted(work, &census, &mut step).await?;
    let unfinished = work.engine.ports.store.unfinished(&work.scheduler.name).await?;
    let is_unfinished = |id| unfinished.iter().any(|operation| operation.id == id);
    // Those of an operation that is still at it are started again by it.
    let is_made = |row: &&RoomRecord| row.handle.is_some() || !is_unfinished(row.operation);
    let made: Vec<_> = census.settled().filter(is_made).collect();
    let all_asked = watch_again(work, &made, &census).await?;
    step.reconciled = census.is_complete && all_asked;
    for (row, fault, unless) in census.faults() {
        if unless.is_some_and(is_unfinished) {
            continue;
        }
        match fault {
            Fault::StartNotRecorded(room) => record_start(work, row, room, &mut step).await?,
            // Whoever kills it after its grace period may have been forgotten with a restart.
            Fault::StillRuns => drop(without_delay(work, &row.id, stopping::stop(work, row).await)?),
            Fault::Lost => end_lost(work, row, &mut step).await?,
        }
    }
    // Their end was written, by this or another worker.
    let table = &work.engine.ports.table;
    for view in table.rooms(&work.scheduler.name).await? {
        if !census.is_registered(&view.id) {
            table.remove(&work.scheduler.name, &view.id).await?;
        }
    }
    Ok(step)
}

/// An observation is lost if the worker dies before writing it or another one writes an older one after it, and the
/// runtime does not repeat it by itself. Without this, a running room that says `ready` would stay pending. False: a region did not answer.
async fn watch_again(work: &Work, rows: &[&RoomRecord], census: &Census) -> Result<bool> {
    let mut all_asked = true;
    let views = work.engine.ports.table.rooms(&work.scheduler.name).await?;
    let pending = views.iter().filter(|view| view.instance == InstanceStatus::Pending);
    let pending: BTreeSet<&RoomId> = pending.map(|view| &view.id).collect();
    for (region, running) in &census.listed {
        let unseen = rows.iter().filter(|row| row.region == *region && pending.contains(&row.id));
        let rooms: Vec<_> = unseen.filter_map(|row| same_instance(row, running.get(&row.id)?)).collect();
        if rooms.is_empty() {
            continue;
        }
        work.still_owner()?;
        if let Err(error) = work.engine.runtime(region)?.adopt(rooms).await {
            all_asked = false;
            tracing::warn!(%region, scheduler_name = %work.scheduler.name, %error, "rooms not looked at again");
        }
    }
    Ok(all_asked)
}

fn same_instance(row: &RoomRecord, running: &RunningRoom) -> Option<RunningRoom> {
    let is_same = |handle: &Handle| handle.is_of_same_instance(&running.handle);
    row.handle.as_ref().is_none_or(is_same).then(|| running.clone())
}

async fn stop_unwanted(work: &Work, census: &Census, step: &mut Step) -> Result {
    for (region, room, unwanted) in census.unwanted() {
        let why = match unwanted {
            Unwanted::NotRegistered => "the registry does not know it",
            Unwanted::InOtherRegion => "the registry wants it in another region",
            // A room whose containers are started again when they end changes its processes and stays the same room.
            Unwanted::OtherInstance(row) if restarts(work, row).await? => continue,
            Unwanted::OtherInstance(_) => "the registry wants another instance",
        };
        let grace = work.scheduler.recipe.spec.termination_grace_period;
        work.still_owner()?;
        let runtime = work.engine.runtime(region)?;
        let stopped = runtime.stop(&room.scheduler, &room.id, Some(&room.handle), grace).await;
        if without_delay(work, &room.id, stopped.map_err(StepError::from))? {
            step.history.push(format!("stopped room {} (pids {:?}): {why}", room.id, room.handle.pids));
        }
    }
    Ok(())
}

async fn restarts(work: &Work, row: &RoomRecord) -> Result<bool> {
    Ok(work.recipe_of(row.version).await?.spec.restart_policy != RestartPolicy::Never)
}

/// A room that cannot be stopped now must not keep the fleet from everything else. True: it could.
fn without_delay(work: &Work, room: &RoomId, stopped: Result) -> Result<bool> {
    match stopped {
        Ok(()) => Ok(true),
        Err(error @ (StepError::NotNow(_) | StepError::Failed(_) | StepError::Lost(_))) => {
            let scheduler_name = work.scheduler.name.as_str();
            tracing::warn!(scheduler_name, room_id = %room, %error, "room could not be stopped, trying again");
            Ok(false)
        }
        Err(error @ StepError::Store(_)) => Err(error),
    }
}

/// Whoever started it could not write that down, and has ended since. Without its handle nobody can tell players where
/// it is.
async fn record_start(work: &Work, row: &RoomRecord, room: &RunningRoom, step: &mut Step) -> Result {
    // What is observed of it from now on is of the instance whose handle is written.
    work.still_owner()?;
    work.engine.runtime(&row.region)?.adopt(vec![room.clone()]).await?;
    let address = RoomAddress::of(&room.handle, &row.ports);
    work.engine.ports.table.set_address(&row.scheduler, &row.id, address).await?;
    step.history.push(format!("room {} runs, and its start had not been recorded", row.id));
    let (scheduler, handle) = (row.scheduler.clone(), room.handle.clone());
    step.changes.push(Change::RoomStarted { scheduler, room: row.id.clone(), handle });
    Ok(())
}

async fn end_lost(work: &Work, row: &RoomRecord, step: &mut Step) -> Result {
    let ending = Ending::Lost;
    // It stays in the table until its end is written: who is not in the table cannot be told from who is unknown.
    let view = work.engine.ports.table.room(&row.scheduler, &row.id).await?;
    let ended = Ended::by(&ending, work.now(), was_ready(view.as_ref()));
    step.history.push(format!("room {} {ending}", row.id));
    step.changes.extend(room_gone_events(&work.engine, &work.scheduler, row));
    step.changes.push(row.end(ended));
    Ok(())
}
