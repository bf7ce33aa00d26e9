//! When the next ping is due. Pure: times come in from outside, the jitter from a seed.

use std::time::{Duration, Instant};

/// Even a game that changes its status in a tight loop, or a server that is down, sees no more than 20 pings a second.
pub(crate) const GAP_MIN: Duration = Duration::from_millis(50);

/// The first wait after a failure. It doubles with each further one, up to the interval.
const BACK_OFF_FIRST: Duration = Duration::from_millis(500);

/// An interval is drawn from the middle one, give or take this share: 10,000 rooms started together drift apart.
const JITTER: f64 = 0.2;

#[derive(Debug)]
pub(crate) struct Pace {
    interval: Duration,
    random: fastrand::Rng,
    /// In a row.
    pub(crate) failures: u32,
    sent_at: Option<Instant>,
    /// None until there is something to say.
    due_at: Option<Instant>,
    /// Something has changed that no ping has carried yet.
    pub(crate) changed: bool,
}

impl Pace {
    pub(crate) fn new(interval: Duration, seed: u64) -> Self {
        Self {
            interval: interval.max(GAP_MIN),
            random: fastrand::Rng::with_seed(seed),
            failures: 0,
            sent_at: None,
            due_at: None,
            changed: false,
        }
    }

    /// The next ping is due at once, also in the middle of a back-off: the server may be back.
    pub(crate) fn change(&mut self, now: Instant) {
        self.changed = true;
        self.due_at = Some(self.at_once(now));
    }

    pub(crate) fn sent(&mut self, now: Instant) {
        self.changed = false;
        self.sent_at = Some(now);
    }

    pub(crate) fn answered(&mut self, now: Instant, accepted: bool) {
        self.failures = if accepted { 0 } else { self.failures.saturating_add(1) };
        let wait = if accepted { self.next_interval() } else { self.next_back_off() };
        let due_at = if self.changed { self.at_once(now) } else { now + wait };
        self.due_at = Some(due_at);
    }

    /// How long until the next ping; zero: now. None: nothing is to be sent.
    pub(crate) fn wait(&self, now: Instant) -> Option<Duration> {
        self.due_at.map(|due_at| due_at.saturating_duration_since(now))
    }

    fn at_once(&self, now: Instant) -> Instant {
        self.sent_at.map_or(now, |sent_at| now.max(sent_at + GAP_MIN))
    }

    fn next_interval(&mut self) -> Duration {
        let share = (self.random.f64() * 2.0 - 1.0) * JITTER;
        self.interval.mul_f64(1.0 + share)
    }

    /// Between half and all of the back-off: rooms that lost the same server do not come back in step.
    fn next_back_off(&mut self) -> Duration {
        let doublings = self.failures.saturating_sub(1).min(16);
        let back_off = BACK_OFF_FIRST.saturating_mul(1 << doublings).min(self.interval);
        back_off.mul_f64(0.5 + self.random.f64() / 2.0).max(GAP_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(10);

    fn waits(accepted: bool, seed: u64, number: usize) -> Vec<Duration> {
        let mut pace = Pace::new(INTERVAL, seed);
        let mut now = Instant::now();
        let mut next = || {
            pace.sent(now);
            pace.answered(now, accepted);
            let wait = pace.wait(now).unwrap();
            now += wait;
            wait
        };
        (0..number).map(|_| next()).collect()
    }

    #[test]
    fn nothing_is_due_before_something_is_said() {
        assert_eq!(Pace::new(INTERVAL, 1).wait(Instant::now()), None);
    }

    #[test]
    fn intervals_stay_within_a_fifth_and_differ() {
        let waits = waits(true, 7, 1000);
        assert!(waits.iter().all(|wait| (8.0..=12.0).contains(&wait.as_secs_f64())));
        let early = waits.iter().filter(|wait| **wait < INTERVAL).count();
        assert!((400..=600).contains(&early), "{early} of 1000 below the middle");
    }

    #[test]
    fn the_same_seed_gives_the_same_waits() {
        assert_eq!(waits(true, 3, 20), waits(true, 3, 20));
        assert_ne!(waits(true, 3, 20), waits(true, 4, 20));
    }

    #[test]
    fn failures_back_off_up_to_the_interval() {
        let bounds_ms = [(250, 500), (500, 1000), (1000, 2000), (2000, 4000), (4000, 8000), (5000, 10_000)];
        let waits = waits(false, 11, 100);
        for (index, wait) in waits.iter().enumerate() {
            let (low, high) = bounds_ms[index.min(bounds_ms.len() - 1)];
            assert!((low..=high).contains(&wait.as_millis()), "wait {index} is {wait:?}");
        }
    }

    #[test]
    fn success_ends_the_back_off() {
        let mut pace = Pace::new(INTERVAL, 1);
        let now = Instant::now();
        pace.answered(now, false);
        pace.answered(now, true);
        assert_eq!(pace.failures, 0);
        assert!(pace.wait(now).unwrap() >= Duration::from_secs(8));
    }

    #[test]
    fn a_change_is_due_at_once_even_while_backing_off() {
        let mut pace = Pace::new(INTERVAL, 1);
        let start = Instant::now();
        pace.change(start);
        assert_eq!(pace.wait(start), Some(Duration::ZERO));
        pace.sent(start);
        pace.answered(start, false);

        let later = start + Duration::from_millis(60);
        pace.change(later);
        assert_eq!(pace.wait(later), Some(Duration::ZERO));
    }

    #[test]
    fn a_change_during_a_request_follows_it_after_the_smallest_gap() {
        let mut pace = Pace::new(INTERVAL, 1);
        let start = Instant::now();
        pace.change(start);
        pace.sent(start);
        pace.change(start + Duration::from_millis(1));
        pace.answered(start + Duration::from_millis(2), true);
        assert_eq!(pace.wait(start + Duration::from_millis(2)), Some(GAP_MIN - Duration::from_millis(2)));
    }
}
