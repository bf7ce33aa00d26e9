//! The rollout as a state machine: what an event makes of it, and everything that has to be written together with that.
//! The table of states and events is `tests/transitions.rs`.

use crate::lock::{Holder, Lock, Locks};
use crate::operation::{Origin, SwitchVersion};
use crate::scheduler::{OnFailure, SchedulerName, SizeBaseline, Version, VersionStatus};
use crate::time::Timestamp;

use super::locks::{self, LockChange};
use super::{RolloutRecord, RolloutState};

/// What happens to a scheduler's rollout.
#[derive(Debug, Clone)]
pub enum RolloutEvent<'a> {
    Switched(Switched),
    /// No old room is left.
    Finished,
    /// Why, in words.
    Failed(&'a str, OnFailure),
    /// The switch that a rollback begins with was canceled or evicted: without another one nothing would ever move.
    SwitchBackLost,
    /// A cycle acts on what it saw of it.
    CycleActed {
        took_occupied: bool,
    },
    PausedBy(&'a str),
    Resumed,
    CanceledBy(&'a str),
    /// A lock was taken from it by force, and why.
    LockReleased(&'a Lock, &'a str),
    DeletionBegan {
        is_rolling: bool,
    },
    /// A deletion that had ended this rollout was canceled, or failed.
    DeletionTakenBack {
        rollout: RolloutRecord,
        was_rolling: bool,
        by: Option<Holder>,
    },
}

/// Another version became the active one.
#[derive(Debug, Clone, Copy)]
pub struct Switched {
    pub to: Version,
    pub is_major: bool,
    pub fleet_size: SizeBaseline,
    /// The version of the rollout under way is still `rolling`: one that failed or was canceled says so itself.
    pub is_rolling: bool,
    /// The operation that did it: it hands over its locks.
    pub by: Holder,
}

/// What is known when it happens.
#[derive(Debug, Clone, Copy)]
pub struct RolloutContext<'a> {
    pub scheduler: &'a SchedulerName,
    /// Of a switch: the version that was active before it.
    pub active: Version,
    pub locks: &'a Locks,
    pub now: Timestamp,
}

/// What comes of it, to be written in one transaction.
#[derive(Debug, Clone, Default)]
pub struct Transition {
    /// From now on; `None`: none is under way.
    pub rollout: Option<RolloutRecord>,
    pub versions: Vec<VersionChange>,
    pub locks: Vec<LockChange>,
    pub switch_back: Option<SwitchBack>,
    /// What people read in the history of the operation that it happened in.
    pub history: Vec<String>,
}

/// The status that a version gets, and why, unless all is well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionChange {
    pub version: Version,
    pub status: VersionStatus,
    pub cause: String,
}

/// The switch that a rollback begins with. It names the version that it leaves: should someone submit another one
/// first, it is evicted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchBack {
    pub switch: SwitchVersion,
    pub origin: Origin,
    pub reason: String,
}

/// What was asked for cannot be done with the rollout as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(String);

pub fn transition(
    before: Option<&RolloutRecord>,
    event: RolloutEvent<'_>,
    context: &RolloutContext<'_>,
) -> Result<Transition, Refused> {
    use RolloutState::{Halted, Paused, Rolling, RollingBack};
    let under_way = |verb, allowed: &[RolloutState]| context.require(before, verb, allowed);
    let mut locks_from = None;
    let mut next = match event {
        RolloutEvent::Switched(switched) => {
            locks_from = Some(switched.by);
            switched.transition(before, context)
        }
        RolloutEvent::Finished => finish(under_way("finished", &[Rolling, RollingBack])?),
        RolloutEvent::Failed(why, on_failure) => {
            fail(under_way("judged", &[Rolling, RollingBack])?, why, on_failure)
        }
        RolloutEvent::PausedBy(by) => {
            let rollout = under_way("paused", &[Rolling, RollingBack])?;
            Transition::to(Some(rollout.with(Paused, format!("paused by {by}"))))
        }
        RolloutEvent::Resumed => resume(under_way("resumed", &[Paused, Halted])?, context.now),
        RolloutEvent::CanceledBy(by) => {
            cancel(under_way("canceled", &[Rolling, Paused, Halted])?, by, context)?
        }
        RolloutEvent::DeletionBegan { is_rolling } => end(before, is_rolling),
        RolloutEvent::DeletionTakenBack { rollout, was_rolling, by } => {
            // Another version, or another rollout, came first.
            if before.is_some() || context.active != rollout.to {
                return Ok(Transition::to(before.cloned()));
            }
            locks_from = by;
            bring_back(rollout, was_rolling, context.now)
        }
        RolloutEvent::LockReleased(lock, why) => return Ok(release(before, lock, why)),
        RolloutEvent::SwitchBackLost => {
            let rollout = under_way("rolled back", &[RollingBack])?;
            let reason = format!("{}; back to {}", rollout.note, rollout.from);
            let switch_back = Some(switch_back(rollout, Origin::Controller, reason));
            return Ok(Transition { switch_back, ..Transition::to(before.cloned()) });
        }
        RolloutEvent::CycleActed { took_occupied } => {
            let at =
                |rollout: &RolloutRecord| if took_occupied { Some(context.now) } else { rollout.occupied_at };
            let noted =
                |rollout: &RolloutRecord| RolloutRecord { occupied_at: at(rollout), ..rollout.clone() };
            return Ok(Transition::to(before.map(noted)));
        }
    };
    next.locks = locks::changes(before, next.rollout.as_ref(), locks_from, context.locks, context.now);
    Ok(next)
}

