//! add_rooms: first the registry records which rooms are wanted, then the runtime is asked for them, batch by batch.
//!
//! If a person asks for rooms, it is all or nothing: one failure removes the others again, except those that players have
//! entered in the meantime. If the health controller or a panic asks, the operation keeps what it got: one bad room must not
//! undo 999.
//!
//! A panic adds no more rooms than `max` and the regions allow when it begins, and does not end before its rooms are ready.
//! Until then it holds the panic lock, so that the same need is not answered twice. After `panic.timeout` it ends with what
//! it has, so that the next panic need not wait for a runtime that does not answer.

use std::collections::BTreeMap;

use async_trait::async_trait;
use maestro_core::invariant::rooms_made;
use maestro_core::operation::{Operation, Origin};
use maestro_core::room::{Purpose, Region};
use maestro_core::scheduler::PanicScale;
use maestro_core::text::count_of;
use maestro_core::time::{Timestamp, after, age};
use serde::{Deserialize, Serialize};

use crate::ports::store::{Intent, RoomRecord};
use crate::rooms::starting::{self, Making};
use crate::rooms::stopping;

use super::fleet::fleet;
use super::{Executor, Result, Step, StepError, Work, placing};

pub(super) struct AddRooms;

/// What the add of a panic remembers.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Progress {
    /// What `max` and the regions left of what was asked for.
    amount: u32,
}

#[async_trait]
impl Executor for AddRooms {
    async fn step(&self, work: &Work) -> Result<Step> {
        if is_panic(work) && progress(&work.operation).is_none() {
            return clamp(work).await;
        }
        let rows = work.made_rooms().await?;
        work.engine
            .report(&work.scheduler.name, rooms_made(work.operation.id, amount(&work.operation), rows.len()));
        let unstarted: Vec<_> = rows.iter().filter(|row| is_unstarted(row)).cloned().collect();
        let late = is_panic(work) && work.now() >= deadline(work);
        if !unstarted.is_empty() {
            return match late {
                true => starting::give_up(work, &unstarted, &too_late(work)).await,
                false => starting::start(work, &unstarted).await,
            };
        }
        let amount = amount(&work.operation);
        let failed = rows.iter().filter(|row| has_failed(row)).count();
        if failed > 0 && work.operation.origin.is_person() {
            let why = first_failure(&rows);
            return Err(StepError::Failed(format!("{failed} of {} failed: {why}", count_of(amount, "room"))));
        }
        if rows.len() < amount as usize {
            if late {
                let why = format!("no more rooms are made: {}", too_late(work));
                return finish(work, &rows, failed, 0).map(|step| step.with_history(why));
            }
            return match make_more(work, &rows).await {
                // Whoever did not ask for all or nothing keeps what there is.
                Err(StepError::Failed(why)) if !work.operation.origin.is_person() && !rows.is_empty() => {
                    finish(work, &rows, failed, 0).map(|step| step.with_history(why))
                }
                outcome => outcome,
            };
        }
        let unready = if is_panic(work) { unready(work, &rows).await? } else { 0 };
        if unready > 0 && !late {
            return Ok(Step::park(
                format!("{} of a panic to be ready", count_of(unready, "room")),
                deadline(work),
            ));
        }
        finish(work, &rows, failed, unready)
    }

    async fn undo(&self, work: &Work) -> Result<Step> {
        let rows = work.made_rooms().await?;
        let reason = format!("rollback of add_rooms {}", work.operation.id);
        stopping::take_back(work, rows, &reason).await
    }

    async fn wait_is_over(&self, work: &Work) -> Result<bool> {
        if work.operation.rollback.is_some() {
            return stopping::all_gone(work).await;
        }
        let rows = work.made_rooms().await?;
        Ok(unready(work, &rows).await? == 0)
    }
}

/// How many rooms it is to make: what was asked for, or what `max` and the regions left of it.
pub(super) fn amount(operation: &Operation) -> u32 {
    let asked = || operation.definition.adds().unwrap_or(0);
    progress(operation).map_or_else(asked, |progress| progress.amount)
}

fn progress(operation: &Operation) -> Option<Progress> {
    serde_json::from_value(operation.progress.clone()).ok()
}

fn is_panic(work: &Work) -> bool {
    work.operation.origin == Origin::Panic
}

