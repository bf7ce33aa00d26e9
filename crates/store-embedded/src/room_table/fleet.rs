//! One shard's part of a fleet: some of its rooms, and the counters of just those.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use maestro_core::room::RoomId;
use maestro_core::scheduler::SchedulerName;
use maestro_engine::ports::room_table::{Claim, FleetCounts, NewRoom, RoomView};

use super::counts;
use super::room::Room;

/// Parts of fleets by scheduler. A part without rooms is not kept.
#[derive(Default)]
pub(super) struct Shard(HashMap<SchedulerName, Part, FixedState>);

#[derive(Default)]
pub(super) struct Part {
    rooms: HashMap<RoomId, Room, FixedState>,
    counts: FleetCounts,
}

impl Shard {
    pub(super) fn part(&self, scheduler: &str) -> Option<&Part> {
        self.0.get(scheduler)
    }

    pub(super) fn part_mut(&mut self, scheduler: &str) -> Option<&mut Part> {
        self.0.get_mut(scheduler)
    }

    /// `None`: there is no such room.
    pub(super) fn change<T>(
        &mut self,
        scheduler: &str,
        room: &str,
        change: impl FnOnce(&mut Room) -> T,
    ) -> Option<T> {
        self.part_mut(scheduler)?.change(room, change)
    }

    pub(super) fn room(&self, scheduler: &str, room: &str) -> Option<&Room> {
        self.part(scheduler)?.rooms.get(room)
    }

    /// Claims the room if it may be claimed now.
    pub(super) fn claim(&mut self, claim: &Claim<'_>, room: &RoomId) -> bool {
        let claimed = self.change(claim.scheduler.as_str(), room.as_str(), |room| room.claim(claim));
        claimed.unwrap_or(false)
    }

    pub(super) fn insert(&mut self, new: NewRoom) {
        let part = self.0.entry(new.scheduler.clone()).or_default();
        if part.rooms.contains_key(&new.id) {
            return;
        }
        let (id, room) = Room::new(new);
        if let Some(counted) = room.counted() {
            counts::add(&mut part.counts, &counted, room.region());
        }
        part.rooms.insert(id, room);
    }

    pub(super) fn remove(&mut self, scheduler: &str, room: &str) -> Option<RoomView> {
        let part = self.0.get_mut(scheduler)?;
        let (id, room) = part.rooms.remove_entry(room)?;
        if let Some(counted) = room.counted() {
            counts::remove(&mut part.counts, &counted, room.region());
        }
        if part.rooms.is_empty() {
            self.0.remove(scheduler);
        }
        Some(room.view(id))
    }

    pub(super) fn remove_scheduler(&mut self, scheduler: &str) {
        self.0.remove(scheduler);
    }
}

impl Part {
    pub(super) fn counts(&self) -> &FleetCounts {
        &self.counts
    }

    pub(super) fn views(&self) -> impl Iterator<Item = RoomView> + '_ {
        self.rooms.iter().map(|(id, room)| room.view(id.clone()))
    }

    pub(super) fn change_all(&mut self, mut change: impl FnMut(&mut Room)) {
        for room in self.rooms.values_mut() {
            recounted(&mut self.counts, room, &mut change);
        }
    }

    fn change<T>(&mut self, room: &str, change: impl FnOnce(&mut Room) -> T) -> Option<T> {
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
