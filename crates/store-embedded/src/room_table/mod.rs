//! The room table in memory.
//!
//! Rooms are spread over shards by their id, and each shard keeps its part of every fleet with that part's
//! counters. So a ping takes one short lock that few others want, counters change under the lock of the room they
//! count, and a walk over a large fleet never holds up more than one shard's pings. No lock is held across an
//! await: nothing in here awaits.

mod claim;
mod counts;
mod fleet;
mod room;

use std::hash::BuildHasher;

use async_trait::async_trait;
use foldhash::fast::FixedState;
use maestro_core::operation::OperationId;
use maestro_core::room::{InstanceStatus, RoomId};
use maestro_core::scheduler::SchedulerName;
use maestro_engine::ports::RoomTable;
use maestro_engine::ports::room_table::{
    Claim, FleetCounts, NewRoom, Ping, PingError, Pinged, RoomView, StatusChange, TableError,
};
use parking_lot::{Mutex, MutexGuard};

use fleet::Shard;

/// Enough that threads seldom meet, few enough that a sum over all of them costs a few microseconds.
const SHARDS: usize = 64;

/// Another seed than the maps inside the shards have: with the same one, all rooms of a shard would share the
/// bits that its map spreads them by.
const SHARD_HASHER: FixedState = FixedState::with_seed(1);

pub struct MemoryRoomTable {
    shards: [Mutex<Shard>; SHARDS],
}

impl MemoryRoomTable {
    pub fn new() -> Self {
        Self { shards: std::array::from_fn(|_| Mutex::default()) }
    }

    fn shard(&self, room: &str) -> MutexGuard<'_, Shard> {
        self.shards[shard_of(room)].lock()
    }
}

impl Default for MemoryRoomTable {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl RoomTable for MemoryRoomTable {
    async fn insert(&self, room: NewRoom) -> Result<(), TableError> {
        self.shard(room.id.as_str()).insert(room);
        Ok(())
    }

    async fn ping(&self, ping: Ping<'_>) -> Result<Pinged, PingError> {
        self.shard(ping.room)
            .change(ping.scheduler, ping.room, |room| room.ping(&ping))
            .unwrap_or(Err(PingError::UnknownRoom))
    }

    async fn observe(
        &self,
        scheduler: &SchedulerName,
        room: &RoomId,
        instance: InstanceStatus,
    ) -> Result<Option<StatusChange>, TableError> {
        let changed = self
            .shard(room.as_str())
            .change(scheduler.as_str(), room.as_str(), |room| room.observe(instance));
        Ok(changed.flatten())
    }

    async fn claim(&self, claim: Claim<'_>) -> Result<Vec<RoomId>, TableError> {
        Ok(claim::claim(&self.shards, &claim))
    }

    async fn unclaim(
        &self,
        scheduler: &SchedulerName,
        operation: OperationId,
        rooms: &[RoomId],
    ) -> Result<(), TableError> {
        for id in rooms {
            self.shard(id.as_str()).change(scheduler.as_str(), id.as_str(), |room| room.unclaim(operation));
        }
        Ok(())
    }

    async fn remove(&self, scheduler: &SchedulerName, room: &RoomId) -> Result<Option<RoomView>, TableError> {
        Ok(self.shard(room.as_str()).remove(scheduler.as_str(), room.as_str()))
    }

    async fn remove_scheduler(&self, scheduler: &SchedulerName) -> Result<(), TableError> {
        for shard in &self.shards {
            shard.lock().remove_scheduler(scheduler.as_str());
        }
        Ok(())
    }

    async fn set_matches_max(&self, scheduler: &SchedulerName, matches_max: u32) -> Result<(), TableError> {
        for shard in &self.shards {
            if let Some(part) = shard.lock().part_mut(scheduler.as_str()) {
                part.change_all(|room| room.set_matches_max(matches_max));
            }
        }
        Ok(())
    }

    async fn room(&self, scheduler: &SchedulerName, room: &RoomId) -> Result<Option<RoomView>, TableError> {
        let shard = self.shard(room.as_str());
        let found = shard.room(scheduler.as_str(), room.as_str());
        Ok(found.map(|found| found.view(room.clone())))
    }

    async fn rooms(&self, scheduler: &SchedulerName) -> Result<Vec<RoomView>, TableError> {
        let mut rooms = Vec::new();
        for shard in &self.shards {
            if let Some(part) = shard.lock().part(scheduler.as_str()) {
                rooms.extend(part.views());
            }
        }
        // Views are large: sorting their ids and moving each view once is several times faster.
        rooms.sort_by_cached_key(|room| room.id.clone());
        Ok(rooms)
    }

    async fn counts(&self, scheduler: &SchedulerName) -> Result<FleetCounts, TableError> {
        let mut total = FleetCounts::default();
        for shard in &self.shards {
            if let Some(part) = shard.lock().part(scheduler.as_str()) {
                counts::merge(&mut total, part.counts());
            }
        }
        Ok(total)
    }
}

fn shard_of(room: &str) -> usize {
    // The low bits; the modulo of a power of two is an `and`.
    SHARD_HASHER.hash_one(room) as usize % SHARDS
}
