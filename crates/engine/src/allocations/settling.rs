//! Settling holds: those that a ping has ended, those that have expired in rooms that do not ping any more, and claims
//! whose row may or may not be there because the process that made them is gone.
//!
//! The end is marked in the table, then written to the row, and then the slot is free. Every process may do that, and it
//! may be repeated.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use maestro_core::allocation::{HoldEnd, HoldStage};
use maestro_core::scheduler::SchedulerName;

use super::AllocationView;
use crate::operations;
use crate::ports::room_table::{DueHold, HoldKey, OrIfLost};
use crate::ports::store::{AllocationRecord, Change, Refusal, Transaction};
use crate::{Engine, Result, with_sources};

/// Holds that are settled together.
const BATCH_MAX: usize = 500;
/// Holds are looked for this often without being notified: those that expire, and those of other processes.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Ends that come within this time are written together.
const ENDS_DEBOUNCE: Duration = Duration::from_millis(5);

pub(crate) async fn watch(engine: Arc<Engine>) {
    loop {
        tokio::select! {
            biased;
            () = engine.allocations.ended.notified() => tokio::time::sleep(ENDS_DEBOUNCE).await,
            () = tokio::time::sleep(CHECK_INTERVAL) => {}
        }
        return_abandoned(&engine).await;
        loop {
            match settle(&engine).await {
                // There may be more.
                Ok(BATCH_MAX) => {}
                Ok(_) => break,
                Err(error) => {
                    tracing::warn!(
                        error = with_sources(&error),
                        "holds that are over could not be settled; tried again"
                    );
                    tokio::time::sleep(CHECK_INTERVAL).await;
                    break;
                }
            }
        }
    }
}

/// Marks the holds of callers that hung up as returned. Their rows are ended like all others, many in one commit.
async fn return_abandoned(engine: &Engine) {
    let abandoned = std::mem::take(&mut *engine.allocations.abandoned.lock());
    for allocation in abandoned {
        let AllocationView { scheduler, id, .. } = &allocation;
        if let Err(error) = mark_returned(engine, &allocation).await {
            tracing::warn!(scheduler_name = %scheduler, allocation_id = %id, error = with_sources(&error), "the room of a caller that hung up stays held");
        }
    }
}

async fn mark_returned(engine: &Engine, allocation: &AllocationView) -> Result {
    let (table, AllocationView { scheduler, room, id, .. }) = (&engine.ports.table, allocation);
    let holds = table.holds_of(scheduler, room).await?;
    if let Some(hold) = holds.iter().find(|hold| hold.allocation == *id) {
        let (scheduler, room) = (scheduler.clone(), room.clone());
        table.mark(&HoldKey { scheduler, room, number: hold.number }, HoldEnd::Returned).await?;
    }
    Ok(())
}

/// Makes the holds in the table and the open rows of a scheduler equal. Usually they are; not after a reply was lost, or a
/// part of the table.
///
/// The holds are read first: a row that was written and ended meanwhile is not taken for one whose hold is missing.
pub(crate) async fn reconcile(engine: &Engine, scheduler: &SchedulerName) -> operations::Result {
    let table = &engine.ports.table;
    let holds = table.holds(scheduler).await?;
    let rows = engine.ports.store.open_allocations(Some(scheduler)).await?;
    let open: BTreeSet<HoldKey> = rows.iter().map(AllocationRecord::key).collect();
    if are_equal(&holds, &open) {
        return Ok(());
    }
    let held: BTreeSet<&HoldKey> = holds.iter().map(|due| &due.key).collect();
    for row in rows.iter().filter(|row| !held.contains(&row.key())) {
        tracing::warn!(scheduler_name = %scheduler, room_id = %row.room, allocation_id = %row.id, "the room table has lost a hold");
        table.restore(scheduler, &row.room, row.hold()).await?;
    }
    let over: Vec<HoldKey> =
        holds.iter().filter(|due| is_over(due, &open)).map(|due| due.key.clone()).collect();
    table.release(&over).await?;
    Ok(())
}

