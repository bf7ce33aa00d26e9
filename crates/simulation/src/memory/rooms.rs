//! The room registry.

use std::collections::BTreeMap;
use std::sync::Arc;

use maestro_core::allocation::ClaimNumber;
use maestro_core::guards;
use maestro_core::invariant::Invariant;
use maestro_core::operation::OperationId;
use maestro_core::room::{Purpose, Region, RoomId};
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::Timestamp;
use maestro_engine::ports::runtime::Handle;
use maestro_engine::ports::store::{
    ClaimedSince, Ended, EndedRoom, Intent, NewRoomRecord, Refusal, RoomCount, RoomRecord, StopIntent,
};

use super::state::State;

impl State {
    pub(super) fn room(&self, scheduler: &SchedulerName, id: &RoomId) -> Option<RoomRecord> {
        let room = self.rooms.get(id)?;
        (room.scheduler == *scheduler).then(|| RoomRecord::clone(room))
    }

    pub(super) fn live_rooms(&self, scheduler: &SchedulerName) -> Vec<RoomRecord> {
        self.records(self.live_room_ids(scheduler))
    }

    pub(super) fn leaving_rooms(&self, scheduler: &SchedulerName, operation: OperationId) -> Vec<RoomRecord> {
        let mut rooms = self.live_rooms(scheduler);
        rooms.retain(|room| matches!(&room.intent, Intent::Stop(stop) if stop.operation == operation));
        rooms
    }

    pub(super) fn room_counts(&self, scheduler: &SchedulerName) -> Vec<RoomCount> {
        let mut counts = BTreeMap::new();
        for room in self.live_rooms(scheduler).into_iter().filter(|room| room.purpose == Purpose::Fleet) {
            *counts.entry((room.version, room.region)).or_default() += 1;
        }
        counts.into_iter().map(|((version, region), rooms)| RoomCount { version, region, rooms }).collect()
    }

    pub(super) fn all_live_rooms(&self) -> Vec<RoomRecord> {
        self.records(self.live_rooms.iter().map(|((_, id), ())| id))
    }

    pub(super) fn live_room_ids(&self, scheduler: &SchedulerName) -> impl Iterator<Item = &RoomId> {
        let first = (scheduler.clone(), RoomId::new(""));
        self.live_rooms
            .range(first..)
            .map(|((owner, id), ())| (owner, id))
            .take_while(move |(owner, _)| *owner == scheduler)
            .map(|(_, id)| id)
    }

    pub(super) fn rooms_made_by(&self, scheduler: &SchedulerName, operation: OperationId) -> Vec<RoomRecord> {
        let first = (scheduler.clone(), operation, RoomId::new(""));
        let made = self
            .rooms_made_by
            .range(first..)
            .map(|(key, ())| key)
            .take_while(|(name, by, _)| name == scheduler && *by == operation);
        self.records(made.map(|(_, _, id)| id))
    }

    pub(super) fn ended_rooms(&self, scheduler: &SchedulerName, rooms_max: usize) -> Vec<RoomRecord> {
        let ended: Vec<_> = self.ended_before(scheduler, Timestamp::MAX).collect();
        self.records(ended.into_iter().rev().take(rooms_max))
    }

    pub(super) fn rooms_ended_before(
        &self,
        scheduler: &SchedulerName,
        before: Timestamp,
        after: Option<&EndedRoom>,
        rooms_max: usize,
    ) -> Vec<EndedRoom> {
        let rows = self.ended_before(scheduler, before).filter_map(|id| self.rooms.get(id));
        let ended = rows.filter_map(|row| {
            let at = row.ended.as_ref()?.at;
            Some(EndedRoom { at, id: row.id.clone(), region: row.region.clone() })
        });
        let follows =
            |room: &EndedRoom| after.is_none_or(|after| (room.at, &room.id) > (after.at, &after.id));
        ended.filter(follows).take(rooms_max).collect()
    }

    /// Earliest end first.
    fn ended_before(&self, scheduler: &SchedulerName, before: Timestamp) -> impl Iterator<Item = &RoomId> {
        let first = (scheduler.clone(), Timestamp::MIN, RoomId::new(""));
        self.ended_rooms
            .range(first..)
            .map(|(key, ())| key)
            .take_while(move |(name, at, _)| name == scheduler && *at < before)
            .map(|(_, _, id)| id)
    }

