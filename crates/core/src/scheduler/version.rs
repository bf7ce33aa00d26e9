//! The number of a version, `vMAJOR.MINOR.0`, and what became of it.

use std::fmt;

use super::RecipeChange;

use crate::words::words;

/// Ordered by major, then minor. The patch number is read (data of older systems has it) and never incremented.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
}

impl Version {
    pub const FIRST: Self = Self { major: 1, minor: 0, patch: 0 };

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
        let version = Self { major: number(true)?, minor: number(false)?, patch: number(false)? };
        if parts.next().is_some() { Err(wrong()) } else { Ok(version) }
    }

    /// The number of the version that follows `active`, where `given` are those that were ever given: none is
    /// given twice, neither after switching back nor after a validation that failed. A recipe that changes nothing still makes a version, a minor one.
    pub fn next(change: RecipeChange, active: Self, given: &[Self]) -> Self {
        let known = || given.iter().chain([&active]);
        match change {
            RecipeChange::Major => Self {
                major: known().map(|version| version.major).fold(0, u32::max).saturating_add(1),
                minor: 0,
                patch: 0,
            },
            RecipeChange::Minor | RecipeChange::None => {
                let siblings = known().filter(|version| version.major == active.major);
                Self {
                    major: active.major,
                    minor: siblings.map(|version| version.minor).fold(0, u32::max).saturating_add(1),
                    patch: 0,
                }
            }
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}.{}.{}", self.major, self.minor, self.patch)
    }
}

words! {
    /// What became of a version.
    pub enum VersionStatus {
        Validating = "validating",
        Validated = "validated",
        Rolling = "rolling",
        Deployed = "deployed",
        Superseded = "superseded",
        Canceled = "canceled",
        Error = "error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(change: RecipeChange, active: &str, all: &[&str], next: &str) {
        let version = |text: &str| Version::parse(text).unwrap();
        let all: Vec<_> = all.iter().map(|text| version(text)).collect();
        assert_eq!(Version::next(change, version(active), &all).to_string(), next);
    }

    #[test]
    fn numbering() {
        // One fleet's story: minor, major, back to the first, minor, major.
        check(RecipeChange::Minor, "v1.0.0", &["v1.0.0"], "v1.1.0");
        check(RecipeChange::Major, "v1.1.0", &["v1.0.0", "v1.1.0"], "v2.0.0");
        check(RecipeChange::Minor, "v1.0.0", &["v1.0.0", "v1.1.0", "v2.0.0"], "v1.2.0");
        check(RecipeChange::Major, "v1.2.0", &["v1.0.0", "v1.1.0", "v2.0.0", "v1.2.0"], "v3.0.0");

        check(RecipeChange::None, "v1.0.0", &["v1.0.0"], "v1.1.0");
        check(RecipeChange::Minor, "v2.9.0", &["v2.10.0", "v10.0.0"], "v2.11.0");
        check(RecipeChange::Major, "v2.9.0", &["v10.3.0", "v9.0.0"], "v11.0.0");
        // Numbers of older systems, and an active version that is not in the list.
        check(RecipeChange::Minor, "1", &[], "v1.1.0");
        check(RecipeChange::Minor, "v1.1.7", &[], "v1.2.0");
    }
}
