//! The two pieces of code that start and stop rooms, for every operation there is, and the one that hears how they
//! end.

pub(crate) mod comparing;
pub(crate) mod leftovers;
pub(crate) mod log_tail;
pub(crate) mod observing;
pub(crate) mod reconciling;
pub(crate) mod recovery;
pub(crate) mod starting;
pub(crate) mod stopping;
