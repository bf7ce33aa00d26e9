//! The only code that starts and stops rooms, for all operations, and the code that observes how they end.

pub(crate) mod comparing;
pub(crate) mod leftovers;
pub(crate) mod log_tail;
pub(crate) mod observing;
pub(crate) mod reconciling;
pub(crate) mod recovery;
pub(crate) mod starting;
pub(crate) mod stopping;
