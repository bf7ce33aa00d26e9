//! Players who come and go, a match each, each in a room of its own.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::api::Room;

/// Short, so that fewer players are soon seen as fewer occupied rooms.
const MATCH_SECONDS: std::ops::RangeInclusive<u64> = 4..=12;

/// Rooms that do not answer must not hold up the status line.
const SEATS_PER_STEP_MAX: usize = 8;

/// What the matchmaker says to a player.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seat {
    /// A match has begun in this room.
    Playing { room: String },
    /// The room that was allocated did not let the player in.
    Refused,
    /// There is no room at present.
    NoRoom,
}

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

    /// Lets matches end, and has players seated until as many play as are `wanted`. Where more play than that, the matches
    /// that run end in their time and no other begins.
    pub(crate) fn step(
        &mut self,
        now: Instant,
        wanted: u32,
        rooms: &[Room],
        mut seat: impl FnMut(Duration) -> anyhow::Result<Seat>,
    ) -> anyhow::Result<()> {
        // A match ends with its room, too.
        self.ends_at.retain(|id, ends_at| *ends_at > now && rooms.iter().any(|room| room.id == *id));
        let missing = (wanted as usize).saturating_sub(self.ends_at.len());
        for _ in 0..missing.min(SEATS_PER_STEP_MAX) {
            let length = Duration::from_secs(self.random.u64(MATCH_SECONDS));
            match seat(length)? {
                Seat::Playing { room } => {
                    self.ends_at.insert(room, now + length);
                    self.served += 1;
                }
                Seat::Refused => {}
                Seat::NoRoom => break,
            }
        }
        Ok(())
    }

    pub(crate) fn playing(&self) -> usize {
        self.ends_at.len()
    }

    pub(crate) fn served(&self) -> u64 {
        self.served
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rooms 0, 1, …
    fn rooms(number: usize) -> Vec<Room> {
        (0..number).map(|number| Room { id: format!("example-{number}"), ..Room::default() }).collect()
    }

    /// A matchmaker that hands out these rooms one after the other, and notes how long their matches take.
    struct Matchmaker {
        free: Vec<usize>,
        lengths: Vec<Duration>,
    }

    impl Matchmaker {
        fn with(free: &[usize]) -> Self {
            Self { free: free.to_vec(), lengths: Vec::new() }
        }

        fn seat(&mut self, length: Duration) -> anyhow::Result<Seat> {
            if self.free.is_empty() {
                return Ok(Seat::NoRoom);
            }
            self.lengths.push(length);
            Ok(Seat::Playing { room: format!("example-{}", self.free.remove(0)) })
        }
    }

    fn nobody(_: Duration) -> anyhow::Result<Seat> {
        panic!("nobody else wants to play")
    }

    #[test]
    fn no_more_players_come_than_want_to() {
        let start = Instant::now();
        let mut players = Players::new(1);
        let mut matchmaker = Matchmaker::with(&[0, 1, 2, 3, 4]);
        players.step(start, 4, &rooms(5), |length| matchmaker.seat(length)).unwrap();
        assert_eq!((players.playing(), players.served()), (4, 4));
        players.step(start, 4, &rooms(5), nobody).unwrap();
    }

    #[test]
    fn when_fewer_are_wanted_no_match_begins_until_enough_have_ended() {
        let start = Instant::now();
        let mut players = Players::new(1);
        let mut matchmaker = Matchmaker::with(&[0, 1, 2, 0]);
        players.step(start, 3, &rooms(3), |length| matchmaker.seat(length)).unwrap();
        let last_end = start + *matchmaker.lengths.iter().max().unwrap();
        players.step(last_end - Duration::from_millis(1), 1, &rooms(3), nobody).unwrap();
        players.step(last_end, 1, &rooms(3), |length| matchmaker.seat(length)).unwrap();
        assert_eq!((players.playing(), players.served()), (1, 4));
    }

    #[test]
    fn who_is_turned_away_was_not_served() {
        let mut players = Players::new(1);
        let mut asked = 0;
        let refuse = |_| {
            asked += 1;
            Ok(Seat::Refused)
        };
        players.step(Instant::now(), 4, &rooms(2), refuse).unwrap();
        assert_eq!((players.playing(), players.served(), asked), (0, 0, 4));
    }

    #[test]
    fn where_there_is_no_room_nobody_else_asks() {
        let mut players = Players::new(1);
        let mut asked = 0;
        let none = |_| {
            asked += 1;
            Ok(Seat::NoRoom)
        };
        players.step(Instant::now(), 4, &rooms(2), none).unwrap();
        assert_eq!((players.playing(), asked), (0, 1));
    }

    #[test]
    fn a_match_ends_with_its_room() {
        let start = Instant::now();
        let mut players = Players::new(1);
        let mut matchmaker = Matchmaker::with(&[0, 1]);
        players.step(start, 2, &rooms(2), |length| matchmaker.seat(length)).unwrap();
        players.step(start, 2, &rooms(1), |length| matchmaker.seat(length)).unwrap();
        assert_eq!((players.playing(), players.served()), (1, 2));
    }

    #[test]
    fn matches_end_in_their_time() {
        let start = Instant::now();
        let mut players = Players::new(1);
        let mut matchmaker = Matchmaker::with(&[0]);
        players.step(start, 1, &rooms(1), |length| matchmaker.seat(length)).unwrap();
        let length = matchmaker.lengths[0];
        players.step(start + length - Duration::from_millis(1), 1, &rooms(1), nobody).unwrap();
        assert_eq!(players.playing(), 1);
        players.step(start + length, 1, &rooms(1), |length| matchmaker.seat(length)).unwrap();
        assert_eq!((players.playing(), players.served()), (0, 1));
    }
}
