//! The rollout of the new version: whether it goes on, is finished, or has failed and leads back.

use maestro_core::plan::{OldVersions, Plan, ReplacementRules, RolloutCycle, RoomFact};
use maestro_core::rollout::{OccupiedPace, RolloutFacts, Verdict, verdict};
use maestro_core::scheduler::{Change, OccupiedRooms, OnFailure, Recipe, Version};
use maestro_core::time::{Millis, Timestamp, age};

use crate::fleet::count;
use crate::report::{RolloutReport, RolloutState};

pub(crate) struct Rollout {
    /// The version that arrived, and the one it found.
    pub(crate) to: Version,
    from: Version,
    state: RolloutState,
    since: Timestamp,
    first_loop: u32,
    /// When those rooms of the new version were made that did not become ready.
    failed_rooms: Vec<Timestamp>,
    /// When a cycle last took rooms with players.
    occupied_at: Option<Timestamp>,
    reason: Option<String>,
    took: Millis,
    loops: u32,
}

impl Rollout {
    pub(crate) fn begin(from: Version, now: Timestamp, loop_number: u32) -> Self {
        Self {
            to: Version::next(Change::Major, from, &[from]),
            from,
            state: RolloutState::Rolling,
            since: now,
            first_loop: loop_number,
            failed_rooms: Vec::new(),
            occupied_at: None,
            reason: None,
            took: Millis(0),
            loops: 0,
        }
    }

    /// The version that rooms are made from.
    pub(crate) fn active(&self) -> Version {
        match self.state {
            RolloutState::Rolling | RolloutState::Finished => self.to,
            RolloutState::RollingBack | RolloutState::RolledBack | RolloutState::Halted => self.from,
        }
    }

    pub(crate) fn is_old(&self, version: Version) -> bool {
        version != self.active()
    }

    /// As the server's health controller has it: halted, nothing is replaced.
    pub(crate) fn rules(&self, recipe: &Recipe, now: Timestamp, period: Millis) -> ReplacementRules {
        let rules = recipe.rollout();
        let pace = OccupiedPace { interval: rules.occupied_interval, period, last: self.occupied_at };
        let waited = age(now, self.since);
        let occupied = match rules.match_end_deadline {
            Some(deadline) if waited >= deadline => OccupiedRooms::DeleteLast,
            Some(_) | None => rules.occupied,
        };
        ReplacementRules {
            versions: match self.state {
                RolloutState::Halted => OldVersions::Counted,
                RolloutState::Rolling
                | RolloutState::RollingBack
                | RolloutState::Finished
                | RolloutState::RolledBack => OldVersions::Replaced,
            },
            max_surge: recipe.max_surge,
            max_unavailable: rules.max_unavailable,
            occupied,
            // Here all cycles are scheduled ones.
            occupied_may_go: pace.allows(now, true),
        }
    }

    pub(crate) fn note_occupied(&mut self, plan: &Plan, now: Timestamp) {
        let takes = |cycle: &RolloutCycle| cycle.replaced.iter().any(|room| room.serves_players);
        if plan.rollout.as_ref().is_some_and(takes) {
            self.occupied_at = Some(now);
        }
    }

    pub(crate) fn is_under_way(&self) -> bool {
        match self.state {
            RolloutState::Rolling | RolloutState::RollingBack => true,
            RolloutState::Finished | RolloutState::RolledBack | RolloutState::Halted => false,
        }
    }

    pub(crate) fn note_failed_room(&mut self, room: &RoomFact) {
        if room.version == self.to && !room.was_ready {
            self.failed_rooms.push(room.created_at);
        }
    }

    /// Looks whether it has come to an end. True: rooms are made from another version now.
    pub(crate) fn judge(
        &mut self,
        recipe: &Recipe,
        rooms: &[RoomFact],
        now: Timestamp,
        loop_number: u32,
    ) -> bool {
        if !self.is_under_way() {
            return false;
        }
        self.took = age(now, self.since);
        self.loops = loop_number - self.first_loop;
        let rules = recipe.rollout();
        let new_rooms: Vec<&RoomFact> = rooms.iter().filter(|room| room.version == self.to).collect();
        let facts = RolloutFacts {
            now,
            since: self.since,
            timeout: rules.timeout,
            max_failures: rules.max_failures,
            old_rooms: count(rooms.iter().filter(|room| room.old).count()),
            new_rooms: &new_rooms,
            succeeded_rooms: &[],
            failed_rooms: &self.failed_rooms,
        };
        let is_going_back = self.state == RolloutState::RollingBack;
        match verdict(&facts) {
            Verdict::Finished if is_going_back => self.state = RolloutState::RolledBack,
            Verdict::Finished => self.state = RolloutState::Finished,
            // The way back is made of rooms that were well before; it takes as long as it takes.
            Verdict::Failed(_) if is_going_back => {}
            Verdict::Failed(failure) => {
                self.reason = Some(failure.to_string());
                self.state = match rules.on_failure {
                    OnFailure::Rollback => RolloutState::RollingBack,
                    OnFailure::Halt => RolloutState::Halted,
                };
                return true;
            }
            Verdict::GoesOn | Verdict::WayBackLost => {}
        }
        false
    }

    pub(crate) fn report(&self) -> RolloutReport {
        RolloutReport {
            version: self.to,
            state: self.state,
            took: self.took,
            loops: self.loops,
            reason: self.reason.clone(),
        }
    }
}
