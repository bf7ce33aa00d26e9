//! Recipes of small fleets.

use std::ops::RangeInclusive;

use serde_json::{Value, json};

use crate::binaries;

/// Of all fleets of these tests.
pub(crate) const GAME: &str = "e2e";

/// A scheduler whose rooms are the example room.
#[derive(Debug, Clone)]
pub struct Recipe {
    pub name: String,
    pub rooms: u32,
    pub ports: RangeInclusive<u16>,
    pub grace: &'static str,
    pub command: Vec<String>,
    pub environment: Vec<(&'static str, String)>,
}

impl Recipe {
    pub(crate) fn new(name: &str, rooms: u32, ports: RangeInclusive<u16>) -> anyhow::Result<Self> {
        let room = binaries::example_room()?;
        Ok(Self {
            name: name.to_owned(),
            rooms,
            ports,
            grace: "5s",
            command: vec![room.to_string_lossy().into_owned()],
            environment: vec![
                ("ROOM_START_DELAY_MS", "0".to_owned()),
                ("ROOM_PING_INTERVAL_MS", "200".to_owned()),
            ],
        })
    }

    /// Sets a variable of the example room, all of which are numbers; what it had before counts no more.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: u32) -> Self {
        self.environment.retain(|(other, _)| *other != name);
        self.environment.push((name, value.to_string()));
        self
    }

    #[must_use]
    pub fn with_grace(mut self, grace: &'static str) -> Self {
        self.grace = grace;
        self
    }

    #[must_use]
    pub fn with_ports(mut self, ports: RangeInclusive<u16>) -> Self {
        self.ports = ports;
        self
    }

    #[must_use]
    pub fn with_command(mut self, command: &[&str]) -> Self {
        self.command = command.iter().map(ToString::to_string).collect();
        self
    }

    pub fn json(&self) -> Value {
        let environment = self.environment.iter();
        let environment: Vec<Value> =
            environment.map(|(name, value)| json!({"name": name, "value": value})).collect();
        let mut recipe = maestro_testkit::recipe(&self.name, self.rooms);
        recipe["game"] = GAME.into();
        recipe["portRange"] = json!({"start": self.ports.start(), "end": self.ports.end()});
        recipe["spec"]["terminationGracePeriod"] = self.grace.into();
        let container = &mut recipe["spec"]["containers"][0];
        container["image"] = "maestro/example-room:1".into();
        container["command"] = json!(self.command);
        container["environment"] = environment.into();
        container["ports"][0]["protocol"] = "tcp".into();
        recipe
    }
}
