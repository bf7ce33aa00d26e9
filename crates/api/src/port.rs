//! A port of a room, as players reach it.

use maestro_core::room::HostPort;
use maestro_proto::v1::Port;

pub(crate) fn port(port: HostPort) -> Port {
    Port {
        name: port.name,
        // In capitals, as Kubernetes writes it.
        protocol: port.protocol.as_str().to_ascii_uppercase(),
        port: i32::from(port.host_port),
    }
}
