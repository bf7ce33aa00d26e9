//! Rooms that end early are replaced more and more slowly: a crash loop must not use up a machine, however long its rooms
//! live and whoever asks for the next ones.
//!
//! Each room that ended early delays the start of one other room, longer with each attempt that fails, until a room that
//! was started later has proven itself. So one crash among many rooms delays its own replacement by a second, and nothing
//! else. If most of a fleet is missing because its rooms keep ending early, a few rooms are tried at a time, and the others
//! follow as soon as one of them has proven itself.
//!
//! Only rooms like those to be made count: a version that mends a crash loop does not wait for what it mends.

use std::collections::BTreeSet;

use crate::room::EndCause;
use crate::time::{Millis, Timestamp, after, age};

use super::{EndedFact, FleetSnapshot, RoomFact, count};

/// A room that was ready and lives longer than this has proven itself, unless others before it failed only later.
const PROVEN: Millis = Millis::from_seconds(10);
/// One that fails within this time has ended early all the same. Not so one that ends by itself with code 0: it may have
/// had nothing more to do.
const EARLY_FAILURE: Millis = Millis::from_seconds(30);
/// A room has proven itself when it has lived for so much longer than those that failed.
const MARGIN: Millis = Millis::from_seconds(1);
const FIRST_WAIT: Millis = Millis::from_seconds(1);
/// Long enough to be quiet, short enough that a mended machine is noticed while one still looks at it.
const LONGEST_WAIT: Millis = Millis::from_seconds(60);

/// Attempts that fail in a row before a few rooms at a time are tried: the first ones are quick, and what they find
/// may pass.
const LOOP_AFTER: u32 = 5;
/// How far back failures count for that: a few rooms at a time must be enough of them for it to last.
const LOOP_MEMORY: Millis = Millis::from_seconds(15 * 60);
/// So many failures are a crash loop, however large the fleet is.
const LOOP_FAILURES_MAX: u32 = 50;
/// Of the rooms that are needed, one in so many is tried at a time: at least one.
const TRIED_SHARE: u32 = 10;
const TRIED_MAX: u32 = 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backoff {
    /// How many of the rooms that are needed wait.
    pub rooms: u32,
    /// Attempts in a row that gave rooms that ended early.
    pub failures: u32,
    /// When fewer may have to wait; `None`: when rooms that are being tried have proven themselves.
    pub until: Option<Timestamp>,
}

/// How long the start of a room waits after so many attempts that failed in a row.
pub fn wait_after(failures: u32) -> Millis {
    let doubled = 1_u64 << failures.saturating_sub(1).min(16);
    Millis(FIRST_WAIT.0.saturating_mul(doubled).min(LONGEST_WAIT.0))
}

/// `None`: all `needed` rooms may be started.
pub fn backoff(snapshot: &FleetSnapshot<'_>, needed: u32) -> Option<Backoff> {
    let now = snapshot.now;
    let proven_after = proven_after(snapshot);
    let row = failures_in_a_row(snapshot, proven_after);
    let last = row.first()?;
    let attempts: BTreeSet<_> = row.iter().map(|room| room.operation).collect();
    let failures = count(attempts.len());
    let wait = wait_after(failures);
    let tried_at = after(last.ended_at, wait);
    // After a step back of the clock it would wait for as long as that was.
    let waits = |until: Timestamp| now < until && until <= after(now, LONGEST_WAIT);
    let (rooms, until) = if failures >= LOOP_AFTER && is_crash_loop(snapshot, &row, proven_after, needed) {
        if waits(tried_at) {
            (needed, Some(tried_at))
        } else {
            let is_tried = |room: &&RoomFact| !room.leaving && !has_proven_itself(room, proven_after, now);
            let unproven: Vec<_> = snapshot.rooms.iter().filter(is_tried).collect();
            let tried = count(unproven.len()).saturating_add(snapshot.adding);
            let share = (needed / TRIED_SHARE).clamp(1, TRIED_MAX);
            let proven_at = unproven.iter().map(|room| after(room.created_at, proven_after));
            (needed.saturating_sub(share.saturating_sub(tried)), proven_at.filter(|at| *at > now).min())
        }
    } else {
        let waiting = row.iter().filter(|room| waits(after(room.ended_at, wait)));
        let until = waiting.clone().map(|room| after(room.ended_at, wait)).min();
        (waiting.map(|room| room.rooms).fold(0, u32::saturating_add).min(needed), until)
    };
    (rooms > 0).then_some(Backoff { rooms, failures, until })
}

/// How long a room must live to have proven itself: longer than those that failed lately did.
fn proven_after(snapshot: &FleetSnapshot<'_>) -> Millis {
    let failed = |room: &&EndedFact| {
        let is_recent = age(snapshot.now, room.ended_at) < LOOP_MEMORY;
        room.cause == EndCause::Failed && room.was_ready && is_recent && ended_early(room)
    };
    let lives = attempts(snapshot).filter(failed).map(|room| age(room.ended_at, room.created_at));
    let longest = lives.max().map_or(PROVEN, |life| Millis(life.0 + MARGIN.0));
    longest.clamp(PROVEN, EARLY_FAILURE)
}

/// Latest end first: those that ended early, and were made after the last one that has proven itself.
fn failures_in_a_row<'a>(snapshot: &FleetSnapshot<'a>, proven_after: Millis) -> Vec<&'a EndedFact> {
    let live = snapshot.rooms.iter().filter(|room| has_proven_itself(room, proven_after, snapshot.now));
    let ended = attempts(snapshot).filter(|room| room.was_ready && !ended_early(room));
    let proven = live.map(|room| room.created_at).chain(ended.map(|room| room.created_at)).max();
    let in_row = |room: &&EndedFact| {
        room.cause != EndCause::Asked && ended_early(room) && proven.is_none_or(|at| room.created_at >= at)
    };
    attempts(snapshot).filter(in_row).collect()
}

fn attempts<'a>(snapshot: &FleetSnapshot<'a>) -> impl Iterator<Item = &'a EndedFact> + use<'a> {
    snapshot.ended.iter().filter(|room| !room.old)
}

/// Most of the fleet is missing, because its rooms end early.
fn is_crash_loop(
    snapshot: &FleetSnapshot<'_>,
    row: &[&EndedFact],
    proven_after: Millis,
    needed: u32,
) -> bool {
    let is_well = |room: &&RoomFact| !room.leaving && has_proven_itself(room, proven_after, snapshot.now);
    let well = snapshot.rooms.iter().filter(is_well);
    let lately = row.iter().filter(|room| age(snapshot.now, room.ended_at) < LOOP_MEMORY);
    let failures = lately.map(|room| room.rooms).fold(0, u32::saturating_add);
    needed > count(well.count()) && failures >= (needed / 2).min(LOOP_FAILURES_MAX)
}

/// Nobody knows how long a room has been well that has not been heard of since a restart: it counts.
fn has_proven_itself(room: &RoomFact, proven_after: Millis, now: Timestamp) -> bool {
    !room.known || room.was_ready && age(now, room.created_at) >= proven_after
}

fn ended_early(room: &EndedFact) -> bool {
    let lived = age(room.ended_at, room.created_at);
    let early = match room.cause {
        EndCause::Failed => EARLY_FAILURE,
        EndCause::Asked | EndCause::Completed | EndCause::Unknown => PROVEN,
    };
    !room.was_ready || lived < early
}