impl Switched {
    /// A minor change is deployed with its switch, unless rooms are being replaced: then it takes over what is under way.
    /// A major one begins a rollout, and supersedes the one before.
    fn transition(self, before: Option<&RolloutRecord>, context: &RolloutContext<'_>) -> Transition {
        let Self { to, is_major, is_rolling, by, .. } = self;
        if before.is_none() && !is_major {
            return Transition::to(None).with_version(to, VersionStatus::Deployed, "");
        }
        let rollout = match before {
            Some(before) => self.take_over(before, context.now),
            None => RolloutRecord {
                state: RolloutState::Rolling,
                to,
                from: context.active,
                since: context.now,
                fleet_size: self.fleet_size,
                occupied_at: None,
                note: String::new(),
            },
        };
        let is_rollback = rollout.is_rollback();
        let mut next = Transition::to(Some(rollout));
        if let Some(before) = before.filter(|before| is_rolling && before.to != to) {
            let cause = format!("superseded by {to} ({by})");
            next = next.with_version(before.to, VersionStatus::Superseded, &cause);
            next.history.push(format!("supersedes the rollout of {}", before.to));
        }
        if !is_rollback {
            next = next.with_version(to, VersionStatus::Rolling, "");
        }
        next.history.push(format!("rooms of other major versions are replaced by those of {to} from now on"));
        next
    }

    fn take_over(self, before: &RolloutRecord, now: Timestamp) -> RolloutRecord {
        let is_rollback = self.to == before.from;
        // What was paused stays so, unless something quite different begins; what was halted moves again.
        let stays_paused = before.state == RolloutState::Paused && (is_rollback || !self.is_major);
        let state = match (stays_paused, is_rollback) {
            (true, _) => RolloutState::Paused,
            (false, true) => RolloutState::RollingBack,
            (false, false) => RolloutState::Rolling,
        };
        let keeps_note = is_rollback || state == RolloutState::Paused;
        let note = if keeps_note { before.note.clone() } else { String::new() };
        RolloutRecord { to: self.to, since: now, fleet_size: self.fleet_size, ..before.with(state, note) }
    }
}

fn finish(rollout: &RolloutRecord) -> Transition {
    let mut next = Transition::to(None).with_version(rollout.to, VersionStatus::Deployed, "");
    next.history.push(format!("the rollout of {} is finished: no old room is left", rollout.to));
    next
}

/// It rolls back or halts. A rollback that fails halts: there is nowhere further back.
fn fail(rollout: &RolloutRecord, why: &str, on_failure: OnFailure) -> Transition {
    let RolloutRecord { state, to, from, .. } = rollout;
    let may_go_back = *state == RolloutState::Rolling && on_failure == OnFailure::Rollback;
    let state = if may_go_back { RolloutState::RollingBack } else { RolloutState::Halted };
    let failed = Transition::to(Some(rollout.with(state, format!("{to} failed: {why}"))));
    let mut failed = failed.with_version(*to, VersionStatus::Error, why);
    if may_go_back {
        let reason = format!("the rollout of {to} failed: {why}; back to {from}");
        failed.switch_back = Some(switch_back(rollout, Origin::Controller, reason));
    } else {
        failed.history.push(format!("the rollout of {to} halts: {why}"));
    }
    failed
}

