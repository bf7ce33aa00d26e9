//! Demand from a file: lines `time,matches`, each valid until the next one.
//!
//! A time is a length (`90s`, `1h30m`), a number of seconds, or a timestamp (`2026-07-01T18:00:00Z`), as measurements are
//! usually exported. Times count from the first line.

use maestro_core::duration;
use maestro_core::time::{Millis, Timestamp};

use super::MATCHES_MAX;
use super::demand::{Demand, Knot};

/// A line a second for eleven days.
const LINES_MAX: usize = 1_000_000;

pub(super) fn parse(text: &str) -> Result<Demand, String> {
    let mut knots: Vec<(i128, u32)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') || (knots.is_empty() && is_header(line)) {
            continue;
        }
        let knot = knot(line).map_err(|reason| format!("line {}: {reason}", index + 1))?;
        if knots.last().is_some_and(|(last, _)| *last >= knot.0) {
            return Err(format!("line {}: {line} is not later than the line before", index + 1));
        }
        if knots.len() == LINES_MAX {
            return Err(format!("has more than {LINES_MAX} lines"));
        }
        knots.push(knot);
    }
    let Some((first, _)) = knots.first().copied() else {
        return Err("is empty; write lines such as 90s,40".to_owned());
    };
    let since = |at: i128| Millis(u64::try_from(at - first).unwrap_or(u64::MAX));
    let knots = knots.into_iter().map(|(at, matches)| Knot { at: since(at), matches });
    Ok(Demand::steps(knots.collect()))
}

/// The names of the columns: neither of them has a digit in it.
fn is_header(line: &str) -> bool {
    !line.bytes().any(|byte| byte.is_ascii_digit())
}

/// The time in milliseconds, from wherever it counts.
fn knot(line: &str) -> Result<(i128, u32), String> {
    let (time, matches) =
        line.split_once(',').ok_or_else(|| format!("{line} is not a time and a number, such as 90s,40"))?;
    let (time, matches) = (time.trim(), matches.trim());
    let number = matches.parse().ok().filter(|number| *number <= MATCHES_MAX);
    let number = number.ok_or_else(|| format!("{matches} is not a whole number from 0 to {MATCHES_MAX}"))?;
    Ok((milliseconds(time)?, number))
}

fn milliseconds(text: &str) -> Result<i128, String> {
    if let Ok(seconds) = text.parse::<u64>() {
        return Ok(i128::from(seconds) * 1000);
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time.as_millisecond().into());
    }
    let time = duration::parse(text)
        .map_err(|_| format!("{text} is not a time; write 90s, a number of seconds, or a timestamp"))?;
    Ok(i128::try_from(time.as_millis()).unwrap_or(i128::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&[(u64, u32)], &str>) {
        match (parse(text), expected) {
            (Ok(demand), Ok(points)) => {
                for (second, matches) in points {
                    assert_eq!(
                        demand.at(Millis::from_seconds(*second)),
                        *matches,
                        "second {second} of {text}"
                    );
                }
            }
            (outcome, expected) => assert_eq!(outcome.err().as_deref(), expected.err(), "{text}"),
        }
    }

    #[test]
    fn what_is_read() {
        check("5", Err("line 1: 5 is not a time and a number, such as 90s,40"));
        check("0,5", Ok(&[(0, 5), (9, 5)]));
        check("time,occupied\n0s,5\n1m,7\n\n1h,0\n", Ok(&[(0, 5), (59, 5), (60, 7), (3599, 7), (3600, 0)]));
        check("2026-07-01T18:00:00Z,5\n2026-07-01T18:00:30Z,6\n", Ok(&[(0, 5), (29, 5), (30, 6)]));
        check("# players\r\n1700000000, 5\r\n1700000010, 6\r\n", Ok(&[(9, 5), (10, 6)]));
    }

    #[test]
    fn what_is_refused() {
        check("", Err("is empty; write lines such as 90s,40"));
        check("time,occupied\n", Err("is empty; write lines such as 90s,40"));
        check("0s,5\n0s,6", Err("line 2: 0s,6 is not later than the line before"));
        check("0s,-5", Err("line 1: -5 is not a whole number from 0 to 1000000"));
        check("0s,5.5", Err("line 1: 5.5 is not a whole number from 0 to 1000000"));
        check("0s,1000001", Err("line 1: 1000001 is not a whole number from 0 to 1000000"));
        check(
            "0s,5\nsoon,5",
            Err("line 2: soon is not a time; write 90s, a number of seconds, or a timestamp"),
        );
    }
}
