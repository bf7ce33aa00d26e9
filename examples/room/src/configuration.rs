//! What the environment may change about this room, its faults among it.

use std::time::Duration;

use anyhow::{Context, bail};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Configuration {
    /// `ROOM_START_DELAY_MS`: how long the game loads before it is ready.
    pub(crate) start_delay: Duration,
    /// `ROOM_MAX_MATCHES`.
    pub(crate) matches_max: u32,
    /// `ROOM_DRAIN_MS`: how long running matches may go on after SIGTERM.
    pub(crate) drain: Duration,
    /// `ROOM_PING_INTERVAL_MS`.
    pub(crate) ping_interval: Option<Duration>,
    pub(crate) faults: Faults,
}

/// Ways to go wrong, for the tests of those who must notice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Faults {
    /// `ROOM_CRASH_AFTER_MS`: ends without a word, exit code 3.
    pub(crate) crash_after: Option<Duration>,
    /// `ROOM_NEVER_READY=1`: loads forever and never pings.
    pub(crate) never_ready: bool,
    /// `ROOM_STOP_PINGING_AFTER_MS`: goes on serving, but silently, as a game whose main loop hangs.
    pub(crate) stop_pinging_after: Option<Duration>,
    /// `ROOM_IGNORE_SIGTERM=1`: has to be killed.
    pub(crate) ignore_sigterm: bool,
}

impl Configuration {
    pub(crate) fn from_variables(variable: impl Fn(&str) -> Option<String>) -> anyhow::Result<Self> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let milliseconds = |name: &str| parse_milliseconds(name, set(name));
        let switch = |name: &str| parse_switch(name, set(name).as_deref());

        let matches_max = match set("ROOM_MAX_MATCHES") {
            None => 1,
            Some(value) => match value.parse() {
                Ok(number) if number > 0 => number,
                _ => bail!("ROOM_MAX_MATCHES: {value:?} is not a number above 0"),
            },
        };
        Ok(Self {
            start_delay: milliseconds("ROOM_START_DELAY_MS")?.unwrap_or(Duration::from_millis(100)),
            matches_max,
            drain: milliseconds("ROOM_DRAIN_MS")?.unwrap_or(Duration::from_secs(2)),
            ping_interval: milliseconds("ROOM_PING_INTERVAL_MS")?,
            faults: Faults {
                crash_after: milliseconds("ROOM_CRASH_AFTER_MS")?,
                never_ready: switch("ROOM_NEVER_READY")?,
                stop_pinging_after: milliseconds("ROOM_STOP_PINGING_AFTER_MS")?,
                ignore_sigterm: switch("ROOM_IGNORE_SIGTERM")?,
            },
        })
    }
}

fn parse_milliseconds(name: &str, value: Option<String>) -> anyhow::Result<Option<Duration>> {
    let Some(value) = value else { return Ok(None) };
    // Four bytes are 49 days, the longest that a room could want.
    let milliseconds: u32 =
        value.parse().with_context(|| format!("{name}: {value:?} is not a number of milliseconds"))?;
    Ok(Some(Duration::from_millis(milliseconds.into())))
}

fn parse_switch(name: &str, value: Option<&str>) -> anyhow::Result<bool> {
    match value {
        None | Some("0") => Ok(false),
        Some("1") => Ok(true),
        Some(value) => bail!("{name}: {value:?} is neither 0 nor 1"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(variables: &[(&str, &str)]) -> anyhow::Result<Configuration> {
        let find = |name: &str| variables.iter().find(|(key, _)| *key == name);
        Configuration::from_variables(|name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn nothing_set_is_a_room_without_faults() {
        let configuration = parse(&[("ROOM_NEVER_READY", ""), ("ROOM_IGNORE_SIGTERM", "0")]).unwrap();
        assert_eq!(configuration.matches_max, 1);
        assert_eq!(configuration.drain, Duration::from_secs(2));
        assert_eq!(configuration.faults, Faults::default());
    }

    #[test]
    fn everything_can_be_set() {
        let configuration = parse(&[
            ("ROOM_START_DELAY_MS", "0"),
            ("ROOM_MAX_MATCHES", "3"),
            ("ROOM_PING_INTERVAL_MS", "250"),
            ("ROOM_CRASH_AFTER_MS", "40"),
            ("ROOM_STOP_PINGING_AFTER_MS", "50"),
            ("ROOM_NEVER_READY", "1"),
            ("ROOM_IGNORE_SIGTERM", "1"),
        ]);
        let milliseconds = Duration::from_millis;
        let expected = Configuration {
            start_delay: Duration::ZERO,
            matches_max: 3,
            drain: Duration::from_secs(2),
            ping_interval: Some(milliseconds(250)),
            faults: Faults {
                crash_after: Some(milliseconds(40)),
                never_ready: true,
                stop_pinging_after: Some(milliseconds(50)),
                ignore_sigterm: true,
            },
        };
        assert_eq!(configuration.unwrap(), expected);
    }

    #[test]
    fn errors_name_the_variable_and_the_value() {
        for (name, value, message) in [
            ("ROOM_DRAIN_MS", "2s", "ROOM_DRAIN_MS: \"2s\" is not a number of milliseconds"),
            ("ROOM_MAX_MATCHES", "0", "ROOM_MAX_MATCHES: \"0\" is not a number above 0"),
            ("ROOM_NEVER_READY", "yes", "ROOM_NEVER_READY: \"yes\" is neither 0 nor 1"),
        ] {
            assert_eq!(parse(&[(name, value)]).unwrap_err().to_string(), message);
        }
    }
}
