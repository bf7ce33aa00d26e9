//! What the rooms of a fleet send.

use std::ops::Range;

use crate::fleet::{self, occupied, ready};
use crate::load::{self, EMPTY_END, EMPTY_PATH, request};

/// A room says the same so many times before it says something else: matches take longer than a ping's period.
const REPEATED: usize = 8;

pub(crate) struct Traffic {
    /// Of each room the two pings that it takes turns with.
    rooms: Vec<[Vec<u8>; 2]>,
    change: Change,
    /// How every answer must end.
    answer_end: &'static [u8],
}

/// When rooms say something else than before.
enum Change {
    Never,
    /// All of them in the same lap, each so many laps.
    Together(usize),
    /// Each so many laps, and in each lap as many of them as in any other.
    InTurns(usize),
}

impl Traffic {
    /// Rooms whose matches begin and end.
    pub(crate) fn pings(rooms: u32) -> Self {
        let scheduler = fleet::scheduler();
        let of_room = |index: u32| {
            let room = fleet::room_id(&scheduler, index);
            let path = format!("/scheduler/{scheduler}/rooms/{room}/ping");
            [ready(index), occupied(index)].map(|body| request("PUT", &path, &body))
        };
        Self {
            rooms: (0..rooms).map(of_room).collect(),
            change: Change::Together(REPEATED),
            answer_end: br#"{"success":true}"#,
        }
    }

    /// The same, where one ping in `repeated` changes a room; `None`: none does.
    pub(crate) fn changing(rooms: u32, repeated: Option<usize>) -> Self {
        let change = repeated.map_or(Change::Never, Change::InTurns);
        Self { change, ..Self::pings(rooms) }
    }

    /// The same bodies for the handler that does nothing.
    pub(crate) fn empty(rooms: u32) -> Self {
        let of_room = |index| [ready(index), occupied(index)].map(|body| request("PUT", EMPTY_PATH, &body));
        Self {
            rooms: (0..rooms).map(of_room).collect(),
            change: Change::Together(REPEATED),
            answer_end: EMPTY_END,
        }
    }
}

impl load::Traffic for Traffic {
    fn answer_end(&self) -> &'static [u8] {
        self.answer_end
    }

    fn request(&self, connection: usize, connections: usize, number: usize) -> &[u8] {
        self.of_rooms(&self.rooms_of(connection, connections), number)
    }
}

impl Traffic {
    /// The rooms of one of so many connections. A room's pings never overtake each other, so it has one.
    fn rooms_of(&self, connection: usize, connections: usize) -> Range<usize> {
        let first = |connection| connection * self.rooms.len() / connections;
        first(connection)..first(connection + 1)
    }

    /// The `number`-th request of these rooms, which ping one after the other.
    fn of_rooms(&self, rooms: &Range<usize>, number: usize) -> &[u8] {
        let (lap, room) = (number / rooms.len(), rooms.start + number % rooms.len());
        let which = match self.change {
            Change::Never => 0,
            Change::Together(repeated) => lap / repeated % 2,
            Change::InTurns(repeated) => (lap + room) / repeated % 2,
        };
        &self.rooms[room][which]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_room_has_one_connection() {
        let traffic = Traffic::pings(1000);
        let covered: Vec<usize> = (0..64).flat_map(|connection| traffic.rooms_of(connection, 64)).collect();
        assert_eq!(covered, (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn every_lap_has_its_share_of_changes() {
        let of = |traffic: &Traffic, lap: usize, room: usize| {
            traffic.of_rooms(&(0..100), lap * 100 + room).to_vec()
        };
        for (repeated, changes) in [(None, 0), (Some(20), 5), (Some(2), 50)] {
            let traffic = Traffic::changing(100, repeated);
            for lap in 1..50 {
                let differs = |room: &usize| of(&traffic, lap, *room) != of(&traffic, lap - 1, *room);
                assert_eq!((0..100).filter(differs).count(), changes, "{repeated:?} lap {lap}");
            }
        }
    }

    #[test]
    fn rooms_change_their_mind_now_and_then() {
        let traffic = Traffic::pings(10);
        let is_occupied = |number| {
            let request = traffic.of_rooms(&(4..6), number);
            String::from_utf8_lossy(request).contains("occupied")
        };
        let said: Vec<bool> = (0..64).map(is_occupied).collect();
        let expected = [[false; 16], [true; 16], [false; 16], [true; 16]].concat();
        assert_eq!(said, expected);
    }
}
