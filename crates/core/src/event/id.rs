//! The id of an event, which receivers know it by.

use std::fmt;

use uuid::Uuid;

use crate::time::Timestamp;

/// Ordered by the time it was made (UUID version 7). Every forwarder's copy of an event has one of its own; it stays the
/// same when a delivery is repeated.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(Uuid);

impl EventId {
    /// A new id from the injected clock and randomness.
    pub fn new(now: Timestamp, random: [u8; 10]) -> Self {
        let millis = u64::try_from(now.as_millisecond()).unwrap_or(0);
        Self(uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
    }

    pub fn parse(text: &str) -> Option<Self> {
        Uuid::parse_str(text).ok().map(Self)
    }

    pub fn from_u128(number: u128) -> Self {
        Self(Uuid::from_u128(number))
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

impl fmt::Debug for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}
