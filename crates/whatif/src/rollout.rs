//! The rollout of the new version: whether it goes on, is finished, or has failed and rolls back. A scheduler's rollout,
//! but that the switch back takes no time.

use maestro_core::plan::{Plan, ReplacementRules, RolloutCycle, RoomFact};
use maestro_core::rollout::{
    OccupiedPace, RolloutFacts, RolloutRecord, RolloutState, Verdict, judge, replacement_rules,
};
use maestro_core::scheduler::{OnFailure, Recipe, RecipeChange, SizeBaseline, Version};
use maestro_core::time::{Millis, Timestamp, age};

use crate::report::{RolloutOutcome, RolloutReport};

pub(crate) struct Rollout {
    record: RolloutRecord,
    first_loop: u32,
    /// When those rooms of the new version were made that did not become ready.
    failed_rooms: Vec<Timestamp>,
    pub(crate) report: RolloutReport,
}

impl Rollout {
    pub(crate) fn begin(from: Version, now: Timestamp, loop_number: u32) -> Self {
        let to = Version::next(RecipeChange::Major, from, &[from]);
        let record = RolloutRecord {
            state: RolloutState::Rolling,
            to,
            from,
            since: now,
            fleet_size: SizeBaseline { before: 0, after: 0 },
            occupied_at: None,
            note: String::new(),
        };
        let outcome = RolloutOutcome::Rolling;
        let report = RolloutReport { loops: 0, reason: None, took: Millis(0), outcome, version: to };
        Self { record, first_loop: loop_number, failed_rooms: Vec::new(), report }
    }

    /// The version that arrived.
    pub(crate) fn to(&self) -> Version {
        self.report.version
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
        matches!(self.report.outcome, RolloutOutcome::Rolling | RolloutOutcome::RollingBack)
    }

    pub(crate) fn note_failed_room(&mut self, room: &RoomFact) {
        if room.version == self.to() && !room.was_ready {
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
        self.report.took = age(now, self.record.since);
        self.report.loops = loop_number - self.first_loop;
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
            Verdict::Finished if self.record.is_rollback() => {
                self.report.outcome = RolloutOutcome::RolledBack;
            }
            Verdict::Finished => self.report.outcome = RolloutOutcome::Finished,
            // The rollback is made of rooms that were well before; it takes as long as it takes.
            Verdict::Failed(_) if self.record.is_rollback() => {}
            Verdict::Failed(failure) => {
                self.report.reason = Some(failure.to_string());
                (self.record.state, self.report.outcome) = match rules.on_failure {
                    OnFailure::Rollback => (RolloutState::RollingBack, RolloutOutcome::RollingBack),
                    OnFailure::Halt => (RolloutState::Halted, RolloutOutcome::Halted),
                };
                if rules.on_failure == OnFailure::Rollback {
                    self.record.to = self.record.from;
                }
                return true;
            }
            Verdict::GoesOn | Verdict::SwitchBackLost => {}
        }
        false
    }
}
