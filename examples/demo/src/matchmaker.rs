//! A small matchmaker: allocates a room for each player, sends the player there, and returns the room if it does not let
//! the player in.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::api::{Allocation, Api};
use crate::players::Seat;
use crate::recipe::PORT_NAME;

/// Rooms that do not answer must not hold up the status line.
const JOIN_TIMEOUT: Duration = Duration::from_millis(300);

/// `OK 1` and a little more.
const REPLY_BYTES_MAX: u64 = 64;

/// Finds a room for a player whose match takes so long.
pub(crate) fn seat(api: &Api, length: Duration) -> anyhow::Result<Seat> {
    let Some(allocation) = api.allocate()? else {
        return Ok(Seat::NoRoom);
    };
    if join(&allocation, length).is_ok_and(|reply| reply.starts_with("OK ")) {
        return Ok(Seat::Playing { room: allocation.room_id });
    }
    // Full, gone or silent; whoever is allocated the room next may be luckier.
    api.return_allocation(&allocation.id)?;
    Ok(Seat::Refused)
}

fn join(allocation: &Allocation, length: Duration) -> io::Result<String> {
    let port = allocation.ports.iter().find(|port| port.name == PORT_NAME).ok_or(io::ErrorKind::NotFound)?;
    let mut addresses = (allocation.host.as_str(), port.port).to_socket_addrs()?;
    let address = addresses.next().ok_or(io::ErrorKind::NotFound)?;
    let mut stream = TcpStream::connect_timeout(&address, JOIN_TIMEOUT)?;
    stream.set_read_timeout(Some(JOIN_TIMEOUT))?;
    stream.set_write_timeout(Some(JOIN_TIMEOUT))?;
    stream.write_all(format!("JOIN {} {}\n", length.as_secs(), allocation.id).as_bytes())?;
    let mut reply = String::new();
    BufReader::new(stream.take(REPLY_BYTES_MAX)).read_line(&mut reply)?;
    Ok(reply)
}
