//! Time as the core sees it: always handed in, always with its unit.

pub use jiff::Timestamp;

/// A length of time in whole milliseconds, the finest that anything here is decided on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Millis(pub u64);

impl From<std::time::Duration> for Millis {
    fn from(duration: std::time::Duration) -> Self {
        Self(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }
}

impl Millis {
    pub const fn from_seconds(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1000))
    }

    pub fn as_duration(self) -> std::time::Duration {
        std::time::Duration::from_millis(self.0)
    }
}

impl std::fmt::Display for Millis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            ms if ms % 1000 == 0 => write!(f, "{}s", ms / 1000),
            ms => write!(f, "{}.{:03}s", ms / 1000, ms % 1000),
        }
    }
}

/// `at + span`, at the end of time at the latest.
pub fn after(at: Timestamp, span: Millis) -> Timestamp {
    at.checked_add(span.as_duration()).unwrap_or(Timestamp::MAX)
}

/// How long ago `earlier` was, nothing if it lies ahead: clocks jump, ages do not go below zero.
pub fn age(now: Timestamp, earlier: Timestamp) -> Millis {
    Millis(u64::try_from(now.duration_since(earlier).as_millis()).unwrap_or(0))
}

/// Whether what was given until `expiry`, for `ttl` at a time, still counts. What has more than twice as long to go was
/// given before the clock was set back, and nobody has renewed it since: it would count for as long as that was.
pub fn is_in_force(expiry: Timestamp, now: Timestamp, ttl: Millis) -> bool {
    expiry > now && expiry <= after(after(now, ttl), ttl)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_for_a_while_ends() {
        let at = |second| Timestamp::from_second(second).unwrap();
        for (expiry, expected) in
            [(99, false), (100, false), (101, true), (110, true), (120, true), (121, false)]
        {
            assert_eq!(is_in_force(at(expiry), at(100), Millis::from_seconds(10)), expected, "{expiry}");
        }
        assert!(!is_in_force(at(1), at(1), Millis(u64::MAX)));
        assert!(is_in_force(Timestamp::MAX, at(1), Millis(u64::MAX)));
    }
}
