//! The ports of a room, and where their host ports come from: one range for all, or one for each.

use maestro_core::scheduler::{ContainerPort, PortRange};

use super::field::{Field, Refused};
use crate::v1::{self, CreateSchedulerRequest};

const PORT_MAX: i32 = u16::MAX as i32;

/// What Kubernetes allows in the name of a port.
const NAME_LENGTH_MAX: usize = 15;

pub(super) fn container_port(field: &Field<'_>, wire: &v1::ContainerPort) -> Result<ContainerPort, Refused> {
    let name = field.child("name").take(port_name(&wire.name));
    let protocol = field.child("protocol").choose(&wire.protocol);
    let port = field.child("port").number(wire.port, 1, PORT_MAX);
    let host_port = field.child("hostPort").number(wire.host_port, 0, PORT_MAX);
    let host_port_range = field.optional("hostPortRange", wire.host_port_range.as_ref(), port_range);
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
pub(super) fn check_names_unique(field: &Field<'_>, containers: &[v1::Container]) {
    let ports = all_ports(field, containers).into_iter();
    Field::check_unique(ports.map(|(field, port)| (field, port.name.as_str())), "ports");
}

pub(super) fn port_range(field: &Field<'_>, wire: &v1::PortRange) -> Result<PortRange, Refused> {
    let start = field.child("start").number(wire.start, 1, PORT_MAX);
    let end = field.child("end").number(wire.end, 1, PORT_MAX);
    let range = PortRange { start: start?, end: end? };
    if range.start >= range.end {
        return Err(field.refuse(format!("start {} is not below end {}", range.start, range.end)));
    }
    Ok(range)
}

/// Either the scheduler has a range, or each of its ports has one.
pub(super) fn check_range_style(root: &Field<'_>, wire: &CreateSchedulerRequest) {
    let containers = wire.spec.as_ref().map_or(&[][..], |spec| &spec.containers);
    let field = root.child("spec.containers");
    let (with, without): (Vec<_>, Vec<_>) =
        all_ports(&field, containers).into_iter().partition(|(_, port)| port.host_port_range.is_some());

    let scheduler_range = root.child("portRange");
    match (wire.port_range, with.first()) {
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

fn all_ports<'a, 'w>(
    field: &Field<'a>,
    containers: &'w [v1::Container],
) -> Vec<(Field<'a>, &'w v1::ContainerPort)> {
    let of_container = |(index, container): (usize, &'w v1::Container)| {
        let ports = field.item(index).child("ports");
        container.ports.iter().enumerate().map(move |(index, port)| (ports.item(index), port))
    };
    containers.iter().enumerate().flat_map(of_container).collect()
}