/// The first step of a panic: others may have added rooms since it was asked for, and `max` holds for all of them, as do
/// the caps of regions.
async fn clamp(work: &Work) -> Result<Step> {
    let asked = amount(&work.operation);
    let (scheduler, fleet) = fleet(&work.engine, &work.scheduler.name, Some(work.operation.id)).await?;
    let Some(autoscaling) = scheduler.autoscaling() else {
        return Ok(Step::done().with_history("no rooms are added: autoscaling has been turned off"));
    };
    let total = fleet.plan(&scheduler).seen.total;
    let by_max = autoscaling.max.map(|max| {
        let why =
            format!("there are {total} of at most {}, counting those being started", count_of(max, "room"));
        (max.saturating_sub(total), why)
    });
    let by_place = fleet.place_left(&scheduler).map(|left| {
        let why = fleet.places.why_left(left);
        (u32::try_from(left).unwrap_or(u32::MAX), why)
    });
    let tighter = by_max.into_iter().chain(by_place).min_by_key(|(left, _)| *left);
    let (amount, step) = match tighter {
        Some((0, why)) => return Ok(Step::done().with_history(format!("no rooms are added: {why}"))),
        Some((left, why)) if left < asked => (
            left,
            Step::default().with_history(format!("adding {left} of {}: {why}", count_of(asked, "room"))),
        ),
        Some(_) | None => (asked, Step::default()),
    };
    Ok(Step { progress: serde_json::to_value(Progress { amount }).ok(), ..step })
}

/// How many of its rooms may still become ready. Those that ended or are to go will not, whatever one waits for.
async fn unready(work: &Work, rows: &[RoomRecord]) -> Result<usize> {
    let mut unready = 0;
    for row in rows.iter().filter(|row| row.ended.is_none() && row.intent == Intent::Run) {
        let view = work.engine.ports.table.room(&row.scheduler, &row.id).await?;
        unready += usize::from(!view.is_some_and(|view| view.was_ready));
    }
    Ok(unready)
}

/// When the next panic need not wait for its rooms any more: counted from when it took the lock.
fn deadline(work: &Work) -> Timestamp {
    after(work.operation.created_at, rules(work).timeout)
}

fn too_late(work: &Work) -> String {
    format!("the panic is older than {}", rules(work).timeout)
}

fn rules(work: &Work) -> PanicScale {
    work.scheduler.autoscaling().and_then(|autoscaling| autoscaling.panic).unwrap_or_default()
}

async fn make_more(work: &Work, rows: &[RoomRecord]) -> Result<Step> {
    if work.operation.origin.is_person() {
        starting::all_settled(work, &*work.recipe_of(work.scheduler.version_to_make()).await?)?;
    }
    match placing::growth(work, amount(&work.operation)).await? {
        placing::Growth::Decided(step) => Ok(step),
        placing::Growth::Planned(regions) => intend(work, rows, &regions).await,
    }
}

/// Fails if the regions that they were planned for are closed by now.
async fn intend(work: &Work, rows: &[RoomRecord], regions: &BTreeMap<Region, u32>) -> Result<Step> {
    let version = work.scheduler.version_to_make();
    let recipe = work.recipe_of(version).await?;
    let places = work.engine.places(&recipe).await?;
    let mut open = regions.clone();
    open.retain(|region, _| places.closed(region).is_none());
    let closed: Vec<String> = regions.keys().filter_map(|region| places.closed(region)).collect();
    let amount = amount(&work.operation);
    let making = Making { version, recipe: &recipe, purpose: Purpose::Fleet, amount, regions: &open };
    match making.left(rows).is_empty() {
        true => Err(StepError::Failed(format!("no more rooms are made: {}", closed.join("; ")))),
        false => starting::intend(work, rows, &making).await,
    }
}

/// One that others asked to go meanwhile is not to be started any more.
fn is_unstarted(row: &RoomRecord) -> bool {
    row.handle.is_none() && row.ended.is_none() && row.intent == Intent::Run
}

/// Nor is it a failure.
fn has_failed(row: &RoomRecord) -> bool {
    row.handle.is_none() && row.intent == Intent::Run
}

fn first_failure(rows: &[RoomRecord]) -> String {
    let failure = |row: &RoomRecord| {
        let ended = row.ended.as_ref().filter(|_| has_failed(row))?;
        Some(format!("room {}: {}", row.id, ended.how))
    };
    rows.iter().find_map(failure).unwrap_or_default()
}

fn finish(work: &Work, rows: &[RoomRecord], failed: usize, unready: usize) -> Result<Step> {
    let added = rows.len() - failed;
    if added == 0 && failed > 0 {
        return Err(StepError::Failed(format!(
            "none of {} could be started: {}",
            count_of(failed, "room"),
            first_failure(rows)
        )));
    }
    let mut event = match failed {
        0 => format!("added {}", count_of(added, "room")),
        failed => format!("added {added} of {}, {failed} failed", count_of(amount(&work.operation), "room")),
    };
    let taken = rows.iter().filter(|row| row.handle.is_none() && !has_failed(row)).count();
    if taken > 0 {
        event += &format!("; {taken} of them were asked to go before they were started");
    }
    if unready > 0 {
        let waited = age(work.now(), work.operation.created_at);
        event += &format!("; {unready} of them are not ready after {waited}");
    }
    Ok(Step::done().with_history(event))
}
