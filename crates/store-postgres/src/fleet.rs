//! What a health cycle needs of a scheduler, in one go.

use maestro_core::scheduler::SchedulerName;
use maestro_engine::ports::store::FleetRecord;

use crate::failure::Result;
use crate::recipes::RecipeCache;
use crate::session::Session;
use crate::{locks, operation_rows, room_rows, schedulers};

/// All questions are sent together with the beginning of the snapshot that answers them.
pub(crate) async fn read(
    session: &Session,
    recipes: &RecipeCache,
    scheduler: &SchedulerName,
    ended_max: usize,
) -> Result<Option<FleetRecord>> {
    let [held, waiters] = locks::of(scheduler);
    let questions = [
        schedulers::one(scheduler),
        operation_rows::unfinished_without_history(scheduler),
        held,
        waiters,
        room_rows::live(scheduler),
        room_rows::ended(scheduler, ended_max),
    ];
    let answers = session.begin_snapshot(&questions).await?;
    session.roll_back().await;
    let [record, unfinished, held, waiters, live, ended] = &answers[..] else { return Ok(None) };
    let Some(scheduler) = schedulers::read_one(recipes, &record.rows)? else { return Ok(None) };
    Ok(Some(FleetRecord {
        scheduler,
        unfinished: operation_rows::read_queue(&unfinished.rows)?,
        locks: locks::read(held, waiters)?,
        live: room_rows::read(&live.rows)?,
        ended: room_rows::read(&ended.rows)?,
    }))
}
