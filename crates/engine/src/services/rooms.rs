//! Rooms as people see them: list, read, logs; add and remove.

use std::collections::BTreeMap;

use maestro_core::operation::{Definition, OperationId, Origin, RemovalReason, RoomsToRemove};
use maestro_core::room::{HostPort, Purpose, Region, RoomId, RoomStatus};
use maestro_core::scheduler::Version;
use maestro_core::time::Timestamp;

use crate::ports::room_table::RoomView;
use crate::ports::store::{
    Change, Intent, Refusal, RoomRecord, SchedulerRecord, SchedulerState, StoreError, Transaction,
};
use crate::{Engine, Error};

#[derive(Debug, Clone)]
pub struct ListedRoom {
    pub id: RoomId,
    pub status: RoomStatus,
    pub version: Version,
    pub region: Region,
    pub host: String,
    pub ports: Vec<HostPort>,
    pub pids: Vec<u32>,
    pub created_at: Timestamp,
    pub last_ping_at: Option<Timestamp>,
    pub validation: bool,
    pub ended: Option<RoomEnd>,
}

#[derive(Debug, Clone)]
pub struct RoomEnd {
    pub at: Timestamp,
    pub how: String,
}

/// How often a change of the fleet size is tried again when someone else changes it at the same time.
const FLEET_SIZE_ATTEMPTS: u32 = 20;

impl Engine {
    /// Rooms that have not ended, by id.
    pub async fn rooms(&self, scheduler: &str) -> Result<Vec<ListedRoom>, Error> {
        let record = self.scheduler(scheduler).await?;
        let rows = self.ports.store.live_rooms(&record.name).await?;
        let views = self.ports.table.rooms(&record.name).await?;
        let views: BTreeMap<_, _> = views.into_iter().map(|view| (view.id.clone(), view)).collect();
        let listed = |row: RoomRecord| {
            let view = views.get(&row.id);
            listed(row, view)
        };
        Ok(rows.into_iter().map(listed).collect())
    }

    /// One room, for as long as it is remembered after its end.
    pub async fn room(&self, scheduler: &str, id: &str) -> Result<ListedRoom, Error> {
        let missing = || Error::NotFound(format!("room {id} not found in scheduler {scheduler}"));
        let record = self.scheduler(scheduler).await?;
        let id = RoomId::new(id);
        let row = self.ports.store.room(&record.name, &id).await?.ok_or_else(missing)?;
        let view = self.ports.table.room(&record.name, &id).await?;
        Ok(listed(row, view.as_ref()))
    }

    pub async fn room_logs(&self, scheduler: &str, id: &str, lines_max: usize) -> Result<String, Error> {
        let room = self.room(scheduler, id).await?;
        let record = self.scheduler(scheduler).await?;
        let runtime = self.runtime(&room.region)?;
        let logs = runtime.logs(&record.name, &room.id, lines_max).await?;
        logs.ok_or_else(|| Error::NotFound(format!("no logs are kept of room {id}")))
    }

    pub async fn add_rooms(
        &self,
        scheduler: &str,
        amount: u32,
        force: bool,
        user: &str,
    ) -> Result<OperationId, Error> {
        let limit = ("operations.rooms.add.limit", self.settings.rooms_add_limit);
        check_amount(amount, limit)?;
        let record = self.scheduler(scheduler).await?;
        self.check_ports(&record.recipe, record.fleet_size.saturating_add(amount))?;
        let definition = Definition::AddRooms { amount };
        self.resize_fleet(record, definition, i64::from(amount), force, user).await
    }

    pub async fn remove_rooms(
        &self,
        scheduler: &str,
        amount: u32,
        force: bool,
        user: &str,
    ) -> Result<OperationId, Error> {
        let limit = ("operations.rooms.remove.limit", self.settings.rooms_remove_limit);
        check_amount(amount, limit)?;
        let record = self.scheduler(scheduler).await?;
        let rooms = RoomsToRemove::Amount(amount);
        let definition = Definition::RemoveRooms { rooms, reason: RemovalReason::ScaleDown };
        self.resize_fleet(record, definition, -i64::from(amount), force, user).await
    }

    /// The fleet size changes in the transaction that enqueues the operation, so that no cycle in between sees one
    /// without the other.
    async fn resize_fleet(
        &self,
        mut record: SchedulerRecord,
        definition: Definition,
        delta: i64,
        force: bool,
        user: &str,
    ) -> Result<OperationId, Error> {
        let autoscaled = record.autoscaling().is_some();
        if autoscaled && !force {
            let text = "autoscaling would undo this; change min or max, or turn it off (or use force)";
            return Err(Error::Conflict(text.into()));
        }
        if record.state == SchedulerState::Deleting {
            return Err(Refusal::SchedulerBeingDeleted(record.name).into());
        }
        for _ in 0..FLEET_SIZE_ATTEMPTS {
            let from = record.fleet_size;
            let to = u32::try_from((i64::from(from) + delta).max(0)).unwrap_or(u32::MAX);
            let mut operation =
                self.new_operation(&record.name, definition.clone(), Origin::Person(user.into()));
            let id = operation.id;
            let mut sized = Vec::new();
            if !autoscaled {
                operation.fleet_delta = i64::from(to) - i64::from(from);
                // More than the fleet has cannot be taken from it: it would be taken from rooms that are added later.
                if let Definition::RemoveRooms { rooms: RoomsToRemove::Amount(amount), .. } =
                    &mut operation.definition
                {
                    *amount = from - to;
                }
                operation.reason += &format!("; fleet size {from} → {to}");
                sized.push(Change::SetFleetSize { scheduler: record.name.clone(), from, to });
            }
            let by = (operation.definition.kind(), id);
            let mut changes = self.while_writing(&record.name, by, &operation.reason, sized);
            changes.push(Change::Enqueue(operation));
            match self.accept(Transaction::new("request resize", changes)).await {
                Err(StoreError::Refused(Refusal::FleetSizeChanged { is, .. })) => record.fleet_size = is,
                other => {
                    other?;
                    self.ports.wake.queue_changed(&record.name);
                    return Ok(id);
                }
            }
        }
        Err(Error::Conflict("too many changes of the fleet size at once; try again".into()))
    }
}

fn check_amount(amount: u32, (key, limit): (&str, u32)) -> Result<(), Error> {
    if amount == 0 {
        return Err(Error::Invalid("amount: 0 rooms are nothing to do; give a number from 1".into()));
    }
    if amount > limit {
        return Err(Error::Invalid(format!("amount: {amount} is above the limit of {limit} ({key})")));
    }
    Ok(())
}

fn listed(row: RoomRecord, view: Option<&RoomView>) -> ListedRoom {
    let status = match (&row.ended, view, &row.intent) {
        (Some(_), ..) => RoomStatus::Terminated,
        (None, Some(view), _) => view.status,
        (None, None, Intent::Stop(_)) => RoomStatus::Terminating,
        (None, None, Intent::Run) => RoomStatus::Pending,
    };
    let (host, pids) = row.handle.map(|handle| (handle.host, handle.pids)).unwrap_or_default();
    ListedRoom {
        id: row.id,
        status,
        version: row.version,
        region: row.region,
        host,
        ports: row.ports,
        pids,
        created_at: row.created_at,
        last_ping_at: view.and_then(|view| view.last_ping_at),
        validation: row.purpose == Purpose::Validation,
        ended: row.ended.map(|ended| RoomEnd { at: ended.at, how: ended.how }),
    }
}
