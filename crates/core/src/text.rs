//! Words of messages for people, and names.

use std::fmt::Display;

/// `1 room`, `3 rooms`.
pub fn count_of(number: impl TryInto<u64> + Display + Copy, noun: &str) -> String {
    match number.try_into() {
        Ok(1) => format!("1 {noun}"),
        Ok(_) | Err(_) => format!("{number} {noun}s"),
    }
}

/// What a name that is shared as an `Arc<str>` can do.
macro_rules! shared_text {
    ($type:ident) => {
        impl $type {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }

        impl std::borrow::Borrow<str> for $type {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

pub(crate) use shared_text;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_things() {
        for (number, text) in [(0, "0 rooms"), (1, "1 room"), (2, "2 rooms"), (-1, "-1 rooms")] {
            assert_eq!(count_of(number, "room"), text);
        }
        assert_eq!(count_of(u64::MAX, "port"), "18446744073709551615 ports");
    }
}
