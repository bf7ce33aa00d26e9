//! The room table in memory.
//!
//! Rooms are spread over shards by their id, and each shard keeps its part of every fleet with that part's
//! counters. So a ping takes one short lock that few others want, counters change under the lock of the room they
//! count, and a walk over a large fleet never holds up more than one shard's pings. No lock is held across an
//! await: nothing in here awaits.

mod counts;
mod events;
mod fleet;
mod fleets;
mod holding;
mod index;
mod room;

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Arc;

use async_trait::async_trait;
use foldhash::fast::FixedState;
use maestro_core::allocation::{AllocationRules, Hold, HoldEnd, HoldStage, Holds};
use maestro_core::operation::OperationId;
use maestro_core::room::{InstanceStatus, RoomId};
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::{Millis, Timestamp};
use maestro_engine::ports::room_table::{
    Claim, DueHold, FleetCounts, HoldAnswer, HoldKey, HoldRequest, NewRoom, Ping, PingError, Pinged,
    RoomAddress, RoomView, StatusChange, TableError,
};
use maestro_engine::ports::{Clock, Randomness, RoomTable};
use parking_lot::{Mutex, MutexGuard};

use crate::clock::MachineClock;
use events::{Events, drawn_by_machine};
use fleet::{FleetShard, Shard};
use fleets::{Fleet, Fleets};
use room::Room;

/// Enough that threads seldom meet, few enough that a sum over all of them costs a few microseconds.
const SHARDS: usize = 64;

/// Another seed than the maps inside the shards have: with the same one, all rooms of a shard would share the
/// bits that its map spreads them by.
const SHARD_HASHER: FixedState = FixedState::with_seed(1);

pub struct MemoryRoomTable {
    shards: [Mutex<Shard>; SHARDS],
    fleets: Fleets,
    /// One at a time claims rooms for matchmakers: of two who want several rooms each, one gets them.
    holding: Mutex<()>,
    /// What people and tools watch.
    events: Arc<Events>,
}

impl MemoryRoomTable {
    /// Events have the times of this machine.
    pub fn new() -> Self {
        Self::with_events(Events::new(Arc::new(MachineClock), Box::new(drawn_by_machine)))
    }

    /// Events have the times of this clock, so that a run can be repeated exactly.
    pub fn on_clock(clock: Arc<dyn Clock>, random: Arc<Randomness>) -> Self {
        Self::with_events(Events::new(clock, Box::new(move || random.draw())))
    }

    fn with_events(events: Events) -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            fleets: Fleets::default(),
            holding: Mutex::default(),
            events: Arc::new(events),
        }
    }

    /// What it knows now, as another table has it that begins with a dump of this one. `keeps_marks`: what it has counts.
    pub fn dumped(&self, keeps_marks: bool) -> Self {
        let fleets: HashMap<_, _, FixedState> = {
            let fleets = self.fleets.read();
            let copied = |(name, fleet): (&SchedulerName, &Arc<Fleet>)| {
                (name.clone(), Arc::new(fleet.copied(keeps_marks)))
            };
            fleets.iter().map(copied).collect()
        };
        let part = |(name, part): (&SchedulerName, &FleetShard)| {
            Some((name.clone(), part.copied(fleets.get(name)?.clone())))
        };
        let shard = |index: usize| Mutex::new(self.shards[index].lock().iter().filter_map(part).collect());
        Self {
            shards: std::array::from_fn(shard),
            fleets: Fleets::new(fleets),
            holding: Mutex::default(),
            events: Arc::clone(&self.events),
        }
    }

    fn shard(&self, room: &str) -> MutexGuard<'_, Shard> {
        self.shards[shard_of(room)].lock()
    }

    /// `None`: there is no such room.
    fn change<T>(&self, scheduler: &str, room: &str, change: impl FnOnce(&mut Room) -> T) -> Option<T> {
        self.shard(room).get_mut(scheduler)?.change(room, change)
    }

    fn for_each_shard(&self, scheduler: &SchedulerName, mut each: impl FnMut(&mut FleetShard)) {
        for shard in &self.shards {
            if let Some(part) = shard.lock().get_mut(scheduler) {
                each(part);
            }
        }
    }
}

impl Default for MemoryRoomTable {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl RoomTable for MemoryRoomTable {
    async fn begin_rebuild(&self, scheduler: &SchedulerName) -> Result<bool, TableError> {
        Ok(self.forget_if_lost(scheduler))
    }

    async fn end_rebuild(&self, scheduler: &SchedulerName) -> Result<(), TableError> {
        self.set_mark(scheduler)
    }

