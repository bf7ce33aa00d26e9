//! Exact decimals between 0 and 1 of up to 18 digits.
//!
//! Never binary floating point behind this file: 1 / (1 − 0.8) is 5, and 6 when 0.8 is a float.

use std::fmt;

use super::{Fraction, ReadyTarget};

/// A whole, in the unit that [`Fraction::units`] counts.
pub const WHOLE: u64 = 1_000_000_000_000_000_000;

/// As many digits after the point as [`WHOLE`] has zeros.
const DIGITS_MAX: usize = 18;

impl Fraction {
    /// The reason alone on failure: the caller knows which field it read.
    pub fn parse(text: &str) -> Result<Self, String> {
        match Units::parse(text)? {
            Units::Within(units) if units > 0 && units < WHOLE => Ok(Self { units }),
            Units::Negative | Units::Within(_) | Units::AboveOne => {
                Err(format!("{text} is not between 0 and 1, both excluded"))
            }
        }
    }

    /// Of [`WHOLE`].
    pub fn units(self) -> u64 {
        self.units
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:0DIGITS_MAX$}", self.units);
        write!(f, "0.{}", digits.trim_end_matches('0'))
    }
}

impl ReadyTarget {
    const MIN: u64 = WHOLE / 10;
    const MAX: u64 = WHOLE / 10 * 9;

    /// The reason alone on failure: the caller knows which field it read.
    pub fn parse(text: &str) -> Result<Self, String> {
        match Units::parse(text)? {
            Units::Within(units) if (Self::MIN..=Self::MAX).contains(&units) => Ok(Self(Fraction { units })),
            Units::Negative | Units::Within(_) | Units::AboveOne => {
                Err(format!("{text} is not between 0.1 and 0.9"))
            }
        }
    }

    /// Of [`WHOLE`].
    pub fn units(self) -> u64 {
        self.0.units()
    }

    pub fn fraction(self) -> Fraction {
        self.0
    }
}

impl fmt::Display for ReadyTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Whether a decimal is the number `whole`, however it is written: `1`, `1.0`, `1e0`.
pub fn is_whole_number(text: &str, whole: u64) -> bool {
    matches!(Units::parse(text), Ok(Units::Within(units)) if Some(units) == whole.checked_mul(WHOLE))
}

/// A decimal as far as anyone asks: how far off it is does not matter.
enum Units {
    Negative,
    /// From 0 to [`WHOLE`].
    Within(u64),
    AboveOne,
}

impl Units {
    fn parse(text: &str) -> Result<Self, String> {
        let not_a_decimal = || format!("{text:?} is not a decimal number; write it as 0.5");
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, fraction) = split(unsigned).ok_or_else(not_a_decimal)?;
        let fraction = fraction.trim_end_matches('0');
        let whole = whole.trim_start_matches('0');
        if whole.is_empty() && fraction.is_empty() {
            return Ok(Self::Within(0));
        }
        if negative {
            return Ok(Self::Negative);
        }
        if !whole.is_empty() {
            let is_one = whole == "1" && fraction.is_empty();
            return Ok(if is_one { Self::Within(WHOLE) } else { Self::AboveOne });
        }
        if fraction.len() > DIGITS_MAX {
            return Err(format!("{text} has more than {DIGITS_MAX} digits after the point"));
        }
        format!("{fraction:0<DIGITS_MAX$}").parse().map(Self::Within).map_err(|_| not_a_decimal())
    }
}

