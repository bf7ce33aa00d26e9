//! Exact decimals between 0 and 1, counted in millionths.
//!
//! Never binary floating point behind this file: 1 / (1 − 0.8) is 5, and 6 when 0.8 is a float.

use std::fmt;

use super::{Fraction, ReadyTarget};

/// A whole, in the unit that [`Fraction::millionths`] counts.
pub const MILLION: u32 = 1_000_000;

/// As many digits after the point as a millionth has, and as an `f32` carries unchanged.
const DIGITS_MAX: usize = 6;

impl Fraction {
    /// The reason alone on failure: the caller knows which field it read.
    pub fn parse(text: &str) -> Result<Self, String> {
        let millionths = parse_millionths(text)?;
        if millionths == 0 || millionths >= MILLION {
            return Err(format!("{text} is not between 0 and 1, both excluded"));
        }
        Ok(Self { millionths })
    }

    /// Reads the shortest text that stands for `value`, so that the 0.8 somebody wrote is 0.8 again.
    pub fn from_f32(value: f32) -> Result<Self, String> {
        Self::parse(&shortest_text(value)?)
    }

    pub fn millionths(self) -> u32 {
        self.millionths
    }

    /// The nearest `f32`; [`Fraction::from_f32`] gives this fraction back.
    pub fn to_f32(self) -> f32 {
        (f64::from(self.millionths) / f64::from(MILLION)) as f32
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:06}", self.millionths);
        write!(f, "0.{}", digits.trim_end_matches('0'))
    }
}

impl ReadyTarget {
    pub const MIN_MILLIONTHS: u32 = 100_000;
    pub const MAX_MILLIONTHS: u32 = 900_000;

    /// The reason alone on failure: the caller knows which field it read.
    pub fn parse(text: &str) -> Result<Self, String> {
        let millionths = parse_millionths(text)?;
        if !(Self::MIN_MILLIONTHS..=Self::MAX_MILLIONTHS).contains(&millionths) {
            return Err(format!("{text} is not between 0.1 and 0.9"));
        }
        Ok(Self(Fraction { millionths }))
    }

    /// See [`Fraction::from_f32`].
    pub fn from_f32(value: f32) -> Result<Self, String> {
        Self::parse(&shortest_text(value)?)
    }

    pub fn millionths(self) -> u32 {
        self.0.millionths()
    }

    pub fn fraction(self) -> Fraction {
        self.0
    }

    pub fn to_f32(self) -> f32 {
        self.0.to_f32()
    }
}

impl fmt::Display for ReadyTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn shortest_text(value: f32) -> Result<String, String> {
    if value.is_finite() {
        // Display of a float is the shortest text that reads back as it, and never has an exponent.
        Ok(value.to_string())
    } else {
        Err(format!("{value} is not a number; write a decimal such as 0.5"))
    }
}

/// Saturates below zero and above one: how far off does not matter to anyone who asks.
fn parse_millionths(text: &str) -> Result<u32, String> {
    let not_a_decimal = || format!("{text:?} is not a decimal number; write it as 0.5");
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
    let digits_only = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits_only(whole) || !digits_only(fraction) {
        return Err(not_a_decimal());
    }
    let fraction = fraction.trim_end_matches('0');
    let whole = whole.trim_start_matches('0');
    if negative {
        return Ok(0);
    }
    if !whole.is_empty() {
        return Ok(if whole == "1" && fraction.is_empty() { MILLION } else { u32::MAX });
    }
    if fraction.len() > DIGITS_MAX {
        return Err(format!("{text} has more than {DIGITS_MAX} digits after the point"));
    }
    format!("{fraction:0<DIGITS_MAX$}").parse().map_err(|_| not_a_decimal())
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "rows read better without a borrow")]
    fn check(text: &str, expected: Expect) {
        let outcome = match ReadyTarget::parse(text) {
            Ok(target) => format!("{target} ({})", target.millionths()),
            Err(reason) => reason,
        };
        expected.assert_eq(&outcome);
    }

    #[test]
    fn ready_targets() {
        check("0.5", expect!["0.5 (500000)"]);
        check("0.1", expect!["0.1 (100000)"]);
        check("0.9", expect!["0.9 (900000)"]);
        check("0.50", expect!["0.5 (500000)"]);
        check("00.5000000", expect!["0.5 (500000)"]);
        check("0.123456", expect!["0.123456 (123456)"]);
        check("0.1234567", expect!["0.1234567 has more than 6 digits after the point"]);
        check("0.099999", expect!["0.099999 is not between 0.1 and 0.9"]);
        check("0.900001", expect!["0.900001 is not between 0.1 and 0.9"]);
        check("0", expect!["0 is not between 0.1 and 0.9"]);
        check("1", expect!["1 is not between 0.1 and 0.9"]);
        check("1.5", expect!["1.5 is not between 0.1 and 0.9"]);
        check("99999999999999999999", expect!["99999999999999999999 is not between 0.1 and 0.9"]);
        check("-0.5", expect!["-0.5 is not between 0.1 and 0.9"]);
        check("-0", expect!["-0 is not between 0.1 and 0.9"]);
        check("", expect![[r#""" is not a decimal number; write it as 0.5"#]]);
        check(".5", expect![[r#"".5" is not a decimal number; write it as 0.5"#]]);
        check("0.", expect![[r#""0." is not a decimal number; write it as 0.5"#]]);
        check("+0.5", expect![[r#""+0.5" is not a decimal number; write it as 0.5"#]]);
        check("5e-1", expect![[r#""5e-1" is not a decimal number; write it as 0.5"#]]);
        check("0,5", expect![[r#""0,5" is not a decimal number; write it as 0.5"#]]);
        check("½", expect![[r#""½" is not a decimal number; write it as 0.5"#]]);
    }

    #[test]
    fn floats_that_are_no_decimals() {
        let reason = |value| Fraction::from_f32(value).expect_err("refused");
        expect!["NaN is not a number; write a decimal such as 0.5"].assert_eq(&reason(f32::NAN));
        expect!["inf is not a number; write a decimal such as 0.5"].assert_eq(&reason(f32::INFINITY));
        expect!["-inf is not a number; write a decimal such as 0.5"].assert_eq(&reason(f32::NEG_INFINITY));
        expect!["0 is not between 0 and 1, both excluded"].assert_eq(&reason(0.0));
        expect!["1 is not between 0 and 1, both excluded"].assert_eq(&reason(1.0));
        expect!["0.33333334 has more than 6 digits after the point"].assert_eq(&reason(1.0 / 3.0));
        assert!(Fraction::from_f32(f32::MIN_POSITIVE).is_err());
        assert!(Fraction::from_f32(f32::MAX).is_err());
    }

    /// Every decimal that can be written, against whole numbers: text, float and back.
    #[test]
    fn every_decimal_of_six_digits() {
        for millionths in 1..MILLION {
            let text = format!("0.{millionths:06}");
            let fraction = Fraction::parse(&text).unwrap();
            assert_eq!(fraction.millionths(), millionths);
            assert_eq!(Fraction::parse(&fraction.to_string()), Ok(fraction));
            assert_eq!(Fraction::from_f32(fraction.to_f32()), Ok(fraction));

            let within = (100_000..=900_000).contains(&millionths);
            assert_eq!(ReadyTarget::parse(&text).is_ok(), within, "{text}");
        }
    }
}
