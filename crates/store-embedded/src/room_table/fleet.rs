//! One shard's part of a fleet: some of its rooms, and the counters of just those.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use maestro_core::room::RoomId;
use maestro_core::scheduler::SchedulerName;
use maestro_engine::ports::room_table::{FleetCounts, NewRoom, RoomView};

use super::counts;
use super::room::Room;

/// Parts of fleets by scheduler. A part without rooms is not kept.
pub(super) type Shard = HashMap<SchedulerName, Part, FixedState>;

#[derive(Default)]
pub(super) struct Part {
    rooms: HashMap<RoomId, Room, FixedState>,
    pub(super) counts: FleetCounts,
}

impl Part {
    pub(super) fn insert(&mut self, new: NewRoom) {
        if self.rooms.contains_key(&new.id) {
            return;
        }
        let (id, room) = Room::new(new);
        if let Some(counted) = room.counted() {
            counts::add(&mut self.counts, &counted, room.region());
        }
        self.rooms.insert(id, room);
    }

    pub(super) fn remove(&mut self, room: &str) -> Option<RoomView> {
        let (id, room) = self.rooms.remove_entry(room)?;
        if let Some(counted) = room.counted() {
            counts::remove(&mut self.counts, &counted, room.region());
        }
        Some(room.view(id))
    }

    pub(super) fn room(&self, room: &str) -> Option<&Room> {
        self.rooms.get(room)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rooms.is_empty()
    }

    pub(super) fn views(&self) -> impl Iterator<Item = RoomView> + '_ {
        self.rooms.iter().map(|(id, room)| room.view(id.clone()))
    }

    pub(super) fn change_all(&mut self, mut change: impl FnMut(&mut Room)) {
        for room in self.rooms.values_mut() {
            recounted(&mut self.counts, room, &mut change);
        }
    }

    /// `None`: there is no such room.
    pub(super) fn change<T>(&mut self, room: &str, change: impl FnOnce(&mut Room) -> T) -> Option<T> {
        let room = self.rooms.get_mut(room)?;
        Some(recounted(&mut self.counts, room, change))
    }
}

/// The only way to change a room that is in the table.
fn recounted<T>(counts: &mut FleetCounts, room: &mut Room, change: impl FnOnce(&mut Room) -> T) -> T {
    let before = room.counted();
    let answer = change(room);
    let after = room.counted();
    if before != after {
        if let Some(before) = before {
            counts::remove(counts, &before, room.region());
        }
        if let Some(after) = after {
            counts::add(counts, &after, room.region());
        }
    }
    answer
}
