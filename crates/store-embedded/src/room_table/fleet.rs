//! One shard's part of a fleet: some of its rooms, and the counters of just those.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;
use maestro_core::allocation::Holds;
use maestro_core::room::RoomId;
use maestro_core::scheduler::SchedulerName;
use maestro_engine::ports::room_table::{FleetCounts, NewRoom, RoomView};
use parking_lot::Mutex;

use super::counts;
use super::fleets::Fleet;
use super::index::{Due, Index};
use super::room::{CountedRoom, Room};

/// Parts of fleets by scheduler. A part without rooms is not kept.
pub(super) type Shard = HashMap<SchedulerName, FleetShard, FixedState>;

pub(super) struct FleetShard {
    rooms: HashMap<RoomId, Room, FixedState>,
    pub(super) counts: FleetCounts,
    fleet: Arc<Fleet>,
}

impl FleetShard {
    pub(super) fn new(fleet: Arc<Fleet>) -> Self {
        Self { rooms: HashMap::default(), counts: FleetCounts::default(), fleet }
    }

    /// The same part of a copy of the fleet.
    pub(super) fn copied(&self, fleet: Arc<Fleet>) -> Self {
        Self { rooms: self.rooms.clone(), counts: self.counts.clone(), fleet }
    }

    pub(super) fn is_of(&self, fleet: &Arc<Fleet>) -> bool {
        Arc::ptr_eq(&self.fleet, fleet)
    }

    pub(super) fn is_marked(&self) -> bool {
        self.fleet.is_marked()
    }

    pub(super) fn insert(&mut self, new: NewRoom) {
        if self.rooms.contains_key(&new.id) {
            return;
        }
        let (id, room) = Room::new(new);
        count(&mut self.counts, &self.fleet.index, id.as_str(), &room, None);
        if let Some(holds) = room.holds() {
            self.fleet.index.lock().reschedule(&[], due(Some(holds), &id));
        }
        self.rooms.insert(id, room);
    }

    pub(super) fn remove(&mut self, room: &str) -> Option<RoomView> {
        let (id, room) = self.rooms.remove_entry(room)?;
        if let Some(counted) = room.counted() {
            counts::remove(&mut self.counts, &counted, room.region());
            self.fleet.index.lock().set_free(&id, room.version(), room.region(), counted.free, 0);
        }
        self.fleet.index.lock().reschedule(&due(room.holds(), &id), Vec::new());
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
        let Self { rooms, counts, fleet } = self;
        for (id, room) in rooms {
            changed(counts, fleet, id.as_str(), room, &mut change);
        }
    }

    /// `None`: there is no such room.
    pub(super) fn change<T>(&mut self, id: &str, change: impl FnOnce(&mut Room) -> T) -> Option<T> {
        let Self { rooms, counts, fleet } = self;
        let room = rooms.get_mut(id)?;
        Some(changed(counts, fleet, id, room, change))
    }
}

/// The only way to change a room that is in the table.
fn changed<T>(
    counts: &mut FleetCounts,
    fleet: &Fleet,
    id: &str,
    room: &mut Room,
    change: impl FnOnce(&mut Room) -> T,
) -> T {
    let Fleet { scheduler, index, events, .. } = fleet;
    let (before, status_before) = (room.counted(), room.status());
    // Most rooms have no holds, and this copies nothing.
    let holds_before = room.holds().cloned();
    let answer = change(room);
    count(counts, index, id, room, before);
    if holds_before.as_ref() != room.holds() {
        let id = RoomId::new(id);
        index.lock().reschedule(&due(holds_before.as_ref(), &id), due(room.holds(), &id));
    }
    let status = room.status();
    if status != status_before {
        events.room_changed(scheduler, id, status_before, status);
    }
    answer
}

fn count(counts: &mut FleetCounts, index: &Mutex<Index>, id: &str, room: &Room, before: Option<CountedRoom>) {
    let after = room.counted();
    if before == after {
        return;
    }
    if let Some(before) = before {
        counts::remove(counts, &before, room.region());
    }
    if let Some(after) = after {
        counts::add(counts, &after, room.region());
    }
    let free = |counted: Option<CountedRoom>| counted.map_or(0, |counted| counted.free);
    if free(before) != free(after) {
        let id = RoomId::new(id);
        index.lock().set_free(&id, room.version(), room.region(), free(before), free(after));
    }
}

fn due(holds: Option<&Holds>, room: &RoomId) -> Vec<Due> {
    holds.into_iter().flat_map(Holds::iter).map(|hold| Due::of(room, hold)).collect()
}
