//! What the engine needs from the outside, in the words of the domain. Adapters implement these traits and do not
//! know each other; one contract suite per port ([`contract`]) is what makes them interchangeable.

pub mod clock;
#[cfg(feature = "contract")]
#[allow(clippy::disallowed_methods, reason = "the suites write to stores that nobody watches")]
pub mod contract;
pub mod event_ring;
pub mod event_sink;
pub mod room_table;
pub mod runtime;
pub mod store;
pub mod wake_ups;

use std::collections::BTreeMap;
use std::sync::Arc;

use maestro_core::room::Region;

use crate::wake::WakeUps;

pub use clock::{Clock, Randomness};
pub use event_ring::EventRing;
pub use event_sink::EventSink;
pub use room_table::RoomTable;
pub use runtime::Runtime;
pub use store::Store;
pub use wake_ups::WakeUpChannel;

/// What the configuration says of a region whose runtime is another process's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegionElsewhere {
    /// See [`Runtime::host`].
    pub host: Option<String>,
    /// See [`Runtime::runs_containers`].
    pub runs_containers: bool,
    /// What to change for it to hold more rooms.
    pub capacity_setting: &'static str,
}

/// All ports, wired.
#[derive(Clone)]
pub struct Ports {
    pub store: Arc<dyn Store>,
    pub table: Arc<dyn RoomTable>,
    /// Of the regions that this process looks after.
    pub runtimes: Arc<BTreeMap<Region, Arc<dyn Runtime>>>,
    /// Those that are configured too, and that only other processes look after.
    pub regions_elsewhere: Arc<BTreeMap<Region, RegionElsewhere>>,
    /// Where events of rooms are forwarded to.
    pub events: Arc<dyn EventSink>,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<Randomness>,
    /// One for all engines that share a store in one process.
    pub wake: WakeUps,
    /// To the other processes that share the store; `None`: there are none.
    pub wake_up_channel: Option<Arc<dyn WakeUpChannel>>,
}