    async fn insert(&self, room: NewRoom) -> Result<(), TableError> {
        // In this order, a fleet that is forgotten now takes the room along, or the room becomes one of the next fleet.
        let mut shard = self.shard(room.id.as_str());
        let fleet = self.fleet(&room.scheduler);
        let part = shard.entry(room.scheduler.clone()).or_insert_with(|| FleetShard::new(fleet.clone()));
        if !part.is_of(&fleet) {
            *part = FleetShard::new(fleet);
        }
        part.insert(room);
        Ok(())
    }

    async fn ping(&self, ping: Ping<'_>, at: Timestamp) -> Result<Pinged, PingError> {
        let pinged = match self.shard(ping.room).get_mut(ping.scheduler).filter(|part| part.is_marked()) {
            Some(part) => part.change(ping.room, |room| room.ping(&ping, at)),
            None => None,
        };
        pinged.unwrap_or_else(|| Err(self.not_found(ping.scheduler)))
    }

    async fn observe(
        &self,
        scheduler: &SchedulerName,
        room: &RoomId,
        instance: InstanceStatus,
    ) -> Result<Option<StatusChange>, TableError> {
        self.known(scheduler)?;
        Ok(self.change(scheduler.as_str(), room.as_str(), |room| room.observe(instance)).flatten())
    }

    async fn set_address(
        &self,
        scheduler: &SchedulerName,
        room: &RoomId,
        address: RoomAddress,
    ) -> Result<(), TableError> {
        self.known(scheduler)?;
        self.change(scheduler.as_str(), room.as_str(), |room| room.set_address(address));
        Ok(())
    }

