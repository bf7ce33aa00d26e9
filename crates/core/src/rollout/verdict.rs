//! Whether a rollout goes on, has come to its end, or has failed.

use std::fmt;

use crate::plan::RoomFact;
use crate::time::{Millis, Timestamp, age};

use super::{RolloutRecord, RolloutState};

/// What is known about a rollout beside the fleet's plan.
#[derive(Debug, Clone)]
pub struct RolloutFacts<'a> {
    pub now: Timestamp,
    pub since: Timestamp,
    pub timeout: Option<Millis>,
    pub max_failures: u32,
    /// All that live, also those that are on their way out.
    pub old_rooms: u32,
    /// Rooms of the version that is rolled out.
    pub new_rooms: &'a [&'a RoomFact],
    /// When those were made that ended after they had been ready.
    pub succeeded_rooms: &'a [Timestamp],
    /// When those were made that ended without having been ready, by their own failure or by a timeout.
    pub failed_rooms: &'a [Timestamp],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    GoesOn,
    Finished,
    Failed(RolloutFailure),
    /// It leads back, and the switch that this begins with is gone.
    WayBackLost,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RolloutFailure {
    RoomsNeverReady { rooms: u32 },
    TimedOut { after: Millis },
}

/// What a rollout has come to. `switch_back_queued`: the switch that a way back begins with is on its way.
pub fn judge(rollout: &RolloutRecord, facts: &RolloutFacts<'_>, switch_back_queued: bool) -> Verdict {
    match rollout.state {
        // Someone has to say how it goes on.
        RolloutState::Paused | RolloutState::Halted => Verdict::GoesOn,
        RolloutState::RollingBack if rollout.awaits_switch_back() => match switch_back_queued {
            true => Verdict::GoesOn,
            false => Verdict::WayBackLost,
        },
        RolloutState::Rolling | RolloutState::RollingBack => verdict(facts),
    }
}

/// The same of one that replaces rooms.
pub fn verdict(facts: &RolloutFacts<'_>) -> Verdict {
    if facts.old_rooms == 0 {
        return Verdict::Finished;
    }
    // In a row, with no success between them: one that became ready speaks for all that were made before it.
    // A room that has not been heard of since a restart is no failure: it may have been ready for hours.
    let well =
        facts.new_rooms.iter().filter(|room| room.was_ready || !room.known).map(|room| room.created_at);
    let last_success = well.chain(facts.succeeded_rooms.iter().copied()).max();
    let in_row = |made: &&Timestamp| **made >= facts.since && last_success.is_none_or(|at| **made > at);
    let failures = facts.failed_rooms.iter().filter(in_row).count();
    let failures = u32::try_from(failures).unwrap_or(u32::MAX);
    if failures >= facts.max_failures {
        return Verdict::Failed(RolloutFailure::RoomsNeverReady { rooms: failures });
    }
    let passed = age(facts.now, facts.since);
    match facts.timeout {
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
    use crate::scheduler::Version;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn room(made: i64, was_ready: bool, known: bool) -> RoomFact {
        RoomFact {
            id: RoomId::new("arena-1"),
            region: Region::default_region(),
            status: RoomStatus::Unready,
            version: Version::FIRST,
            old: false,
            draining: false,
            matches: 0,
            created_at: at(made),
            heard_at: None,
            known,
            was_ready,
            leaving: false,
            reachable: true,
            reachable_since: None,
            spared_until: None,
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
            let facts = RolloutFacts {
                now: at(20),
                since: at(10),
                timeout: None,
                max_failures: 3,
                old_rooms: 1,
                new_rooms: &live.iter().collect::<Vec<_>>(),
                succeeded_rooms: &times(succeeded),
                failed_rooms: &times(failures),
            };
            assert_eq!(verdict(&facts), expected, "{failures:?} failed, {succeeded:?} succeeded, {live:?}");
        }
    }
}
