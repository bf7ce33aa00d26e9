//! How many matches the players play at a time: a number, a file, or a built-in curve.
//!
//! With one match a room, matches are occupied rooms. Whole numbers only, so that a curve is the same everywhere.

use maestro_core::time::Millis;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demand {
    /// Never empty, by time; of several at the same time the last one counts, so that numbers can jump.
    knots: Vec<Knot>,
    between: Between,
    /// It begins anew after this long.
    period: Option<Millis>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Knot {
    pub(super) at: Millis,
    pub(super) matches: u32,
}

/// What holds from one knot to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Between {
    /// The number of the earlier one.
    Step,
    /// From one number to the other, slowly at both ends, as players come and go.
    Ease,
}

impl Demand {
    pub fn constant(matches: u32) -> Self {
        let at = Millis(0);
        Self::steps(vec![Knot { at, matches }])
    }

    pub(super) fn steps(knots: Vec<Knot>) -> Self {
        Self { knots, between: Between::Step, period: None }
    }

    /// From the lowest number of a day to its highest and back, again and again.
    pub(super) fn day(low: u32, high: u32, period: Millis) -> Self {
        let knots = knots([(0, low), (period.0 / 2, high), (period.0, low)]);
        Self { period: Some(period), ..Self::eased(knots) }
    }

    /// Everybody comes at once, and some of them stay.
    pub(super) fn launch(peak: u32, settle: u32, rise: Millis, fall: Millis) -> Self {
        Self::eased(knots([(0, 0), (rise.0, peak), (rise.0.saturating_add(fall.0), settle)]))
    }

    /// A stream, a tournament: from `base` to `peak` and back.
    pub(super) fn spike(base: u32, peak: u32, times: SpikeTimes) -> Self {
        let up = times.at.0.saturating_add(times.rise.0);
        let down = up.saturating_add(times.hold.0);
        let over = down.saturating_add(times.fall.0);
        Self::eased(knots([(0, base), (times.at.0, base), (up, peak), (down, peak), (over, base)]))
    }

    fn eased(knots: Vec<Knot>) -> Self {
        Self { knots, between: Between::Ease, period: None }
    }

    /// The matches that players want to play at this time.
    pub fn at(&self, time: Millis) -> u32 {
        let time = match self.period {
            Some(period) => time.0 % period.0.max(1),
            None => time.0,
        };
        let next = self.knots.partition_point(|knot| knot.at.0 <= time);
        match (next.checked_sub(1).and_then(|last| self.knots.get(last)), self.knots.get(next)) {
            (Some(last), Some(next)) => self.between.at(*last, *next, time),
            // Before the first and after the last, their numbers hold.
            (Some(knot), None) | (None, Some(knot)) => knot.matches,
            (None, None) => 0,
        }
    }

    /// From when on it stays the same; `None` if it never does.
    pub fn settles_at(&self) -> Option<Millis> {
        match self.period {
            None => self.knots.last().map(|knot| knot.at),
            Some(_) => None,
        }
    }

    pub fn period(&self) -> Option<Millis> {
        self.period
    }
}

/// When a spike begins, and how long its parts take.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpikeTimes {
    pub(super) at: Millis,
    pub(super) rise: Millis,
    pub(super) hold: Millis,
    pub(super) fall: Millis,
}

fn knots<const N: usize>(points: [(u64, u32); N]) -> Vec<Knot> {
    let knot = |(at, matches)| Knot { at: Millis(at), matches };
    points.into_iter().map(knot).collect()
}

impl Between {
    fn at(self, from: Knot, to: Knot, time: u64) -> u32 {
        match self {
            Self::Step => from.matches,
            Self::Ease => ease(from, to, time),
        }
    }
}

/// `x²(3 − 2x)`, with `x` counted in parts of [`WHOLE`].
fn ease(from: Knot, to: Knot, time: u64) -> u32 {
    const WHOLE: i128 = 1 << 20;
    let span = i128::from(to.at.0 - from.at.0).max(1);
    let x = i128::from(time - from.at.0) * WHOLE / span;
    let eased = x * x * (3 * WHOLE - 2 * x);
    let whole = WHOLE * WHOLE * WHOLE;
    let rise = (i128::from(to.matches) - i128::from(from.matches)) * eased;
    let matches = i128::from(from.matches) + (rise + whole / 2).div_euclid(whole);
    u32::try_from(matches).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60_000;

    fn check(demand: &Demand, expected: &[(u64, u32)]) {
        for (minute, matches) in expected {
            assert_eq!(demand.at(Millis(minute * MINUTE)), *matches, "minute {minute}");
        }
    }

    #[test]
    fn a_day_repeats() {
        let day = Demand::day(10, 110, Millis(24 * 60 * MINUTE));
        check(&day, &[(0, 10), (180, 26), (360, 60), (720, 110), (1080, 60), (1440, 10), (2160, 110)]);
        assert_eq!(day.settles_at(), None);
    }

    #[test]
    fn a_launch_settles() {
        let launch = Demand::launch(1000, 300, Millis(60 * MINUTE), Millis(360 * MINUTE));
        check(&launch, &[(0, 0), (30, 500), (60, 1000), (240, 650), (420, 300), (9999, 300)]);
        assert_eq!(launch.settles_at(), Some(Millis(420 * MINUTE)));
    }

    #[test]
    fn a_spike_goes_up_and_down() {
        let minutes = |number| Millis(number * MINUTE);
        let times = SpikeTimes { at: minutes(10), rise: minutes(2), hold: minutes(5), fall: minutes(4) };
        let spike = Demand::spike(20, 100, times);
        check(
            &spike,
            &[(0, 20), (10, 20), (11, 60), (12, 100), (16, 100), (17, 100), (19, 60), (21, 20), (60, 20)],
        );
    }

    #[test]
    fn a_spike_may_come_from_one_moment_to_the_next() {
        let none = Millis(0);
        let times = SpikeTimes { at: Millis(MINUTE), rise: none, hold: Millis(MINUTE), fall: none };
        let spike = Demand::spike(20, 100, times);
        for (time, matches) in
            [(0, 20), (MINUTE - 1, 20), (MINUTE, 100), (2 * MINUTE - 1, 100), (2 * MINUTE, 20)]
        {
            assert_eq!(spike.at(Millis(time)), matches, "{time} ms");
        }
    }

    #[test]
    fn the_longest_and_highest_do_not_overflow() {
        let launch = Demand::launch(u32::MAX, 0, Millis(u64::MAX / 2), Millis(u64::MAX));
        assert_eq!(launch.at(Millis(u64::MAX / 2)), u32::MAX);
        assert_eq!(launch.at(Millis(u64::MAX)), 0);
        assert!(launch.at(Millis(u64::MAX / 4)) > u32::MAX / 3);
    }
}
