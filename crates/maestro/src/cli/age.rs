//! Times as people read them: how long ago.

use jiff::Timestamp;

use super::Json;

/// `3m12s` for a time of the server's; `-` if there is none.
pub(super) fn cell(time: &Json, now: Timestamp) -> String {
    match time.as_str().map(str::parse::<Timestamp>) {
        Some(Ok(time)) if time > Timestamp::UNIX_EPOCH => age(now.as_second() - time.as_second()),
        // Go's zero time, and nothing at all.
        Some(Ok(_)) | None => "-".to_owned(),
        Some(Err(_)) => time.cell(),
    }
}

/// The two largest units; clocks that differ a little make no negative age.
fn age(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (days, hours) = (seconds / 86_400, seconds / 3600 % 24);
    let (minutes, rest) = (seconds / 60 % 60, seconds % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{rest}s"),
        (0, 0, _) => format!("{minutes}m{rest}s"),
        (0, _, _) => format!("{hours}h{minutes}m"),
        (_, _, _) => format!("{days}d{hours}h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        for (time, expected) in [
            ("2026-11-15T12:00:00Z", "0s"),
            ("2026-11-15T11:59:18.5Z", "42s"),
            ("2026-11-15T11:56:48Z", "3m12s"),
            ("2026-11-15T06:57:00.123456789Z", "5h3m"),
            ("2026-11-13T07:30:00Z", "2d4h"),
            ("2026-11-15T12:00:07Z", "0s"),
            ("0001-01-01T00:00:00Z", "-"),
            ("", "-"),
            ("yesterday", "yesterday"),
        ] {
            assert_eq!(cell(&Json::from(time), now), expected, "{time}");
        }
        assert_eq!(cell(&Json::Null, now), "-");
    }
}
