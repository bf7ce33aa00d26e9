//! Durations as people write them in files, variables and flags: `10s`, `500ms`, `2m`, `1h30m`.
//!
//! Go's syntax, because that is what v10's files hold. Unlike there, a bare number is refused: v10 took it as
//! nanoseconds, which nobody ever meant.

use std::fmt::Write as _;
use std::time::Duration;

/// Keeps sums and timestamps far from overflow; nothing here waits ten years.
pub const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// Longest unit first, as `1h30m` is written; `ms` is told from `m` because units are compared whole.
const UNITS: [(&str, u128); 4] =
    [("h", 3_600_000_000_000), ("m", 60_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000)];

/// Digits of a fraction that can matter: nanoseconds of an hour need no more.
const FRACTION_DIGITS_MAX: usize = 9;

/// Parses a duration; the error says what would be right, without naming the value.
pub fn parse(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    if text.parse::<f64>().is_ok() {
        return Err(format!("a number needs a unit: {text}s, {text}ms, {text}m or {text}h"));
    }
    let mut nanos = 0_u128;
    let mut rest = text;
    while !rest.is_empty() {
        let (part, after) = next_part(rest).ok_or_else(shape)?;
        nanos = nanos.saturating_add(part);
        rest = after;
    }
    if text.is_empty() {
        return Err(shape());
    }
    match u64::try_from(nanos).map(Duration::from_nanos) {
        Ok(duration) if duration <= LONGEST => Ok(duration),
        _ => Err("must be at most ten years".to_owned()),
    }
}

/// Writes a duration so that [`parse`] reads it back: `90s` comes out as `1m30s`.
pub fn format(duration: Duration) -> String {
    let mut nanos = duration.as_nanos();
    let mut text = String::new();
    for (unit, size) in UNITS {
        let count = nanos / size;
        if count > 0 {
            // Writing to a String cannot fail.
            let _ = write!(text, "{count}{unit}");
            nanos %= size;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

fn shape() -> String {
    "must be a duration such as 10s, 500ms, 2m or 1h".to_owned()
}

/// The first `<number><unit>` in nanoseconds, and what follows it.
fn next_part(text: &str) -> Option<(u128, &str)> {
    let number_end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, rest) = text.split_at(number_end);
    let unit_end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(unit_end);
    let (_, size) = UNITS.into_iter().find(|(name, _)| *name == unit)?;

    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let fraction_is_short = !fraction.is_empty() && fraction.len() <= FRACTION_DIGITS_MAX;
    if !fraction_is_short {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let fraction_nanos =
        fraction.parse::<u128>().ok()? * size / 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    Some((u128::from(whole) * size + fraction_nanos, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read() {
        for (text, millis, written) in [
            ("10s", 10_000, "10s"),
            ("500ms", 500, "500ms"),
            ("2m", 120_000, "2m"),
            ("1h", 3_600_000, "1h"),
            ("1h30m", 5_400_000, "1h30m"),
            ("90s", 90_000, "1m30s"),
            ("1.5s", 1_500, "1s500ms"),
            (" 24h ", 86_400_000, "24h"),
            ("0s", 0, "0s"),
        ] {
            let duration = parse(text).unwrap();
            assert_eq!(duration, Duration::from_millis(millis), "{text}");
            assert_eq!(format(duration), written, "{text}");
            assert_eq!(parse(written), Ok(duration), "{text}");
        }
    }

    #[test]
    fn what_is_refused() {
        for (text, reason) in [
            ("10", "a number needs a unit: 10s, 10ms, 10m or 10h"),
            ("0.5", "a number needs a unit: 0.5s, 0.5ms, 0.5m or 0.5h"),
            ("", "must be a duration such as 10s, 500ms, 2m or 1h"),
            ("soon", "must be a duration such as 10s, 500ms, 2m or 1h"),
            ("-5s", "must be a duration such as 10s, 500ms, 2m or 1h"),
            ("5 s", "must be a duration such as 10s, 500ms, 2m or 1h"),
            ("5days", "must be a duration such as 10s, 500ms, 2m or 1h"),
            ("1.2.3s", "must be a duration such as 10s, 500ms, 2m or 1h"),
            ("s", "must be a duration such as 10s, 500ms, 2m or 1h"),
            ("1h30", "must be a duration such as 10s, 500ms, 2m or 1h"),
            ("99999999h", "must be at most ten years"),
            ("18446744073709551615h", "must be at most ten years"),
        ] {
            assert_eq!(parse(text), Err(reason.to_owned()), "{text}");
        }
    }
}
