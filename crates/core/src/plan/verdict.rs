//! Whether a rollout goes on, has come to its end, or has failed.

use std::fmt;

use crate::time::{Millis, Timestamp, age};

use super::{RoomFact, count};

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
    /// When those were made that ended without having been ready, by their own failure or by a timeout.
    pub failed_rooms: &'a [Timestamp],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    GoesOn,
    Finished,
    Failed(RolloutFailure),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RolloutFailure {
    RoomsNeverReady { rooms: u32 },
    TimedOut { after: Millis },
}

pub fn verdict(facts: &RolloutFacts<'_>) -> Verdict {
    if facts.old_rooms == 0 {
        return Verdict::Finished;
    }
    // In a row, with no success between them: one that became ready speaks for all that were made before it.
    let last_success = facts.new_rooms.iter().filter(|room| room.was_ready).map(|room| room.created_at).max();
    let in_row = |made: &&Timestamp| **made >= facts.since && last_success.is_none_or(|at| **made > at);
    let failures = count(facts.failed_rooms.iter().filter(in_row).count());
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
