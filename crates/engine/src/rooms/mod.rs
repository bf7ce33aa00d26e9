//! Rooms: how they are started and stopped, for all operations, how their ends are observed, and how registry and runtimes
//! are kept the same.

mod census;
pub(crate) mod comparing;
pub(crate) mod leftovers;
pub(crate) mod log_tail;
pub(crate) mod observing;
pub(crate) mod reconciling;
pub(crate) mod recovery;
pub(crate) mod starting;
pub(crate) mod stopping;
