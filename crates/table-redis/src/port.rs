//! The ports, each call in terms of the parts of the table.

use std::sync::Arc;

use async_trait::async_trait;
use maestro_core::allocation::{AllocationRules, Hold, HoldEnd, HoldStage};
use maestro_core::operation::OperationId;
use maestro_core::room::{InstanceStatus, RoomId};
use maestro_core::scheduler::SchedulerName;
use maestro_core::stream::{Read, ReadFrom, StreamEvent, StreamId};
use maestro_core::time::{Millis, Timestamp};
use maestro_engine::ports::room_table::{
    Claim, DueHold, FleetCounts, HoldAnswer, HoldKey, HoldRequest, NewRoom, Ping, PingError, Pinged,
    RoomAddress, RoomView, StatusChange, TableError,
};
use maestro_engine::ports::{EventRing, RoomTable};
use serde_bytes::ByteBuf;

use crate::RedisRoomTable;
use crate::changing::Change;
use crate::failure::Failure;
use crate::record::{HoldRecord, NEVER, Record, Stage, address_text, word};
use crate::rules::{parse_rules, write_rules};

#[async_trait]
impl RoomTable for RedisRoomTable {
    async fn begin_rebuild(&self, scheduler: &SchedulerName) -> Result<bool, TableError> {
        Ok(self.0.begin_rebuild(scheduler).await?)
    }

    async fn end_rebuild(&self, scheduler: &SchedulerName) -> Result<(), TableError> {
        Ok(self.0.end_rebuild(scheduler).await?)
    }

    async fn insert(&self, room: NewRoom) -> Result<(), TableError> {
        if !room.holds.is_empty() {
            self.0.note_holds(&room.scheduler).await?;
        }
        let holds: Vec<HoldRecord> = room.holds.iter().map(HoldRecord::new).collect();
        let asked = (room.id.as_str(), Record::new(&room), holds);
        self.0.run::<u8>(&self.0.scripts.insert, &room.scheduler, &asked).await?;
        Ok(())
    }

    async fn ping(&self, ping: Ping<'_>, at: Timestamp) -> Result<Pinged, PingError> {
        // It comes from outside, and becomes a part of a key.
        let scheduler = SchedulerName::parse(ping.scheduler).map_err(|_| PingError::UnknownRoom)?;
        self.0.ping_in_batch(&scheduler, &ping, at).await
    }

    async fn observe(
        &self,
        scheduler: &SchedulerName,
        room: &RoomId,
        instance: InstanceStatus,
    ) -> Result<Option<StatusChange>, TableError> {
        let change = Change::Observe(room.as_str(), instance as u8);
        let [before, after] = match self.0.change_room(scheduler, change).await?.as_slice() {
            [before, after] => [*before, *after],
            _ => return Ok(None),
        };
        Ok(Some(StatusChange { before: word(before)?, after: word(after)? }))
    }

    async fn set_address(
        &self,
        scheduler: &SchedulerName,
        room: &RoomId,
        address: RoomAddress,
    ) -> Result<(), TableError> {
        self.0.change_room(scheduler, Change::Address(room.as_str(), address_text(&address))).await?;
        Ok(())
    }

    async fn claim(&self, claim: Claim<'_>) -> Result<Vec<RoomId>, TableError> {
        Ok(self.0.claim_rooms(&claim).await?)
    }

    async fn unclaim(
        &self,
        scheduler: &SchedulerName,
        operation: OperationId,
        rooms: &[RoomId],
    ) -> Result<(), TableError> {
        let operation = operation.to_string();
        let changes = rooms.iter().map(|room| Change::Unclaim(room.as_str(), &operation));
        self.0.change_rooms(scheduler, &changes.collect::<Vec<_>>()).await?;
        Ok(())
    }