/// Whether the table holds what the rows say. A hold that is about to get its row, or to be released, does no harm.
pub(crate) fn are_equal(holds: &[DueHold], open: &BTreeSet<HoldKey>) -> bool {
    let held: BTreeSet<&HoldKey> = holds.iter().map(|due| &due.key).collect();
    open.iter().all(|key| held.contains(key)) && !holds.iter().any(|due| is_over(due, open))
}

/// A provisional one may be about to get its row.
fn is_over(due: &DueHold, open: &BTreeSet<HoldKey>) -> bool {
    !matches!(due.hold.stage, HoldStage::Provisional { .. }) && !open.contains(&due.key)
}

/// What is left to do in the table after the store has accepted or refused the end of a hold.
enum TableChange {
    Release(HoldKey),
    Confirm(HoldKey),
    Nothing,
}

/// How many were due.
async fn settle(engine: &Engine) -> Result<usize> {
    let table = &engine.ports.table;
    let (now, ping_timeout) = (engine.now(), engine.settings.room_ping_timeout);
    let due = table.due_holds(now, ping_timeout, BATCH_MAX).await?;
    if due.is_empty() {
        return Ok(0);
    }
    let count = due.len();
    let mut writes = Vec::with_capacity(count);
    let mut holds = Vec::with_capacity(count);
    for due in due {
        if let Some(change) = end_of(engine, &due).await? {
            writes.push(Transaction::new("settle hold", &due.key.scheduler, vec![change]));
            holds.push(due);
        }
    }
    let outcomes = engine.commit_each(writes).await?;
    let (mut released, mut confirmed) = (Vec::new(), Vec::new());
    for (due, outcome) in holds.into_iter().zip(outcomes) {
        match table_change(due, outcome) {
            TableChange::Release(key) => released.push(key),
            TableChange::Confirm(key) => confirmed.push(key),
            TableChange::Nothing => {}
        }
    }
    table.confirm(&confirmed).await?;
    table.release(&released).await?;
    for key in &released {
        engine.ports.wake.room_changed(key.scheduler.as_str());
    }
    if !released.is_empty() {
        engine.allocations.room_freed();
    }
    Ok(count)
}

/// `None`: the hold has been settled elsewhere.
async fn end_of(engine: &Engine, due: &DueHold) -> Result<Option<Change>> {
    let DueHold { key, hold } = due;
    let HoldKey { scheduler, room, number } = key;
    let end = match hold.stage {
        HoldStage::Provisional { .. } => {
            let (scheduler, room) = (scheduler.clone(), room.clone());
            let allocation = hold.allocation;
            return Ok(Some(Change::SpendClaim { scheduler, room, number: *number, allocation }));
        }
        HoldStage::Firm => engine.ports.table.mark(key, HoldEnd::Expired).await.or_if_lost(None)?,
        HoldStage::Marked(end) => Some(end),
    };
    Ok(end.map(|end| Change::EndAllocation {
        scheduler: scheduler.clone(),
        allocation: hold.allocation,
        state: end.into(),
        cause: String::new(),
        at: engine.now(),
    }))
}

fn table_change(due: DueHold, outcome: Result<(), Refusal>) -> TableChange {
    match outcome {
        Ok(()) => TableChange::Release(due.key),
        // Its row is there: the process that wrote it died before it made the hold firm.
        Err(Refusal::AllocationExists(_)) => TableChange::Confirm(due.key),
        // Written before; or gone with its scheduler.
        Err(
            Refusal::AllocationOver { .. } | Refusal::AllocationNotFound(_) | Refusal::SchedulerNotFound(_),
        ) => TableChange::Release(due.key),
        Err(refusal) => {
            tracing::warn!(scheduler_name = %due.key.scheduler, room_id = %due.key.room, %refusal, "a hold could not be settled");
            TableChange::Nothing
        }
    }
}
