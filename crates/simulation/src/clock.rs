//! The time of day in a simulated world: an epoch, and the virtual time that has passed since.

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

    pub fn elapsed(&self) -> std::time::Duration {
        self.began.elapsed()
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(EPOCH_SECONDS)
            .and_then(|epoch| epoch.checked_add(self.elapsed()))
            .unwrap_or(Timestamp::MAX)
    }
}
