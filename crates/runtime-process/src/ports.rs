//! Which host ports are free.

use std::net::{Ipv4Addr, SocketAddrV4};

use maestro_core::room::HostPort;
use maestro_core::scheduler::Protocol;
use rustix::io::{self, Errno};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};

/// The ports that a room could bind now. Blocking.
pub(crate) fn free(ports: &[HostPort]) -> io::Result<Vec<HostPort>> {
    let free = |port: &HostPort| Ok(is_free(port.protocol, port.host_port)?.then(|| port.clone()));
    ports.iter().filter_map(|port| free(port).transpose()).collect()
}

/// Binds and lets go. The standard library's listener would set `SO_REUSEADDR`, with which Linux lets two sockets bind
/// one port as long as neither listens yet, and which forgives connections that are still closing; a room's own socket
/// may not set it. Without it, what can be bound here can be bound by anybody. All addresses, because it conflicts with
/// a socket on any single one.
fn is_free(protocol: Protocol, port: u16) -> io::Result<bool> {
    let kind = match protocol {
        // A kernel may be without SCTP; whoever has the number for TCP is at least a hint.
        Protocol::Tcp | Protocol::Sctp => SocketType::STREAM,
        Protocol::Udp => SocketType::DGRAM,
    };
    let socket = socket_with(AddressFamily::INET, kind, SocketFlags::CLOEXEC, None)?;
    match bind(&socket, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port)) {
        Ok(()) => Ok(true),
        // Taken, or not for us (below 1024): a room could not have it either.
        Err(Errno::ADDRINUSE | Errno::ACCESS) => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};

    use super::*;

    fn port(protocol: Protocol, host_port: u16) -> HostPort {
        HostPort { name: "game".into(), protocol, container_port: 1, host_port }
    }

    #[test]
    fn a_port_is_taken_in_its_protocol_on_any_address() {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let number = tcp.local_addr().unwrap().port();
        for protocol in [Protocol::Tcp, Protocol::Sctp] {
            assert_eq!(free(&[port(protocol, number)]).unwrap(), [], "{protocol:?}");
        }
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let number = udp.local_addr().unwrap().port();
        assert_eq!(free(&[port(Protocol::Udp, number)]).unwrap(), []);
    }

    #[test]
    fn a_port_that_was_given_up_is_free() {
        let udp = UdpSocket::bind("0.0.0.0:0").unwrap();
        let wanted = [port(Protocol::Udp, udp.local_addr().unwrap().port())];
        drop(udp);
        assert_eq!(free(&wanted).unwrap(), wanted);
    }
}
