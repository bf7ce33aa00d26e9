//! The resyncs of one forwarder: what waits, which calls are in flight, and which may begin.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use maestro_core::event::WaitingResyncs;
use maestro_core::room::{PingStatus, RoomId};
use tokio::time::Instant;

/// What a receiver took just now is not sent again for this long: rooms that ping many times a second would keep the server
/// busy with what receivers know.
const REPEATED_AFTER: Duration = Duration::from_secs(1);
/// Rooms of which it is remembered what the receiver took last.
const TAKEN_MAX: usize = 100_000;

/// What came with a status, as JSON.
pub(super) type Metadata = Option<Box<str>>;
pub(super) type WaitingPings = WaitingResyncs<Metadata>;

#[derive(Default)]
pub(super) struct Lane {
    waiting: BTreeMap<RoomId, WaitingPings>,
    /// Rooms of which something waits and no call is in flight, each once, in the order in which they pinged.
    next_rooms: VecDeque<RoomId>,
    /// Rooms of which a call is in flight.
    calling: BTreeSet<RoomId>,
    /// What the receiver took last of each room, and when.
    taken: BTreeMap<RoomId, (PingStatus, Metadata, Instant)>,
}

impl Lane {
    pub(super) fn add(&mut self, room: RoomId, said: WaitingPings) {
        match self.waiting.get_mut(&room) {
            Some(waiting) => waiting.append(said),
            None => {
                if !self.calling.contains(&room) {
                    self.next_rooms.push_back(room.clone());
                }
                self.waiting.insert(room, said);
            }
        }
    }

    /// The first thing that waits of the next room, unless the receiver has just taken the same. A call for it is in flight
    /// from now on.
    pub(super) fn next(&mut self, now: Instant) -> Option<(RoomId, PingStatus, Metadata)> {
        loop {
            let room = self.next_rooms.pop_front()?;
            // It may have no resync any more, or be here twice because it was forgotten meanwhile and has pinged again.
            if self.calling.contains(&room) {
                continue;
            }
            let Some(waiting) = self.waiting.get_mut(&room) else { continue };
            let first = waiting.pop();
            if waiting.is_empty() {
                self.waiting.remove(&room);
            }
            let Some((status, metadata)) = first else { continue };
            if !self.has_just_taken(&room, status, &metadata, now) {
                self.calling.insert(room.clone());
                return Some((room, status, metadata));
            }
            if self.waiting.contains_key(&room) {
                self.next_rooms.push_front(room);
            }
        }
    }

    fn has_just_taken(&self, room: &RoomId, status: PingStatus, metadata: &Metadata, now: Instant) -> bool {
        self.taken.get(room).is_some_and(|(taken, with, at)| {
            *taken == status && with == metadata && now < *at + REPEATED_AFTER
        })
    }

    /// Drops what waits of a room. True: a call of it is in flight.
    pub(super) fn forget(&mut self, room: &RoomId) -> bool {
        self.waiting.remove(room);
        self.taken.remove(room);
        self.calling.contains(room)
    }

    pub(super) fn calls_in_flight(&self) -> usize {
        self.calling.len()
    }

    /// The call of this room is over. `taken`: what the receiver took; `None` if the call failed.
    pub(super) fn finish(&mut self, room: RoomId, taken: Option<(PingStatus, Metadata)>, now: Instant) {
        self.calling.remove(&room);
        if self.waiting.contains_key(&room) {
            self.next_rooms.push_back(room.clone());
        }
        if self.taken.len() >= TAKEN_MAX {
            self.taken.clear();
        }
        match taken {
            Some((status, metadata)) => drop(self.taken.insert(room, (status, metadata, now))),
            None => drop(self.taken.remove(&room)),
        }
    }
}

#[cfg(test)]
mod tests {
    use PingStatus::{Occupied, Ready, Terminating};

    use super::*;

    fn room(number: u32) -> RoomId {
        RoomId::new(&format!("arena-{number}"))
    }

    fn say(lane: &mut Lane, number: u32, said: &[PingStatus]) {
        let mut waiting = WaitingPings::default();
        said.iter().for_each(|status| waiting.push(*status, None));
        lane.add(room(number), waiting);
    }

    fn next(lane: &mut Lane, now: Instant) -> Option<(RoomId, PingStatus)> {
        lane.next(now).map(|(room, status, _)| (room, status))
    }

    #[tokio::test(start_paused = true)]
    async fn a_room_has_one_call_at_a_time_and_rooms_do_not_wait_for_each_other() {
        let (mut lane, now) = (Lane::default(), Instant::now());
        say(&mut lane, 1, &[Ready, Occupied]);
        say(&mut lane, 2, &[Ready]);
        assert_eq!(next(&mut lane, now), Some((room(1), Ready)));
        assert_eq!(next(&mut lane, now), Some((room(2), Ready)));
        assert_eq!(next(&mut lane, now), None);
        say(&mut lane, 1, &[Occupied, Terminating]);
        assert_eq!(next(&mut lane, now), None, "its call is in flight");
        lane.finish(room(1), None, now);
        assert_eq!(next(&mut lane, now), Some((room(1), Occupied)));
        lane.finish(room(1), None, now);
        assert_eq!(next(&mut lane, now), Some((room(1), Terminating)));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_just_taken_is_not_repeated() {
        let (mut lane, now) = (Lane::default(), Instant::now());
        for (after, said, expected) in [
            (0, &[Ready][..], Some(Ready)),
            (500, &[Ready], None),
            (600, &[Ready, Occupied], Some(Occupied)),
            (700, &[Ready], Some(Ready)),
            (1600, &[Ready], None),
            (1700, &[Ready], Some(Ready)),
        ] {
            let now = now + Duration::from_millis(after);
            say(&mut lane, 1, said);
            assert_eq!(next(&mut lane, now).map(|(_, status)| status), expected, "after {after} ms");
            if let Some(status) = expected {
                lane.finish(room(1), Some((status, None)), now);
            }
        }
        // After a failed call, the same is sent again at once.
        say(&mut lane, 1, &[Occupied]);
        assert!(next(&mut lane, now).is_some());
        lane.finish(room(1), None, now);
        say(&mut lane, 1, &[Occupied]);
        assert!(next(&mut lane, now).is_some());
    }
}
