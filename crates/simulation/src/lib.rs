//! A simulated world: the real engine on in-memory adapters, a virtual clock and a seed. Hours of fleet life pass in
//! milliseconds, and the same seed gives the same life again.

mod clock;
mod faults;
mod host;
mod invariants;
mod life;
pub mod lives;
mod memory;
mod rare;
mod runtime;
mod seed;
mod sqlite;
mod store;
mod story;
pub mod sweep;
mod table;
mod trace;
mod world;

pub use clock::{Skew, VirtualClock};
pub use faults::{Faults, Intercept, PortFaults, Rate};
pub use host::{Exit, GamePing, Habits, Host, Manners, Outage, Phase, RoomOnHost, RoomsApi, Span};
pub use invariants::Inspector;
pub use life::Life;
pub use memory::MemoryStore;
pub use rare::{Rare, Sightings};
pub use runtime::SimulatedRuntime;
pub use store::{CrashPoint, SimulatedStore};
pub use trace::Trace;
pub use world::{NodeNumber, NodePlan, World};
