//! Rooms for matchmakers: finding them in a fleet's index, and the holds that are due.

use maestro_core::allocation::{AllocationId, CANDIDATES_MAX, Hold, Wish};
use maestro_core::room::RoomId;
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::{Millis, Timestamp};
use maestro_engine::ports::room_table::{DueHold, HeldRoom, HoldAnswer, HoldKey, HoldRequest};
use parking_lot::Mutex;

use super::MemoryRoomTable;
use super::fleets::Fleet;
use super::index::{Due, Index};
use super::room::{HoldOutcome, Room};

/// What came of one candidate.
enum Candidate {
    Held(HeldRoom),
    Unfit,
    Silent,
}

impl MemoryRoomTable {
    /// `None`: there is no such room, or the fleet is lost.
    pub(super) fn change_held<T>(&self, key: &HoldKey, change: impl FnOnce(&mut Room) -> T) -> Option<T> {
        self.known(&key.scheduler).ok()?;
        self.change(key.scheduler.as_str(), key.room.as_str(), change)
    }

    pub(super) fn hold_all_or_none(&self, index: &Mutex<Index>, request: &HoldRequest<'_>) -> HoldAnswer {
        let mut held: Vec<HeldRoom> = Vec::with_capacity(request.allocations.len());
        for (place, allocation) in request.allocations.iter().enumerate() {
            match self.hold_one(index, request, *allocation, request.draw.wrapping_add(place as u64)) {
                Some(room) => held.push(room),
                None => {
                    for HeldRoom { room, number, .. } in held {
                        self.change(request.scheduler.as_str(), room.as_str(), |room| room.release(number));
                    }
                    return HoldAnswer::NotEnough;
                }
            }
        }
        HoldAnswer::Held(held)
    }

    fn hold_one(
        &self,
        index: &Mutex<Index>,
        request: &HoldRequest<'_>,
        allocation: AllocationId,
        draw: u64,
    ) -> Option<HeldRoom> {
        let anything = [Wish::default()];
        let wishes = if request.wishes.is_empty() { &anything[..] } else { request.wishes };
        wishes.iter().find_map(|wish| self.hold_as_wished(request, wish, index, allocation, draw))
    }

    fn hold_as_wished(
        &self,
        request: &HoldRequest<'_>,
        wish: &Wish,
        index: &Mutex<Index>,
        allocation: AllocationId,
        draw: u64,
    ) -> Option<HeldRoom> {
        // Nearly always the first one is right, so that no others have to be listed.
        let mut rooms_max = if wish.metadata.is_empty() { 1 } else { CANDIDATES_MAX };
        let mut left = CANDIDATES_MAX;
        loop {
            let candidates = index.lock().candidates(wish, draw, rooms_max);
            let mut silent = 0;
            for room in &candidates {
                match self.try_hold(request, wish, allocation, room) {
                    Candidate::Held(held) => return Some(held),
                    Candidate::Unfit => left = left.saturating_sub(1),
                    Candidate::Silent => silent += 1,
                }
            }
            // A room that was found silent is no candidate any more. However many fell silent together, they do not keep
            // others from being found.
            let may_be_more = candidates.len() == rooms_max && (silent > 0 || rooms_max < left);
            if !may_be_more || left == 0 {
                return None;
            }
            rooms_max = left;
        }
    }

    fn try_hold(
        &self,
        request: &HoldRequest<'_>,
        wish: &Wish,
        allocation: AllocationId,
        room: &RoomId,
    ) -> Candidate {
        let held = self.change(request.scheduler.as_str(), room.as_str(), |found| {
            let number = match found.hold(request, wish, allocation) {
                HoldOutcome::Held(number) => number,
                HoldOutcome::Unfit => return Candidate::Unfit,
                HoldOutcome::Silent => return Candidate::Silent,
            };
            let (version, region) = (found.version(), found.region().clone());
            let Some(address) = found.address().cloned() else { return Candidate::Unfit };
            let matches_max = found.matches_max();
            Candidate::Held(HeldRoom {
                allocation,
                room: room.clone(),
                number,
                version,
                region,
                address,
                matches_max,
            })
        });
        held.unwrap_or(Candidate::Unfit)
    }

    pub(super) fn due_now(&self, now: Timestamp, ping_timeout: Millis, holds_max: usize) -> Vec<DueHold> {
        let fleets: Vec<_> = self.fleets.read().values().filter(|fleet| fleet.is_marked()).cloned().collect();
        let mut due = Vec::new();
        for fleet in fleets {
            let listed = fleet.index.lock().due(now, ping_timeout, holds_max);
            // It may have changed meanwhile.
            let is_due = |due: &DueHold| due.hold.due_at(ping_timeout) <= now;
            due.extend(self.existing(&fleet.scheduler, listed).filter(is_due));
        }
        due.sort_by(|one, other| {
            let order = |due: &DueHold| (due.hold.due_at(ping_timeout), due.key.clone());
            order(one).cmp(&order(other))
        });
        due.truncate(holds_max);
        due
    }

    pub(super) fn all_holds(&self, fleet: &Fleet) -> Vec<DueHold> {
        let listed = fleet.index.lock().all_due().cloned().collect();
        self.existing(&fleet.scheduler, listed).collect()
    }

    /// Looked up one by one: a shard is never locked while the index is.
    fn existing<'a>(
        &'a self,
        scheduler: &'a SchedulerName,
        listed: Vec<Due>,
    ) -> impl Iterator<Item = DueHold> + 'a {
        listed.into_iter().filter_map(move |Due { room, number, .. }| {
            let shard = self.shard(room.as_str());
            let hold: Hold = shard.get(scheduler)?.room(room.as_str())?.holds()?.get(number)?.clone();
            drop(shard);
            Some(DueHold { key: HoldKey { scheduler: scheduler.clone(), room, number }, hold })
        })
    }
}
