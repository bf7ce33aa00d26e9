//! The time of day of the machine that the data directory is on: the store's time, and that of events.

use std::sync::Arc;
use std::time::Duration;

use maestro_core::time::Timestamp;
use maestro_engine::ports::Clock;

pub(crate) struct MachineClock;

impl Clock for MachineClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    /// Nothing in a store or a table is measured by it.
    fn since_boot(&self) -> Duration {
        Duration::ZERO
    }
}

/// What a store goes by, to the microsecond: times are compared with those that it has stored. Cheap to clone.
#[derive(Clone)]
pub(crate) struct MicrosecondClock(pub(crate) Arc<dyn Clock>);

impl MicrosecondClock {
    pub(crate) fn now(&self) -> Timestamp {
        let now = self.0.now();
        Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
    }
}
