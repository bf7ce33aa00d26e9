//! What happened, in numbers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::Contest;
use super::rows::Row;

#[derive(Debug, Default)]
pub(super) struct Counts {
    given: AtomicUsize,
    refused: AtomicU64,
    hung_up: AtomicU64,
    repeated: AtomicU64,
    unavailable: AtomicU64,
    pings: AtomicU64,
    /// Of those who did not want to wait.
    answered_in: Mutex<Vec<Duration>>,
}

impl Counts {
    pub(super) fn given(&self) -> usize {
        self.given.load(Ordering::Relaxed)
    }

    pub(super) fn gave(&self, rooms: usize) {
        self.given.fetch_add(rooms, Ordering::Relaxed);
    }

    pub(super) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn hung_up(&self) {
        self.hung_up.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn repeated(&self) {
        self.repeated.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn unavailable(&self) {
        self.unavailable.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn pinged(&self) {
        self.pings.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn answered_in(&self, took: Duration) {
        self.answered_in.lock().push(took);
    }
}

/// What there was to check. `Display` is the report.
#[derive(Debug)]
pub struct Tally {
    pub given: usize,
    /// Held or played in at the same time.
    pub most_at_once: usize,
    /// Rooms whose processes were killed.
    pub killed: usize,
    rooms_made: u32,
    /// The states in which allocations ended, those included that nobody heard of.
    pub ended: BTreeMap<String, usize>,
    took: Duration,
    refused: u64,
    hung_up: u64,
    repeated: u64,
    unavailable: u64,
    pings: u64,
    /// Sorted.
    answered_in: Vec<Duration>,
}

impl Tally {
    pub(super) fn of(contest: &Contest, rooms_made: u32, rows: &[Row], took: Duration) -> Self {
        let counts = &contest.counts;
        let number = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut ended = BTreeMap::new();
        for row in rows {
            *ended.entry(row.state.clone()).or_default() += 1;
        }
        let mut answered_in = counts.answered_in.lock().clone();
        answered_in.sort();
        Self {
            given: counts.given(),
            most_at_once: contest.ledger.taken().1,
            killed: contest.ledger.look(|entries| entries.killed.len()),
            rooms_made,
            ended,
            took,
            refused: number(&counts.refused),
            hung_up: number(&counts.hung_up),
            repeated: number(&counts.repeated),
            unavailable: number(&counts.unavailable),
            pings: number(&counts.pings),
            answered_in,
        }
    }

    fn percentile(&self, percent: usize) -> Duration {
        let last = self.answered_in.len().saturating_sub(1);
        self.answered_in.get(last * percent / 100).copied().unwrap_or_default()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ended = self.ended.iter().map(|(state, number)| format!("{number} {state}"));
        write!(
            f,
            "{} rooms given in {:.1} s ({:.0} a second), up to {} at once; answered without waiting in {:.1} ms, 99 % in \
             {:.1} ms; {} times no room, {} requests hung up on, {} repeated, {} answers 503 or 504; {} of \
             {} rooms killed, {} pings; allocations ended: {}",
            self.given,
            self.took.as_secs_f64(),
            self.given as f64 / self.took.as_secs_f64(),
            self.most_at_once,
            self.percentile(50).as_secs_f64() * 1000.0,
            self.percentile(99).as_secs_f64() * 1000.0,
            self.refused,
            self.hung_up,
            self.repeated,
            self.unavailable,
            self.killed,
            self.rooms_made,
            self.pings,
            ended.collect::<Vec<_>>().join(", "),
        )
    }
}
