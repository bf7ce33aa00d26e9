//! storage_clean_up: deletes records past their retention: ended rooms with their logs, ended operations, dead letters, and
//! allocations that are over.

use async_trait::async_trait;
use futures_util::future::join_all;
use jiff::SignedDuration;
use maestro_core::room::{Region, RoomId};
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::{Millis, Timestamp};
use serde::{Deserialize, Serialize};

use crate::Engine;
use crate::ports::store::{Change, EndedRoom, EventFilter, EventPageRequest, ForgetAllocations};

use super::{Executor, Next, Result, Step, StepError, Work};

pub(super) struct StorageCleanUp;

/// Rooms that one step drops: each may have a directory of logs to delete.
const ROOMS_PER_STEP: usize = 200;
/// Of them, so many side by side: a disk that hangs must not keep the step for minutes.
const ROOMS_AT_ONCE: usize = 20;

/// Long enough that somebody looks at them after a weekend.
const DEAD_EVENTS_KEPT: Millis = Millis::from_seconds(7 * 24 * 3600);

/// Allocations that one step drops.
const ALLOCATIONS_PER_STEP: u32 = 10_000;

/// How far it has come: the last room that it looked at. Those that cannot be dropped now stay behind it.
#[derive(Debug, Serialize, Deserialize)]
struct Progress {
    ended_at_micros: i64,
    room: String,
}

#[async_trait]
impl Executor for StorageCleanUp {
    async fn step(&self, work: &Work) -> Result<Step> {
        let engine = &work.engine;
        let scheduler = &work.scheduler.name;
        let ended_before = before(work.now(), engine.settings.rooms_kept);
        let last = progress_of(work);
        let store = &engine.ports.store;
        let rooms = store.rooms_ended_before(scheduler, ended_before, last.as_ref(), ROOMS_PER_STEP).await?;
        let Some(last) = rooms.last() else {
            let before = before(work.now(), DEAD_EVENTS_KEPT);
            let changes = vec![
                forget_operations(engine, Some(scheduler.clone())),
                Change::ForgetDeadEvents { scheduler: scheduler.clone(), before },
                Change::ForgetAllocations(forget_allocations(engine, scheduler)),
            ];
            // Of allocations there may be more than one transaction should drop.
            if has_more_allocations(engine, scheduler).await? {
                return Ok(Step::again(changes));
            }
            return Ok(Step { changes, next: Next::Done { took_action: false }, ..Step::default() });
        };
        let progress = Progress { ended_at_micros: last.at.as_microsecond(), room: last.id.to_string() };
        let forgotten = forget_logs(work, &rooms).await;
        let mut step = Step { progress: serde_json::to_value(progress).ok(), ..Step::default() };
        if !forgotten.is_empty() {
            step.changes.push(Change::ForgetRooms { scheduler: scheduler.clone(), rooms: forgotten });
        }
        Ok(step)
    }
}

fn progress_of(work: &Work) -> Option<EndedRoom> {
    let Progress { ended_at_micros, room } = serde_json::from_value(work.operation.progress.clone()).ok()?;
    let at = Timestamp::from_microsecond(ended_at_micros).ok()?;
    // Its place in the order, which is all that is asked for, does not depend on the region.
    Some(EndedRoom { at, id: RoomId::new(&room), region: Region::default_region() })
}

/// Whether there is nothing that is kept long enough.
pub(crate) async fn nothing_to_clean_up(engine: &Engine, scheduler: &SchedulerName) -> Result<bool> {
    let (now, settings, store) = (engine.now(), &engine.settings, &engine.ports.store);
    let ended = store.rooms_ended_before(scheduler, before(now, settings.rooms_kept), None, 1).await?;
    let (ended_before, no_action_before) =
        (before(now, settings.operations_kept), before(now, settings.no_action_kept));
    let has_operations = store.has_operations_to_forget(scheduler, ended_before, no_action_before).await?;
    let dead = EventFilter { dead: Some(true), ..EventFilter::default() };
    let oldest = store.events(scheduler, &dead, EventPageRequest { page: 1, page_size: 1 }).await?;
    let dead_before = before(now, DEAD_EVENTS_KEPT);
    let has_events = oldest.events.iter().any(|event| event.dead_at.is_some_and(|at| at < dead_before));
    let old_allocations = store.allocations_to_forget(&forget_allocations(engine, scheduler)).await?;
    Ok(ended.is_empty() && !has_operations && !has_events && old_allocations == 0)
}

fn forget_allocations(engine: &Engine, scheduler: &SchedulerName) -> ForgetAllocations {
    let (now, settings) = (engine.now(), &engine.settings);
    ForgetAllocations {
        scheduler: scheduler.clone(),
        ended_before: before(now, settings.allocations_kept),
        requested_ended_before: before(now, settings.requested_allocations_kept),
        keep_max: settings.allocations_kept_max,
        allocations_max: ALLOCATIONS_PER_STEP,
    }
}

/// More than one step drops.
async fn has_more_allocations(engine: &Engine, scheduler: &SchedulerName) -> Result<bool> {
    let forget = forget_allocations(engine, scheduler);
    let old = engine.ports.store.allocations_to_forget(&forget).await?;
    Ok(old > forget.allocations_max)
}

/// Those that were recorded as a whole, of all schedulers.
pub(crate) fn forget_no_action(engine: &Engine) -> Change {
    Change::ForgetNoAction { before: before(engine.now(), engine.settings.no_action_kept) }
}

/// `None`: those of schedulers that are gone.
pub(crate) fn forget_operations(engine: &Engine, scheduler: Option<SchedulerName>) -> Change {
    let (now, settings) = (engine.now(), &engine.settings);
    Change::ForgetOperations {
        scheduler,
        ended_before: before(now, settings.operations_kept),
        no_action_before: before(now, settings.no_action_kept),
    }
}

/// Those whose logs are gone. What cannot be deleted stays for the next clean-up: housekeeping must not hold up a fleet.
async fn forget_logs(work: &Work, rooms: &[EndedRoom]) -> Vec<RoomId> {
    let mut forgotten = Vec::with_capacity(rooms.len());
    for batch in rooms.chunks(ROOMS_AT_ONCE) {
        let outcomes = join_all(batch.iter().map(|room| forget(work, room))).await;
        for (room, outcome) in batch.iter().zip(outcomes) {
            match outcome {
                Ok(()) => forgotten.push(room.id.clone()),
                Err(error) => {
                    let scheduler_name = work.scheduler.name.as_str();
                    tracing::debug!(scheduler_name, room_id = %room.id, %error, "logs stay for now");
                }
            }
        }
    }
    forgotten
}

/// Of a region that is not configured any more, nothing can be deleted.
async fn forget(work: &Work, room: &EndedRoom) -> Result {
    let EndedRoom { id, region, .. } = room;
    let Some(runtime) = work.engine.ports.runtimes.get(region) else {
        return Ok(());
    };
    match work.engine.regions.is_reachable(region) {
        true => Ok(runtime.forget(&work.scheduler.name, id).await?),
        false => Err(StepError::NotNow(format!("region {region} cannot be reached"))),
    }
}

fn before(now: Timestamp, span: Millis) -> Timestamp {
    let span = SignedDuration::from_millis(i64::try_from(span.0).unwrap_or(i64::MAX));
    now.checked_sub(span).unwrap_or(Timestamp::MIN)
}
