//! Since when rooms could be heard. Silence is not held against rooms if it falls into a time in which the machine slept, in
//! which the store's clock was set forward, or in which pings were refused for lack of capacity.

use maestro_core::time::{Millis, Timestamp, after, age};
use parking_lot::Mutex;
use tokio::time::Instant;

/// More than a clock is set right by in everyday life, and much less than a ping timeout.
pub(crate) const CLOCK_STEP: Millis = Millis::from_seconds(5);

#[derive(Default)]
pub(crate) struct Listening(Mutex<Heard>);

#[derive(Default)]
struct Heard {
    last: Option<Last>,
    /// When a ping was last refused that nothing was wrong with.
    refused_at: Option<Timestamp>,
}

/// The last time that somebody looked.
#[derive(Clone, Copy)]
struct Last {
    by_clock: Timestamp,
    by_timer: Instant,
    leapt_at: Option<Timestamp>,
}

impl Listening {
    /// Since when every room could be heard; `None`: for as long as one can remember.
    pub(crate) fn since(&self, now: Timestamp) -> Option<Timestamp> {
        let awake = self.awake_since(now);
        // A clock that was set back since makes it say nothing any more.
        let refused_at = self.0.lock().refused_at.filter(|at| *at <= now);
        awake.max(refused_at)
    }

    /// Since when the machine has been awake; `None`: for as long as one can remember.
    pub(crate) fn awake_since(&self, now: Timestamp) -> Option<Timestamp> {
        self.look(now, Instant::now())
    }

    /// Somebody who may have been a room was not heard, through no fault of its own.
    pub(crate) fn refused(&self, now: Timestamp) {
        self.0.lock().refused_at = Some(now);
    }

    fn look(&self, by_clock: Timestamp, by_timer: Instant) -> Option<Timestamp> {
        let mut heard = self.0.lock();
        let leapt_at = heard.last.and_then(|last| {
            let passed = Millis::from(by_timer.saturating_duration_since(last.by_timer));
            let leaps = age(by_clock, after(last.by_clock, passed)) > CLOCK_STEP;
            // Set back since, it says nothing any more.
            if leaps { Some(by_clock) } else { last.leapt_at.filter(|at| *at <= by_clock) }
        });
        heard.last = Some(Last { by_clock, by_timer, leapt_at });
        leapt_at
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_nobody_could_hear() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let began = Instant::now();
        // (time of day, timer) → since
        for (looks, expected) in [
            (&[(1_000, 0), (1_010, 10), (1_400, 400)][..], None),
            // The clock is set right a little, or back.
            (&[(1_000, 0), (1_014, 10)], None),
            (&[(1_000, 0), (10, 10)], None),
            // The machine slept, or the clock was set forward.
            (&[(1_000, 0), (1_610, 10)], Some(1_610)),
            (&[(1_000, 0), (1_610, 10), (1_620, 20)], Some(1_610)),
            (&[(1_000, 0), (1_610, 10), (1_020, 20)], None),
        ] {
            let listening = Listening::default();
            let look =
                |(clock, timer): &(i64, u64)| listening.look(at(*clock), began + Duration::from_secs(*timer));
            assert_eq!(looks.iter().map(look).last().unwrap(), expected.map(at), "{looks:?}");
        }
    }

    #[test]
    fn pings_that_were_refused() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let listening = Listening::default();
        assert_eq!(listening.since(at(1_000)), None);
        listening.refused(at(1_000));
        assert_eq!(listening.since(at(1_000)), Some(at(1_000)));
        assert_eq!(listening.since(at(1_001)), Some(at(1_000)));
        assert_eq!(listening.awake_since(at(1_001)), None, "whoever is to end does not need to be heard");
        listening.refused(at(1_002));
        assert_eq!(listening.since(at(1_002)), Some(at(1_002)));
        assert_eq!(listening.since(at(10)), None, "the clock was set back");
    }
}
