//! A simulated world: the real engine on in-memory adapters, a virtual clock and a seed. Hours of fleet life pass in
//! milliseconds, and the same seed gives the same life again.

mod clock;
mod host;
mod invariants;
mod life;
mod memory;
mod runtime;
mod store;
mod table;
mod trace;
mod world;

pub use clock::VirtualClock;
pub use host::{Exit, GamePing, Habits, Host, Manners, Phase, RoomOnHost, RoomsApi, Span};
pub use invariants::Inspector;
pub use life::Life;
pub use memory::MemoryStore;
pub use runtime::SimulatedRuntime;
pub use store::{CrashPoint, SimulatedStore, Watch};
pub use trace::Trace;
pub use world::World;
