//! How many rooms this host can hold, so that a mistyped recipe cannot take the machine down.
//!
//! A room counts from before it is started until its end is reported. Validation rooms do not count: otherwise a fleet that
//! fills its host could not be updated.

use std::collections::HashMap;
use std::sync::Mutex;

use maestro_core::room::{Purpose, RoomId};
use maestro_core::scheduler::SchedulerName;
use maestro_engine::ports::runtime::RoomToStart;

use crate::room::lock;

pub(crate) struct Places {
    rooms_max: u32,
    /// The rooms that have a place, and their schedulers.
    taken: Mutex<HashMap<RoomId, SchedulerName>>,
}

/// Given back when it is dropped, unless the room runs by then.
pub(crate) struct Taken<'a> {
    places: &'a Places,
    room: Option<&'a RoomId>,
}

impl Places {
    pub(crate) fn new(rooms_max: u32) -> Self {
        Self { rooms_max, taken: Mutex::default() }
    }

    /// `None`: all places are taken.
    pub(crate) fn take<'a>(&'a self, room: &'a RoomToStart) -> Option<Taken<'a>> {
        let mut taken = lock(&self.taken);
        match room.purpose {
            Purpose::Validation => return Some(Taken { places: self, room: None }),
            Purpose::Fleet if taken.len() >= self.rooms_max as usize => return None,
            Purpose::Fleet => {}
        }
        taken.insert(room.id.clone(), room.scheduler.clone());
        Some(Taken { places: self, room: Some(&room.id) })
    }

    /// Counts a room that runs already, however many there are.
    pub(crate) fn hold(&self, room: &RoomId, scheduler: &SchedulerName) {
        lock(&self.taken).insert(room.clone(), scheduler.clone());
    }

    pub(crate) fn release(&self, room: &RoomId) {
        lock(&self.taken).remove(room);
    }

    pub(crate) fn taken_by_others(&self, scheduler: &SchedulerName) -> u32 {
        let others = lock(&self.taken).values().filter(|other| *other != scheduler).count();
        u32::try_from(others).unwrap_or(u32::MAX)
    }
}

impl Taken<'_> {
    /// The room runs, and gives its place back when it ends.
    pub(crate) fn keep(mut self) {
        self.room = None;
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if let Some(room) = self.room {
            self.places.release(room);
        }
    }
}
