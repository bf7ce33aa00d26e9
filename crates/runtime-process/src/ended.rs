//! Directories of rooms that have ended: a limited number is kept for each scheduler, the newest. They are counted when a
//! room ends, so that a scheduler in a crash loop does not fill the disk.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::Arc;

use maestro_core::room::RoomId;
use maestro_core::scheduler::SchedulerName;

use crate::directory::{self, Directory};
use crate::room::lock;
use crate::runtime::Shared;

/// By scheduler, in the order in which they ended.
#[derive(Default)]
pub(crate) struct EndedRooms(HashMap<SchedulerName, VecDeque<RoomId>>);

impl EndedRooms {
    /// Counts a room, and says which are too many now.
    fn add(&mut self, scheduler: &SchedulerName, room: RoomId, max: usize) -> Vec<RoomId> {
        let rooms = self.0.entry(scheduler.clone()).or_default();
        rooms.retain(|known| *known != room);
        rooms.push_back(room);
        let surplus = rooms.len().saturating_sub(max);
        rooms.drain(..surplus).collect()
    }

    /// All of the scheduler, or one.
    fn forget(&mut self, scheduler: &SchedulerName, room: Option<&RoomId>) {
        if let Some(rooms) = self.0.get_mut(scheduler) {
            rooms.retain(|known| room.is_some_and(|room| known != room));
            if rooms.is_empty() {
                self.0.remove(scheduler);
            }
        }
    }
}

impl Shared {
    pub(crate) async fn count_ended(self: &Arc<Self>, scheduler: &SchedulerName, room: &RoomId) {
        let surplus = lock(&self.ended).add(scheduler, room.clone(), self.options.ended_rooms_max);
        for room in surplus {
            self.remove_ended(scheduler, &room).await;
        }
    }

    /// Counts the rooms that ended before this process began.
    pub(crate) async fn count_ended_before(self: Arc<Self>) {
        let directory = self.directory.clone();
        let look = move || {
            if let Err(error) = directory.tighten() {
                tracing::warn!(%error, "files of rooms cannot be closed to other users");
            }
            by_age(&directory)
        };
        let rooms = self.blocking.run(look).await;
        for (scheduler, room) in rooms {
            if !self.runs(&room) {
                self.count_ended(&scheduler, &room).await;
            }
        }
    }

    pub(crate) fn forget_ended(&self, scheduler: &SchedulerName, room: Option<&RoomId>) {
        lock(&self.ended).forget(scheduler, room);
    }

    async fn remove_ended(self: &Arc<Self>, scheduler: &SchedulerName, room: &RoomId) {
        // It may have been started again under the same id.
        let _alone = self.alone(room).await;
        let Some(place) = self.directory.room(scheduler, room).filter(|_| !self.runs(room)) else { return };
        if let Err(error) = self.blocking.run(move || directory::remove(&place)).await {
            tracing::warn!(%room, %error, "the directory of an ended room cannot be removed");
        }
    }

    fn runs(&self, room: &RoomId) -> bool {
        self.room(room).is_some() || lock(&self.found).contains_key(room)
    }
}

/// All rooms that have a directory, the one first that was touched longest ago. Blocking. What cannot be read is left out.
fn by_age(directory: &Directory) -> Vec<(SchedulerName, RoomId)> {
    let mut rooms = Vec::new();
    for scheduler in names(&directory.rooms()) {
        let Ok(scheduler) = SchedulerName::parse(&scheduler) else { continue };
        for room in names(&directory.scheduler(&scheduler)) {
            let room = RoomId::new(&room);
            let Some(place) = directory.room(&scheduler, &room) else { continue };
            if let Ok(touched_at) = place.symlink_metadata().and_then(|metadata| metadata.modified()) {
                rooms.push((touched_at, scheduler.clone(), room));
            }
        }
    }
    rooms.sort();
    rooms.into_iter().map(|(_, scheduler, room)| (scheduler, room)).collect()
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}
