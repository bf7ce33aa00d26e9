//! A store on which a suite is run, and a hand on its clock.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use maestro_core::time::{Millis, Timestamp, after, age};
use parking_lot::Mutex;

use crate::ports::{Clock, Store};

/// Time passes in fewer waits than these, or the store's clock stands still.
const WAITS_MAX: u32 = 1000;

pub struct StoreUnderTest {
    store: Arc<dyn Store>,
    clock: Arc<dyn StoreClock>,
}

/// The clock of a store, as far as a test has a hand on it.
#[async_trait]
pub trait StoreClock: Send + Sync {
    /// Lets about this much time pass.
    async fn pass(&self, span: Millis);

    /// Sets the clock back. False: nobody can, because others go by it.
    fn set_back(&self, span: Millis) -> bool;
}

/// A clock that goes by itself, such as that of a database server.
pub struct RunningClock;

/// A clock that goes only when it is told to.
pub struct ManualClock {
    now: Mutex<Timestamp>,
}

impl StoreUnderTest {
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn StoreClock>) -> Self {
        Self { store, clock }
    }

    /// A store whose clock goes by itself.
    pub fn on_running_clock(store: Arc<dyn Store>) -> Self {
        Self::new(store, Arc::new(RunningClock))
    }

    /// A store that is made of its clock.
    pub fn on_manual_clock(store: impl FnOnce(Arc<dyn Clock>) -> Arc<dyn Store>) -> Self {
        let clock = Arc::new(ManualClock::begin());
        Self::new(store(clock.clone()), clock)
    }

    /// Returns when at least this much of the store's time has passed.
    pub async fn pass(&self, span: Millis) {
        let until = after(self.store.now().await.unwrap(), span);
        for _ in 0..WAITS_MAX {
            let now = self.store.now().await.unwrap();
            if now >= until {
                return;
            }
            // Not a part of a millisecond, which would be none.
            self.clock.pass(age(until, now).max(Millis(1))).await;
        }
        panic!("the store's clock stands still");
    }

    pub fn set_back(&self, span: Millis) -> bool {
        self.clock.set_back(span)
    }
}

impl Deref for StoreUnderTest {
    type Target = dyn Store;

    fn deref(&self) -> &Self::Target {
        &*self.store
    }
}

#[async_trait]
impl StoreClock for RunningClock {
    async fn pass(&self, span: Millis) {
        tokio::time::sleep(span.as_duration() + Duration::from_millis(1)).await;
    }

    fn set_back(&self, _span: Millis) -> bool {
        false
    }
}

impl ManualClock {
    /// It shows some day, and goes on from there.
    pub fn begin() -> Self {
        Self { now: Mutex::new(super::fixtures::at(0)) }
    }

    pub fn advance(&self, span: Millis) {
        let mut now = self.now.lock();
        *now = after(*now, span);
    }
}

#[async_trait]
impl StoreClock for ManualClock {
    async fn pass(&self, span: Millis) {
        self.advance(span);
    }

    fn set_back(&self, span: Millis) -> bool {
        *self.now.lock() -= span.as_duration();
        true
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.now.lock()
    }

    /// Nobody measures by it.
    fn since_boot(&self) -> Duration {
        Duration::ZERO
    }
}
