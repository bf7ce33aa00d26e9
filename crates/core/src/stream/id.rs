//! Where in the stream an event is, in a form that survives its server.

use std::fmt;

use crate::time::Timestamp;

/// Which ring an event was in. Every ring has another one, so that nobody takes the events of a new ring for what followed
/// those of an old one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RingId(u64);

/// The bits of a ring's id that are drawn; those before are milliseconds, which last until the year 10889.
const DRAWN_BITS: u32 = 16;

impl RingId {
    /// Greater than those of rings that began earlier, if the clock was not set back.
    pub fn new(now: Timestamp, drawn: u64) -> Self {
        let millis = u64::try_from(now.as_millisecond()).unwrap_or(0);
        Self((millis << DRAWN_BITS) | (drawn & ((1 << DRAWN_BITS) - 1)))
    }
}

/// An event of a ring; later ones have greater numbers. Number 0 is the beginning, before the first event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    pub ring: RingId,
    pub number: u64,
}

impl StreamId {
    /// Reads what `Display` writes, and nothing else.
    pub fn parse(text: &str) -> Option<Self> {
        let (ring, number) = text.split_once('-')?;
        let id = Self { ring: RingId(u64::from_str_radix(ring, 16).ok()?), number: number.parse().ok()? };
        (id.to_string() == text).then_some(id)
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{}", self.ring.0, self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_written() {
        let now: Timestamp = "2026-11-18T19:10:14Z".parse().unwrap();
        let id = StreamId { ring: RingId::new(now, 0xabc_beef), number: 42 };
        assert_eq!(id.to_string(), "01a1f01115f0beef-42");
        assert_eq!(StreamId::parse("01a1f01115f0beef-42"), Some(id));
        for wrong in [
            "",
            "42",
            "01a1f01115f0beef",
            "01A1F01115F0BEEF-42",
            "1a1f01115f0beef-42",
            "01a1f01115f0beef-042",
        ] {
            assert_eq!(StreamId::parse(wrong), None, "{wrong}");
        }
        for wrong in ["01a1f01115f0beef-+42", "+1a1f01115f0beef-42", "01a1f01115f0beef--1", "x-y"] {
            assert_eq!(StreamId::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn later_rings_have_greater_ids() {
        let at = |second| Timestamp::from_second(second).unwrap();
        assert!(RingId::new(at(1_800_000_000), 0xffff) < RingId::new(at(1_800_000_001), 0));
    }
}
