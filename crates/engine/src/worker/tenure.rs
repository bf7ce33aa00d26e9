//! How long a worker may believe that it owns a scheduler, on a clock that never jumps back and keeps running while the
//! machine is suspended. It never ends later than the store says, because it counts from before the request that renewed it.

use std::sync::Arc;
use std::time::Duration;

use maestro_core::scheduler::SchedulerName;
use parking_lot::Mutex;

use crate::operations::Result;
use crate::ports::Clock;
use crate::ports::store::{Refusal, StoreError};

/// Cheap to clone; all clones are one.
#[derive(Clone)]
pub(crate) struct Tenure {
    clock: Arc<dyn Clock>,
    /// By [`Clock::since_boot`].
    end: Arc<Mutex<Duration>>,
}

impl Tenure {
    /// Of a scheduler that was asked for at `asked_at`, by [`Clock::since_boot`].
    pub(super) fn begin(clock: Arc<dyn Clock>, asked_at: Duration, ttl: Duration) -> Self {
        Self { clock, end: Arc::new(Mutex::new(asked_at + ttl)) }
    }

    /// Renewed by a request that was sent at `asked_at`.
    pub(super) fn renewed(&self, asked_at: Duration, ttl: Duration) {
        *self.end.lock() = asked_at + ttl;
    }

    pub(crate) fn is_over(&self) -> bool {
        *self.end.lock() <= self.clock.since_boot()
    }

    /// An error if it is over: somebody else may own the scheduler.
    pub(crate) fn check(&self, scheduler: &SchedulerName) -> Result {
        let stale = || Refusal::StaleToken { scheduler: scheduler.clone() };
        if self.is_over() { Err(StoreError::from(stale()).into()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use maestro_core::time::Timestamp;
    use tokio::time::Instant;

    use super::*;

    const TTL: Duration = Duration::from_secs(10);

    /// A machine on which no timer sees that it slept.
    struct Machine {
        booted: Instant,
        slept: Mutex<Duration>,
    }

    impl Clock for Machine {
        fn now(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH
        }

        fn since_boot(&self) -> Duration {
            self.booted.elapsed() + *self.slept.lock()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_tenure_ends_while_the_machine_sleeps() {
        let machine = Arc::new(Machine { booted: Instant::now(), slept: Mutex::default() });
        let tenure = Tenure::begin(machine.clone(), machine.since_boot(), TTL);
        tokio::time::advance(TTL / 2).await;
        assert!(!tenure.is_over());
        *machine.slept.lock() += TTL / 2;
        assert!(tenure.is_over(), "half of it awake, half of it asleep");
        tenure.renewed(machine.since_boot(), TTL);
        assert!(!tenure.is_over());
        tokio::time::advance(TTL).await;
        assert!(tenure.is_over());
    }
}
