//! Host ports: which ones a room gets. No port is given twice on one host, whatever its protocol: networks exist
//! that cannot tell TCP 7777 from UDP 7777.

use std::collections::BTreeSet;

use crate::scheduler::{Container, PortRange, Protocol, Recipe};

/// A port of a room as the outside reaches it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPort {
    pub name: String,
    pub protocol: Protocol,
    /// What the container listens to, where it has a network of its own.
    pub container_port: u16,
    pub host_port: u16,
}

/// A port that a room needs: its container, its name, and where its host port may come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeededPort {
    pub name: String,
    pub protocol: Protocol,
    pub container_port: u16,
    pub range: PortRange,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no free host port for {port:?} in {start}-{end}: all {size} are in use")]
pub struct Exhausted {
    pub port: String,
    pub start: u16,
    pub end: u16,
    pub size: u32,
}

impl PortRange {
    /// How many ports it holds.
    pub fn size(self) -> u32 {
        u32::from(self.end) - u32::from(self.start) + 1
    }
}

/// The ports of one room of this recipe.
pub fn needed_ports(recipe: &Recipe) -> Vec<NeededPort> {
    let ports = |container: &Container| container.ports.clone();
    recipe
        .spec
        .containers
        .iter()
        .flat_map(ports)
        .filter_map(|port| {
            Some(NeededPort {
                name: port.name,
                protocol: port.protocol,
                container_port: port.port,
                range: port.host_port_range.or(recipe.port_range)?,
            })
        })
        .collect()
}

/// Picks a free host port for each wanted one and marks it as used. `start` turns the search to another place in
/// the range, so that a port that was given up rests before it is used again.
pub fn pick(wanted: &[NeededPort], used: &mut BTreeSet<u16>, start: u64) -> Result<Vec<HostPort>, Exhausted> {
    let mut picked: Vec<HostPort> = Vec::with_capacity(wanted.len());
    for port in wanted {
        let Some(host_port) = free_port(port.range, used, start) else {
            for given in &picked {
                used.remove(&given.host_port);
            }
            let PortRange { start, end } = port.range;
            return Err(Exhausted { port: port.name.clone(), start, end, size: port.range.size() });
        };
        used.insert(host_port);
        picked.push(HostPort {
            name: port.name.clone(),
            protocol: port.protocol,
            container_port: port.container_port,
            host_port,
        });
    }
    Ok(picked)
}

fn free_port(range: PortRange, used: &BTreeSet<u16>, start: u64) -> Option<u16> {
    let offset = u16::try_from(start % u64::from(range.size())).unwrap_or(0);
    let from = range.start + offset;
    first_gap(from, range.end, used).or_else(|| first_gap(range.start, range.end, used))
}

/// The first unused number of `from..=to`, without walking over single numbers in long used stretches more than once.
fn first_gap(from: u16, to: u16, used: &BTreeSet<u16>) -> Option<u16> {
    let mut candidate = u32::from(from);
    for taken in used.range(from..=to) {
        if u32::from(*taken) > candidate {
            break;
        }
        candidate = u32::from(*taken) + 1;
    }
    u16::try_from(candidate).ok().filter(|port| *port <= to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(start: u16, end: u16) -> Vec<NeededPort> {
        let range = PortRange { start, end };
        vec![NeededPort { name: "game".into(), protocol: Protocol::Udp, container_port: 7777, range }]
    }

    #[test]
    fn every_port_of_a_range_is_given_once() {
        for turn in [0, 1, 7, u64::MAX] {
            let mut used = BTreeSet::new();
            for _ in 0..11 {
                pick(&one(100, 110), &mut used, turn).unwrap();
            }
            assert_eq!(used, (100..=110).collect());
            let full = pick(&one(100, 110), &mut used, turn).unwrap_err();
            assert_eq!(full.to_string(), "no free host port for \"game\" in 100-110: all 11 are in use");
        }
    }

    #[test]
    fn the_end_of_all_ports_is_no_edge() {
        let mut used = BTreeSet::from([65534]);
        assert_eq!(pick(&one(65534, 65535), &mut used, 0).unwrap()[0].host_port, 65535);
        pick(&one(65534, 65535), &mut used, 1).unwrap_err();
    }

    #[test]
    fn a_room_that_does_not_fit_takes_nothing() {
        let mut used = BTreeSet::new();
        let three = [one(1, 2), one(1, 2), one(1, 2)].concat();
        pick(&three, &mut used, 0).unwrap_err();
        assert_eq!(used, BTreeSet::new());
    }
}