    fn records<'a>(&self, ids: impl Iterator<Item = &'a RoomId>) -> Vec<RoomRecord> {
        ids.filter_map(|id| self.rooms.get(id)).map(|room| RoomRecord::clone(room)).collect()
    }

    pub(super) fn ports_in_use(&self, region: &Region) -> Vec<u16> {
        let bounds = (region.clone(), 0)..=(region.clone(), u16::MAX);
        self.ports.range(bounds).map(|((_, port), _)| *port).collect()
    }

    pub(super) fn intend_room(&mut self, new: NewRoomRecord) -> Result<(), Refusal> {
        let NewRoomRecord {
            id,
            scheduler,
            version,
            region,
            regions_beside,
            purpose,
            ports,
            operation,
            token,
            created_at,
        } = new;
        self.existing(&scheduler)?;
        if self.rooms.contains(&id) {
            return Err(Refusal::RoomExists(id));
        }
        for port in ports.iter().map(|port| port.host_port) {
            for region in regions_beside.iter().chain([&region]).cloned() {
                if self.ports.contains(&(region.clone(), port)) && guards::stands(Invariant::PortOnce) {
                    return Err(Refusal::PortTaken { region, port });
                }
            }
            self.ports.put((region.clone(), port), id.clone());
        }
        self.live_rooms.put((scheduler.clone(), id.clone()), ());
        self.rooms_made_by.put((scheduler.clone(), operation, id.clone()), ());
        let record = RoomRecord {
            id: id.clone(),
            scheduler,
            version,
            region,
            purpose,
            ports,
            handle: None,
            intent: Intent::Run,
            operation,
            token,
            created_at,
            ended: None,
            claim_number: ClaimNumber(0),
            holds: 0,
        };
        self.rooms.put(id, Arc::new(record));
        Ok(())
    }

    pub(super) fn room_started(
        &mut self,
        scheduler: &SchedulerName,
        room: RoomId,
        handle: Handle,
    ) -> Result<(), Refusal> {
        let is_there = self.rooms.get(&room).is_some_and(|record| record.scheduler == *scheduler);
        if !is_there {
            return Err(Refusal::RoomNotFound(room));
        }
        self.rooms.change(&room, |record| Arc::make_mut(record).handle = Some(handle));
        Ok(())
    }

    pub(super) fn intend_stop(
        &mut self,
        scheduler: &SchedulerName,
        room: &RoomId,
        stop: StopIntent,
        unless: ClaimedSince,
    ) -> Result<(), Refusal> {
        let ClaimedSince { number, takes_held } = unless;
        let (reason, at) = (stop.reason.clone(), stop.at);
        let intend = |record: &mut RoomRecord| {
            if record.intent != Intent::Run {
                return Ok(false);
            }
            if record.claim_number != number || (record.holds > 0 && !takes_held) {
                return Err(Refusal::RoomClaimed(record.id.clone()));
            }
            record.intent = Intent::Stop(stop);
            Ok(true)
        };
        let intended = self.change_live(scheduler, room, intend);
        if intended.unwrap_or_else(|| Err(Refusal::RoomNotFound(room.clone())))? {
            self.lose_allocations(scheduler, room, &reason, at);
        }
        Ok(())
    }

    pub(super) fn end_room(
        &mut self,
        scheduler: &SchedulerName,
        room: &RoomId,
        instance: Option<&Handle>,
        ended: Ended,
    ) -> Result<(), Refusal> {
        let is_other = |instance: &Handle| {
            let handle = self.rooms.get(room).and_then(|record| record.handle.as_ref());
            handle.is_some_and(|handle| !handle.is_of_same_instance(instance))
        };
        if self.live_rooms.contains(&(scheduler.clone(), room.clone())) && instance.is_some_and(is_other) {
            return Err(Refusal::OtherInstance(room.clone()));
        }
        let (at, how) = (ended.at, ended.how.clone());
        let Some((region, ports)) = self.change_live(scheduler, room, |record| {
            record.ended = Some(ended);
            (record.region.clone(), record.ports.clone())
        }) else {
            return Ok(());
        };
        for port in ports {
            self.ports.remove(&(region.clone(), port.host_port));
        }
        self.lose_allocations(scheduler, room, &how, at);
        self.live_rooms.remove(&(scheduler.clone(), room.clone()));
        self.ended_rooms.put((scheduler.clone(), at, room.clone()), ());
        Ok(())
    }

    pub(super) fn forget_rooms(&mut self, scheduler: &SchedulerName, rooms: &[RoomId]) {
        for id in rooms {
            let Some(record) = self.rooms.get(id).filter(|room| room.scheduler == *scheduler) else {
                continue;
            };
            let Some(Ended { at, .. }) = record.ended else {
                continue;
            };
            let operation = record.operation;
            self.rooms.remove(id);
            self.ended_rooms.remove(&(scheduler.clone(), at, id.clone()));
            self.rooms_made_by.remove(&(scheduler.clone(), operation, id.clone()));
        }
    }

    pub(super) fn forget_all_ended_rooms(&mut self, scheduler: &SchedulerName) {
        let ended: Vec<_> = self.ended_before(scheduler, Timestamp::MAX).cloned().collect();
        self.forget_rooms(scheduler, &ended);
    }

    /// `None`: there is no such room, or it has ended.
    pub(super) fn change_live<T>(
        &mut self,
        scheduler: &SchedulerName,
        room: &RoomId,
        change: impl FnOnce(&mut RoomRecord) -> T,
    ) -> Option<T> {
        if !self.live_rooms.contains(&(scheduler.clone(), room.clone())) {
            return None;
        }
        self.rooms.change(room, |record| change(Arc::make_mut(record)))
    }
}
