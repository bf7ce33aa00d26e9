//! Words of messages for people.

use std::fmt::Display;

/// `1 room`, `3 rooms`.
pub fn count_of(number: impl TryInto<u64> + Display + Copy, noun: &str) -> String {
    match number.try_into() {
        Ok(1) => format!("1 {noun}"),
        Ok(_) | Err(_) => format!("{number} {noun}s"),
    }
}

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
