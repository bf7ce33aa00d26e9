//! The name of a region, which has a runtime of its own: a Kubernetes cluster or a host.

use std::sync::Arc;

use crate::text::shared_text;

/// The name of a region. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Region(pub Arc<str>);

impl Region {
    /// The region of an installation that names none.
    pub const DEFAULT: &'static str = "default";
    pub const LENGTH_MAX: usize = 63;

    pub fn default_region() -> Self {
        Self(Self::DEFAULT.into())
    }

    /// Reads 1 to 63 letters, digits, `-`, `_` and `.`, with a letter or a digit at both ends: what a Kubernetes label
    /// can hold and a directory can be called, `us-east` as well as `RegionOne`. The reason alone on failure: the caller knows which field it read.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("is missing; the name of a region is needed".into());
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let ends_well = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        let fits = text.len() <= Self::LENGTH_MAX && text.chars().all(allowed);
        if !fits || !ends_well(text.chars().next()) || !ends_well(text.chars().next_back()) {
            return Err(format!(
                "{text:?} is not a name of a region: use 1 to {} letters, digits, -, _ and ., with a letter or digit \
                 at both ends",
                Self::LENGTH_MAX
            ));
        }
        Ok(Self(text.into()))
    }
}

shared_text!(Region);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for text in ["default", "us-east", "RegionOne", "r0", "7", "a.b_c-d", &"x".repeat(63)] {
            assert_eq!(Region::parse(text).unwrap().as_str(), text);
        }
        for text in ["", "-a", "_a", "a-", ".", "..", "a b", "a\n", "é", "a/b", &"x".repeat(64)] {
            assert!(Region::parse(text).is_err(), "{text:?}");
        }
    }
}
