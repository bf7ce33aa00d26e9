//! How long a caller waits, as it says with its call.

use std::time::Duration;

use axum::http::HeaderMap;

use crate::error::ApiError;

/// The time in `grpc-timeout`, if the call has one.
pub(crate) fn timeout(headers: &HeaderMap) -> Result<Option<Duration>, ApiError> {
    let Some(value) = headers.get("grpc-timeout") else {
        return Ok(None);
    };
    let parsed = value.to_str().ok().and_then(parse);
    parsed.map(Some).ok_or_else(|| {
        ApiError::invalid(format!(
            "header grpc-timeout: {value:?} is not a time; write up to 8 digits and one of H, M, S, m, u, n"
        ))
    })
}

fn parse(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(number * 3600)),
        "M" => Some(Duration::from_secs(number * 60)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (text, expected) in [
            ("1S", Some(Duration::from_secs(1))),
            ("99999999H", Some(Duration::from_secs(99_999_999 * 3600))),
            ("2M", Some(Duration::from_secs(120))),
            ("250m", Some(Duration::from_millis(250))),
            ("3u", Some(Duration::from_micros(3))),
            ("0n", Some(Duration::ZERO)),
            ("", None),
            ("S", None),
            ("1", None),
            ("1s", None),
            ("-1S", None),
            ("100000000S", None),
            ("1ü", None),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
