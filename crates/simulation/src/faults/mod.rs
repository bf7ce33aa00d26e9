//! What goes wrong at the ports, and how often: one value for a world, drawn from its seed.
//!
//! Swarm: each fault is off in a good part of the seeds. A world in which everything fails all the time never gets far
//! enough for the deeper bugs.

mod injector;
mod words;

use std::collections::BTreeMap;
use std::sync::Arc;

use maestro_engine::ports::store::{StoreError, Transaction};
use parking_lot::Mutex;

use crate::host::Span;

pub(crate) use injector::{Call, FaultInjector, Loss, Surroundings, What};

/// How often something happens, in ten thousand times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate(u32);

/// What goes wrong with the calls of one port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortFaults {
    pub slow: Rate,
    /// On each way of a slow call.
    pub slow_for: Span,
    /// Nothing is done, and the caller is told that it failed.
    pub fails_before: Rate,
    /// It is done, and the caller is told that it failed. Of writes only.
    pub fails_after: Rate,
    /// The caller's node dies. Of writes only.
    pub crashes_before: Rate,
    pub crashes_after: Rate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Faults {
    pub store: PortFaults,
    pub runtime: PortFaults,
    pub table: PortFaults,
    /// On the way to the receivers of events.
    pub receivers: PortFaults,
    pub ping_lost: Rate,
    pub ping_repeated: Rate,
    /// Between engines.
    pub wake_up_lost: Rate,
    pub wake_up_late: Rate,
    pub wake_up_repeated: Rate,
    /// Clocks of nodes are set wrong by up to this.
    pub skew_max_ms: u32,
}

/// By how much clocks of hosts are wrong: not at all, by what is left to chance, or by what nobody has looked after.
const SKEWS_MAX_MS: [u32; 4] = [0, 2_000, 600_000, 3_600_000];

impl Rate {
    pub const NEVER: Self = Self(0);

    pub const fn of_ten_thousand(times: u32) -> Self {
        Self(times)
    }

    pub(crate) fn hits(self, random: &mut fastrand::Rng) -> bool {
        // No draw where there is nothing to decide: quiet worlds stay cheap.
        self.0 > 0 && random.u32(0..10_000) < self.0
    }

    /// Off in more than half of all cases.
    fn draw(random: &mut fastrand::Rng, most: u32) -> Self {
        if random.u32(0..5) < 3 { Self::NEVER } else { Self(random.u32(1..=most)) }
    }
}

impl PortFaults {
    pub const NONE: Self = Self {
        slow: Rate::NEVER,
        slow_for: Span::ZERO,
        fails_before: Rate::NEVER,
        fails_after: Rate::NEVER,
        crashes_before: Rate::NEVER,
        crashes_after: Rate::NEVER,
    };

    fn draw(random: &mut fastrand::Rng) -> Self {
        Self {
            slow: Rate::draw(random, 2_000),
            slow_for: Span::millis(0, random.u64(5..4_000)),
            fails_before: Rate::draw(random, 500),
            fails_after: Rate::draw(random, 500),
            crashes_before: Rate::draw(random, 40),
            crashes_after: Rate::draw(random, 40),
        }
    }
}

impl Faults {
    pub const NONE: Self = Self {
        store: PortFaults::NONE,
        runtime: PortFaults::NONE,
        table: PortFaults::NONE,
        receivers: PortFaults::NONE,
        ping_lost: Rate::NEVER,
        ping_repeated: Rate::NEVER,
        wake_up_lost: Rate::NEVER,
        wake_up_late: Rate::NEVER,
        wake_up_repeated: Rate::NEVER,
        skew_max_ms: 0,
    };

    /// With faults on the way to receivers, of a seed of their own.
    pub(crate) fn with_receivers(self, seed: u64) -> Self {
        let random = &mut fastrand::Rng::with_seed(seed);
        let receivers = if random.bool() { PortFaults::draw(random) } else { PortFaults::NONE };
        Self { receivers, ..self }
    }

    /// Those of one seed, in worlds without receivers.
    pub fn draw(seed: u64) -> Self {
        let random = &mut fastrand::Rng::with_seed(seed);
        // Some worlds have one bad port, some have three, some have none.
        let mut port = || if random.bool() { PortFaults::draw(random) } else { PortFaults::NONE };
        let (store, runtime) = (port(), port());
        // Nobody dies by asking a table, and what becomes of a write to it is never known for sure.
        let table = PortFaults { crashes_before: Rate::NEVER, crashes_after: Rate::NEVER, ..port() };
        Self {
            store,
            runtime,
            table,
            receivers: PortFaults::NONE,
            ping_lost: Rate::draw(random, 2_000),
            ping_repeated: Rate::draw(random, 1_000),
            skew_max_ms: SKEWS_MAX_MS[random.usize(0..SKEWS_MAX_MS.len())],
            wake_up_lost: Rate::draw(random, 5_000),
            wake_up_late: Rate::draw(random, 5_000),
            wake_up_repeated: Rate::draw(random, 2_000),
        }
    }
}

/// The faults of now, for all ports of a world. Cheap to clone; all clones are one.
#[derive(Clone)]
pub(crate) struct ActiveFaults(Arc<Mutex<State>>);

struct State {
    faults: Faults,
    intercept: Option<Intercept>,
    /// How often each call was made, if someone wants to know.
    calls: Option<BTreeMap<String, usize>>,
}

/// A commit for which this answers is not carried out: what the engine hears instead.
pub type Intercept = Box<dyn Fn(&Transaction) -> Option<StoreError> + Send>;

impl ActiveFaults {
    pub(crate) fn none() -> Self {
        Self(Arc::new(Mutex::new(State { faults: Faults::NONE, intercept: None, calls: None })))
    }

    pub(crate) fn set(&self, faults: Faults) {
        self.0.lock().faults = faults;
    }

    pub(crate) fn count_calls(&self) {
        self.0.lock().calls = Some(BTreeMap::new());
    }

    pub(crate) fn calls(&self, what: &str) -> usize {
        self.0.lock().calls.as_ref().and_then(|calls| calls.get(what).copied()).unwrap_or_default()
    }

    pub(crate) fn called(&self, what: &What<'_>) {
        if let Some(calls) = &mut self.0.lock().calls {
            *calls.entry(what.to_string()).or_default() += 1;
        }
    }

    pub(crate) fn now(&self) -> Faults {
        self.0.lock().faults
    }

    pub(crate) fn set_intercept(&self, intercept: Option<Intercept>) {
        self.0.lock().intercept = intercept;
    }

    pub(crate) fn intercepts(&self, transaction: &Transaction) -> Option<StoreError> {
        self.0.lock().intercept.as_ref().and_then(|intercept| intercept(transaction))
    }
}
