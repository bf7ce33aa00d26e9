//! Compares runtime and registry in both directions: rooms that run and are not wanted are stopped, and rooms that are
//! wanted and do not run have ended.
//!
//! The registry is read before and after the runtime is listed, and only rows that are equal both times are acted on,
//! because someone is working on whatever changed in between. Nothing is known about a region that cannot be reached or does
//! not answer: its rooms stay as they are, and other regions do not wait for it.

use std::collections::{BTreeMap, BTreeSet};

use maestro_core::operation::OperationId;
use maestro_core::room::{Ending, InstanceStatus, Region, RoomId};
use maestro_core::scheduler::RestartPolicy;
use maestro_core::time::Millis;

use crate::operations::{Step, StepError, Work};
use crate::ports::runtime::{Handle, RunningRoom};
use crate::ports::store::{Change, Ended, Intent, RoomRecord};
use crate::rooms::{recovery, stopping};

/// Listing a runtime costs; between two times the runtime's own watch tells what happens.
pub(crate) const EVERY: Millis = Millis::from_seconds(60);

/// Part of a health cycle: the changes and history of what was found. Empty if it is not time yet. What the room table
/// has lost is put back each time: rooms that are not in it are not heard.
pub(crate) async fn reconcile(work: &Work) -> Result<Step, StepError> {
    let mut step = Step::default();
    recovery::recall(&work.engine, &work.scheduler).await?;
    if !work.engine.reconciled.is_due(&work.scheduler.name, work.now(), EVERY) {
        return Ok(step);
    }
    let store = &work.engine.ports.store;
    let before = by_id(store.live_rooms(&work.scheduler.name).await?);
    let (listed, all_listed) = list(work).await;
    let after = by_id(store.live_rooms(&work.scheduler.name).await?);
    stop_unwanted(work, &listed, &before, &after, &mut step).await?;
    let settled: Vec<_> = after.values().filter(|row| before.get(&row.id) == Some(row)).collect();
    let unfinished = store.unfinished(&work.scheduler.name).await?;
    let is_unfinished = |id| unfinished.iter().any(|operation| operation.id == id);
    // Those of an operation that is still at it are started again by it.
    let is_made = |row: &&&RoomRecord| row.handle.is_some() || !is_unfinished(row.operation);
    let made: Vec<_> = settled.iter().filter(is_made).copied().collect();
    let all_asked = watch_again(work, &made, &listed).await?;
    step.reconciled = all_listed && all_asked;
    for row in settled {
        let Some(running) = listed.get(&row.region) else { continue };
        if let Some(room) = running.get(&row.id) {
            if row.handle.is_none() && !is_unfinished(row.operation) {
                record_start(row, room, &mut step);
            }
            let stopped = stop_again(work, row, is_unfinished).await;
            without_delay(work, &row.id, stopped)?;
        } else if row.handle.is_some() || !is_unfinished(row.operation) {
            end_lost(work, row, &mut step).await?;
        }
    }
    forget_ended(work, &before, &after).await?;
    Ok(step)
}

/// What runs of the scheduler, in those regions that answer.
type Listed = BTreeMap<Region, BTreeMap<RoomId, RunningRoom>>;

/// False: a region that can be reached did not answer.
async fn list(work: &Work) -> (Listed, bool) {
    let mut listed = BTreeMap::new();
    let mut all_listed = true;
    for (region, runtime) in work.engine.ports.runtimes.iter() {
        if !work.engine.regions.is_reachable(region) {
            continue;
        }
        match runtime.list_of(&work.scheduler.name).await {
            Ok(rooms) => {
                let by_id = rooms.into_iter().map(|room| (room.id.clone(), room)).collect();
                listed.insert(region.clone(), by_id);
            }
            Err(error) => {
                all_listed = false;
                tracing::warn!(%region, scheduler_name = %work.scheduler.name, %error, "rooms not listed");
            }
        }
    }
    (listed, all_listed)
}

