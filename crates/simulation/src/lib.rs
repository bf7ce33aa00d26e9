//! A simulated world: the real engine on in-memory adapters, a virtual clock and a seed. Hours of fleet life pass in
//! milliseconds, and the same seed gives the same life again.

mod memory;

pub use memory::MemoryStore;
