//! How far a rollout may go above the desired number of rooms.

use std::fmt;

use super::MaxSurge;

impl MaxSurge {
    /// Reads `25%` and `10`. One way to write each number, so that printing gives back what was written. The reason
    /// alone on failure: the caller knows which field it read.
    pub fn parse(text: &str) -> Result<Self, String> {
        const RIGHT: &str = "write a number of rooms such as 10, or a percentage such as 25%, of at least 1";
        if text.is_empty() {
            return Err(format!("is missing; {RIGHT}"));
        }
        let (digits, percent) = match text.strip_suffix('%') {
            Some(digits) => (digits, true),
            None => (text, false),
        };
        let canonical = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
        match digits.parse() {
            Ok(number) if canonical && percent => Ok(Self::Percent(number)),
            Ok(number) if canonical => Ok(Self::Rooms(number)),
            Ok(_) | Err(_) => Err(format!("{text:?} is not a surge: {RIGHT}")),
        }
    }

    /// How many rooms that is for a fleet of `desired` rooms, at least 1: a rollout that may not surge never ends.
    pub fn rooms(self, desired: u64) -> u64 {
        match self {
            Self::Rooms(rooms) => u64::from(rooms).max(1),
            Self::Percent(percent) => {
                let rooms = u128::from(desired) * u128::from(percent) / 100;
                u64::try_from(rooms).unwrap_or(u64::MAX).max(1)
            }
        }
    }
}

impl fmt::Display for MaxSurge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rooms(rooms) => write!(f, "{rooms}"),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, desired: u64, rooms: u64) {
        let surge = MaxSurge::parse(text).unwrap();
        assert_eq!(surge.rooms(desired), rooms, "{text} of {desired}");
        assert_eq!(surge.to_string(), text);
    }

    #[test]
    fn rooms_to_surge() {
        for (text, desired, rooms) in [
            ("25%", 20, 5),
            ("25%", 19, 4),
            ("25%", 3, 1),
            ("25%", 0, 1),
            ("1%", 100, 1),
            ("100%", 7, 7),
            ("250%", 10, 25),
            ("10", 0, 10),
            ("10", 5000, 10),
            ("1", 5000, 1),
            ("4294967295%", u64::MAX, u64::MAX),
        ] {
            check(text, desired, rooms);
        }
    }

    #[test]
    fn what_is_no_surge() {
        for text in
            ["", "0", "0%", "-5%", "-1", "+3", "010", "x", "%", "5 %", " 5", "2.5%", "5%%", "4294967296", "٣"]
        {
            assert!(MaxSurge::parse(text).is_err(), "{text:?}");
        }
    }
}
