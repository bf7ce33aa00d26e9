//! The time of day in a simulated world: an epoch, and the virtual time that has passed since.

use std::time::Duration;

use maestro_core::time::Timestamp;
use maestro_engine::ports::Clock;
use tokio::time::Instant;

/// Runs with tokio's clock, paused or not.
#[derive(Debug, Clone, Copy)]
pub struct VirtualClock {
    began: Instant,
}

/// A whole second, so that times in traces are easy to read: 2030-01-01T00:00:00Z.
const EPOCH_SECONDS: i64 = 1_893_456_000;

impl VirtualClock {
    /// It is midnight now.
    pub fn begin() -> Self {
        Self { began: Instant::now() }
    }

    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// The clock of a machine that is not set right.
    pub(crate) fn skewed(self, skew: Skew) -> SkewedClock {
        SkewedClock { right: self, skew }
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(EPOCH_SECONDS)
            .and_then(|epoch| epoch.checked_add(self.elapsed()))
            .unwrap_or(Timestamp::MAX)
    }
}

/// How far a clock is ahead; negative: behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skew {
    pub millis: i64,
}

impl Skew {
    pub const NONE: Self = Self { millis: 0 };
}

/// Runs as fast as the right one, by a constant time apart from it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SkewedClock {
    right: VirtualClock,
    skew: Skew,
}

impl Clock for SkewedClock {
    fn now(&self) -> Timestamp {
        let now = self.right.now();
        let by = Duration::from_millis(self.skew.millis.unsigned_abs());
        let skewed = if self.skew.millis < 0 { now.checked_sub(by) } else { now.checked_add(by) };
        skewed.unwrap_or(now)
    }
}
