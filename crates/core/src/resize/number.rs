//! The `number` of a resize: rooms, or percent with a fraction. Exact.

use std::fmt;

const MILLION: i128 = 1_000_000;
const FRACTION_DIGITS_MAX: usize = 6;
/// More than there are rooms to be counted.
const WHOLE_DIGITS_MAX: usize = 17;

/// A decimal, counted in millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number {
    millionths: i128,
}

impl Number {
    /// Reads `-12.5`. The reason alone on failure: the caller knows which field it read.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
        let digits_only = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !digits_only(whole) || !digits_only(fraction) {
            return Err(format!("{text:?} is not a decimal number; write it as 12 or 12.5"));
        }
        let fraction = fraction.trim_end_matches('0');
        if fraction.len() > FRACTION_DIGITS_MAX {
            return Err(format!("{text} has more than {FRACTION_DIGITS_MAX} digits after the point"));
        }
        let millionths = format!("{whole}{fraction:0<FRACTION_DIGITS_MAX$}").parse::<i128>();
        match millionths {
            Ok(millionths) if whole.trim_start_matches('0').len() <= WHOLE_DIGITS_MAX => {
                Ok(Self { millionths: sign * millionths })
            }
            Ok(_) | Err(_) => Err(format!("{text} has more than {WHOLE_DIGITS_MAX} digits before the point")),
        }
    }

    pub(super) fn is_zero(self) -> bool {
        self.millionths == 0
    }

    /// `None` if it has a fraction.
    pub(super) fn whole(self) -> Option<i64> {
        (self.millionths % MILLION == 0).then(|| i64::try_from(self.millionths / MILLION).ok()).flatten()
    }

    /// So many percent of the rooms, cut to a whole number; less than one room is one.
    pub(super) fn percent_of(self, rooms: i128) -> i128 {
        const ALL: i128 = 100 * MILLION;
        // In two parts: the product of both would not fit into 128 bits.
        let whole = self.millionths * (rooms / ALL) + self.millionths * (rooms % ALL) / ALL;
        if whole == 0 { self.millionths.signum() * rooms.signum() } else { whole }
    }
}

impl From<i64> for Number {
    fn from(number: i64) -> Self {
        Self { millionths: i128::from(number) * MILLION }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.millionths < 0 { "-" } else { "" };
        let (whole, fraction) = (self.millionths.abs() / MILLION, self.millionths.abs() % MILLION);
        match format!("{fraction:06}").trim_end_matches('0') {
            "" => write!(f, "{sign}{whole}"),
            fraction => write!(f, "{sign}{whole}.{fraction}"),
        }
    }
}
