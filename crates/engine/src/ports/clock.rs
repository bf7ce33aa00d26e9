//! Time and randomness of this host. Waiting is `tokio::time`, which a paused clock covers; this is the time of day, the time
//! that counts while the machine sleeps too, and the only source of draws.

use std::time::Duration;

use maestro_core::allocation::AllocationId;
use maestro_core::event::EventId;
use maestro_core::operation::OperationId;
use maestro_core::time::Timestamp;
use parking_lot::Mutex;

use super::store::TransactionId;

pub trait Clock: Send + Sync {
    /// The time of day. It may jump, both ways, and it may be wrong: only a store goes by it, if it has no better clock. All
    /// others go by the store's.
    fn now(&self) -> Timestamp;

    /// How long the machine has been up, sleep included. It never jumps, and unlike the clock that timers wait by it does
    /// not stand still while the machine is suspended.
    fn since_boot(&self) -> Duration;
}

/// All randomness, from one seed.
pub struct Randomness(Mutex<fastrand::Rng>);

impl Randomness {
    pub fn from_seed(seed: u64) -> Self {
        Self(Mutex::new(fastrand::Rng::with_seed(seed)))
    }

    pub fn draw(&self) -> u64 {
        self.0.lock().u64(..)
    }

    pub fn event_id(&self, now: Timestamp) -> EventId {
        EventId::new(now, self.bytes())
    }

    pub fn operation_id(&self, now: Timestamp) -> OperationId {
        OperationId::new(now, self.bytes())
    }

    pub fn allocation_id(&self, now: Timestamp) -> AllocationId {
        AllocationId::new(now, self.bytes())
    }

    pub fn transaction_id(&self, now: Timestamp) -> TransactionId {
        let millis = u128::try_from(now.as_millisecond()).unwrap_or_default();
        let mut random = [0; 16];
        random[6..].copy_from_slice(&self.bytes());
        TransactionId(millis << 80 | u128::from_be_bytes(random))
    }

    fn bytes(&self) -> [u8; 10] {
        let mut bytes = [0; 10];
        self.0.lock().fill(&mut bytes);
        bytes
    }
}
