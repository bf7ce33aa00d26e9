//! Regions: named places with a runtime of their own, and whether they can be reached.

mod reachability;

use std::fmt;
use std::sync::Arc;

pub use reachability::{Reachability, Sight, Turn};

/// A named place with a runtime of its own. Names that people write are read with [`Region::parse`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Region(pub Arc<str>);

/// A name is a label of metrics and a directory's name.
const NAME_LENGTH_MAX: usize = 63;

impl Region {
    /// The region of an installation that names none.
    pub const DEFAULT: &'static str = "default";

    pub fn default_region() -> Self {
        Self(Self::DEFAULT.into())
    }

    /// The error says the rule.
    pub fn parse(name: &str) -> Result<Self, String> {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let begins_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
        if begins_well && name.len() <= NAME_LENGTH_MAX && name.chars().all(is_allowed) {
            return Ok(Self(name.into()));
        }
        Err(format!(
            "a region's name is made of 1 to {NAME_LENGTH_MAX} letters, digits, `-`, `_` and `.`, and begins with a \
             letter or a digit"
        ))
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let longest = "a".repeat(NAME_LENGTH_MAX);
        for good in ["default", "us-east", "RegionOne", "eu.west_1", "0", &longest] {
            assert_eq!(Region::parse(good).map(|region| region.to_string()), Ok(good.to_owned()));
        }
        let too_long = "a".repeat(NAME_LENGTH_MAX + 1);
        for bad in ["", ".", "..", "-a", "_a", "a b", "a/b", "köln", "a\n", &too_long] {
            assert!(Region::parse(bad).unwrap_err().contains("letters, digits"), "{bad:?}");
        }
    }
}
