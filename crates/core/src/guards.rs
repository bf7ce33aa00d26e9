//! Guards that tests can remove, one at a time, to see that the checks of an [`Invariant`] notice.
//!
//! Most guards are taken out where an engine meets its ports, by the simulated world (`broken.rs` and the store in memory
//! of `crates/simulation`), and production code knows nothing of it. A guard that is a decision in the middle of a
//! calculation, between what was read and what is written, cannot be reached from there. It asks [`stands`] itself:
//!
//! - [`Invariant::SurgeBound`], [`Invariant::ReadyTarget`] and [`Invariant::ReadyBeforeOccupied`] in `plan`: what the
//!   ports show and what is written is right, only the numbers and the order in between are not;
//! - [`Invariant::OccupiedStays`] in `remove_rooms` and [`Invariant::ValidationNotCounted`] in `fleet` of the engine:
//!   the engine counts their violations itself, from what it read, so a port that lies would hide them from it.
//! - [`Invariant::FirstCome`] in the queue of requests that wait for rooms: no port sees which of them came first.
//!
//! Except in builds with the feature `breakable`, [`stands`] is the constant `true`, and the compiler leaves nothing of it.

use crate::invariant::Invariant;

/// Whether this build has guards that can be taken out.
pub const BREAKABLE: bool = cfg!(feature = "breakable");

/// Whether the guard of an invariant does its work.
#[cfg(not(feature = "breakable"))]
#[inline(always)]
pub const fn stands(_invariant: Invariant) -> bool {
    true
}

#[cfg(feature = "breakable")]
pub use breakable::{put_back, stands, take_out};

#[cfg(feature = "breakable")]
mod breakable {
    use std::cell::Cell;

    use super::Invariant;

    thread_local! {
        /// A simulated world lives in one thread, so worlds in others do not notice.
        static TAKEN_OUT: Cell<Option<Invariant>> = const { Cell::new(None) };
    }

    /// Whether the guard of an invariant does its work, in this thread.
    pub fn stands(invariant: Invariant) -> bool {
        TAKEN_OUT.get() != Some(invariant)
    }

    /// From now on this thread runs without the guard of this invariant, and with all others.
    pub fn take_out(invariant: Invariant) {
        TAKEN_OUT.set(Some(invariant));
    }

    /// All guards stand again in this thread.
    pub fn put_back() {
        TAKEN_OUT.set(None);
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn one_is_out_at_a_time() {
            take_out(Invariant::PortOnce);
            take_out(Invariant::Converges);
            let out: Vec<_> = Invariant::ALL.into_iter().filter(|invariant| !stands(*invariant)).collect();
            assert_eq!(out, [Invariant::Converges]);
            put_back();
            assert!(Invariant::ALL.into_iter().all(stands));
        }
    }
}
