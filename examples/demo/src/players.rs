//! Players who come and go like tides, a match each.

use std::f64::consts::TAU;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use crate::api::Room;
use crate::recipe::PORT_NAME;

/// From one busiest time to the next.
const WAVE: Duration = Duration::from_secs(40);

/// At the quietest time, this share of the players is still there.
const QUIET_SHARE: f64 = 0.25;

const MATCH_SECONDS: std::ops::RangeInclusive<u64> = 4..=12;

/// Rooms that do not answer must not hold up the status line.
const JOINS_PER_STEP_MAX: usize = 8;
const JOIN_TIMEOUT: Duration = Duration::from_millis(300);

/// `OK 1` and a little more.
const REPLY_BYTES_MAX: u64 = 64;

pub(crate) struct Players {
    number_max: u32,
    started: Instant,
    random: fastrand::Rng,
    /// When each running match ends, in no order.
    ends_at: Vec<Instant>,
    served: u64,
}

impl Players {
    pub(crate) fn new(number_max: u32, seed: u64, now: Instant) -> Self {
        let random = fastrand::Rng::with_seed(seed);
        Self { number_max, started: now, random, ends_at: Vec::new(), served: 0 }
    }

    /// Lets matches end, and sends players to ready rooms by `join` until as many play as want to.
    pub(crate) fn step(
        &mut self,
        now: Instant,
        rooms: &[Room],
        mut join: impl FnMut(&Room, Duration) -> bool,
    ) {
        self.ends_at.retain(|ends_at| *ends_at > now);
        let wanted = wanted(now.duration_since(self.started), self.number_max);
        let missing = (wanted as usize).saturating_sub(self.ends_at.len());

        let mut ready: Vec<&Room> = rooms.iter().filter(|room| room.status == "ready").collect();
        self.random.shuffle(&mut ready);
        for room in ready.into_iter().take(missing.min(JOINS_PER_STEP_MAX)) {
            let length = Duration::from_secs(self.random.u64(MATCH_SECONDS));
            if join(room, length) {
                self.ends_at.push(now + length);
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

/// How many players want to play: a wave between a quarter of them and all.
fn wanted(elapsed: Duration, number_max: u32) -> u32 {
    let level = (1.0 - (TAU * elapsed.as_secs_f64() / WAVE.as_secs_f64()).cos()) / 2.0;
    let share = QUIET_SHARE + (1.0 - QUIET_SHARE) * level;
    // Between 0 and `number_max`, so it fits.
    (f64::from(number_max) * share).round() as u32
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
        let room = |status: &&str| Room { status: (*status).to_owned(), ..Room::default() };
        statuses.iter().map(room).collect()
    }

    #[test]
    fn the_wave() {
        for (seconds, number) in [(0, 2), (10, 5), (20, 8), (30, 5), (40, 2), (60, 8)] {
            assert_eq!(wanted(Duration::from_secs(seconds), 8), number, "after {seconds} s");
        }
        assert!((0..400).all(|tenths| wanted(Duration::from_millis(100 * tenths), 0) == 0));
    }

    #[test]
    fn players_go_to_ready_rooms_only_and_no_more_than_want_to() {
        let start = Instant::now();
        let mut players = Players::new(4, 1, start);
        let fleet = rooms(&["occupied", "ready", "ready", "ready", "ready", "pending"]);
        let mut asked = Vec::new();
        players.step(start + WAVE / 2, &fleet, |room, _| {
            asked.push(room.status.clone());
            true
        });
        assert_eq!(asked, ["ready"; 4]);
        assert_eq!((players.playing(), players.served()), (4, 4));

        players.step(start + WAVE / 2, &fleet, |_, _| panic!("nobody else wants to play"));
    }

    #[test]
    fn who_is_turned_away_was_not_served() {
        let start = Instant::now();
        let mut players = Players::new(4, 1, start);
        players.step(start + WAVE / 2, &rooms(&["ready", "ready"]), |_, _| false);
        assert_eq!((players.playing(), players.served()), (0, 0));
    }

    #[test]
    fn matches_end_in_their_time() {
        let start = Instant::now();
        let mut players = Players::new(1, 1, start);
        let mut length = Duration::ZERO;
        let busy = start + WAVE / 2;
        players.step(busy, &rooms(&["ready"]), |_, asked| {
            length = asked;
            true
        });
        players.step(busy + length - Duration::from_millis(1), &[], |_, _| true);
        assert_eq!(players.playing(), 1);
        players.step(busy + length, &[], |_, _| true);
        assert_eq!((players.playing(), players.served()), (0, 1));
    }
}