    async fn claim(&self, claim: Claim<'_>) -> Result<Vec<RoomId>, TableError> {
        self.known(claim.scheduler)?;
        let mut needed = [false; SHARDS];
        for room in claim.candidates {
            needed[shard_of(room.as_str())] = true;
        }
        // All at once, because a claim is atomic, and in ascending order: two claims that need the same shards cannot
        // deadlock.
        let mut locked: [Option<MutexGuard<'_, Shard>>; SHARDS] =
            std::array::from_fn(|index| needed[index].then(|| self.shards[index].lock()));
        // What was claimed before counts first, wherever it stands among the candidates: a repeated call must not take
        // one room more because an earlier candidate has become free meanwhile.
        let claimer = |room: &RoomId| {
            let part = locked[shard_of(room.as_str())].as_ref()?.get(claim.scheduler)?;
            part.room(room.as_str())?.claimed_by()
        };
        let mine: Vec<bool> =
            claim.candidates.iter().map(|room| claimer(room) == Some(claim.operation)).collect();
        let claimed_before = mine.iter().filter(|mine| **mine).count();
        let mut left = claim.rooms_max.saturating_sub(claimed_before);

        let mut claimed = Vec::new();
        for (room, mine) in claim.candidates.iter().zip(mine) {
            let shard = locked[shard_of(room.as_str())].as_mut().filter(|_| !mine && left > 0);
            let part = shard.and_then(|shard| shard.get_mut(claim.scheduler));
            let taken = part.and_then(|part| part.change(room.as_str(), |room| room.claim(&claim)));
            let taken = taken.unwrap_or(false);
            left -= usize::from(taken);
            if mine || taken {
                claimed.push(room.clone());
            }
        }
        Ok(claimed)
    }

    async fn unclaim(
        &self,
        scheduler: &SchedulerName,
        operation: OperationId,
        rooms: &[RoomId],
    ) -> Result<(), TableError> {
        self.known(scheduler)?;
        for id in rooms {
            self.change(scheduler.as_str(), id.as_str(), |room| room.unclaim(operation));
        }
        Ok(())
    }

    async fn hold(&self, requests: &[HoldRequest<'_>]) -> Result<Vec<HoldAnswer>, TableError> {
        let Some(first) = requests.first() else { return Ok(Vec::new()) };
        let fleet = self.known(first.scheduler)?;
        let _one_at_a_time = self.holding.lock();
        // Those who wait mostly want the same, and each would look at hundreds of rooms again.
        let mut not_found: Vec<&HoldRequest<'_>> = Vec::new();
        let hold = |request| {
            if not_found.iter().any(|other| other.wants_the_same(request)) {
                return HoldAnswer::NotEnough;
            }
            let answer = self.hold_all_or_none(&fleet.index, request);
            if request.allocations.len() == 1 && answer == HoldAnswer::NotEnough {
                not_found.push(request);
            }
            answer
        };
        Ok(requests.iter().map(hold).collect())
    }

    async fn confirm(&self, holds: &[HoldKey]) -> Result<Vec<Option<HoldStage>>, TableError> {
        let confirm = |key: &HoldKey| self.change_held(key, |room| room.confirm(key.number)).flatten();
        Ok(holds.iter().map(confirm).collect())
    }

    async fn mark(&self, hold: &HoldKey, end: HoldEnd) -> Result<Option<HoldEnd>, TableError> {
        self.known(&hold.scheduler)?;
        Ok(self.change_held(hold, |room| room.mark(hold.number, end)).flatten())
    }

    async fn release(&self, holds: &[HoldKey]) -> Result<(), TableError> {
        for key in holds {
            self.change_held(key, |room| room.release(key.number));
        }
        Ok(())
    }

    async fn restore(&self, scheduler: &SchedulerName, room: &RoomId, hold: Hold) -> Result<(), TableError> {
        self.known(scheduler)?;
        self.change(scheduler.as_str(), room.as_str(), |room| room.restore(hold));
        Ok(())
    }

    async fn due_holds(
        &self,
        now: Timestamp,
        ping_timeout: Millis,
        holds_max: usize,
    ) -> Result<Vec<DueHold>, TableError> {
        Ok(self.due_now(now, ping_timeout, holds_max))
    }

    async fn holds_of(&self, scheduler: &SchedulerName, room: &RoomId) -> Result<Vec<Hold>, TableError> {
        self.known(scheduler)?;
        let shard = self.shard(room.as_str());
        let holds = shard.get(scheduler).and_then(|part| part.room(room.as_str())?.holds());
        Ok(holds.into_iter().flat_map(Holds::iter).cloned().collect())
    }

    async fn holds(&self, scheduler: &SchedulerName) -> Result<Vec<DueHold>, TableError> {
        Ok(self.all_holds(&*self.known(scheduler)?))
    }

    async fn allocation_rules(&self, scheduler: &SchedulerName) -> Result<AllocationRules, TableError> {
        Ok(self.known(scheduler)?.index.lock().rules.clone())
    }

    async fn set_allocation_rules(
        &self,
        scheduler: &SchedulerName,
        rules: AllocationRules,
    ) -> Result<(), TableError> {
        self.fleet(scheduler).index.lock().rules = rules;
        Ok(())
    }

    async fn report_waiting(
        &self,
        scheduler: &SchedulerName,
        process: &str,
        slots: u32,
        now: Timestamp,
    ) -> Result<(), TableError> {
        self.known(scheduler)?.index.lock().waiting.report(process, slots, now);
        Ok(())
    }

    async fn waiting(&self, scheduler: &SchedulerName, now: Timestamp) -> Result<u32, TableError> {
        Ok(self.known(scheduler)?.index.lock().waiting.highest(now))
    }

    async fn remove(&self, scheduler: &SchedulerName, room: &RoomId) -> Result<Option<RoomView>, TableError> {
        self.known(scheduler)?;
        let mut shard = self.shard(room.as_str());
        let Some(part) = shard.get_mut(scheduler) else { return Ok(None) };
        let removed = part.remove(room.as_str());
        if part.is_empty() {
            shard.remove(scheduler);
        }
        Ok(removed)
    }

    async fn remove_scheduler(&self, scheduler: &SchedulerName) -> Result<(), TableError> {
        self.forget_fleet(scheduler);
        Ok(())
    }

    async fn set_matches_max(&self, scheduler: &SchedulerName, matches_max: u32) -> Result<(), TableError> {
        self.known(scheduler)?;
        self.for_each_shard(scheduler, |part| part.change_all(|room| room.set_matches_max(matches_max)));
        Ok(())
    }

    async fn room(&self, scheduler: &SchedulerName, room: &RoomId) -> Result<Option<RoomView>, TableError> {
        self.known(scheduler)?;
        let shard = self.shard(room.as_str());
        let found = shard.get(scheduler).and_then(|part| part.room(room.as_str()));
        Ok(found.map(|found| found.view(room.clone())))
    }

    async fn rooms(&self, scheduler: &SchedulerName) -> Result<Vec<RoomView>, TableError> {
        self.known(scheduler)?;
        let mut rooms = Vec::new();
        self.for_each_shard(scheduler, |part| rooms.extend(part.views()));
        // Views are large: sorting their ids and moving each view once is several times faster.
        rooms.sort_by_cached_key(|room| room.id.clone());
        Ok(rooms)
    }

    async fn counts(&self, scheduler: &SchedulerName) -> Result<FleetCounts, TableError> {
        self.known(scheduler)?;
        let mut total = FleetCounts::default();
        self.for_each_shard(scheduler, |part| counts::merge(&mut total, &part.counts));
        Ok(total)
    }
}

fn shard_of(room: &str) -> usize {
    // The low bits; the modulo of a power of two is an `and`.
    SHARD_HASHER.hash_one(room) as usize % SHARDS
}
