//! What changes do not say of themselves: it is remembered, or looked up.

use maestro_core::allocation::{AllocationId, AllocationState};
use maestro_core::operation::{OperationId, OperationStatus};
use maestro_core::rollout::RolloutRecord;
use maestro_core::room::RoomId;
use maestro_core::scheduler::SchedulerName;
use maestro_core::stream::{Happened, RolloutChange, StreamEvent};
use maestro_core::time::Timestamp;

use crate::{Engine, Result};

use super::derive::{Draft, Held, What};

impl Engine {
    /// Notes which holds may be lost, before they are.
    pub(super) async fn with_holds(&self, mut drafts: Vec<Draft>) -> Vec<Draft> {
        for draft in &mut drafts {
            let What::TakesHeld { scheduler, room, held, .. } = &mut draft.what else { continue };
            for allocation in self.held_in(scheduler, room).await {
                let row = self.ports.store.allocation(scheduler, allocation).await;
                let is_over = row.is_ok_and(|row| row.is_some_and(|row| row.ended_at.is_some()));
                if is_over { &mut held.over } else { &mut held.open }.insert(allocation);
            }
        }
        drafts
    }

    /// A table that cannot be reached is lost with its ring, or the next append says so.
    async fn held_in(&self, scheduler: &SchedulerName, room: &RoomId) -> Vec<AllocationId> {
        let holds = self.ports.table.holds_of(scheduler, room).await.unwrap_or_default();
        holds.into_iter().map(|hold| hold.allocation).collect()
    }

    /// The events of what is written now.
    pub(super) async fn events_of(&self, drafts: Vec<Draft>) -> Result<Vec<StreamEvent>> {
        let mut events = Vec::with_capacity(drafts.len());
        for Draft { at, what } in drafts {
            let event = |scheduler, what| StreamEvent { at, scheduler: Some(scheduler), what };
            match what {
                What::Event(scheduler, what) => {
                    self.stream.known.lock().remember(scheduler.as_ref(), &what);
                    events.push(StreamEvent { at, scheduler, what });
                }
                What::OperationBecame(scheduler, operation, status) => {
                    events.extend(self.operation_became(at, scheduler, operation, status).await?);
                }
                What::AllocationEnded(scheduler, allocation, state, cause) => {
                    if let Some(room) = self.room_of(&scheduler, allocation).await? {
                        events.push(event(
                            scheduler,
                            Happened::AllocationEnded { allocation, room, state, cause },
                        ));
                    }
                }
                What::Withdrawn(scheduler, allocation, cause) => {
                    let room = self.stream.known.lock().take_allocation(allocation);
                    let state = AllocationState::Lost;
                    let ended = |room| Happened::AllocationEnded { allocation, room, state, cause };
                    events.extend(room.map(|room| event(scheduler, ended(room))));
                }
                What::TakesHeld { scheduler, room, ends_at, held } => {
                    events.extend(self.lost_with(at, &scheduler, &room, ends_at, held).await?);
                }
                What::Decided(scheduler, operation, decision) => {
                    if self.stream.known.lock().is_news(&scheduler, &decision) {
                        events.push(event(scheduler, Happened::Decided { operation, decision }));
                    }
                }
                What::Rollout(scheduler, rollout) => {
                    let change = self.rollout_became(&scheduler, rollout).await?;
                    events.extend(change.map(|change| event(scheduler, Happened::RolloutChanged(change))));
                }
                What::SchedulerGone(scheduler) => self.stream.known.lock().forget_scheduler(&scheduler),
            }
        }
        Ok(events)
    }

    async fn operation_became(
        &self,
        at: Timestamp,
        scheduler: Option<SchedulerName>,
        operation: OperationId,
        status: OperationStatus,
    ) -> Result<Option<StreamEvent>> {
        let known = self.stream.known.lock().operation(operation).cloned();
        let (scheduler, definition) = match (known, scheduler) {
            (Some(known), _) => (known.scheduler, known.definition),
            (None, Some(scheduler)) => {
                // It was enqueued before this process began, or by another one.
                let Some(found) = self.ports.store.operation(&scheduler, operation).await? else {
                    return Ok(None);
                };
                self.stream.remember(&found);
                (scheduler, found.definition.name().into())
            }
            (None, None) => return Ok(None),
        };
        if status.is_final() {
            self.stream.known.lock().forget_operation(operation);
        }
        let what = Happened::OperationChanged { operation, definition, status, reason: "".into() };
        Ok(Some(StreamEvent { at, scheduler: Some(scheduler), what }))
    }

    async fn room_of(&self, scheduler: &SchedulerName, allocation: AllocationId) -> Result<Option<RoomId>> {
        if let Some(room) = self.stream.known.lock().take_allocation(allocation) {
            return Ok(Some(room));
        }
        let found = self.ports.store.allocation(scheduler, allocation).await?;
        Ok(found.map(|row| row.room))
    }

    /// The allocations that ended with a room, or with the intent to stop it.
    async fn lost_with(
        &self,
        at: Timestamp,
        scheduler: &SchedulerName,
        room: &RoomId,
        ends_at: Timestamp,
        held: Held,
    ) -> Result<Vec<StreamEvent>> {
        let Held { mut open, over } = held;
        open.extend(self.held_in(scheduler, room).await);
        let mut events = Vec::new();
        for allocation in open.difference(&over).copied() {
            let row = self.ports.store.allocation(scheduler, allocation).await?;
            // What has begun at the last moment was told then. Stores keep microseconds.
            let is_same = |ended: Timestamp| ended.as_microsecond() == ends_at.as_microsecond();
            let Some(row) = row.filter(|row| row.ended_at.is_some_and(is_same)) else { continue };
            self.stream.known.lock().take_allocation(allocation);
            let (room, cause) = (room.clone(), row.cause.as_str().into());
            let what = Happened::AllocationEnded { allocation, room, state: row.state, cause };
            events.push(StreamEvent { at, scheduler: Some(scheduler.clone()), what });
        }
        Ok(events)
    }

    /// `None`: nothing that people are told of it is different.
    async fn rollout_became(
        &self,
        scheduler: &SchedulerName,
        rollout: Option<RolloutRecord>,
    ) -> Result<Option<RolloutChange>> {
        if let Some(RolloutRecord { state, to, from, note, .. }) = rollout {
            let change = RolloutChange { state: Some(state), to, from, note: note.into() };
            let is_other = self.stream.known.lock().is_other_rollout(scheduler, &change);
            return Ok(is_other.then_some(change));
        }
        if let Some(before) = self.stream.known.lock().take_rollout(scheduler) {
            return Ok(Some(RolloutChange { state: None, note: "".into(), ..before }));
        }
        let record = self.ports.store.scheduler(scheduler).await?;
        let ended = |version| RolloutChange { state: None, to: version, from: version, note: "".into() };
        Ok(record.map(|record| ended(record.active_version)))
    }
}
