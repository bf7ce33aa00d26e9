//! The rollout of a version: the replacement of a fleet's rooms by those of a new major version, from the switch until
//! the last old room is gone.
//!
//! | question | answered by |
//! |---|---|
//! | what happens to it when it is switched, paused, resumed, canceled, fails, halts, rolls back or ends | [`transition`] |
//! | whether it goes on, is finished or has failed | [`judge`] |
//! | what becomes of old rooms meanwhile | [`RolloutRecord::old_versions`], [`replacement_rules`] |
//! | which rooms one cycle adds and removes | [`crate::plan`], `plan/replacement.rs` |
//! | when rooms with players may go | [`OccupiedPace`] |
//! | which locks it takes and gives up | `locks.rs` |
//! | which lock the removals of a cycle hold or wait for, in a rollout and without one | [`Removals`] |
//! | what people are told about a version | [`VersionSubject`] |

mod locks;
mod pace;
mod progress;
mod removals;
mod transition;
mod verdict;

use crate::lock::{Holder, LockKind, Taker};
use crate::plan::{OldVersions, ReplacementRules};
use crate::scheduler::{OccupiedRooms, Recipe, SizeBaseline, Version};
use crate::time::{Millis, Timestamp, age};
use crate::words::words;

pub use locks::LockChange;
pub use pace::OccupiedPace;
pub use progress::{StoredVersion, VersionOutcome, VersionProgress, VersionSubject, is_switch_back};
pub use removals::{RemovalOutlook, Removals, Settled};
pub use transition::{
    Refused, RolloutContext, RolloutEvent, SwitchBack, Switched, Transition, VersionChange, transition,
};
pub use verdict::{RolloutFacts, RolloutFailure, Verdict, judge};

/// A rollout, as a scheduler has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutRecord {
    pub state: RolloutState,
    /// The version that rooms are being replaced by; the active one.
    pub to: Version,
    /// The last version that was deployed: where a rollback leads. The same as `to` on a rollback.
    pub from: Version,
    pub since: Timestamp,
    /// What a rollback returns to, beside what people change meanwhile.
    pub fleet_size: SizeBaseline,
    /// When a cycle last took rooms with players.
    pub occupied_at: Option<Timestamp>,
    /// Who paused it, or why it halted or goes back; empty while it simply goes on.
    pub note: String,
}

words! {
    pub enum RolloutState {
        Rolling = "rolling",
        Paused = "paused",
        /// It failed: nothing is replaced until someone says how to go on.
        Halted = "halted",
        /// It failed or was canceled, and rolls back to the last deployed version.
        RollingBack = "rollingBack",
    }
}

impl RolloutRecord {
    /// Who it is as the holder of locks.
    pub fn holder(&self) -> Holder {
        Holder::Rollout(self.to)
    }

    /// It rolls back, and the switch that this begins with is still to come.
    pub fn awaits_switch_back(&self) -> bool {
        self.state == RolloutState::RollingBack && !self.is_rollback()
    }

    /// Rooms are replaced by those of the version that was deployed before.
    pub fn is_rollback(&self) -> bool {
        self.to == self.from
    }

    /// Paused and halted, it replaces nothing, and leaves removals to others.
    pub fn is_moving(&self) -> bool {
        match self.state {
            RolloutState::Rolling | RolloutState::RollingBack => true,
            RolloutState::Paused | RolloutState::Halted => false,
        }
    }

    pub fn old_versions(&self) -> OldVersions {
        match self.state {
            RolloutState::Paused => OldVersions::Kept,
            RolloutState::Halted => OldVersions::Counted,
            // Until the switch back the failed version replaces nothing more.
            RolloutState::RollingBack if self.awaits_switch_back() => OldVersions::Counted,
            RolloutState::Rolling | RolloutState::RollingBack => OldVersions::Replaced,
        }
    }

    /// The versions whose rooms are the ones to go: while it is halted, those of the version that failed. `old` are those
    /// that differ from the active version by a major change.
    pub fn versions_to_replace(&self, old: Vec<Version>) -> Vec<Version> {
        match self.state {
            RolloutState::Halted => vec![self.to],
            RolloutState::Rolling | RolloutState::Paused | RolloutState::RollingBack => old,
        }
    }

    /// What new rooms are made from: while it is halted, the last version that was deployed.
    pub fn version_to_make(&self) -> Version {
        match self.state {
            RolloutState::Halted => self.from,
            RolloutState::Rolling | RolloutState::Paused | RolloutState::RollingBack => self.to,
        }
    }

    /// It ends with the rollout, not by time.
    pub fn take_lock(&self, kind: LockKind, instead_of: Option<Holder>) -> LockChange {
        let reason = format!("rooms are replaced by those of {}", self.to);
        LockChange::Take { kind, taker: Taker { holder: self.holder(), instead_of }, reason }
    }
}

/// How rooms are replaced now, by the rules of the active version. `players_turn`: rooms with players may go in this
/// cycle; see [`OccupiedPace`].
pub fn replacement_rules(
    rollout: Option<&RolloutRecord>,
    recipe: &Recipe,
    now: Timestamp,
    players_turn: bool,
) -> ReplacementRules {
    let versions = rollout.map_or(OldVersions::Replaced, RolloutRecord::old_versions);
    let rules = recipe.rollout();
    let waited = match rollout.filter(|_| versions == OldVersions::Replaced) {
        Some(rollout) => age(now, rollout.since),
        None => Millis(0),
    };
    let waited_long_enough = rules.match_end_deadline.is_some_and(|deadline| waited >= deadline);
    ReplacementRules {
        versions,
        max_surge: recipe.max_surge,
        max_unavailable: rules.max_unavailable,
        occupied: if waited_long_enough { OccupiedRooms::DeleteLast } else { rules.occupied },
        occupied_may_go: players_turn || rules.occupied_interval == Millis(0),
    }
}

#[cfg(test)]
mod tests;
