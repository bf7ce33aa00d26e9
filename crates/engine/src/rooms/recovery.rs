//! What happens at a start, after the room table was lost, and when a region comes back. The rooms of the registry are put
//! into the room table again, as rooms that have not pinged yet. The rooms of the region are watched again, and rooms that
//! nobody wants are stopped.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::try_join_all;
use maestro_core::allocation::Hold;
use maestro_core::region::Region;
use maestro_core::room::{InstanceStatus, RoomId};
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::Timestamp;

use crate::engine::Parts;
use crate::operations;
use crate::ports::Runtime;
use crate::ports::room_table::{NewRoom, RoomView, TableError};
use crate::ports::runtime::RunningRoom;
use crate::ports::store::{Intent, RoomRecord, SchedulerRecord, SchedulerState, StoreError};
use crate::{Engine, Error, Result};

use super::leftovers;

/// A table beyond a network takes these together; more of them would keep pings waiting.
const INSERTS_AT_ONCE: usize = 64;
/// So many schedulers are tried before a region counts as one where no place can be made.
const PLACES_TRIED: usize = 3;

/// Fills the room table from the registry, whatever can be reached. What it does not know, or has lost, is in it then.
pub(crate) async fn recover(engine: &Engine) -> Result {
    let (store, table) = (&engine.ports.store, &engine.ports.table);
    let names = store.scheduler_names().await?;
    let mut lost = Vec::new();
    for name in &names {
        if table.begin_rebuild(name).await? {
            lost.push(name);
        }
    }
    let schedulers = store.schedulers().await?;
    let schedulers: BTreeMap<_, _> = schedulers.iter().map(|record| (&record.name, record)).collect();
    let rows = store.all_live_rooms().await?;
    let holds = open_holds(engine, None).await?;
    let belongs = |row: &&RoomRecord| has_been_up(row) || lost.contains(&&row.scheduler);
    insert(engine, rows.iter().filter(belongs), holds, |name| schedulers.get(name).copied()).await?;
    for name in lost {
        match table.end_rebuild(name).await {
            // Its owner begins anew.
            Err(TableError::Lost(_)) => {
                tracing::warn!(scheduler_name = %name, "the room table was lost again while it was rebuilt");
            }
            ended => ended?,
        }
    }
    tracing::info!(schedulers = names.len(), rooms = rows.len(), "room table rebuilt from the registry");
    Ok(())
}

/// Puts the rooms of a scheduler that the room table has lost into it again, as rooms that have not pinged yet, with their
/// holds. What happened to rooms meanwhile is found by the next comparison. `still_owner` is asked before the rooms count
/// again: since they were inserted, nobody could hear them, and who was suspended for long must not say that they are
/// silent. False: it was not lost.
pub(crate) async fn rebuild(
    engine: &Engine,
    scheduler: &SchedulerName,
    still_owner: impl Fn() -> operations::Result,
) -> operations::Result<bool> {
    let (store, table) = (&engine.ports.store, &engine.ports.table);
    still_owner()?;
    if !table.begin_rebuild(scheduler).await? {
        return Ok(false);
    }
    let record = store.scheduler(scheduler).await?;
    let rows = store.live_rooms(scheduler).await?;
    let holds = open_holds(engine, Some(scheduler)).await?;
    let rooms = rows.len();
    insert(engine, rows.iter(), holds, |_| record.as_ref()).await?;
    engine.reconciled.forget_one(scheduler);
    still_owner()?;
    table.end_rebuild(scheduler).await?;
    tracing::info!(scheduler_name = %scheduler, rooms, "rooms put into the room table");
    Ok(true)
}

/// Takes up a region that answers, for the first time or again. Its schedulers have a place there, the runtime watches
/// what still runs, and rooms of schedulers that do not exist are stopped. Everything else that is not as it should be
/// is found by the next health cycles, which leave a trace of what they do.
///
/// May be repeated: if it fails half way, it is.
pub(crate) async fn adopt(
    engine: &Engine,
    parts: Parts,
    region: &Region,
    runtime: &Arc<dyn Runtime>,
) -> Result {
    if !parts.needs_runtimes() {
        return Ok(());
    }
    let mut schedulers = engine.ports.store.schedulers().await?;
    schedulers.retain(|record| record.state != SchedulerState::Deleting);
    // Some may have been created while it was away.
    let mut failures = 0;
    for (made, record) in schedulers.iter().enumerate() {
        if let Err(error) = runtime.create_scheduler(&record.name).await {
            failures += 1;
            // It is made again for the first room that is started there. But where none can be made, nothing can be done.
            if failures > made && failures >= PLACES_TRIED {
                return Err(error.into());
            }
            tracing::warn!(%region, scheduler_name = %record.name, %error, "no place for its rooms");
        }
    }
    if failures > 0 && failures == schedulers.len() {
        let what = format!("no place can be made in region {region}");
        return Err(Error::Unavailable { what, source: None });
    }
    if parts.observes(&**runtime) {
        let rows = engine.ports.store.all_live_rooms().await?;
        let here = rows.iter().filter(|row| row.region == *region);
        runtime.adopt(here.filter_map(running).collect()).await?;
    }
    if parts.watcher {
        leftovers::stop(engine, &**runtime).await?;
    }
    Ok(())
}

