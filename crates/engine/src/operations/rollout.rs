//! The life of a rollout, as the health controller sees it from cycle to cycle: it goes on, ends, or fails, and then
//! leads back or halts. Each of these is written together with what follows from it.

use maestro_core::operation::{Definition, Origin, SwitchVersion};
use maestro_core::plan::{RolloutFacts, RoomFact, Verdict, verdict};
use maestro_core::scheduler::{OnFailure, VersionStatus};
use maestro_core::time::Timestamp;

use crate::ports::store::{Change, RolloutRecord, RolloutState, SchedulerRecord};
use crate::rooms::log_tail::{in_words, log_tail};

use super::fleet::Fleet;
use super::{Step, Work};

/// Carries out what the rollout has come to. True: to an end, one way or another. `scheduler` is what holds after that,
/// so that the same cycle replaces nothing more.
pub(super) async fn judge(
    work: &Work,
    scheduler: &mut SchedulerRecord,
    fleet: &Fleet,
    step: &mut Step,
) -> bool {
    let (verdict, Some(rollout)) = (look_at(scheduler, fleet, work.now()), scheduler.rollout.clone()) else {
        return false;
    };
    if way_back_is_lost(scheduler, fleet) {
        let reason = format!("{}; back to {}", rollout.note, rollout.from);
        enqueue_way_back(work, scheduler, &rollout, reason, step);
        return true;
    }
    match verdict {
        Verdict::GoesOn => return false,
        Verdict::Finished => finish(work, scheduler, &rollout, step),
        Verdict::Failed(failure) => {
            let on_failure = scheduler.recipe.rollout().on_failure;
            // A way back that fails halts: there is nowhere further back.
            let is_way_back = rollout.state == RolloutState::RollingBack || rollout.to == rollout.from;
            let may_go_back = !is_way_back && on_failure == OnFailure::Rollback;
            let why = format!("{failure}{}", latest_failure(work, fleet, &rollout).await);
            match may_go_back {
                true => go_back(work, scheduler, &rollout, &why, step),
                false => halt(work, scheduler, &rollout, &why, step),
            }
        }
    }
    true
}

/// How the last of its rooms failed, and what that room wrote last.
async fn latest_failure(work: &Work, fleet: &Fleet, rollout: &RolloutRecord) -> String {
    let Some((room, ended)) = fleet.latest_failed_room(rollout.to) else {
        return String::new();
    };
    let lines = log_tail(&work.engine, room).await;
    format!("; the latest was room {}: {}{}", room.id, ended.how, in_words(&lines))
}

/// The switch that a way back begins with was cancelled or evicted: without another one nothing would ever move.
pub(super) fn way_back_is_lost(scheduler: &SchedulerRecord, fleet: &Fleet) -> bool {
    scheduler.rollout.as_ref().is_some_and(|rollout| {
        let waits = rollout.state == RolloutState::RollingBack && rollout.to != rollout.from;
        waits && !fleet.switches.iter().any(|switch| switch.only_from == Some(rollout.to))
    })
}

/// What the rollout has come to; that it goes on, if there is none.
pub(super) fn look_at(scheduler: &SchedulerRecord, fleet: &Fleet, now: Timestamp) -> Verdict {
    let Some(rollout) = &scheduler.rollout else {
        return Verdict::GoesOn;
    };
    match rollout.state {
        // Someone has to say how it goes on; and a way back begins with its switch.
        RolloutState::Paused | RolloutState::Halted => return Verdict::GoesOn,
        RolloutState::RollingBack if rollout.to != rollout.from => return Verdict::GoesOn,
        RolloutState::Rolling | RolloutState::RollingBack => {}
    }
    let rules = scheduler.recipe.rollout();
    let new_rooms: Vec<&RoomFact> = fleet.facts.iter().filter(|room| room.version == rollout.to).collect();
    let old_rooms = fleet.facts.iter().filter(|room| room.old).count();
    verdict(&RolloutFacts {
        now,
        since: rollout.since,
        timeout: rules.timeout,
        max_failures: rules.max_failures,
        old_rooms: u32::try_from(old_rooms).unwrap_or(u32::MAX),
        new_rooms: &new_rooms,
        succeeded_rooms: &fleet.succeeded_rooms(rollout.to),
        failed_rooms: &fleet.failed_rooms(rollout.to),
    })
}

fn finish(work: &Work, scheduler: &mut SchedulerRecord, rollout: &RolloutRecord, step: &mut Step) {
    step.history.push(format!("the rollout of {} is finished: no old room is left", rollout.to));
    set_rollout(work, scheduler, None, step);
    set_status(scheduler, rollout, VersionStatus::Deployed, "", step);
}

/// Stops the replacement and enqueues the switch back, in one transaction. The switch names the version that it
/// leaves: should someone submit another one first, it is evicted.
fn go_back(
    work: &Work,
    scheduler: &mut SchedulerRecord,
    rollout: &RolloutRecord,
    why: &str,
    step: &mut Step,
) {
    let reason = format!("the rollout of {} failed: {why}; back to {}", rollout.to, rollout.from);
    enqueue_way_back(work, scheduler, rollout, reason, step);
    let note = format!("{} failed: {why}", rollout.to);
    let going_back = RolloutRecord { state: RolloutState::RollingBack, note, ..rollout.clone() };
    set_rollout(work, scheduler, Some(going_back), step);
    set_status(scheduler, rollout, VersionStatus::Error, why, step);
}

fn enqueue_way_back(
    work: &Work,
    scheduler: &SchedulerRecord,
    rollout: &RolloutRecord,
    reason: String,
    step: &mut Step,
) {
    let back = SwitchVersion { to: rollout.from, only_from: Some(rollout.to) };
    let mut operation =
        work.engine.new_operation(&scheduler.name, Definition::SwitchVersion(back), Origin::Controller);
    operation.priority = true;
    operation.reason = reason;
    step.history.push(format!(
        "created operation switch_active_version (id: {}): {}",
        operation.id, operation.reason
    ));
    step.changes.push(Change::Enqueue(operation));
}

fn halt(work: &Work, scheduler: &mut SchedulerRecord, rollout: &RolloutRecord, why: &str, step: &mut Step) {
    step.history.push(format!("the rollout of {} halts: {why}", rollout.to));
    let note = format!("{} failed: {why}", rollout.to);
    let halted = RolloutRecord { state: RolloutState::Halted, note, ..rollout.clone() };
    set_rollout(work, scheduler, Some(halted), step);
    set_status(scheduler, rollout, VersionStatus::Error, why, step);
}

fn set_rollout(work: &Work, scheduler: &mut SchedulerRecord, to: Option<RolloutRecord>, step: &mut Step) {
    let from = std::mem::replace(&mut scheduler.rollout, to.clone());
    let locks = work.engine.rollout_locks(&scheduler.name, from.as_ref(), to.as_ref(), None, &work.locks);
    step.changes.extend(locks);
    step.changes.push(Change::SetRollout { scheduler: scheduler.name.clone(), from, to });
}

fn set_status(
    scheduler: &SchedulerRecord,
    rollout: &RolloutRecord,
    status: VersionStatus,
    cause: &str,
    step: &mut Step,
) {
    let (scheduler, version, cause) = (scheduler.name.clone(), rollout.to, cause.to_owned());
    step.changes.push(Change::SetVersionStatus { scheduler, version, status, cause });
}
