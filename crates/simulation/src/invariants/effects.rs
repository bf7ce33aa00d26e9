//! What work came to: rooms, their ports, and the record of their scheduler.

use std::collections::{BTreeMap, BTreeSet};

use maestro_core::invariant::{ports_once, rooms_made};
use maestro_core::operation::OperationId;
use maestro_core::room::{HostPort, Region, RoomId};
use maestro_core::scheduler::SchedulerName;
use maestro_engine::ports::store::{Change, Store, Transaction};

use super::Inspector;

impl Inspector {
    /// Reads the scheduler's record again if it may be another one.
    pub(super) async fn refresh_record(
        &self,
        scheduler: &SchedulerName,
        transaction: &Transaction,
        store: &dyn Store,
    ) {
        let is_known = self.state.lock().known(scheduler).record.is_some();
        if (!is_known || transaction.changes.iter().any(changes_record))
            && let Ok(record) = store.scheduler(scheduler).await
        {
            self.state.lock().known(scheduler).changed(record);
        }
    }

    /// Rooms that were intended: no more than were asked for, and no port twice.
    pub(super) async fn judge_effects(
        &self,
        scheduler: &SchedulerName,
        transaction: &Transaction,
        store: &dyn Store,
    ) {
        let mut makers: BTreeSet<OperationId> = BTreeSet::new();
        for change in &transaction.changes {
            if let Change::IntendRoom(room) = change {
                makers.insert(room.operation);
            }
        }
        if makers.is_empty() {
            return;
        }
        for operation in makers {
            let asked = self.asked(scheduler, operation);
            if let (Some(asked), Ok(made)) = (asked, store.rooms_made_by(scheduler, operation).await) {
                self.note_all(rooms_made(operation, asked, made.len()));
            }
        }
        let Ok(rows) = store.all_live_rooms().await else {
            return;
        };
        let mut by_region: BTreeMap<&Region, Vec<(&RoomId, &[HostPort])>> = BTreeMap::new();
        for row in &rows {
            by_region.entry(&row.region).or_default().push((&row.id, &row.ports));
        }
        self.note_all(by_region.into_values().filter_map(ports_once));
    }

    /// How many rooms it is to make, if it is to make a certain number.
    fn asked(&self, scheduler: &SchedulerName, operation: OperationId) -> Option<u32> {
        self.state.lock().known(scheduler).operations.get(&operation)?.definition.adds()
    }
}

fn changes_record(change: &Change) -> bool {
    matches!(
        change,
        Change::CreateScheduler(_)
            | Change::DeleteScheduler { .. }
            | Change::UpdateScheduler(_)
            | Change::AdjustFleetSize { .. }
    )
}
