//! Clients that begin requests and never finish them, at every listener, all the time.

use std::collections::VecDeque;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use fastrand::Rng;

/// Open at once. The server cuts them off earlier; this bounds what the test itself holds.
const CONNECTIONS_MAX: usize = 200;
const PAUSE_MAX: Duration = Duration::from_millis(40);
/// The server may be down, or refuse: nobody waits long for it.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(200);

/// How far a request gets before its sender falls asleep.
const BEGINNINGS: [&str; 5] = [
    "",
    "PO",
    "POST /schedulers HTTP/1.1\r\n",
    "PUT /scheduler/fixed-1/rooms/nobody/ping HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Le",
    "POST /schedulers HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n{\"name\"",
];

/// Until it is over. Nothing that happens to these connections is a failure.
pub(super) fn run(ports: [u16; 3], mut random: Rng, over: &AtomicBool) {
    let mut connections: VecDeque<TcpStream> = VecDeque::new();
    while !over.load(Ordering::Relaxed) {
        thread::sleep(PAUSE_MAX.mul_f64(random.f64()));
        if let Some(connection) = begin(ports, &mut random) {
            connections.push_back(connection);
        }
        if connections.len() > CONNECTIONS_MAX {
            connections.pop_front();
        }
        trickle(&mut connections, &mut random);
    }
}

fn begin(ports: [u16; 3], random: &mut Rng) -> Option<TcpStream> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, random.choice(ports)?));
    let mut connection = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).ok()?;
    connection.set_nonblocking(true).ok()?;
    connection.write_all(random.choice(BEGINNINGS)?.as_bytes()).ok()?;
    Some(connection)
}

/// One of them sends another byte, and learns whether it was cut off.
fn trickle(connections: &mut VecDeque<TcpStream>, random: &mut Rng) {
    if connections.is_empty() {
        return;
    }
    let index = random.usize(..connections.len());
    if connections[index].write_all(b"x").is_err() {
        connections.remove(index);
    }
}
