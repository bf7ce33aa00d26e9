//! Compares runtimes and registry once for all schedulers that want to know. Nothing is changed here: differences are
//! repaired by the scheduler's own next cycle (`reconciling`).
//!
//! Each region is listed once, however many schedulers there are. One comparison that began after everyone who waits for it
//! asked serves them all, and also those that have not asked yet.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

use maestro_core::operation::OperationId;
use maestro_core::room::InstanceStatus;
use maestro_core::scheduler::SchedulerName;
use tokio::sync::Mutex;

use crate::allocations::settling;
use crate::operations::Result;
use crate::ports::room_table::{HoldKey, RoomView, TableError};
use crate::{Engine, with_sources};

use super::census::Census;
use super::reconciling;

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

/// Whether a cycle of this scheduler would find nothing to put right. True without a look if there was one lately; false
/// also if it cannot be told.
pub(crate) async fn nothing_differs(engine: &Engine, scheduler: &SchedulerName) -> bool {
    if !reconciling::is_due(engine, scheduler, false) {
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

/// The schedulers whose next cycle has something to put right; `None`: not all regions could be looked at.
async fn compare(engine: &Engine, schedulers: Vec<SchedulerName>) -> Result<Option<BTreeSet<SchedulerName>>> {
    let census = Census::take(engine, None).await?;
    if !census.is_complete {
        return Ok(None);
    }
    let mut differing: BTreeSet<_> = census.unwanted().map(|(_, room, _)| room.scheduler.clone()).collect();
    // Rows that are as they should be while these operations are at work, and only then.
    let mut of_operations: BTreeMap<&SchedulerName, BTreeSet<OperationId>> = BTreeMap::new();
    for (row, _, unless) in census.faults() {
        match unless {
            None => drop(differing.insert(row.scheduler.clone())),
            Some(operation) => drop(of_operations.entry(&row.scheduler).or_default().insert(operation)),
        }
    }
    for (scheduler, operations) in of_operations {
        let unfinished = engine.ports.store.unfinished(scheduler).await?;
        let unfinished: BTreeSet<OperationId> = unfinished.iter().map(|operation| operation.id).collect();
        if !operations.is_subset(&unfinished) {
            differing.insert(scheduler.clone());
        }
    }
    let open = open_holds(engine).await?;
    // A room that was not seen to come up, or that has ended and is still in the table.
    let differs =
        |view: &RoomView| view.instance == InstanceStatus::Pending || !census.is_registered(&view.id);
    for scheduler in schedulers {
        let none = BTreeSet::new();
        let open = open.get(&scheduler).unwrap_or(&none);
        let differs = match table_differs(engine, &scheduler, open, differs).await {
            // Its own cycle puts that right as well.
            Err(TableError::Lost(_)) => true,
            looked => looked?,
        };
        if differs {
            differing.insert(scheduler);
        }
    }
    Ok(Some(differing))
}

async fn table_differs(
    engine: &Engine,
    scheduler: &SchedulerName,
    open: &BTreeSet<HoldKey>,
    differs: impl Fn(&RoomView) -> bool,
) -> Result<bool, TableError> {
    let table = &engine.ports.table;
    let is_held = settling::are_equal(&table.holds(scheduler).await?, open);
    Ok(!is_held || table.rooms(scheduler).await?.iter().any(differs))
}

/// What the room table should have of allocations, by scheduler.
async fn open_holds(engine: &Engine) -> Result<BTreeMap<SchedulerName, BTreeSet<HoldKey>>> {
    let mut open: BTreeMap<SchedulerName, BTreeSet<HoldKey>> = BTreeMap::new();
    for row in engine.ports.store.open_allocations(None).await? {
        open.entry(row.scheduler.clone()).or_default().insert(row.key());
    }
    Ok(open)
}
