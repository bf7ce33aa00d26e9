//! The number of a version, `vMAJOR.MINOR.0`, and what became of it.

use std::fmt;

/// Ordered by major, then minor. The patch number is read (data of older systems has it) and never counted up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
}

impl Version {
    pub const FIRST: Self = Self {
        major: 1,
        minor: 0,
        patch: 0,
    };

    /// Reads `v1.2.0`, and leniently `1.2.0`, `v1.2` and `v1`, which systems before this one wrote.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a version: write it as v1.2.0");
        let mut parts = text.strip_prefix('v').unwrap_or(text).split('.');
        let mut number = |required: bool| match parts.next() {
            Some(part) if !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()) => {
                part.parse::<u32>().map_err(|_| wrong())
            }
            Some(_) => Err(wrong()),
            None if required => Err(wrong()),
            None => Ok(0),
        };
        let version = Self {
            major: number(true)?,
            minor: number(false)?,
            patch: number(false)?,
        };
        if parts.next().is_some() {
            Err(wrong())
        } else {
            Ok(version)
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// What became of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionStatus {
    Validating,
    Validated,
    Rolling,
    Deployed,
    Superseded,
    Canceled,
    Error,
}

impl VersionStatus {
    pub const ALL: [Self; 7] = [
        Self::Validating,
        Self::Validated,
        Self::Rolling,
        Self::Deployed,
        Self::Superseded,
        Self::Canceled,
        Self::Error,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Validating => "validating",
            Self::Validated => "validated",
            Self::Rolling => "rolling",
            Self::Deployed => "deployed",
            Self::Superseded => "superseded",
            Self::Canceled => "canceled",
            Self::Error => "error",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}
