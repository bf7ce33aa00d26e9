//! Which room this is, as Maestro says through the environment.

use std::collections::BTreeMap;
use std::env;

const SCHEDULER_NAME: &str = "MAESTRO_SCHEDULER_NAME";
const ROOM_ID: &str = "MAESTRO_ROOM_ID";
const ROOMS_API_URL: &str = "MAESTRO_ROOMS_API_URL";
const REGION: &str = "MAESTRO_REGION";
const HOST_PORT_PREFIX: &str = "MAESTRO_HOST_PORT_";

/// One room: its names, where it reports to, and the host ports it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    scheduler: String,
    id: String,
    rooms_api_url: String,
    region: Option<String>,
    /// By the variable's suffix, `GAME`.
    host_ports: BTreeMap<String, u16>,
}

/// Names the variable, so that whoever reads the room's log knows what to set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvironmentError {
    #[error("{variable} is not set: is this room started by Maestro?")]
    Missing { variable: &'static str },
    #[error("{variable} is not set: the scheduler has no port named {port:?}")]
    NoSuchPort { variable: String, port: String },
    #[error("{variable}: {value:?} is not {expected}")]
    Invalid { variable: String, value: String, expected: &'static str },
}

impl Room {
    /// Reads what Maestro puts into the environment of every room.
    pub fn from_env() -> Result<Self, EnvironmentError> {
        // A value that is not UTF-8 becomes one that no check accepts, and is then named in the error.
        Self::from_variables(
            env::vars_os().map(|(name, value)| {
                (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
            }),
        )
    }

    /// As [`Room::from_env`], from variables that are given. Those that are not Maestro's are passed over.
    pub fn from_variables(
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, EnvironmentError> {
        let ours: BTreeMap<String, String> =
            variables.into_iter().filter(|(name, _)| name.starts_with("MAESTRO_")).collect();
        let required = |variable: &'static str| {
            let value = ours.get(variable).filter(|value| !value.is_empty());
            value.map(String::as_str).ok_or(EnvironmentError::Missing { variable })
        };

        let mut room = Self::new(required(SCHEDULER_NAME)?, required(ROOM_ID)?, required(ROOMS_API_URL)?)?;
        room.region = ours.get(REGION).filter(|region| !region.is_empty()).cloned();
        for (variable, value) in &ours {
            if let Some(suffix) = variable.strip_prefix(HOST_PORT_PREFIX) {
                room.host_ports.insert(suffix.to_owned(), parse_port(variable, value)?);
            }
        }
        Ok(room)
    }

    /// A room whose names come from elsewhere. Errors name the variable that would have held the value.
    pub fn new(scheduler: &str, id: &str, rooms_api_url: &str) -> Result<Self, EnvironmentError> {
        Ok(Self {
            scheduler: parse_name(SCHEDULER_NAME, scheduler)?,
            id: parse_name(ROOM_ID, id)?,
            rooms_api_url: parse_url(rooms_api_url)?,
            region: None,
            host_ports: BTreeMap::new(),
        })
    }

    pub fn scheduler(&self) -> &str {
        &self.scheduler
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn rooms_api_url(&self) -> &str {
        &self.rooms_api_url
    }

    /// Where the room runs, if Maestro said so.
    pub fn region(&self) -> Option<&str> {
        self.region.as_deref()
    }

    /// The host port of the port that the scheduler calls `name`: where players reach this room.
    pub fn host_port(&self, name: &str) -> Result<u16, EnvironmentError> {
        let suffix = variable_suffix(name);
        self.host_ports.get(&suffix).copied().ok_or_else(|| EnvironmentError::NoSuchPort {
            variable: format!("{HOST_PORT_PREFIX}{suffix}"),
            port: name.to_owned(),
        })
    }
}

/// `game-udp` is in the environment as `GAME_UDP`.
fn variable_suffix(port_name: &str) -> String {
    let upper = |c: char| {
        if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }
    };
    port_name.chars().map(upper).collect()
}

/// Names become path segments; one that would need escaping is not one of Maestro's.
fn parse_name(variable: &str, value: &str) -> Result<String, EnvironmentError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_name = value.chars().all(plain) && value.starts_with(|c: char| c.is_ascii_alphanumeric());
    if is_name { Ok(value.to_owned()) } else { Err(invalid(variable, value, "a name")) }
}

fn parse_url(value: &str) -> Result<String, EnvironmentError> {
    let expected = "a URL that starts with http:// (TLS is not built in)";
    let has_host = value.strip_prefix("http://").is_some_and(|rest| !rest.is_empty());
    if has_host && !value.contains([' ', '?', '#']) {
        Ok(value.trim_end_matches('/').to_owned())
    } else {
        Err(invalid(ROOMS_API_URL, value, expected))
    }
}

fn parse_port(variable: &str, value: &str) -> Result<u16, EnvironmentError> {
    match value.parse() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(invalid(variable, value, "a port, 1 to 65535")),
    }
}

fn invalid(variable: &str, value: &str, expected: &'static str) -> EnvironmentError {
    EnvironmentError::Invalid { variable: variable.to_owned(), value: value.to_owned(), expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPLETE: [(&str, &str); 5] = [
        (SCHEDULER_NAME, "arena"),
        (ROOM_ID, "arena-1f"),
        (ROOMS_API_URL, "http://127.0.0.1:8070/"),
        (REGION, "eu"),
        ("MAESTRO_HOST_PORT_GAME_UDP", "20001"),
    ];

    fn room_with(change: (&str, &str)) -> Result<Room, EnvironmentError> {
        let variables = COMPLETE.into_iter().filter(|(name, _)| *name != change.0).chain([change]);
        Room::from_variables(variables.map(|(name, value)| (name.to_owned(), value.to_owned())))
    }

    #[test]
    fn a_complete_environment() {
        let room = room_with(("HOME", "/root")).unwrap();
        assert_eq!((room.scheduler(), room.id(), room.region()), ("arena", "arena-1f", Some("eu")));
        assert_eq!(room.rooms_api_url(), "http://127.0.0.1:8070");
        for name in ["game-udp", "game_udp", "Game.UDP"] {
            assert_eq!(room.host_port(name), Ok(20001), "{name}");
        }
    }

    #[test]
    fn errors_name_the_variable() {
        for (name, value, message) in [
            (SCHEDULER_NAME, "", "MAESTRO_SCHEDULER_NAME is not set: is this room started by Maestro?"),
            (ROOM_ID, "a/b", "MAESTRO_ROOM_ID: \"a/b\" is not a name"),
            (ROOM_ID, "..", "MAESTRO_ROOM_ID: \"..\" is not a name"),
            (
                ROOMS_API_URL,
                "https://maestro",
                "MAESTRO_ROOMS_API_URL: \"https://maestro\" is not a URL that starts with http:// (TLS is not built in)",
            ),
            ("MAESTRO_HOST_PORT_GAME", "0", "MAESTRO_HOST_PORT_GAME: \"0\" is not a port, 1 to 65535"),
        ] {
            assert_eq!(room_with((name, value)).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn a_port_that_the_scheduler_does_not_have() {
        let error = room_with((REGION, "")).unwrap().host_port("voice").unwrap_err();
        let message = "MAESTRO_HOST_PORT_VOICE is not set: the scheduler has no port named \"voice\"";
        assert_eq!(error.to_string(), message);
    }
}
