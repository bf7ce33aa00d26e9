//! The time of day in a simulated world: an epoch, and the virtual time that has passed since.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use maestro_core::time::{Millis, Timestamp};
use maestro_engine::ports::Clock;
use tokio::time::Instant;

/// Runs with tokio's clock, paused or not. All clones are one.
#[derive(Debug, Clone)]
pub struct VirtualClock {
    began: Instant,
    /// What it was set forward by, in milliseconds, all together.
    set_by: Arc<AtomicI64>,
}

/// A whole second, so that times in traces are easy to read: 2030-01-01T00:00:00Z.
const EPOCH_SECONDS: i64 = 1_893_456_000;

impl VirtualClock {
    /// It is midnight now.
    pub fn begin() -> Self {
        Self { began: Instant::now(), set_by: Arc::default() }
    }

    /// Someone sets it, forward or back; no timer notices.
    pub(crate) fn leap(&self, millis: i64) {
        self.set_by.fetch_add(millis, Ordering::Relaxed);
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
        let right = Timestamp::from_second(EPOCH_SECONDS)
            .and_then(|epoch| epoch.checked_add(self.elapsed()))
            .unwrap_or(Timestamp::MAX);
        moved(right, self.set_by.load(Ordering::Relaxed))
    }

    fn since_boot(&self) -> Duration {
        self.elapsed()
    }
}

/// How far a clock is ahead; negative: behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skew {
    pub millis: i64,
}

impl Skew {
    pub const NONE: Self = Self { millis: 0 };

    /// So much that who went by it would take what others have, or keep what is not its own any more.
    pub(crate) fn is_beyond(self, span: Millis) -> bool {
        self.millis.unsigned_abs() > span.0
    }
}

/// Runs as fast as the right one, by a constant time apart from it.
#[derive(Debug, Clone)]
pub(crate) struct SkewedClock {
    right: VirtualClock,
    skew: Skew,
}

impl Clock for SkewedClock {
    fn now(&self) -> Timestamp {
        moved(self.right.now(), self.skew.millis)
    }

    fn since_boot(&self) -> Duration {
        self.right.since_boot()
    }
}

fn moved(time: Timestamp, millis: i64) -> Timestamp {
    let by = Duration::from_millis(millis.unsigned_abs());
    let moved = if millis < 0 { time.checked_sub(by) } else { time.checked_add(by) };
    moved.unwrap_or(time)
}
