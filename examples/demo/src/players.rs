//! Players who come and go, a match each, each in a room of its own.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use crate::api::Room;
use crate::recipe::PORT_NAME;

/// Short, so that fewer players are soon seen as fewer occupied rooms.
const MATCH_SECONDS: std::ops::RangeInclusive<u64> = 4..=12;

/// Rooms that do not answer must not hold up the status line.
const JOINS_PER_STEP_MAX: usize = 8;
const JOIN_TIMEOUT: Duration = Duration::from_millis(300);

/// `OK 1` and a little more.
const REPLY_BYTES_MAX: u64 = 64;

pub(crate) struct Players {
    random: fastrand::Rng,
    /// By the id of the room in which it runs: when each match ends.
    ends_at: BTreeMap<String, Instant>,
    served: u64,
}

impl Players {
    pub(crate) fn new(seed: u64) -> Self {
        let random = fastrand::Rng::with_seed(seed);
        Self { random, ends_at: BTreeMap::new(), served: 0 }
    }

    /// Lets matches end, and sends players to ready rooms by `join` until as many play as are `wanted`. Where more
    /// play than that, the matches that run end in their time and no other begins.
    pub(crate) fn step(
        &mut self,
        now: Instant,
        wanted: u32,
        rooms: &[Room],
        mut join: impl FnMut(&Room, Duration) -> bool,
    ) {
        // A match ends with its room, too.
        self.ends_at.retain(|id, ends_at| *ends_at > now && rooms.iter().any(|room| room.id == *id));
        let missing = (wanted as usize).saturating_sub(self.ends_at.len());

        // A room in which a match has just begun may not have told so yet.
        let is_free = |room: &&Room| room.status == "ready" && !self.ends_at.contains_key(&room.id);
        let mut ready: Vec<&Room> = rooms.iter().filter(is_free).collect();
        self.random.shuffle(&mut ready);
        for room in ready.into_iter().take(missing.min(JOINS_PER_STEP_MAX)) {
            let length = Duration::from_secs(self.random.u64(MATCH_SECONDS));
            if join(room, length) {
                self.ends_at.insert(room.id.clone(), now + length);
                self.served += 1;
            }
        }
    }

    pub(crate) fn playing(&self) -> usize {
        self.ends_at.len()
    }

    pub(crate) fn served(&self) -> u64 {
        self.served
    }
}

/// Asks the room for a match. Whoever finds it full, gone or silent goes elsewhere.
pub(crate) fn join(room: &Room, length: Duration) -> bool {
    try_join(room, length).is_ok_and(|reply| reply.starts_with("OK "))
}

fn try_join(room: &Room, length: Duration) -> io::Result<String> {
    let port = room.ports.iter().find(|port| port.name == PORT_NAME).ok_or(io::ErrorKind::NotFound)?;
    let mut addresses = (room.host.as_str(), port.port).to_socket_addrs()?;
    let address = addresses.next().ok_or(io::ErrorKind::NotFound)?;
    let mut stream = TcpStream::connect_timeout(&address, JOIN_TIMEOUT)?;
    stream.set_read_timeout(Some(JOIN_TIMEOUT))?;
    stream.set_write_timeout(Some(JOIN_TIMEOUT))?;
    stream.write_all(format!("JOIN {}\n", length.as_secs()).as_bytes())?;
    let mut reply = String::new();
    BufReader::new(stream.take(REPLY_BYTES_MAX)).read_line(&mut reply)?;
    Ok(reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rooms(statuses: &[&str]) -> Vec<Room> {
        let room = |(number, status): (usize, &&str)| {
            let (id, status) = (format!("example-{number}"), (*status).to_owned());
            Room { id, status, ..Room::default() }
        };
        statuses.iter().enumerate().map(room).collect()
    }

    #[test]
    fn players_go_to_ready_rooms_only_and_no_more_than_want_to() {
        let start = Instant::now();
        let mut players = Players::new(1);
        let fleet = rooms(&["occupied", "ready", "ready", "ready", "ready", "pending"]);
        let mut asked = Vec::new();
        players.step(start, 4, &fleet, |room, _| {
            asked.push(room.status.clone());
            true
        });
        assert_eq!(asked, ["ready"; 4]);
        assert_eq!((players.playing(), players.served()), (4, 4));

        players.step(start, 4, &fleet, |_, _| panic!("nobody else wants to play"));
    }

    #[test]
    fn when_fewer_are_wanted_no_match_begins_until_enough_have_ended() {
        let start = Instant::now();
        let mut players = Players::new(1);
        let mut ends_at = Vec::new();
        players.step(start, 3, &rooms(&["ready"; 3]), |_, length| {
            ends_at.push(start + length);
            true
        });
        let last_end = ends_at.into_iter().max().unwrap();
        let still_playing = last_end - Duration::from_millis(1);
        players.step(still_playing, 1, &rooms(&["ready"; 3]), |_, _| panic!("one plays, and one is wanted"));
        players.step(last_end, 1, &rooms(&["ready"; 3]), |_, _| true);
        assert_eq!((players.playing(), players.served()), (1, 4));
    }

    #[test]
    fn who_is_turned_away_was_not_served() {
        let start = Instant::now();
        let mut players = Players::new(1);
        players.step(start, 4, &rooms(&["ready", "ready"]), |_, _| false);
        assert_eq!((players.playing(), players.served()), (0, 0));
    }

    #[test]
    fn a_room_that_has_not_told_of_its_match_is_not_asked_for_another() {
        let start = Instant::now();
        let mut players = Players::new(1);
        players.step(start, 1, &rooms(&["ready"]), |_, _| true);
        players.step(start, 2, &rooms(&["ready"]), |_, _| panic!("a match runs in it"));
    }

    #[test]
    fn a_match_ends_with_its_room() {
        let start = Instant::now();
        let mut players = Players::new(1);
        players.step(start, 2, &rooms(&["ready", "ready"]), |_, _| true);
        players.step(start, 2, &rooms(&["occupied"]), |_, _| true);
        assert_eq!((players.playing(), players.served()), (1, 2));
    }

    #[test]
    fn matches_end_in_their_time() {
        let start = Instant::now();
        let mut players = Players::new(1);
        let mut length = Duration::ZERO;
        players.step(start, 1, &rooms(&["ready"]), |_, asked| {
            length = asked;
            true
        });
        players.step(start + length - Duration::from_millis(1), 1, &rooms(&["occupied"]), |_, _| true);
        assert_eq!(players.playing(), 1);
        players.step(start + length, 1, &rooms(&["occupied"]), |_, _| true);
        assert_eq!((players.playing(), players.served()), (0, 1));
    }
}