/// The digits before and after the point; an exponent, which programs write for small numbers, moves it.
fn split(unsigned: &str) -> Option<(String, String)> {
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let digits_only = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    // No number between 0 and 1 of so few digits has a larger one.
    let exponent = exponent.parse::<i8>().ok().filter(|_| digits_only(whole) && digits_only(fraction))?;
    let zeros = "0".repeat(usize::from(exponent.unsigned_abs()));
    Some(if exponent < 0 {
        let digits = format!("{zeros}{whole}");
        let point = digits.len() - zeros.len();
        (digits[..point].to_owned(), format!("{}{fraction}", &digits[point..]))
    } else {
        let digits = format!("{fraction}{zeros}");
        (format!("{whole}{}", &digits[..zeros.len()]), digits[zeros.len()..].to_owned())
    })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "rows read better without a borrow")]
    fn check(text: &str, expected: Expect) {
        let outcome = match ReadyTarget::parse(text) {
            Ok(target) => format!("{target} ({})", target.units()),
            Err(reason) => reason,
        };
        expected.assert_eq(&outcome);
    }

    #[test]
    fn ready_targets() {
        check("0.5", expect!["0.5 (500000000000000000)"]);
        check("0.1", expect!["0.1 (100000000000000000)"]);
        check("0.9", expect!["0.9 (900000000000000000)"]);
        check("0.50", expect!["0.5 (500000000000000000)"]);
        check("00.5000000", expect!["0.5 (500000000000000000)"]);
        check("0.123456", expect!["0.123456 (123456000000000000)"]);
        check("0.123456789012345678", expect!["0.123456789012345678 (123456789012345678)"]);
        check("0.1234567890123456780", expect!["0.123456789012345678 (123456789012345678)"]);
        check(
            "0.1234567890123456789",
            expect!["0.1234567890123456789 has more than 18 digits after the point"],
        );
        check("0.099999999999999999", expect!["0.099999999999999999 is not between 0.1 and 0.9"]);
        check("0.900000000000000001", expect!["0.900000000000000001 is not between 0.1 and 0.9"]);
        check("0.899999999999999999", expect!["0.899999999999999999 (899999999999999999)"]);
        check("0.999999999999999999", expect!["0.999999999999999999 is not between 0.1 and 0.9"]);
        check("0", expect!["0 is not between 0.1 and 0.9"]);
        check("1", expect!["1 is not between 0.1 and 0.9"]);
        check("1.5", expect!["1.5 is not between 0.1 and 0.9"]);
        check("99999999999999999999", expect!["99999999999999999999 is not between 0.1 and 0.9"]);
        check("-0.5", expect!["-0.5 is not between 0.1 and 0.9"]);
        check("-0", expect!["-0 is not between 0.1 and 0.9"]);
        check("5e-1", expect!["0.5 (500000000000000000)"]);
        check("12.5E-2", expect!["0.125 (125000000000000000)"]);
        check("0.00125e+2", expect!["0.125 (125000000000000000)"]);
        check("0.05e1", expect!["0.5 (500000000000000000)"]);
        check("5e-100", expect!["5e-100 has more than 18 digits after the point"]);
        check("5e-1000", expect![[r#""5e-1000" is not a decimal number; write it as 0.5"#]]);
        check("", expect![[r#""" is not a decimal number; write it as 0.5"#]]);
        check(".5", expect![[r#"".5" is not a decimal number; write it as 0.5"#]]);
        check("0.", expect![[r#""0." is not a decimal number; write it as 0.5"#]]);
        check("+0.5", expect![[r#""+0.5" is not a decimal number; write it as 0.5"#]]);
        check("e", expect![[r#""e" is not a decimal number; write it as 0.5"#]]);
        check("0,5", expect![[r#""0,5" is not a decimal number; write it as 0.5"#]]);
        check("½", expect![[r#""½" is not a decimal number; write it as 0.5"#]]);
        check("NaN", expect![[r#""NaN" is not a decimal number; write it as 0.5"#]]);
    }

    #[test]
    fn fractions_are_between_nothing_and_a_whole() {
        for (text, within) in [
            ("0.000000000000000001", true),
            ("0.999999999999999999", true),
            ("0", false),
            ("0.0", false),
            ("1", false),
            ("1.000", false),
            ("-0.1", false),
        ] {
            assert_eq!(Fraction::parse(text).is_ok(), within, "{text}");
        }
    }

    #[test]
    fn whole_numbers() {
        for (text, whole, expected) in [
            ("0", 0, true),
            ("-0", 0, true),
            ("0.0", 0, true),
            ("1", 1, true),
            ("1.00", 1, true),
            ("1", 0, false),
            ("0.999999999999999999", 1, false),
            ("-1", 1, false),
            ("-1", 0, false),
            ("x", 0, false),
        ] {
            assert_eq!(is_whole_number(text, whole), expected, "{text} {whole}");
        }
    }

    proptest! {
        /// Against whole numbers: every decimal that can be written comes back as it was.
        #[test]
        fn every_decimal_of_eighteen_digits(units in 1..WHOLE) {
            let text = format!("0.{units:018}");
            let fraction = Fraction::parse(&text).unwrap();
            prop_assert_eq!(fraction.units(), units);
            prop_assert_eq!(Fraction::parse(&fraction.to_string()), Ok(fraction));
            let within = (WHOLE / 10..=WHOLE / 10 * 9).contains(&units);
            prop_assert_eq!(ReadyTarget::parse(&text).is_ok(), within);
        }
    }
}