/// What a runtime has seen of a room is lost with a worker that dies before it has written that down, and who was not
/// there does not hear it again: a room that is up, and says that it is ready, would count as pending. False: a region did
/// not answer.
async fn watch_again(work: &Work, rows: &[&RoomRecord], listed: &Listed) -> Result<bool, StepError> {
    let mut all_asked = true;
    let views = work.engine.ports.table.rooms(&work.scheduler.name).await?;
    let pending = views.iter().filter(|view| view.instance == InstanceStatus::Pending);
    let pending: BTreeSet<&RoomId> = pending.map(|view| &view.id).collect();
    for (region, running) in listed {
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

async fn stop_unwanted(
    work: &Work,
    listed: &Listed,
    before: &BTreeMap<RoomId, RoomRecord>,
    after: &BTreeMap<RoomId, RoomRecord>,
    step: &mut Step,
) -> Result<(), StepError> {
    for (region, rooms) in listed {
        for room in rooms.values() {
            let Some(why) = why_unwanted(work, region, room, before, after).await? else { continue };
            let grace = work.scheduler.recipe.spec.termination_grace_period;
            work.still_owner()?;
            let runtime = work.engine.runtime(region)?;
            let stopped = runtime.stop(&room.scheduler, &room.id, Some(&room.handle), grace).await;
            if without_delay(work, &room.id, stopped.map_err(StepError::from))? {
                step.history.push(format!("stopped room {} (pids {:?}): {why}", room.id, room.handle.pids));
            }
        }
    }
    Ok(())
}

/// A room that cannot be stopped now must not keep the fleet from everything else. True: it could.
fn without_delay(work: &Work, room: &RoomId, stopped: Result<(), StepError>) -> Result<bool, StepError> {
    match stopped {
        Ok(()) => Ok(true),
        Err(error @ (StepError::NotNow(_) | StepError::Failed(_))) => {
            let scheduler_name = work.scheduler.name.as_str();
            tracing::warn!(scheduler_name, room_id = %room, %error, "room could not be stopped, trying again");
            Ok(false)
        }
        Err(error @ StepError::Store(_)) => Err(error),
    }
}

async fn why_unwanted(
    work: &Work,
    region: &Region,
    room: &RunningRoom,
    before: &BTreeMap<RoomId, RoomRecord>,
    after: &BTreeMap<RoomId, RoomRecord>,
) -> Result<Option<&'static str>, StepError> {
    Ok(match (before.get(&room.id), after.get(&room.id)) {
        (None, None) => Some("the registry does not know it"),
        (Some(one), Some(other)) if one == other && one.region != *region => {
            Some("the registry wants it in another region")
        }
        (Some(one), Some(other)) if one == other && is_another(work, one, room).await? => {
            Some("the registry wants another instance")
        }
        _ => None,
    })
}

/// A room whose containers are started again when they end changes its processes and stays the same room.
async fn is_another(work: &Work, row: &RoomRecord, running: &RunningRoom) -> Result<bool, StepError> {
    let restarts = work.recipe_of(row.version).await?.spec.restart_policy != RestartPolicy::Never;
    let differs = row.handle.as_ref().is_some_and(|handle| !handle.is_of_same_instance(&running.handle));
    Ok(differs && !restarts)
}

/// A room that an operation asked to go, which has ended since: whoever kills it after its grace period may have
/// been forgotten with a restart.
async fn stop_again(
    work: &Work,
    row: &RoomRecord,
    is_unfinished: impl Fn(OperationId) -> bool,
) -> Result<(), StepError> {
    match &row.intent {
        Intent::Stop(stop) if !is_unfinished(stop.operation) => stopping::stop(work, row).await,
        Intent::Stop(_) | Intent::Run => Ok(()),
    }
}

/// Whoever started it could not write that down, and has ended since. Without its handle nobody can tell players where
/// it is.
fn record_start(row: &RoomRecord, room: &RunningRoom, step: &mut Step) {
    step.history.push(format!("room {} runs, and its start had not been recorded", row.id));
    let (scheduler, handle) = (row.scheduler.clone(), room.handle.clone());
    step.changes.push(Change::RoomStarted { scheduler, room: row.id.clone(), handle });
}

async fn end_lost(work: &Work, row: &RoomRecord, step: &mut Step) -> Result<(), StepError> {
    let ending = Ending::Lost;
    // It stays in the table until its end is written: who is not in the table cannot be told from who is unknown.
    let view = work.engine.ports.table.room(&row.scheduler, &row.id).await?;
    let ended = Ended {
        at: work.now(),
        how: ending.to_string(),
        cause: ending.cause(),
        // Of a room that was not heard of since a restart nobody knows: it is no failed start.
        was_ready: view.is_none_or(|view| view.was_ready || !view.known),
    };
    step.history.push(format!("room {} {ending}", row.id));
    step.changes.push(Change::EndRoom { scheduler: row.scheduler.clone(), room: row.id.clone(), ended });
    Ok(())
}

/// Rooms of the table that the registry does not know: their end was written, by this or another worker.
async fn forget_ended(
    work: &Work,
    before: &BTreeMap<RoomId, RoomRecord>,
    after: &BTreeMap<RoomId, RoomRecord>,
) -> Result<(), StepError> {
    let table = &work.engine.ports.table;
    for view in table.rooms(&work.scheduler.name).await? {
        if !before.contains_key(&view.id) && !after.contains_key(&view.id) {
            table.remove(&work.scheduler.name, &view.id).await?;
        }
    }
    Ok(())
}

fn by_id(rows: Vec<RoomRecord>) -> BTreeMap<RoomId, RoomRecord> {
    rows.into_iter().map(|row| (row.id.clone(), row)).collect()
}