/// Rooms of a scheduler that another worker owned before: where only who started them learns what happens to them, nobody
/// does if that worker is gone. What is missed is found by the comparison of registry and runtime.
pub(crate) async fn adopt_from_others(engine: &Engine, scheduler: &SchedulerName) -> Result {
    let observed =
        engine.ports.runtimes.iter().filter(|(region, runtime)| {
            runtime.is_observed_by_starter() && engine.regions.is_reachable(region)
        });
    for (region, runtime) in observed {
        let rows = engine.ports.store.live_rooms(scheduler).await?;
        let here = rows.iter().filter(|row| row.region == *region);
        runtime.adopt(here.filter_map(running).collect()).await?;
    }
    Ok(())
}

/// Rooms that run and that the table does not know: it was lost since. Until they are in it again, their pings are
/// refused. Returns those that it knows.
pub(crate) async fn recall(
    engine: &Engine,
    scheduler: &SchedulerRecord,
) -> operations::Result<Vec<RoomView>> {
    let views = engine.ports.table.rooms(&scheduler.name).await?;
    let known: BTreeSet<_> = views.iter().map(|view| &view.id).collect();
    let rows = engine.ports.store.live_rooms(&scheduler.name).await?;
    let missing: Vec<_> = rows.iter().filter(|row| has_been_up(row) && !known.contains(&row.id)).collect();
    if missing.is_empty() {
        return Ok(views);
    }
    for row in &missing {
        tracing::warn!(scheduler_name = %scheduler.name, room_id = %row.id, "the room table has lost a room");
    }
    let holds = open_holds(engine, Some(&scheduler.name)).await?;
    insert(engine, missing.into_iter(), holds, |_| Some(scheduler)).await?;
    Ok(views)
}

/// Rooms that have not pinged yet, as far as the table knows. If it was lost, those are among them whose start nobody wrote
/// down: they may run and have players, and who is not in the table counts as never started.
async fn insert<'a>(
    engine: &Engine,
    rows: impl Iterator<Item = &'a RoomRecord>,
    mut holds: BTreeMap<RoomId, Vec<Hold>>,
    record_of: impl Fn(&SchedulerName) -> Option<&'a SchedulerRecord>,
) -> Result<(), TableError> {
    let mut rooms = rows.map(|row| {
        let holds = holds.remove(&row.id).unwrap_or_default();
        unheard_of(row, record_of(&row.scheduler), holds, engine.now())
    });
    loop {
        let batch: Vec<_> = rooms.by_ref().take(INSERTS_AT_ONCE).collect();
        if batch.is_empty() {
            return Ok(());
        }
        try_join_all(batch.into_iter().map(|room| engine.ports.table.insert(room))).await?;
    }
}

/// Other rows belong to an operation that is about to start their rooms. One whose room is held was started, and that could
/// not be written down: without a place in the table its hold would never end.
fn has_been_up(row: &RoomRecord) -> bool {
    row.handle.is_some() || row.holds > 0
}

/// The holds of all allocations that are open, by room.
async fn open_holds(
    engine: &Engine,
    scheduler: Option<&SchedulerName>,
) -> Result<BTreeMap<RoomId, Vec<Hold>>, StoreError> {
    let mut holds: BTreeMap<RoomId, Vec<Hold>> = BTreeMap::new();
    for allocation in engine.ports.store.open_allocations(scheduler).await? {
        holds.entry(allocation.room.clone()).or_default().push(allocation.hold());
    }
    Ok(holds)
}

fn running(row: &RoomRecord) -> Option<RunningRoom> {
    let handle = row.handle.clone()?;
    Some(RunningRoom { id: row.id.clone(), scheduler: row.scheduler.clone(), handle })
}

fn unheard_of(
    row: &RoomRecord,
    scheduler: Option<&SchedulerRecord>,
    holds: Vec<Hold>,
    now: Timestamp,
) -> NewRoom {
    let matches_max = scheduler.map_or(1, |record| record.recipe.match_allocation.max_matches);
    let instance = match row.intent {
        Intent::Run if has_been_up(row) => InstanceStatus::Ready,
        Intent::Run => InstanceStatus::Pending,
        Intent::Stop(_) => InstanceStatus::Terminating,
    };
    NewRoom { instance, known: false, holds, ..NewRoom::starting(row, matches_max, now) }
}
