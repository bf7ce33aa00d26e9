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
