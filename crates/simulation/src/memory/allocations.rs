//! Allocations.

use std::sync::Arc;

use maestro_core::allocation::{AllocationId, AllocationState, ClaimNumber};
use maestro_core::guards;
use maestro_core::invariant::Invariant;
use maestro_core::room::{Purpose, RoomId};
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::Timestamp;
use maestro_engine::ports::room_table::RoomAddress;
use maestro_engine::ports::store::{
    AllocatedPlace, AllocationPage, AllocationPageRequest, AllocationRecord, ForgetAllocations, Intent,
    NewAllocation, Refusal, RoomRecord, SchedulerState,
};

use super::state::State;

impl State {
    pub(super) fn allocation(&self, scheduler: &SchedulerName, id: AllocationId) -> Option<AllocationRecord> {
        self.allocations.get(&(scheduler.clone(), id)).map(|row| self.with_place(row))
    }

    pub(super) fn allocations_of_request(
        &self,
        scheduler: &SchedulerName,
        request: &str,
    ) -> Vec<AllocationRecord> {
        let request: Arc<str> = request.into();
        let bounds = (scheduler.clone(), request.clone(), 0)..=(scheduler.clone(), request, u32::MAX);
        let ids = self.requests.range(bounds).map(|(_, id)| *id);
        ids.filter_map(|id| self.allocation(scheduler, id)).collect()
    }

    pub(super) fn open_allocations(&self, scheduler: Option<&SchedulerName>) -> Vec<AllocationRecord> {
        let mut open: Vec<_> = match scheduler {
            Some(scheduler) => self.held(scheduler, None).collect(),
            None => {
                let all =
                    self.open_allocations.iter().map(|((scheduler, _, _), id)| (scheduler.clone(), *id));
                all.filter_map(|key| self.allocations.get(&key)).collect()
            }
        };
        open.sort_by(|a, b| (&a.room, a.number).cmp(&(&b.room, b.number)));
        open.into_iter().map(|row| self.with_place(row)).collect()
    }

    pub(super) fn allocation_page(
        &self,
        scheduler: &SchedulerName,
        request: &AllocationPageRequest,
    ) -> AllocationPage {
        let AllocationPageRequest { page, page_size, state, room } = request;
        let is_asked_for = |row: &&Arc<AllocationRecord>| {
            state.is_none_or(|state| row.state == state) && room.as_ref().is_none_or(|room| row.room == *room)
        };
        let found: Vec<_> = self.allocations_of(scheduler).filter(is_asked_for).collect();
        let before = (page.saturating_sub(1) as usize).saturating_mul(*page_size as usize);
        let shown = found.iter().rev().skip(before).take(*page_size as usize);
        AllocationPage {
            total: u32::try_from(found.len()).unwrap_or(u32::MAX),
            allocations: shown.map(|row| self.with_place(row)).collect(),
        }
    }

    pub(super) fn allocate(&mut self, new: NewAllocation) -> Result<(), Refusal> {
        let NewAllocation {
            id,
            scheduler,
            room,
            number,
            matches_max,
            request,
            created_at,
            expires_at,
            metadata,
        } = new;
        if self.existing(&scheduler)?.state == SchedulerState::Deleting {
            return Err(Refusal::SchedulerBeingDeleted(scheduler));
        }
        self.take_match_slot(&scheduler, &room, number, matches_max)?;
        let key = (scheduler.clone(), id);
        if self.allocations.contains(&key) {
            return Err(Refusal::AllocationExists(id));
        }
        if let Some(request) = &request {
            let part = (scheduler.clone(), request.id.clone(), request.index);
            if self.requests.contains(&part) {
                return Err(Refusal::RequestExists(request.id.clone()));
            }
            self.requests.put(part, id);
        }
        self.open_allocations.put((scheduler.clone(), room.clone(), number), id);
        let record = AllocationRecord {
            id,
            scheduler,
            room,
            number,
            request,
            state: AllocationState::Held,
            cause: String::new(),
            created_at,
            expires_at,
            ended_at: None,
            metadata,
            place: None,
        };
        self.allocations.put(key, Arc::new(record));
        Ok(())
    }

    /// Spends the number and counts the allocation, if the room can be given away.
    fn take_match_slot(
        &mut self,
        scheduler: &SchedulerName,
        room: &RoomId,
        number: ClaimNumber,
        matches_max: u32,
    ) -> Result<(), Refusal> {
        let take = |record: &mut RoomRecord| {
            if record.purpose != Purpose::Fleet {
                return Err(Refusal::RoomNotFound(record.id.clone()));
            }
            if record.intent != Intent::Run
                || record.claim_number >= number && guards::stands(Invariant::HeldOnce)
                || record.holds >= matches_max && guards::stands(Invariant::HeldOnce)
            {
                return Err(Refusal::RoomClaimed(record.id.clone()));
            }
            record.claim_number = number;
            record.holds += 1;
            Ok(())
        };
        self.change_live(scheduler, room, take).unwrap_or_else(|| Err(Refusal::RoomNotFound(room.clone())))
    }

    pub(super) fn end_allocation(
        &mut self,
        scheduler: SchedulerName,
        id: AllocationId,
        state: AllocationState,
        cause: String,
        at: Timestamp,
    ) -> Result<(), Refusal> {
        let Some(row) = self.allocations.get(&(scheduler, id)).cloned() else {
            return Err(Refusal::AllocationNotFound(id));
        };
        if !row.state.is_open() {
            return Err(Refusal::AllocationOver { allocation: id, is: row.state });
        }
        self.close(&row, state, cause, at);
        self.rooms.change(&row.room, |record| Arc::make_mut(record).holds -= 1);
        Ok(())
    }

