//! Whether a rollout goes on, has come to its end, or has failed.

use std::fmt;

use crate::plan::RoomFact;
use crate::scheduler::Rollout;
use crate::time::{Millis, Timestamp, age};

use super::{RolloutRecord, RolloutState};

/// What is known about a rollout beside the fleet's plan.
#[derive(Debug, Clone)]
pub struct RolloutFacts<'a> {
    pub now: Timestamp,
    /// Of the active version.
    pub rules: Rollout,
    /// All that live, also those that are on their way out.
    pub rooms: &'a [RoomFact],
    /// Creation times of the new version's rooms that were ready before they ended.
    pub succeeded_rooms: &'a [Timestamp],
    /// Creation times of those that ended without having been ready, by their own failure or by a timeout.
    pub failed_rooms: &'a [Timestamp],
    /// The switch that a rollback begins with is on its way.
    pub switch_back_queued: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    GoesOn,
    Finished,
    Failed(RolloutFailure),
    /// It rolls back, and the switch that this begins with is gone.
    SwitchBackLost,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RolloutFailure {
    RoomsNeverReady { rooms: u32 },
    TimedOut { after: Millis },
}

pub fn judge(rollout: &RolloutRecord, facts: &RolloutFacts<'_>) -> Verdict {
    match rollout.state {
        // Someone has to say how it goes on.
        RolloutState::Paused | RolloutState::Halted => return Verdict::GoesOn,
        RolloutState::RollingBack if rollout.awaits_switch_back() => match facts.switch_back_queued {
            true => return Verdict::GoesOn,
            false => return Verdict::SwitchBackLost,
        },
        RolloutState::Rolling | RolloutState::RollingBack => {}
    }
    if !facts.rooms.iter().any(|room| room.old) {
        return Verdict::Finished;
    }
    // In a row, with no success between them: one that became ready speaks for all that were made before it.
    // A room that has not been heard of since a restart is no failure: it may have been ready for hours.
    let is_well = |room: &&RoomFact| room.version == rollout.to && (room.was_ready || !room.known);
    let well = facts.rooms.iter().filter(is_well).map(|room| room.created_at);
    let last_success = well.chain(facts.succeeded_rooms.iter().copied()).max();
    let in_row = |made: &&Timestamp| **made >= rollout.since && last_success.is_none_or(|at| **made > at);
    let failures = facts.failed_rooms.iter().filter(in_row).count();
    let failures = u32::try_from(failures).unwrap_or(u32::MAX);
    if failures >= facts.rules.max_failures {
        return Verdict::Failed(RolloutFailure::RoomsNeverReady { rooms: failures });
    }
    let passed = age(facts.now, rollout.since);
    match facts.rules.timeout {
        Some(timeout) if passed >= timeout => Verdict::Failed(RolloutFailure::TimedOut { after: passed }),
        Some(_) | None => Verdict::GoesOn,
    }
}

