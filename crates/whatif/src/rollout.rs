//! The rollout of the new version: whether it goes on, is finished, or has failed and leads back. A scheduler's rollout,
//! but that the switch back takes no time.

use maestro_core::plan::{Plan, ReplacementRules, RolloutCycle, RoomFact};
use maestro_core::rollout::{
    self, OccupiedPace, RolloutFacts, RolloutRecord, Verdict, judge, replacement_rules,
};
use maestro_core::scheduler::{Change, OnFailure, Recipe, SizeBaseline, Version};
use maestro_core::time::{Millis, Timestamp, age};

use crate::report::{RolloutReport, RolloutState};

pub(crate) struct Rollout {
    /// The version that arrived.
    pub(crate) to: Version,
    record: RolloutRecord,
    is_over: bool,
    first_loop: u32,
    /// When those rooms of the new version were made that did not become ready.
    failed_rooms: Vec<Timestamp>,
    reason: Option<String>,
    took: Millis,
    loops: u32,
}

impl Rollout {
    pub(crate) fn begin(from: Version, now: Timestamp, loop_number: u32) -> Self {
        let to = Version::next(Change::Major, from, &[from]);
        let record = RolloutRecord {
            state: rollout::RolloutState::Rolling,
            to,
            from,
            since: now,
            fleet_size: SizeBaseline { before: 0, after: 0 },
            occupied_at: None,
            note: String::new(),
        };
        Self {
            to,
            record,
            is_over: false,
            first_loop: loop_number,
            failed_rooms: Vec::new(),
            reason: None,
            took: Millis(0),
            loops: 0,
        }
    }

    /// The version that rooms are made from.
    pub(crate) fn active(&self) -> Version {
        self.record.version_to_make()
    }

    pub(crate) fn is_old(&self, version: Version) -> bool {
        version != self.active()
    }

    pub(crate) fn rules(&self, recipe: &Recipe, now: Timestamp, period: Millis) -> ReplacementRules {
        let interval = recipe.rollout().occupied_interval;
        let pace = OccupiedPace { interval, period, last: self.record.occupied_at };
        // Here all cycles are scheduled ones.
        replacement_rules(Some(&self.record), recipe, now, pace.allows(now, true))
    }

    pub(crate) fn note_occupied(&mut self, plan: &Plan, now: Timestamp) {
        let takes = |cycle: &RolloutCycle| cycle.replaced.iter().any(|room| room.serves_players);
        if plan.rollout.as_ref().is_some_and(takes) {
            self.record.occupied_at = Some(now);
        }
    }

    pub(crate) fn is_under_way(&self) -> bool {
        !self.is_over && self.record.is_moving()
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
        self.took = age(now, self.record.since);
        self.loops = loop_number - self.first_loop;
        let rules = recipe.rollout();
        let facts = RolloutFacts {
            now,
            rules,
            rooms,
            succeeded_rooms: &[],
            failed_rooms: &self.failed_rooms,
            switch_back_queued: false,
        };
        match judge(&self.record, &facts) {
            Verdict::Finished => self.is_over = true,
            // The way back is made of rooms that were well before; it takes as long as it takes.
            Verdict::Failed(_) if self.record.is_way_back() => {}
            Verdict::Failed(failure) => {
                self.reason = Some(failure.to_string());
                match rules.on_failure {
                    OnFailure::Rollback => {
                        self.record.state = rollout::RolloutState::RollingBack;
                        self.record.to = self.record.from;
                    }
                    OnFailure::Halt => self.record.state = rollout::RolloutState::Halted,
                }
                return true;
            }
            Verdict::GoesOn | Verdict::WayBackLost => {}
        }
        false
    }

    pub(crate) fn report(&self) -> RolloutReport {
        RolloutReport {
            version: self.to,
            state: self.state(),
            took: self.took,
            loops: self.loops,
            reason: self.reason.clone(),
        }
    }

    fn state(&self) -> RolloutState {
        match self.record.state {
            rollout::RolloutState::Halted => RolloutState::Halted,
            rollout::RolloutState::RollingBack if self.is_over => RolloutState::RolledBack,
            rollout::RolloutState::RollingBack => RolloutState::RollingBack,
            rollout::RolloutState::Rolling | rollout::RolloutState::Paused if self.is_over => {
                RolloutState::Finished
            }
            rollout::RolloutState::Rolling | rollout::RolloutState::Paused => RolloutState::Rolling,
        }
    }
}
