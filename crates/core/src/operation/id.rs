//! The id of an operation.

use crate::uuid_id::uuid_id;

uuid_id!(
    /// Ordered by the time it was made (UUID version 7).
    OperationId
);

impl OperationId {
    /// Of random choices that are made the same way whoever makes them again: its random half.
    pub fn seed(&self) -> u64 {
        self.0.as_u64_pair().1
    }
}

/// How an id begins: what people type instead of the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdPrefix {
    first: OperationId,
    last: OperationId,
}

impl IdPrefix {
    /// Hexadecimal digits, with or without the hyphens. `None`: no id begins like this.
    pub fn parse(text: &str) -> Option<Self> {
        let digits: String = text.chars().filter(|c| *c != '-').collect();
        let is_prefix = (1..=32).contains(&digits.len()) && digits.chars().all(|c| c.is_ascii_hexdigit());
        if !is_prefix {
            return None;
        }
        let id = |digits: &str| u128::from_str_radix(digits, 16).ok().map(OperationId::from_u128);
        Some(Self { first: id(&format!("{digits:0<32}"))?, last: id(&format!("{digits:f<32}"))? })
    }

    /// The smallest and the greatest id that begin like this.
    pub fn bounds(&self) -> (OperationId, OperationId) {
        (self.first, self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes() {
        let id = OperationId::parse("01a1e37a-3bc9-7123-b0c1-18cc2bff41a0").unwrap();
        for (prefix, matches) in [
            ("0", Some(true)),
            ("01a1e37a", Some(true)),
            ("01A1E37A-", Some(true)),
            ("01a1e37a-3bc9-71", Some(true)),
            ("01a1e37a3bc971", Some(true)),
            ("01a1e37a-3bc9-7123-b0c1-18cc2bff41a0", Some(true)),
            ("01a1e37a-3bc9-72", Some(false)),
            ("1", Some(false)),
            ("", None),
            ("-", None),
            ("op-1", None),
            ("01a1e37a-3bc9-7123-b0c1-18cc2bff41a00", None),
            ("+1", None),
        ] {
            let bounds = IdPrefix::parse(prefix).map(|prefix| prefix.bounds());
            assert_eq!(bounds.map(|(first, last)| (first..=last).contains(&id)), matches, "{prefix}");
        }
    }
}
