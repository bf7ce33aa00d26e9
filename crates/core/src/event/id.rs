//! The id of an event, which receivers know it by.

use crate::uuid_id::uuid_id;

uuid_id!(
    /// Ordered by the time it was made (UUID version 7). Every forwarder's copy of an event has one of its own; it stays the
    /// same when a delivery is repeated.
    EventId
);
