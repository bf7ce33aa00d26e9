//! The fleet: rooms that cost as little as a process can, as many as there is demand for.

use std::ops::RangeInclusive;

use serde_json::{Value, json};

use super::{Options, SCHEDULER};
use crate::Maestro;

/// They do nothing until they are asked to end.
const COMMAND: [&str; 2] = ["/bin/sleep", "1000000"];
const GRACE: &str = "1s";
/// Nothing listens to them. Of large fleets they are between those of other tests and those that the kernel gives to
/// connections.
const PORTS_OF_MANY: RangeInclusive<u16> = 30_000..=32_700;

pub(super) fn of(maestro: &Maestro, options: &Options) -> anyhow::Result<Value> {
    let ports = maestro.room_ports();
    // A rollout starts a quarter more, and ports are not free at once.
    let ports = if options.rooms as usize * 2 <= ports.len() { ports } else { PORTS_OF_MANY };
    let recipe = maestro.recipe(SCHEDULER, least(options))?;
    let mut recipe = recipe.with_command(&COMMAND).with_grace(GRACE).with_ports(ports).json();
    recipe["autoscaling"] = json!({
        "enabled": true,
        "min": least(options),
        "max": options.rooms,
        "policy": {"type": "roomOccupancy", "parameters": {"roomOccupancy": {"readyTarget": 0.1}}},
    });
    // Whoever has a room may lose it at any time.
    recipe["rollout"] = json!({"occupiedInterval": "0s"});
    Ok(recipe)
}

/// So many there are when nobody asks for any.
pub(super) fn least(options: &Options) -> u32 {
    options.rooms * 8 / 10
}

/// So many at most while it is to be smaller.
pub(super) fn fewer(options: &Options) -> u32 {
    options.rooms * 9 / 10
}
