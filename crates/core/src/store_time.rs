//! The store's time, as a process knows it that asks for it now and then.
//!
//! Several processes share a store, and each is on a host whose clock may be wrong. So all go by the store's clock. In
//! between two questions time goes on by a clock that only counts, from the boot of the host.
//!
//! An answer takes time, and nobody knows how much of it passed before the store looked at its clock. It only lies between
//! question and answer. An estimate is moved into that interval and no further: what a quick answer has settled, a slow one
//! leaves as it is.

use std::time::Duration;

use crate::time::Timestamp;

/// The store's time when this host was booted: what has passed since is added to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreTimeEstimate {
    booted_at: Timestamp,
}

/// What the store said when it was asked for its time, and when that was, since this host was booted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreTimeAnswer {
    pub asked_at: Duration,
    pub answered_at: Duration,
    pub store_time: Timestamp,
}

impl StoreTimeEstimate {
    /// A guess by any other clock.
    pub fn guess(now: Timestamp, since_boot: Duration) -> Self {
        Self { booted_at: before(now, since_boot) }
    }

    /// By the quickest of several answers: half way between what is possible. `None`: there are none.
    pub fn of_best(answers: &[StoreTimeAnswer]) -> Option<Self> {
        let best = answers.iter().min_by_key(|answer| answer.round_trip())?;
        Some(Self { booted_at: after(best.earliest_boot(), best.round_trip() / 2) })
    }

    /// Moved as far as this answer makes it necessary.
    #[must_use]
    pub fn confined(self, answer: &StoreTimeAnswer) -> Self {
        Self { booted_at: self.booted_at.clamp(answer.earliest_boot(), answer.latest_boot()) }
    }

    pub fn now(self, since_boot: Duration) -> Timestamp {
        after(self.booted_at, since_boot)
    }
}

impl StoreTimeAnswer {
    fn round_trip(&self) -> Duration {
        self.answered_at.saturating_sub(self.asked_at)
    }

    /// The store looked just before the answer was there.
    fn earliest_boot(&self) -> Timestamp {
        before(self.store_time, self.asked_at.max(self.answered_at))
    }

    /// The store looked as soon as it was asked.
    fn latest_boot(&self) -> Timestamp {
        before(self.store_time, self.asked_at)
    }
}

fn after(at: Timestamp, span: Duration) -> Timestamp {
    at.checked_add(span).unwrap_or(Timestamp::MAX)
}

fn before(at: Timestamp, span: Duration) -> Timestamp {
    at.checked_sub(span).unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).unwrap()
    }

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Asked at one time and answered at the other, in milliseconds since boot.
    fn answer(asked_at: u64, answered_at: u64, says: i64) -> StoreTimeAnswer {
        StoreTimeAnswer { asked_at: ms(asked_at), answered_at: ms(answered_at), store_time: at(says) }
    }

    #[test]
    fn an_answer_moves_an_estimate_as_far_as_it_must() {
        let estimate = StoreTimeEstimate::guess(at(50_000), ms(1_000));
        assert_eq!(estimate.now(ms(2_500)), at(51_500));
        // At 2 s it is 51 s by the estimate: (asked, answered, the store's time) → what it is at 2 s.
        for (asked, answered, says, expected) in [
            (2_000, 2_000, 51_000, 51_000),
            // As well as anybody knows it is right.
            (1_990, 2_010, 51_005, 51_000),
            (1_000, 2_000, 50_500, 51_000),
            // The store's clock is ahead, or behind.
            (2_000, 2_000, 51_003, 51_003),
            (1_990, 2_010, 51_100, 51_090),
            (1_990, 2_010, 50_900, 50_910),
            // It was set.
            (1_990, 2_010, 4_000_000, 3_999_990),
            (1_990, 2_010, 0, 10),
        ] {
            let moved = estimate.confined(&answer(asked, answered, says));
            assert_eq!(moved.now(ms(2_000)), at(expected), "{asked} to {answered}: {says}");
        }
    }

    #[test]
    fn the_quickest_answer_is_the_best() {
        assert_eq!(StoreTimeEstimate::of_best(&[]), None);
        let answers = [answer(0, 3_000, 7_000), answer(3_000, 3_020, 10_010), answer(3_020, 3_060, 10_030)];
        let estimate = StoreTimeEstimate::of_best(&answers).unwrap();
        assert_eq!(estimate.now(ms(3_000)), at(10_000));
    }

    #[test]
    fn times_that_cannot_be_are_the_last_ones_that_can() {
        let estimate = StoreTimeEstimate::guess(Timestamp::MIN, ms(1_000));
        assert_eq!(estimate.now(Duration::ZERO), Timestamp::MIN);
        assert_eq!(estimate.now(Duration::MAX), Timestamp::MAX);
    }

    prop_compose! {
        /// How long until it is asked, how long the question takes, and the answer: by a store whose clock is right.
        fn question()(pause in 0_u64..5_000, there in 0_u64..3_000, back in 0_u64..3_000) -> (u64, u64, u64) {
            (pause, there, back)
        }
    }

    proptest! {
        /// Whatever it was before, and however answers are delayed on either way.
        #[test]
        fn an_estimate_lies_within_the_last_answer_and_moves_no_further(
            guess in -1_000_000_000_i64..1_000_000_000,
            offset in -1_000_000_000_i64..1_000_000_000,
            questions in prop::collection::vec(question(), 1..20),
        ) {
            let mut estimate = StoreTimeEstimate::guess(at(guess), Duration::ZERO);
            let (mut now, mut quickest) = (0, u64::MAX);
            for (pause, there, back) in questions {
                let asked = now + pause;
                now = asked + there + back;
                let says = offset + i64::try_from(asked + there).unwrap();
                let answer = answer(asked, now, says);
                let before = estimate.now(ms(now));
                estimate = estimate.confined(&answer);
                let after = estimate.now(ms(now));
                let (first, last) = (at(says), at(says + i64::try_from(there + back).unwrap()));
                prop_assert!(first <= after && after <= last, "{first} <= {after} <= {last}");
                prop_assert!(after == before || after == first || after == last);
                prop_assert_eq!(after == before, first <= before && before <= last);
                // Never worse than the quickest answer so far allows.
                quickest = quickest.min(there + back);
                let truth = at(offset + i64::try_from(now).unwrap());
                let error = truth.duration_since(after).unsigned_abs();
                prop_assert!(error <= ms(quickest), "{error:?} after a round trip of {quickest} ms");
            }
        }

        #[test]
        fn the_best_of_several_is_half_a_round_trip_off_at_most(
            offset in -1_000_000_000_i64..1_000_000_000,
            questions in prop::collection::vec(question(), 1..8),
        ) {
            let mut now = 0;
            let answers: Vec<_> = questions.iter().map(|(pause, there, back)| {
                let asked = now + pause;
                now = asked + there + back;
                answer(asked, now, offset + i64::try_from(asked + there).unwrap())
            }).collect();
            let quickest = questions.iter().map(|(_, there, back)| there + back).min().unwrap();
            let estimate = StoreTimeEstimate::of_best(&answers).unwrap();
            let truth = at(offset + i64::try_from(now).unwrap());
            let error = truth.duration_since(estimate.now(ms(now))).unsigned_abs();
            prop_assert!(error <= ms(quickest) / 2, "{error:?} of {quickest} ms");
        }
    }
}
