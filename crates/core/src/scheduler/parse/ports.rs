//! The ports of a room, and where their host ports come from: one range for all, or one for each.

use std::collections::BTreeMap;

use super::field::{Field, Refused};
use crate::scheduler::draft::{ContainerDraft, ContainerPortDraft, PortRangeDraft, RecipeDraft};
use crate::scheduler::{ContainerPort, PortRange, Protocol};

const PORT_MAX: i32 = u16::MAX as i32;

/// What Kubernetes allows in the name of a port.
const NAME_LENGTH_MAX: usize = 15;

pub(super) fn container_port(
    field: &Field<'_>,
    draft: &ContainerPortDraft,
) -> Result<ContainerPort, Refused> {
    let name = field.child("name").take(port_name(&draft.name));
    let protocol = field.child("protocol").take(Protocol::parse(&draft.protocol));
    let port = field.child("port").number(draft.port, 1, PORT_MAX);
    let host_port = field.child("hostPort").number(draft.host_port, 0, PORT_MAX);
    let host_port_range =
        draft.host_port_range.map(|range| port_range(&field.child("hostPortRange"), range)).transpose();
    Ok(ContainerPort {
        name: name?,
        protocol: protocol?,
        port: port?,
        host_port: host_port?,
        host_port_range: host_port_range?,
    })
}

/// Kubernetes' rule, also where rooms are processes: a recipe that runs on a laptop must run in a cluster.
fn port_name(name: &str) -> Result<String, String> {
    if name.is_empty() {
        return Err("is missing; a name of 1 to 15 characters a-z, 0-9 and - is needed".into());
    }
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let fits = name.len() <= NAME_LENGTH_MAX
        && name.chars().all(allowed)
        && name.contains(|c: char| c.is_ascii_lowercase())
        && !name.contains("--");
    if !fits || name.starts_with('-') || name.ends_with('-') {
        return Err(format!(
            "{name:?} is not the name of a port: use 1 to {NAME_LENGTH_MAX} characters a-z, 0-9 and single -, \
             at least one letter, not starting or ending with -"
        ));
    }
    Ok(name.to_owned())
}

/// Clients ask for a port by its name alone, and a room is told its host ports by name: one name, one port.
pub(super) fn check_names_unique(containers: &Field<'_>, drafts: &[ContainerDraft]) {
    let mut first_use = BTreeMap::new();
    for (port, draft) in all_ports(containers, drafts) {
        if draft.name.is_empty() {
            continue;
        }
        if let Some(first) = first_use.get(&draft.name) {
            port.child("name").refuse(format!(
                "{:?} is taken by {first}; ports of a room need different names",
                draft.name
            ));
        } else {
            first_use.insert(&draft.name, port);
        }
    }
}

pub(super) fn port_range(field: &Field<'_>, draft: PortRangeDraft) -> Result<PortRange, Refused> {
    let start = field.child("start").number(draft.start, 1, PORT_MAX);
    let end = field.child("end").number(draft.end, 1, PORT_MAX);
    let range = PortRange { start: start?, end: end? };
    if range.start >= range.end {
        return Err(field.refuse(format!("start {} is not below end {}", range.start, range.end)));
    }
    Ok(range)
}

/// Either the scheduler has a range, or each of its ports has one.
pub(super) fn check_range_style(root: &Field<'_>, draft: &RecipeDraft) {
    let containers = draft.spec.as_ref().map_or(&[][..], |spec| &spec.containers);
    let field = root.child("spec.containers");
    let (with, without): (Vec<_>, Vec<_>) =
        all_ports(&field, containers).into_iter().partition(|(_, port)| port.host_port_range.is_some());

    let scheduler_range = root.child("portRange");
    match (draft.port_range, with.first()) {
        (Some(_), None) => {}
        (Some(_), Some((port, _))) => {
            scheduler_range.refuse(format!(
                "excludes {port}.hostPortRange; keep portRange, or a hostPortRange on every port"
            ));
        }
        (None, None) => {
            scheduler_range
                .refuse("is missing; give the scheduler a portRange, or every port a hostPortRange");
        }
        (None, Some((first, _))) => {
            for (port, _) in without {
                port.child("hostPortRange").refuse(format!(
                    "is missing; {first} has one, so every port needs one, or all share one portRange"
                ));
            }
        }
    }
}

fn all_ports<'a, 'd>(
    containers: &Field<'a>,
    drafts: &'d [ContainerDraft],
) -> Vec<(Field<'a>, &'d ContainerPortDraft)> {
    let of_container = |(index, draft): (usize, &'d ContainerDraft)| {
        let ports = containers.item(index).child("ports");
        draft.ports.iter().enumerate().map(move |(index, port)| (ports.item(index), port))
    };
    drafts.iter().enumerate().flat_map(of_container).collect()
}
