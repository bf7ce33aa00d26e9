//! storage_clean_up: drops what is kept long enough: ended rooms with their logs, and ended operations.

use async_trait::async_trait;
use jiff::SignedDuration;
use maestro_core::room::RoomId;
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::{Millis, Timestamp};

use crate::Engine;
use crate::ports::store::Change;

use super::{Executor, Next, Step, StepError, Work};

pub(super) struct StorageCleanUp;

/// Rooms that one step drops: each may have a directory of logs to delete.
const ROOMS_PER_STEP: usize = 200;

#[async_trait]
impl Executor for StorageCleanUp {
    async fn step(&self, work: &Work) -> Result<Step, StepError> {
        let engine = &work.engine;
        let scheduler = &work.scheduler.name;
        let now = work.now();
        let settings = &engine.settings;
        let store = &engine.ports.store;
        let rooms =
            store.rooms_ended_before(scheduler, before(now, settings.rooms_kept), ROOMS_PER_STEP).await?;
        let rooms = forget_logs(work, rooms).await;
        if !rooms.is_empty() {
            let change = Change::ForgetRooms { scheduler: scheduler.clone(), rooms };
            return Ok(Step::again(vec![change]));
        }
        let changes = vec![forget_operations(engine, Some(scheduler.clone()))];
        Ok(Step { changes, next: Next::Done { took_action: false }, ..Step::default() })
    }
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
async fn forget_logs(work: &Work, rooms: Vec<RoomId>) -> Vec<RoomId> {
    let mut forgotten = Vec::with_capacity(rooms.len());
    for room in rooms {
        match forget(work, &room).await {
            Ok(()) => forgotten.push(room),
            Err(error) => {
                let scheduler_name = work.scheduler.name.as_str();
                tracing::warn!(scheduler_name, room_id = %room, %error, "logs stay for now");
            }
        }
    }
    forgotten
}

/// Of a region that is not configured any more, nothing can be deleted.
async fn forget(work: &Work, room: &RoomId) -> Result<(), StepError> {
    let scheduler = &work.scheduler.name;
    let row = work.engine.ports.store.room(scheduler, room).await?;
    let Some((region, runtime)) = row.and_then(|row| work.engine.ports.runtimes.get_key_value(&row.region))
    else {
        return Ok(());
    };
    match work.engine.regions.is_reachable(region) {
        true => Ok(runtime.forget(scheduler, room).await?),
        false => Err(StepError::NotNow(format!("region {region} cannot be reached"))),
    }
}

fn before(now: Timestamp, span: Millis) -> Timestamp {
    let span = SignedDuration::from_millis(i64::try_from(span.0).unwrap_or(i64::MAX));
    now.checked_sub(span).unwrap_or(Timestamp::MIN)
}
