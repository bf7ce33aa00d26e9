//! Kubernetes quantities, `100m` of a processor or `64Mi` of memory, read exactly.
//!
//! A recipe keeps them as written; what they amount to is needed to refuse what no cluster would take, when the
//! recipe is submitted and not when the first room fails to start.

/// An amount in billionths of its unit, the finest that Kubernetes keeps; what is finer is rounded up, as there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantity {
    nanos: u128,
}

/// Billionths in one.
const UNIT: u128 = 1_000_000_000;

/// Kubernetes counts in signed 64-bit integers.
const UNITS_MAX: u128 = i64::MAX as u128;

impl Quantity {
    /// The reason alone on failure: the caller knows which field it read.
    pub fn parse(text: &str) -> Result<Self, String> {
        let number_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, suffix) = text.split_at(number_end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let scale = Scale::parse(suffix);
        let (Some(scale), false, false) =
            (scale, whole.is_empty() && fraction.is_empty(), fraction.contains('.'))
        else {
            return Err(format!("{text:?} is not a Kubernetes quantity; write it as 100m, 1.5, 64Mi or 2G"));
        };
        let too_large = || format!("{text:?} is too large: at most {UNITS_MAX} can be asked for");
        let nanos = scale.nanos(whole, fraction).ok_or_else(too_large)?;
        if nanos > UNITS_MAX * UNIT {
            return Err(too_large());
        }
        Ok(Self { nanos })
    }

    /// Less than one of its unit, but something: of memory, a part of a byte.
    pub fn is_below_one(self) -> bool {
        self.nanos > 0 && self.nanos < UNIT
    }
}

/// What a suffix multiplies by.
#[derive(Clone, Copy)]
enum Scale {
    /// `10 ^ exponent`
    Decimal { exponent: i32 },
    /// `1024 ^ power`
    Binary { power: u32 },
}

impl Scale {
    fn parse(suffix: &str) -> Option<Self> {
        const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
        const DECIMAL: [(&str, i32); 10] = [
            ("n", -9),
            ("u", -6),
            ("m", -3),
            ("", 0),
            ("k", 3),
            ("M", 6),
            ("G", 9),
            ("T", 12),
            ("P", 15),
            ("E", 18),
        ];
        if let Some(index) = BINARY.iter().position(|name| *name == suffix) {
            return Some(Self::Binary { power: index as u32 + 1 });
        }
        if let Some((_, exponent)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
            return Some(Self::Decimal { exponent: *exponent });
        }
        let exponent = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
        Some(Self::Decimal { exponent })
    }

    /// The number `whole.fraction` times this scale, in billionths; nothing if it is out of all bounds.
    fn nanos(self, whole: &str, fraction: &str) -> Option<u128> {
        let fraction = fraction.trim_end_matches('0');
        let digits = format!("{whole}{fraction}");
        let digits = digits.trim_start_matches('0');
        if digits.is_empty() {
            return Some(0);
        }
        let number: u128 = digits.parse().ok()?;
        let (exponent, factor) = match self {
            Self::Decimal { exponent } => (exponent, 1),
            Self::Binary { power } => (0, 1024_u128.pow(power)),
        };
        let shift = i64::from(exponent) + 9 - i64::try_from(fraction.len()).ok()?;
        let number = number.checked_mul(factor)?;
        let power = 10_u128.checked_pow(u32::try_from(shift.unsigned_abs()).ok()?);
        match power {
            Some(power) if shift >= 0 => number.checked_mul(power),
            Some(power) => Some(number.div_ceil(power)),
            // Divided by more than any number there is: something, so the least there is.
            None if shift < 0 => Some(1),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, nanos: Option<u128>) {
        assert_eq!(Quantity::parse(text).ok().map(|quantity| quantity.nanos), nanos, "{text:?}");
    }

    #[test]
    fn quantities() {
        for (text, nanos) in [
            ("0", 0),
            ("1", UNIT),
            ("1.5", UNIT * 3 / 2),
            ("1.", UNIT),
            (".5", UNIT / 2),
            ("007", 7 * UNIT),
            ("100m", UNIT / 10),
            ("0.1", UNIT / 10),
            ("5u", 5_000),
            ("5n", 5),
            ("0.1n", 1),
            ("1k", 1000 * UNIT),
            ("2G", 2_000_000_000 * UNIT),
            ("64Mi", 64 * 1024 * 1024 * UNIT),
            ("1.5Ki", 1536 * UNIT),
            ("7Ei", 7 * 1024_u128.pow(6) * UNIT),
            ("9E", 9 * 10_u128.pow(18) * UNIT),
            ("1e3", 1000 * UNIT),
            ("1E3", 1000 * UNIT),
            ("1e+3", 1000 * UNIT),
            ("12e-1", 1_200_000_000),
            ("1e-999999999", 1),
            ("0e999999999", 0),
            ("0.0000000000000000000000000000000000000000", 0),
        ] {
            check(text, Some(nanos));
        }
        for text in [
            "",
            ".",
            "m",
            "Mi",
            "-1",
            "+1",
            "1 Gi",
            "1gi",
            "64mi",
            "1K",
            "64MB",
            "1.2.3",
            "1e",
            "1e1.5",
            "0x10",
            "many",
            "½",
            "9223372036854775808",
            "10E",
            "8Ei",
            "1e999999999",
            "1e99999999999",
            "99999999999999999999999999999999999999999",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn the_same_amount_is_equal_however_it_is_written() {
        for (left, right) in [("100m", "0.1"), ("1Gi", "1024Mi"), ("1e3", "1k"), ("1500m", "1.5")] {
            assert_eq!(Quantity::parse(left), Quantity::parse(right), "{left} {right}");
        }
        assert!(Quantity::parse("1G") < Quantity::parse("1Gi"));
    }
}
