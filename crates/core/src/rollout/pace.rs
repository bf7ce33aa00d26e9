//! How fast rooms with players go in a rollout: at most a surge of them at once, and then not before others had time to
//! become ready and players to find them.

use crate::time::{Millis, Timestamp, after};

/// When a rollout may take rooms with players.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OccupiedPace {
    /// `rollout.occupiedInterval`; zero: any cycle may.
    pub interval: Millis,
    /// From one scheduled cycle to the next.
    pub period: Millis,
    /// When a cycle last took one.
    pub last: Option<Timestamp>,
}

impl OccupiedPace {
    /// Early cycles take none: they come as fast as rooms change.
    pub fn allows(&self, now: Timestamp, is_scheduled: bool) -> bool {
        let is_due = match self.last {
            // Before the clock was set back: nobody waits for as long as that was.
            Some(last) if last <= now => self.due_after(last) <= now,
            Some(_) | None => true,
        };
        self.interval == Millis(0) || is_scheduled && is_due
    }

    /// When the next scheduled cycle that may take some is expected; `None`: the next one may.
    pub fn next_at(&self) -> Option<Timestamp> {
        self.last.filter(|_| self.interval != Millis(0)).map(|last| after(last, self.wait()))
    }

    /// Cycles are counted, not milliseconds: one that comes a little early is the one that is meant.
    fn due_after(&self, last: Timestamp) -> Timestamp {
        after(last, Millis(self.wait().0.saturating_sub(self.period.0 / 2)))
    }

    fn wait(&self) -> Millis {
        let period = self.period.0.max(1);
        let cycles = self.interval.0.saturating_add(period / 2) / period;
        Millis(period.saturating_mul(cycles.max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).unwrap()
    }

    #[test]
    fn cycles_that_may_take_rooms_with_players() {
        // interval and period in seconds, the last that took some, now, scheduled → may this one
        for (interval, period, last, now, is_scheduled, expected) in [
            (30, 10, None, 0, true, true),
            (30, 10, None, 0, false, false),
            (30, 10, Some(0), 10_000, true, false),
            (30, 10, Some(0), 20_000, true, false),
            (30, 10, Some(0), 29_990, true, true),
            (30, 10, Some(0), 30_000, true, true),
            (30, 10, Some(0), 30_000, false, false),
            (30, 10, Some(0), 3_600_000, false, false),
            // The loop of the two reference scenarios (`docs/rollouts.md`).
            (30, 30, Some(0), 30_000, true, true),
            (30, 30, Some(0), 10_000, true, false),
            // Rounded to whole cycles, and never fewer than one.
            (30, 60, Some(0), 60_000, true, true),
            (30, 12, Some(0), 24_000, true, false),
            (30, 12, Some(0), 36_000, true, true),
            (30, 25, Some(0), 25_000, true, true),
            (1, 10, Some(0), 10_000, true, true),
            // Turned off.
            (0, 10, Some(0), 1, false, true),
            (0, 10, None, 0, false, true),
            // The clock was set back.
            (30, 10, Some(3_600_000), 0, true, true),
        ] {
            let pace = OccupiedPace {
                interval: Millis::from_seconds(interval),
                period: Millis::from_seconds(period),
                last: last.map(at),
            };
            assert_eq!(pace.allows(at(now), is_scheduled), expected, "{pace:?} at {now}");
        }
    }

    #[test]
    fn when_the_next_one_is_expected() {
        let pace = |interval, last: Option<i64>| OccupiedPace {
            interval: Millis::from_seconds(interval),
            period: Millis::from_seconds(10),
            last: last.map(at),
        };
        assert_eq!(pace(30, Some(0)).next_at(), Some(at(30_000)));
        assert_eq!(pace(34, Some(0)).next_at(), Some(at(30_000)));
        assert_eq!(pace(30, None).next_at(), None);
        assert_eq!(pace(0, Some(0)).next_at(), None);
    }
}
