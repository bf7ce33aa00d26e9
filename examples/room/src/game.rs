//! The game itself: matches that begin and end. Pure: the time comes from outside.

use std::time::{Duration, Instant};

#[derive(Debug)]
pub(crate) struct Game {
    matches_max: u32,
    phase: Phase,
    /// When each running match ends, in no order.
    ends_at: Vec<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Starting,
    Open,
    /// Lets its matches end and takes no more.
    Closed,
}

impl Game {
    pub(crate) fn new(matches_max: u32) -> Self {
        Self { matches_max, phase: Phase::Starting, ends_at: Vec::new() }
    }

    pub(crate) fn open(&mut self) {
        self.phase = Phase::Open;
    }

    pub(crate) fn close(&mut self) {
        self.phase = Phase::Closed;
    }

    /// The number of matches with the new one, or none if there is no place for it.
    pub(crate) fn join(&mut self, now: Instant, length: Duration) -> Option<u32> {
        let has_place = self.phase == Phase::Open && self.matches() < self.matches_max;
        if !has_place {
            return None;
        }
        self.ends_at.push(now + length);
        Some(self.matches())
    }

    /// How many matches have come to their end.
    pub(crate) fn end_matches(&mut self, now: Instant) -> usize {
        let before = self.ends_at.len();
        self.ends_at.retain(|ends_at| *ends_at > now);
        before - self.ends_at.len()
    }

    pub(crate) fn next_end(&self) -> Option<Instant> {
        self.ends_at.iter().min().copied()
    }

    pub(crate) fn matches(&self) -> u32 {
        // Bounded by `matches_max`, so it fits.
        u32::try_from(self.ends_at.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn matches_max(&self) -> u32 {
        self.matches_max
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn matches_begin_up_to_the_limit_and_end_in_time() {
        let start = Instant::now();
        let mut game = Game::new(2);
        assert_eq!(game.join(start, SECOND), None, "not yet open");

        game.open();
        assert_eq!(game.join(start, 3 * SECOND), Some(1));
        assert_eq!(game.join(start, SECOND), Some(2));
        assert_eq!(game.join(start, SECOND), None, "full");
        assert_eq!(game.next_end(), Some(start + SECOND));

        assert_eq!(game.end_matches(start + SECOND), 1);
        assert_eq!(game.join(start + SECOND, SECOND), Some(2));
        assert_eq!(game.end_matches(start + 3 * SECOND), 2);
        assert_eq!((game.matches(), game.next_end()), (0, None));
    }

    #[test]
    fn a_closed_game_takes_nobody_but_lets_matches_end() {
        let start = Instant::now();
        let mut game = Game::new(2);
        game.open();
        game.join(start, SECOND);
        game.close();
        assert_eq!(game.join(start, SECOND), None);
        assert_eq!(game.end_matches(start + SECOND), 1);
    }
}