impl fmt::Display for RolloutFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RoomsNeverReady { rooms } => write!(f, "{rooms} new rooms in a row did not become ready"),
            Self::TimedOut { after } => write!(f, "it is not done after {after}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::room::{Region, RoomId, RoomStatus};
    use crate::scheduler::{SizeBaseline, Version};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn room(made: i64, was_ready: bool, known: bool) -> RoomFact {
        RoomFact {
            id: RoomId::new("arena-1"),
            region: Region::default_region(),
            status: RoomStatus::Unready,
            version: Version::parse("v2.0.0").unwrap(),
            old: false,
            draining: false,
            matches: 0,
            created_at: at(made),
            heard_at: None,
            known,
            was_ready,
            held: false,
            leaving: false,
            reachable: true,
            reachable_since: None,
            spared_until: None,
        }
    }

    fn rolling() -> RolloutRecord {
        RolloutRecord {
            state: RolloutState::Rolling,
            to: Version::parse("v2.0.0").unwrap(),
            from: Version::FIRST,
            since: at(10),
            fleet_size: SizeBaseline { before: 1, after: 1 },
            occupied_at: None,
            note: String::new(),
        }
    }

    #[test]
    fn what_a_rollout_has_come_to() {
        use RolloutState::{Halted, Paused, Rolling, RollingBack};
        let rules = Rollout { timeout: Some(Millis::from_seconds(11)), ..Rollout::default() };
        let old_room = [RoomFact { old: true, ..room(1, true, true) }];
        let timed_out = Verdict::Failed(RolloutFailure::TimedOut { after: Millis::from_seconds(11) });
        assert_eq!(timed_out_text(&timed_out), "it is not done after 11s");
        let (there, back) = ("v2.0.0", "v1.0.0");
        for (state, to, old_rooms, now, queued, expected) in [
            (Rolling, there, 1, 20, false, Verdict::GoesOn),
            (Rolling, there, 1, 21, false, timed_out.clone()),
            (Rolling, there, 0, 21, false, Verdict::Finished),
            (RollingBack, back, 1, 21, false, timed_out),
            (RollingBack, back, 0, 20, false, Verdict::Finished),
            // Until it is switched back, nothing is replaced.
            (RollingBack, there, 0, 21, true, Verdict::GoesOn),
            (RollingBack, there, 1, 20, false, Verdict::SwitchBackLost),
            (Paused, there, 0, 21, false, Verdict::GoesOn),
            (Halted, there, 0, 21, false, Verdict::GoesOn),
        ] {
            let rollout = RolloutRecord { state, to: Version::parse(to).unwrap(), ..rolling() };
            let facts = RolloutFacts {
                now: at(now),
                rules,
                rooms: &old_room[..old_rooms],
                succeeded_rooms: &[],
                failed_rooms: &[],
                switch_back_queued: queued,
            };
            assert_eq!(judge(&rollout, &facts), expected, "{rollout:?}, {facts:?}");
        }
    }

    fn timed_out_text(verdict: &Verdict) -> String {
        match verdict {
            Verdict::Failed(failure) => failure.to_string(),
            Verdict::GoesOn | Verdict::Finished | Verdict::SwitchBackLost => String::new(),
        }
    }

    #[test]
    fn failures_count_in_a_row() {
        let failed = Verdict::Failed(RolloutFailure::RoomsNeverReady { rooms: 3 });
        let none: [i64; 0] = [];
        // (failed rooms, rooms that were ready and ended, a live room) → verdict after a start at 10
        for (failures, succeeded, live, expected) in [
            (&[11, 12][..], &none[..], None, Verdict::GoesOn),
            (&[11, 12, 13], &none, None, failed.clone()),
            (&[1, 2, 3], &none, None, Verdict::GoesOn),
            (&[11, 12, 13], &[14], None, Verdict::GoesOn),
            (&[12, 13, 14], &[11], None, failed.clone()),
            (&[11, 12, 13], &none, Some(room(14, true, true)), Verdict::GoesOn),
            (&[11, 12, 13], &none, Some(room(14, false, true)), failed),
            // After a restart nobody knows yet that it was ready.
            (&[11, 12, 13], &none, Some(room(14, false, false)), Verdict::GoesOn),
        ] {
            let times = |seconds: &[i64]| seconds.iter().map(|second| at(*second)).collect::<Vec<_>>();
            let old_room = RoomFact { old: true, version: Version::FIRST, ..room(15, true, true) };
            let rooms: Vec<RoomFact> = live.iter().cloned().chain([old_room]).collect();
            let facts = RolloutFacts {
                now: at(20),
                rules: Rollout { max_failures: 3, ..Rollout::default() },
                rooms: &rooms,
                succeeded_rooms: &times(succeeded),
                failed_rooms: &times(failures),
                switch_back_queued: false,
            };
            assert_eq!(
                judge(&rolling(), &facts),
                expected,
                "{failures:?} failed, {succeeded:?} succeeded, {live:?}"
            );
        }
    }
}