/// It goes on with a clean slate: what failed before counts no more.
fn resume(rollout: &RolloutRecord, now: Timestamp) -> Transition {
    let resumed =
        |state| Transition::to(Some(RolloutRecord { since: now, ..rollout.with(state, String::new()) }));
    match rollout.is_rollback() {
        true => resumed(RolloutState::RollingBack),
        false => resumed(RolloutState::Rolling).with_version(rollout.to, VersionStatus::Rolling, ""),
    }
}

fn cancel(rollout: &RolloutRecord, by: &str, context: &RolloutContext<'_>) -> Result<Transition, Refused> {
    let (scheduler, RolloutRecord { to, from, .. }) = (context.scheduler, rollout);
    if rollout.is_rollback() {
        return Err(Refused(format!(
            "the rollout of scheduler {scheduler} is on its way back to {from} already"
        )));
    }
    let note = format!("canceled by {by}");
    let back = switch_back(rollout, Origin::Person(by.into()), format!("rollout of {to} {note}"));
    let canceled = Transition::to(Some(rollout.with(RolloutState::RollingBack, note.clone())));
    Ok(Transition { switch_back: Some(back), ..canceled.with_version(*to, VersionStatus::Canceled, &note) })
}

/// A scheduler that is being deleted rolls nothing out any more.
fn end(rollout: Option<&RolloutRecord>, is_rolling: bool) -> Transition {
    match rollout.filter(|_| is_rolling) {
        Some(rollout) => {
            let cause = "the scheduler is being deleted";
            Transition::to(None).with_version(rollout.to, VersionStatus::Canceled, cause)
        }
        None => Transition::to(None),
    }
}

/// As it was, with its clocks started anew: nothing was replaced in the meantime.
fn bring_back(ended: RolloutRecord, was_rolling: bool, now: Timestamp) -> Transition {
    let to = ended.to;
    let event = format!("the rollout of {to} is restored, {}", ended.state.as_str());
    let mut back = Transition::to(Some(RolloutRecord { since: now, occupied_at: None, ..ended }));
    back.history.push(event);
    if was_rolling { back.with_version(to, VersionStatus::Rolling, "") } else { back }
}

/// Nothing is replaced until someone resumes it. A rollout that halted stays so: nothing is replaced there either, and
/// its failure is worth more than a pause.
fn release(rollout: Option<&RolloutRecord>, lock: &Lock, why: &str) -> Transition {
    let paused = rollout.map(|rollout| match rollout.state {
        RolloutState::Rolling | RolloutState::RollingBack | RolloutState::Paused => {
            rollout.with(RolloutState::Paused, format!("paused: {why}"))
        }
        RolloutState::Halted => rollout.with(RolloutState::Halted, format!("{}; {why}", rollout.note)),
    });
    // Without the config lock it has no right to the other one; and paused it gives that up in any case.
    Transition { locks: locks::stop_downscaling(lock.holder).into(), ..Transition::to(paused) }
}

fn switch_back(rollout: &RolloutRecord, origin: Origin, reason: String) -> SwitchBack {
    SwitchBack { switch: SwitchVersion { to: rollout.from, only_from: Some(rollout.to) }, origin, reason }
}

impl RolloutContext<'_> {
    fn require<'r>(
        &self,
        rollout: Option<&'r RolloutRecord>,
        verb: &str,
        allowed: &[RolloutState],
    ) -> Result<&'r RolloutRecord, Refused> {
        let scheduler = self.scheduler;
        let Some(rollout) = rollout else {
            return Err(Refused(format!("scheduler {scheduler} has no rollout that could be {verb}")));
        };
        if !allowed.contains(&rollout.state) {
            let is = rollout.state.as_str();
            return Err(Refused(format!(
                "the rollout of scheduler {scheduler} is {is}, it cannot be {verb}"
            )));
        }
        Ok(rollout)
    }
}

impl RolloutRecord {
    fn with(&self, state: RolloutState, note: String) -> Self {
        Self { state, note, ..self.clone() }
    }
}

impl Transition {
    fn to(rollout: Option<RolloutRecord>) -> Self {
        Self { rollout, ..Self::default() }
    }

    fn with_version(mut self, version: Version, status: VersionStatus, cause: &str) -> Self {
        self.versions.push(VersionChange { version, status, cause: cause.to_owned() });
        self
    }
}
