//! Compares runtimes and registry once for all schedulers that want to know. Nothing is changed here: differences are
//! repaired by the scheduler's own next cycle (`reconciling`).
//!
//! Each region is listed once, however many schedulers there are. One comparison that began after everyone who waits for it
//! asked serves them all, and also those that have not asked yet.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

use maestro_core::operation::OperationId;
use maestro_core::room::{InstanceStatus, Region, RoomId};
use maestro_core::scheduler::SchedulerName;
use tokio::sync::Mutex;

use crate::operations::StepError;
use crate::ports::room_table::RoomView;
use crate::ports::runtime::RunningRoom;
use crate::ports::store::{Intent, RoomRecord};
use crate::{Engine, with_sources};

use super::reconciling::EVERY;

#[derive(Default)]
pub(crate) struct Comparisons {
    /// How often someone asked.
    asked: AtomicU64,
    last: Mutex<Compared>,
}

#[derive(Default)]
struct Compared {
    /// How many had asked when it began.
    covers: u64,
    /// `None`: not everything could be looked at.
    differing: Option<BTreeSet<SchedulerName>>,
}

type Rows = BTreeMap<RoomId, RoomRecord>;
type Listed = BTreeMap<Region, BTreeMap<RoomId, RunningRoom>>;

/// Whether a cycle of this scheduler would find nothing to put right. True without a look if there was one lately; false
/// also if it cannot be told.
pub(crate) async fn nothing_differs(engine: &Engine, scheduler: &SchedulerName) -> bool {
    if !engine.reconciled.is_due(scheduler, engine.now(), EVERY) {
        return true;
    }
    let comparisons = &engine.comparisons;
    let ticket = comparisons.asked.fetch_add(1, Ordering::Relaxed) + 1;
    let mut last = comparisons.last.lock().await;
    if last.covers < ticket {
        let covers = comparisons.asked.load(Ordering::Relaxed);
        let (schedulers, epoch) = engine.reconciled.all();
        let differing = match compare(engine, schedulers).await {
            Ok(differing) => differing,
            Err(error) => {
                tracing::warn!(error = with_sources(&error), "registry and runtimes not compared");
                None
            }
        };
        if let Some(differing) = &differing {
            engine.reconciled.all_done_but(differing, epoch, engine.now());
        }
        *last = Compared { covers, differing };
    }
    last.differing.as_ref().is_some_and(|differing| !differing.contains(scheduler))
}

async fn compare(
    engine: &Engine,
    schedulers: Vec<SchedulerName>,
) -> Result<Option<BTreeSet<SchedulerName>>, StepError> {
    let store = &engine.ports.store;
    let before = by_id(store.all_live_rooms().await?);
    let Some(listed) = list(engine).await else {
        return Ok(None);
    };
    let after = by_id(store.all_live_rooms().await?);
    let mut differing = running_unwanted(&listed, &before, &after);
    let settled = after.values().filter(|row| before.get(&row.id) == Some(*row));
    // Rows that are as they should be while this operation is at work, and only then.
    let mut of_operations: BTreeMap<&SchedulerName, BTreeSet<OperationId>> = BTreeMap::new();
    for row in settled {
        let Some(running) = listed.get(&row.region) else { continue };
        match verdict(row, running.contains_key(&row.id)) {
            Verdict::Agrees => {}
            Verdict::Differs => {
                differing.insert(row.scheduler.clone());
            }
            Verdict::AgreesWhile(operation) => {
                of_operations.entry(&row.scheduler).or_default().insert(operation);
            }
        }
    }
    for (scheduler, operations) in of_operations {
        let unfinished = store.unfinished(scheduler).await?;
        let unfinished: BTreeSet<OperationId> = unfinished.iter().map(|operation| operation.id).collect();
        if !operations.is_subset(&unfinished) {
            differing.insert(scheduler.clone());
        }
    }
    add_those_whose_table_differs(engine, schedulers, (&before, &after), &mut differing).await?;
    Ok(Some(differing))
}

/// `None`: a region that can be reached did not answer.
async fn list(engine: &Engine) -> Option<Listed> {
    let mut listed = BTreeMap::new();
    for (region, runtime) in engine.ports.runtimes.iter() {
        if !engine.regions.is_reachable(region) {
            continue;
        }
        match runtime.list().await {
            Ok(rooms) => {
                let rooms = rooms.into_iter().map(|room| (room.id.clone(), room)).collect();
                listed.insert(region.clone(), rooms);
            }
            Err(error) => {
                tracing::warn!(%region, %error, "rooms not listed");
                return None;
            }
        }
    }
    Some(listed)
}

/// The schedulers of rooms that run, and that the registry does not know so.
fn running_unwanted(listed: &Listed, before: &Rows, after: &Rows) -> BTreeSet<SchedulerName> {
    let mut differing = BTreeSet::new();
    for (region, rooms) in listed {
        for room in rooms.values() {
            let is_unwanted = match (before.get(&room.id), after.get(&room.id)) {
                (None, None) => true,
                (Some(one), Some(other)) if one == other => {
                    let handle = one.handle.as_ref();
                    one.region != *region
                        || one.scheduler != room.scheduler
                        || handle.is_some_and(|handle| !handle.is_of_same_instance(&room.handle))
                }
                // It is being worked on.
                (Some(_), Some(_) | None) | (None, Some(_)) => false,
            };
            if is_unwanted {
                differing.insert(room.scheduler.clone());
            }
        }
    }
    differing
}

enum Verdict {
    Agrees,
    Differs,
    AgreesWhile(OperationId),
}

fn verdict(row: &RoomRecord, runs: bool) -> Verdict {
    match (&row.intent, &row.handle, runs) {
        (_, None, false) => Verdict::AgreesWhile(row.operation),
        (_, None, true) | (_, Some(_), false) => Verdict::Differs,
        (Intent::Stop(stop), Some(_), true) => Verdict::AgreesWhile(stop.operation),
        (Intent::Run, Some(_), true) => Verdict::Agrees,
    }
}

/// A room that was not seen to come up, and one that has ended and is still in the table.
async fn add_those_whose_table_differs(
    engine: &Engine,
    schedulers: Vec<SchedulerName>,
    (before, after): (&Rows, &Rows),
    differing: &mut BTreeSet<SchedulerName>,
) -> Result<(), StepError> {
    for scheduler in schedulers {
        let views = engine.ports.table.rooms(&scheduler).await?;
        let is_registered = |room: &RoomId| before.contains_key(room) || after.contains_key(room);
        let differs = |view: &RoomView| view.instance == InstanceStatus::Pending || !is_registered(&view.id);
        if views.iter().any(differs) {
            differing.insert(scheduler);
        }
    }
    Ok(())
}

fn by_id(rows: Vec<RoomRecord>) -> Rows {
    rows.into_iter().map(|row| (row.id.clone(), row)).collect()
}