    async fn hold(&self, requests: &[HoldRequest<'_>]) -> Result<Vec<HoldAnswer>, TableError> {
        let Some(first) = requests.first() else { return Ok(Vec::new()) };
        Ok(self.0.hold_rooms(first.scheduler, requests).await?)
    }

    async fn confirm(&self, holds: &[HoldKey]) -> Result<Vec<Option<HoldStage>>, TableError> {
        let confirmed =
            self.0.change_holds(holds, |key| Change::Confirm(key.room.as_str(), key.number.0)).await?;
        // None is provisional any more.
        let stage = |answer: Vec<u8>| answer.first().map(|stage| Stage::read(*stage, NEVER)).transpose();
        Ok(confirmed.into_iter().map(stage).collect::<Result<_, Failure>>()?)
    }

    async fn mark(&self, hold: &HoldKey, end: HoldEnd) -> Result<Option<HoldEnd>, TableError> {
        let stage = Stage::marked(end) as u8;
        let change = Change::Mark(hold.room.as_str(), hold.number.0, stage);
        let answer = self.0.change_room(&hold.scheduler, change).await?;
        Ok(match answer.first().map(|stage| Stage::read(*stage, NEVER)).transpose()? {
            Some(HoldStage::Marked(end)) => Some(end),
            // Not after it was marked.
            Some(HoldStage::Provisional { .. } | HoldStage::Firm) | None => None,
        })
    }

    async fn release(&self, holds: &[HoldKey]) -> Result<(), TableError> {
        self.0.change_holds(holds, |key| Change::Release(key.room.as_str(), key.number.0)).await?;
        Ok(())
    }

    async fn restore(&self, scheduler: &SchedulerName, room: &RoomId, hold: Hold) -> Result<(), TableError> {
        self.0.note_holds(scheduler).await?;
        self.0.change_room(scheduler, Change::Restore(room.as_str(), HoldRecord::new(&hold))).await?;
        Ok(())
    }

    async fn due_holds(
        &self,
        now: Timestamp,
        ping_timeout: Millis,
        holds_max: usize,
    ) -> Result<Vec<DueHold>, TableError> {
        Ok(self.0.due(now, ping_timeout, holds_max).await?)
    }

    async fn holds_of(&self, scheduler: &SchedulerName, room: &RoomId) -> Result<Vec<Hold>, TableError> {
        let record = self.record(scheduler, room).await?;
        Ok(record.map(Record::holds).transpose()?.unwrap_or_default())
    }

    async fn holds(&self, scheduler: &SchedulerName) -> Result<Vec<DueHold>, TableError> {
        Ok(self.0.all_holds(scheduler).await?)
    }

    async fn allocation_rules(&self, scheduler: &SchedulerName) -> Result<AllocationRules, TableError> {
        let text: String = self.0.run(&self.0.scripts.read, scheduler, &("rules", "")).await?;
        Ok(parse_rules(&text)?)
    }

    async fn set_allocation_rules(
        &self,
        scheduler: &SchedulerName,
        rules: AllocationRules,
    ) -> Result<(), TableError> {
        let asked = ("rules", write_rules(&rules)?);
        self.0.run::<u8>(&self.0.scripts.write, scheduler, &asked).await?;
        Ok(())
    }

    async fn report_waiting(
        &self,
        scheduler: &SchedulerName,
        process: &str,
        slots: u32,
        now: Timestamp,
    ) -> Result<(), TableError> {
        Ok(self.0.change_waiting(scheduler, |waiting| waiting.report(process, slots, now)).await?)
    }

    async fn waiting(&self, scheduler: &SchedulerName, now: Timestamp) -> Result<u32, TableError> {
        Ok(self.0.change_waiting(scheduler, |waiting| waiting.highest(now)).await?)
    }

    async fn remove(&self, scheduler: &SchedulerName, room: &RoomId) -> Result<Option<RoomView>, TableError> {
        let packed: ByteBuf = self.0.run(&self.0.scripts.remove, scheduler, &[room.as_str()]).await?;
        let record = parse_record(&packed)?;
        Ok(record.map(|record| record.view(room.clone())).transpose()?)
    }

    async fn remove_scheduler(&self, scheduler: &SchedulerName) -> Result<(), TableError> {
        Ok(self.0.remove_all(scheduler).await?)
    }

    async fn set_matches_max(&self, scheduler: &SchedulerName, matches_max: u32) -> Result<(), TableError> {
        Ok(self.0.change_matches_max(scheduler, matches_max).await?)
    }

    async fn room(&self, scheduler: &SchedulerName, room: &RoomId) -> Result<Option<RoomView>, TableError> {
        let record = self.record(scheduler, room).await?;
        Ok(record.map(|record| record.view(room.clone())).transpose()?)
    }

    async fn rooms(&self, scheduler: &SchedulerName) -> Result<Vec<RoomView>, TableError> {
        Ok(self.0.all_rooms(scheduler).await?)
    }

    async fn counts(&self, scheduler: &SchedulerName) -> Result<FleetCounts, TableError> {
        Ok(self.0.fleet_counts(scheduler).await?)
    }
}

impl RedisRoomTable {
    async fn record(&self, scheduler: &SchedulerName, room: &RoomId) -> Result<Option<Record>, Failure> {
        let packed: ByteBuf = self.0.run(&self.0.scripts.read, scheduler, &("room", room.as_str())).await?;
        parse_record(&packed)
    }
}

fn parse_record(packed: &[u8]) -> Result<Option<Record>, Failure> {
    (!packed.is_empty()).then(|| Record::parse(packed)).transpose()
}

#[async_trait]
impl EventRing for RedisRoomTable {
    async fn append(&self, events: Vec<StreamEvent>, after_loss: bool) -> Result<(), TableError> {
        // What happened before these is told before them.
        self.0.carry_all().await?;
        Ok(self.0.append_events(events, after_loss, None).await?)
    }

    async fn read_events(
        &self,
        from: ReadFrom,
        events_max: usize,
    ) -> Result<Read<Arc<StreamEvent>>, TableError> {
        self.0.carry_all().await?;
        Ok(self.0.read_ring(from, events_max).await?)
    }

    async fn wait_for_events(&self, next: StreamId) -> Result<(), TableError> {
        Ok(self.0.wait_until_grown(next).await?)
    }
}
