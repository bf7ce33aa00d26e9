//! The fleets of the workload: small, of both kinds, and with recipes that change.

use serde_json::{Value, json};

use crate::{Maestro, Recipe};

/// How many rooms a fleet of fixed size begins with. People keep it near that.
pub(super) const ROOMS: u32 = 4;
/// However many players there are: all fleets together stay at about 25 rooms.
const ROOMS_MAX: u32 = 5;
/// Rooms do not end before they are killed: a removal is under way for so long, and is met by kills.
const GRACE: &str = "0.6s";
/// For the same reason they are not ready at once.
const START_DELAY_MS: u32 = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sizing {
    Fixed,
    Autoscaled,
}

/// As its user knows it.
#[derive(Debug, Clone)]
pub(super) struct Fleet {
    pub(super) name: String,
    /// Until an answer says otherwise.
    pub(super) exists: bool,
    /// It may be deleted. The others are not: a deletion takes the record of all operations with it.
    pub(super) passes: bool,
    sizing: Sizing,
    base: Recipe,
    look: Look,
}

/// What tells one version from another.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Look {
    /// Stamped on rooms.
    major: u32,
    minor: u32,
    fault: Option<Fault>,
}

/// Why no room of a version ever becomes ready.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fault {
    NeverReady,
    ExitsAtOnce,
}

/// Every second one is autoscaled, and the last one is there for a while only.
pub(super) fn fleets(maestro: &Maestro, number: u32) -> anyhow::Result<Vec<Fleet>> {
    let fleet = |index: u32| {
        let (kind, sizing) =
            if index.is_multiple_of(2) { ("fixed", Sizing::Fixed) } else { ("auto", Sizing::Autoscaled) };
        let name = format!("{kind}-{}", index / 2 + 1);
        let base = maestro
            .recipe(&name, ROOMS)?
            .with("ROOM_START_DELAY_MS", START_DELAY_MS)
            .with("ROOM_IGNORE_SIGTERM", 1)
            .with_grace(GRACE);
        let passes = index + 1 == number;
        Ok(Fleet { name, exists: false, passes, sizing, base, look: Look::default() })
    };
    (0..number).map(fleet).collect()
}

impl Fleet {
    pub(super) fn minor_change(&self) -> Look {
        Look { minor: self.look.minor + 1, ..self.look }
    }

    pub(super) fn major_change(&self) -> Look {
        Look { major: self.look.major + 1, ..self.look }
    }

    pub(super) fn broken_change(&self, fault: Fault) -> Look {
        Look { fault: Some(fault), ..self.major_change() }
    }

    /// Later changes begin from here.
    pub(super) fn took(&mut self, look: Look) {
        self.look = Look { fault: None, ..look };
    }

    pub(super) fn recipe(&self) -> Value {
        self.recipe_of(self.look)
    }

    /// All of it but the number of rooms, which people change meanwhile.
    pub(super) fn patch_to(&self, look: Look) -> Value {
        let mut patch = self.recipe_of(look);
        if let Some(fields) = patch.as_object_mut() {
            fields.retain(|field, _| !matches!(field.as_str(), "roomsReplicas" | "game"));
        }
        patch
    }

    fn recipe_of(&self, look: Look) -> Value {
        let base = self.base.clone().with("ROOM_DRAIN_MS", 500 + look.major);
        let base = match look.fault {
            None => base,
            Some(Fault::NeverReady) => base.with("ROOM_NEVER_READY", 1),
            Some(Fault::ExitsAtOnce) => base.with("ROOM_CRASH_AFTER_MS", 1),
        };
        let mut recipe = base.json();
        recipe["maxSurge"] = (1 + look.minor % 2).to_string().into();
        if self.sizing == Sizing::Autoscaled {
            recipe["autoscaling"] = json!({
                "enabled": true,
                "min": 1 + look.minor % 3,
                "max": ROOMS_MAX,
                "policy": {"type": "roomOccupancy", "parameters": {"roomOccupancy": {"readyTarget": 0.5}}},
            });
        }
        recipe
    }
}
