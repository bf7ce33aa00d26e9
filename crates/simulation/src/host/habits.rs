//! How simulated rooms behave, and how a host answers.

use std::time::Duration;

/// A length of time that is drawn anew each time: at least `from`, at most `to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub from: Duration,
    pub to: Duration,
}

/// What rooms do that are started from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Habits {
    /// From being started to being up.
    pub up_after: Span,
    /// From being up to the first ping; `None`: it never becomes ready.
    pub ready_after: Option<Span>,
    pub ping_every: Span,
    /// From being asked to end to having ended; `None`: it does not obey and has to be killed.
    pub obeys_after: Option<Span>,
    /// `None`: it runs until it is stopped.
    pub exits: Option<Exit>,
    /// How many numbered lines it writes before it writes that it has started.
    pub lines_written: usize,
}

/// How a room ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// After being up.
    pub after: Span,
    pub code: i32,
}

/// How a host answers calls from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFaults {
    /// How long a call takes before it is carried out, and as long again before its answer is there. It is what makes
    /// calls overlap: an engine that dies in the second half has done something that it never wrote down.
    pub latency: Span,
    /// False: calls fail, and those that are under way do not say whether they were carried out.
    pub available: bool,
    /// Why rooms cannot be started, if they cannot.
    pub refuses_starts: Option<String>,
    /// How many rooms it holds, those that try a version aside; `None`: any number.
    pub rooms_max: Option<u32>,
    /// Whether no scheduler can have a place for its rooms.
    pub refuses_schedulers: bool,
}

impl Span {
    pub const ZERO: Self = Self::exactly(Duration::ZERO);

    pub const fn exactly(length: Duration) -> Self {
        Self { from: length, to: length }
    }

    pub const fn millis(from: u64, to: u64) -> Self {
        Self { from: Duration::from_millis(from), to: Duration::from_millis(to) }
    }

    /// Whole milliseconds, the finest that timers know.
    pub(crate) fn draw(self, random: &mut fastrand::Rng) -> Duration {
        let millis = |length: Duration| u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
        Duration::from_millis(random.u64(millis(self.from)..=millis(self.to).max(millis(self.from))))
    }
}

impl Default for Habits {
    fn default() -> Self {
        Self {
            up_after: Span::millis(20, 400),
            ready_after: Some(Span::millis(100, 3_000)),
            ping_every: Span::millis(9_000, 11_000),
            obeys_after: Some(Span::millis(10, 1_500)),
            exits: None,
            lines_written: 0,
        }
    }
}

impl Default for HostFaults {
    fn default() -> Self {
        Self {
            latency: Span::millis(0, 20),
            available: true,
            refuses_starts: None,
            rooms_max: None,
            refuses_schedulers: false,
        }
    }
}
