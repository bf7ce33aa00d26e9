//! What the health controller makes of a rollout from cycle to cycle: it goes on, ends, or fails. What follows from that
//! is `maestro_core::rollout::transition`.

use maestro_core::operation::{Definition, Operation};
use maestro_core::rollout::{RolloutEvent, RolloutFacts, RolloutRecord, Verdict, judge};
use maestro_core::time::Timestamp;

use crate::ports::store::SchedulerRecord;
use crate::rooms::log_tail::{in_words, log_tail};

use super::fleet::FleetState;
use super::planned_cycle::PlannedCycle;
use super::{Result, Step, Work};

/// Carries out what the rollout has come to. True: to an end, one way or another. `scheduler` is what holds after that,
/// so that the same cycle replaces nothing more.
pub(super) async fn conclude(
    work: &Work,
    planned: &PlannedCycle,
    scheduler: &mut SchedulerRecord,
    step: &mut Step,
) -> Result<bool> {
    let Some(rollout) = &scheduler.rollout else { return Ok(false) };
    let why;
    let event = match &planned.verdict {
        Verdict::GoesOn => return Ok(false),
        Verdict::Finished => RolloutEvent::Finished,
        Verdict::SwitchBackLost => RolloutEvent::SwitchBackLost,
        Verdict::Failed(failure) => {
            why = format!("{failure}{}", latest_failure(work, &planned.fleet, rollout).await);
            RolloutEvent::Failed(&why, scheduler.recipe.rollout().on_failure)
        }
    };
    let next = work.engine.rollout_write(scheduler, event, &work.locks)?;
    step.changes.extend(next.changes);
    step.history.extend(next.history);
    scheduler.rollout = next.rollout;
    Ok(true)
}

/// How the last of its rooms failed, and what that room wrote last.
async fn latest_failure(work: &Work, fleet: &FleetState, rollout: &RolloutRecord) -> String {
    let Some((room, ended)) = fleet.latest_failed_room(rollout.to) else {
        return String::new();
    };
    let lines = log_tail(&work.engine, room).await;
    format!("; the last was room {}: {}{}", room.id, ended.how, in_words(&lines))
}

/// What the rollout has come to; that it goes on, if there is none.
pub(super) fn verdict(scheduler: &SchedulerRecord, fleet: &FleetState, now: Timestamp) -> Verdict {
    let Some(rollout) = &scheduler.rollout else {
        return Verdict::GoesOn;
    };
    let switches_back = |operation: &Operation| {
        let from = Some(rollout.to);
        let goes_on = operation.rollback.is_none();
        goes_on
            && matches!(&operation.definition, Definition::SwitchVersion(switch) if switch.only_from == from)
    };
    let facts = RolloutFacts {
        now,
        rules: scheduler.recipe.rollout(),
        rooms: &fleet.facts,
        succeeded_rooms: &fleet.succeeded_rooms(rollout.to),
        failed_rooms: &fleet.failed_rooms(rollout.to),
        switch_back_queued: fleet.unfinished.iter().any(switches_back),
    };
    judge(rollout, &facts)
}
