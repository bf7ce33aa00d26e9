//! Rooms that end at once are replaced ever more slowly: a broken recipe must not make a machine spin.

use crate::room::EndCause;
use crate::time::{Millis, Timestamp, after, age};

use super::{EndedFact, FleetSnapshot, count};

/// A room that lives longer than this did not "end at once", ready or not.
const SHORT_LIFE: Millis = Millis::from_seconds(10);
const FIRST_WAIT: Millis = Millis::from_seconds(1);
/// Long enough to be quiet, short enough that a mended machine is noticed while one still looks at it.
const LONGEST_WAIT: Millis = Millis::from_seconds(60);

pub(super) struct Backoff {
    /// How many of the rooms that are needed wait: as many as the last attempt lost.
    pub(super) rooms: u32,
    /// Attempts in a row that gave rooms that ended at once.
    pub(super) failures: u32,
    pub(super) until: Timestamp,
}

/// `None`: nothing failed lately, or it has waited long enough.
pub(super) fn backoff(snapshot: &FleetSnapshot<'_>) -> Option<Backoff> {
    // A room that is well now ends the row of failures before it was made.
    let last_success =
        snapshot.rooms.iter().filter(|room| room.was_ready || !room.known).map(|room| room.created_at).max();
    let failed: Vec<&EndedFact> = snapshot
        .ended
        .iter()
        .filter(|room| room.cause != EndCause::Asked)
        .take_while(|room| ended_at_once(room) && last_success.is_none_or(|at| room.created_at >= at))
        .collect();
    let last = failed.first()?;
    let mut attempts: Vec<_> = failed.iter().map(|room| room.operation).collect();
    attempts.dedup();
    let failures = count(attempts.len());
    let wait = Millis(FIRST_WAIT.0.saturating_mul(1 << (failures - 1).min(16)).min(LONGEST_WAIT.0));
    let until = after(last.ended_at, wait);
    let last_attempt = failed.iter().filter(|room| room.operation == last.operation);
    let rooms = last_attempt.map(|room| room.rooms).fold(0, u32::saturating_add);
    // After a step back of the clock it would wait for as long as that was.
    let is_ahead = until > after(snapshot.now, LONGEST_WAIT);
    (snapshot.now < until && !is_ahead).then_some(Backoff { rooms, failures, until })
}

fn ended_at_once(room: &EndedFact) -> bool {
    !room.was_ready || age(room.ended_at, room.created_at) < SHORT_LIFE
}