    pub(super) fn withdraw_allocation(
        &mut self,
        scheduler: SchedulerName,
        id: AllocationId,
        cause: String,
        at: Timestamp,
    ) {
        match self.end_allocation(scheduler.clone(), id, AllocationState::Lost, cause, at) {
            Ok(()) | Err(Refusal::AllocationOver { is: AllocationState::Lost, .. }) => {}
            Err(_) => return,
        }
        let request =
            self.allocations.change(&(scheduler.clone(), id), |row| Arc::make_mut(row).request.take());
        if let Some(request) = request.flatten() {
            self.requests.remove(&(scheduler, request.id, request.index));
        }
    }

    /// Ends what is open of a room that goes.
    pub(super) fn lose_allocations(
        &mut self,
        scheduler: &SchedulerName,
        room: &RoomId,
        cause: &str,
        at: Timestamp,
    ) {
        let open: Vec<_> = self.held(scheduler, Some(room)).cloned().collect();
        for row in open {
            self.close(&row, AllocationState::Lost, cause.to_owned(), at);
        }
        self.rooms.change(room, |record| Arc::make_mut(record).holds = 0);
    }

    fn close(&mut self, row: &AllocationRecord, state: AllocationState, cause: String, at: Timestamp) {
        self.open_allocations.remove(&(row.scheduler.clone(), row.room.clone(), row.number));
        self.allocations.change(&(row.scheduler.clone(), row.id), |row| {
            let row = Arc::make_mut(row);
            (row.state, row.cause, row.ended_at) = (state, cause, Some(at));
        });
    }

    pub(super) fn spend_claim(
        &mut self,
        scheduler: &SchedulerName,
        room: &RoomId,
        number: ClaimNumber,
        allocation: AllocationId,
    ) -> Result<(), Refusal> {
        if self.allocations.contains(&(scheduler.clone(), allocation)) {
            return Err(Refusal::AllocationExists(allocation));
        }
        if self.room(scheduler, room).is_some_and(|record| record.claim_number < number) {
            self.rooms.change(room, |record| Arc::make_mut(record).claim_number = number);
        }
        Ok(())
    }

    pub(super) fn forget_allocations(&mut self, forget: &ForgetAllocations) {
        for id in self.allocations_to_forget(forget).into_iter().take(forget.allocations_max as usize) {
            self.forget_allocation(&forget.scheduler, id);
        }
    }

    /// Those that are too old, then those that are too many, the earliest ends first.
    pub(super) fn allocations_to_forget(&self, forget: &ForgetAllocations) -> Vec<AllocationId> {
        let ForgetAllocations { scheduler, ended_before, requested_ended_before, keep_max, .. } = forget;
        let mut ended: Vec<_> = self
            .allocations_of(scheduler)
            .filter_map(|row| Some((row.ended_at?, row.id, row.request.is_some())))
            .collect();
        ended.sort_unstable();
        let is_old = |(at, _, requested): &(Timestamp, AllocationId, bool)| {
            at < if *requested { requested_ended_before } else { ended_before }
        };
        let (old, others): (Vec<_>, Vec<_>) = ended.into_iter().partition(is_old);
        let surplus = others.len().saturating_sub(*keep_max as usize);
        old.into_iter().chain(others.into_iter().take(surplus)).map(|(_, id, _)| id).collect()
    }

    pub(super) fn forget_all_allocations(&mut self, scheduler: &SchedulerName) {
        let ids: Vec<_> = self.allocations_of(scheduler).map(|row| row.id).collect();
        for id in ids {
            self.forget_allocation(scheduler, id);
        }
    }

    fn forget_allocation(&mut self, scheduler: &SchedulerName, id: AllocationId) {
        let Some(row) = self.allocations.remove(&(scheduler.clone(), id)) else { return };
        if let Some(request) = &row.request {
            self.requests.remove(&(scheduler.clone(), request.id.clone(), request.index));
        }
    }

    /// By their ids.
    fn allocations_of(&self, scheduler: &SchedulerName) -> impl Iterator<Item = &Arc<AllocationRecord>> {
        let first = (scheduler.clone(), AllocationId::from_u128(0));
        let rows = self.allocations.range(first..);
        rows.take_while(move |((name, _), _)| name == scheduler).map(|(_, row)| row)
    }

    /// The open ones, of one room or of all.
    fn held(
        &self,
        scheduler: &SchedulerName,
        room: Option<&RoomId>,
    ) -> impl Iterator<Item = &Arc<AllocationRecord>> {
        let from = room.cloned().unwrap_or_else(|| RoomId::new(""));
        let keys = self.open_allocations.range((scheduler.clone(), from, ClaimNumber(0))..);
        let is_asked_for =
            move |name: &SchedulerName, of: &RoomId| name == scheduler && room.is_none_or(|room| room == of);
        keys.take_while(move |((name, of, _), _)| is_asked_for(name, of))
            .filter_map(|((name, _, _), id)| self.allocations.get(&(name.clone(), *id)))
    }

    fn with_place(&self, row: &AllocationRecord) -> AllocationRecord {
        let place = self.room(&row.scheduler, &row.room).and_then(|room| {
            let address = RoomAddress::of(room.handle.as_ref()?, &room.ports);
            Some(AllocatedPlace { version: room.version, region: room.region, address })
        });
        AllocationRecord { place, ..row.clone() }
    }
}
