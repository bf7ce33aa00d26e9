//! How many slots callers wait for that new rooms could give them: demand that a plan has to know.

use std::collections::{BTreeMap, VecDeque};

use crate::time::{Millis, Timestamp, after, age};

/// What a process said counts for so long; it says it again before that.
const REPORT_VALID_FOR: Millis = Millis::from_seconds(15);

/// Rooms may take longer to start than callers wait. If only those who wait now counted, rooms would be made and removed
/// in turns.
const PEAK_REMEMBERED_FOR: Millis = Millis::from_seconds(5 * 60);

/// Clocks of several processes may differ by so much.
const CLOCKS_DIFFER: Millis = Millis::from_seconds(5);

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WaitingDemand {
    processes: BTreeMap<String, (u32, Timestamp)>,
    /// Sums that no later one has reached, and until when each was true: falling numbers, rising times.
    peaks: VecDeque<(u32, Timestamp)>,
}

/// All of it, for a room table that keeps it elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WaitingParts {
    pub processes: Vec<(String, u32, Timestamp)>,
    pub peaks: Vec<(u32, Timestamp)>,
}

impl WaitingDemand {
    pub fn of_parts(parts: WaitingParts) -> Self {
        let WaitingParts { processes, peaks } = parts;
        let processes = processes.into_iter().map(|(process, slots, said)| (process, (slots, said)));
        Self { processes: processes.collect(), peaks: peaks.into() }
    }

    pub fn into_parts(self) -> WaitingParts {
        let Self { processes, peaks } = self;
        let processes = processes.into_iter().map(|(process, (slots, said))| (process, slots, said));
        WaitingParts { processes: processes.collect(), peaks: peaks.into() }
    }

    pub fn report(&mut self, process: &str, slots: u32, now: Timestamp) {
        // What was true until now.
        self.remember(now);
        match slots {
            0 => drop(self.processes.remove(process)),
            slots => drop(self.processes.insert(process.to_owned(), (slots, now))),
        }
        self.remember(now);
    }

    /// The highest number within the last five minutes.
    pub fn highest(&mut self, now: Timestamp) -> u32 {
        self.remember(now);
        self.peaks.front().map_or(0, |(slots, _)| *slots)
    }

    fn remember(&mut self, now: Timestamp) {
        // A time that lies far ahead is from before the clock was set back.
        let latest = after(now, CLOCKS_DIFFER);
        self.processes.retain(|_, (_, said)| age(now, *said) < REPORT_VALID_FOR && *said <= latest);
        self.peaks.retain(|(_, until)| age(now, *until) < PEAK_REMEMBERED_FOR && *until <= latest);
        let slots = self.processes.values().map(|(slots, _)| *slots).fold(0, u32::saturating_add);
        while self.peaks.back().is_some_and(|(peak, _)| *peak <= slots) {
            self.peaks.pop_back();
        }
        if slots > 0 {
            self.peaks.push_back((slots, now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn the_highest_of_five_minutes_counts() {
        let mut waiting = WaitingDemand::default();
        assert_eq!(waiting.highest(at(0)), 0);
        waiting.report("a", 3, at(0));
        waiting.report("b", 4, at(1));
        assert_eq!(waiting.highest(at(1)), 7);
        waiting.report("a", 0, at(2));
        waiting.report("b", 1, at(3));
        assert_eq!(waiting.highest(at(4)), 7);
        assert_eq!(waiting.highest(at(301)), 7, "it was true until two seconds after the start");
        assert_eq!(waiting.highest(at(302)), 4);
        assert_eq!(waiting.highest(at(303)), 1, "until the process was not heard of any more");
        assert_eq!(waiting.highest(at(400)), 0);
    }

    #[test]
    fn what_is_kept_elsewhere_is_the_same() {
        let mut waiting = WaitingDemand::default();
        waiting.report("a", 3, at(0));
        waiting.report("b", 4, at(1));
        waiting.report("a", 0, at(2));
        assert_eq!(WaitingDemand::of_parts(waiting.clone().into_parts()), waiting);
    }

    #[test]
    fn a_process_that_is_gone_counts_for_a_while() {
        let mut waiting = WaitingDemand::default();
        waiting.report("a", 3, at(0));
        waiting.report("b", 2, at(20));
        assert_eq!(waiting.highest(at(299)), 3);
        assert_eq!(waiting.highest(at(300)), 2);
    }

    #[test]
    fn clocks_of_processes_are_not_the_same_to_the_second() {
        let mut waiting = WaitingDemand::default();
        waiting.report("fast", 3, at(12));
        waiting.report("slow", 2, at(10));
        assert_eq!(waiting.highest(at(10)), 5);
    }

    #[test]
    fn a_clock_that_is_set_back_leaves_nothing_for_ever() {
        let mut waiting = WaitingDemand::default();
        waiting.report("a", 3, at(10_000));
        assert_eq!(waiting.highest(at(10)), 0);
        waiting.report("a", 2, at(11));
        assert_eq!(waiting.highest(at(11)), 2);
    }
}
