//! Requests of people about how many rooms there should be: add, remove, resize, create one. All of them change the fleet
//! size in the transaction that enqueues the operation, so that no cycle sees one without the other.

use std::collections::BTreeSet;

use maestro_core::operation::{Definition, OperationId, Origin, RemovalReason, RoomsToRemove};
use maestro_core::resize::{Cluster, Draft, Max, Request, Resized, Strictness, resize};
use maestro_core::room::{Purpose, Region, RoomId};
use maestro_core::violation::{Violation, Violations};

use crate::ports::room_table::{FleetCounts, OrIfLost};
use crate::ports::store::{Change, Intent, Refusal, SchedulerRecord, SchedulerState, Transaction};
use crate::{Engine, Error, Result};

use super::{ATTEMPTS, changes_too_fast};

const AUTOSCALING_IS_ON: &str = "autoscaling is on and would undo this; change autoscaling.min or autoscaling.max, \
    turn it off, or insist with --force (in the API: \"force\": true)";

/// A resize, as it was written.
#[derive(Debug, Clone)]
pub struct ResizeOrder {
    pub draft: Draft,
    pub strictness: Strictness,
    /// For the operation's input.
    pub asked: serde_json::Value,
}

/// What a request means for a fleet, and by how many rooms the fleet grows, or shrinks.
type FleetChange = (Definition, i64);

impl Engine {
    pub async fn add_rooms(
        &self,
        scheduler: &str,
        amount: u32,
        force: bool,
        user: &str,
    ) -> Result<OperationId> {
        self.check_added("amount", amount.into())?;
        let wanted = |_: &SchedulerRecord| Ok((Definition::AddRooms { amount }, amount.into()));
        self.change_fleet(scheduler, wanted, force, user).await
    }

    pub async fn remove_rooms(
        &self,
        scheduler: &str,
        amount: u32,
        force: bool,
        user: &str,
    ) -> Result<OperationId> {
        self.check_removed("amount", amount.into())?;
        let wanted = |record: &SchedulerRecord| {
            // More than the fleet has cannot be taken from it: it would be taken from rooms that are added later.
            let autoscaled = record.autoscaling().is_some();
            let amount = if autoscaled { amount } else { amount.min(record.fleet_size) };
            let rooms = RoomsToRemove::Amount(amount);
            let reason = RemovalReason::ScaleDown;
            Ok((Definition::RemoveRooms { rooms, reason }, -i64::from(amount)))
        };
        self.change_fleet(scheduler, wanted, force, user).await
    }

    /// These rooms and no others, whoever is in them. The fleet is smaller afterwards by those of them that counted.
    pub async fn remove_named_rooms(
        &self,
        scheduler: &str,
        rooms: &[String],
        force: bool,
        user: &str,
    ) -> Result<OperationId> {
        let rooms: BTreeSet<RoomId> = rooms.iter().map(|room| RoomId::new(room)).collect();
        self.check_removed("rooms", rooms.len() as u64)?;
        let record = self.scheduler(scheduler).await?;
        let mut counted = 0;
        for id in &rooms {
            let row = self.ports.store.room(&record.name, id).await?;
            let Some(row) = row.filter(|row| row.purpose == Purpose::Fleet) else {
                return Err(Error::NotFound(format!("room {id} not found in scheduler {scheduler}")));
            };
            if let Some(ended) = &row.ended {
                return Err(Error::Conflict(format!("room {id} has already ended: {}", ended.how)));
            }
            if let Intent::Stop(_) = row.intent {
                return Err(Error::Conflict(format!("room {id} is already being removed")));
            }
            let view = self.ports.table.room(&record.name, id).await.or_if_lost(None)?;
            counted += i64::from(view.is_none_or(|view| view.status.counts()));
        }
        let ids: Vec<RoomId> = rooms.into_iter().collect();
        let wanted = |_: &SchedulerRecord| {
            let rooms = RoomsToRemove::Ids(ids.clone());
            let reason = RemovalReason::ScaleDown;
            Ok((Definition::RemoveRooms { rooms, reason }, -counted))
        };
        self.change_fleet(scheduler, wanted, force, user).await
    }

    /// A combination that makes no sense by itself is refused; one that does not fit this fleet is recorded, as the
    /// operation that cannot be carried out.
    pub async fn resize(
        &self,
        scheduler: &str,
        order: &ResizeOrder,
        force: bool,
        user: &str,
    ) -> Result<OperationId> {
        let request = Request::parse(&order.draft, order.strictness).map_err(Violations)?;
        let rooms = self.counted_rooms(scheduler).await?;
        let wanted = |record: &SchedulerRecord| {
            let change = resize(&request, &cluster(record, rooms)).map_err(|invalid| invalid.to_string());
            let delta = match change {
                Ok(Resized::Create(rooms)) => {
                    self.check_added("number", rooms.max(1))?;
                    i64::try_from(rooms).unwrap_or(i64::MAX)
                }
                // However many: more than one operation may remove go in parts.
                Ok(Resized::Delete(rooms)) => -i64::try_from(rooms).unwrap_or(i64::MAX),
                Err(_) => 0,
            };
            Ok((Definition::Resize { asked: order.asked.clone(), change }, delta))
        };
        self.change_fleet(scheduler, wanted, force, user).await
    }

    /// One room more, in a region of the caller's choice if it names one.
    pub async fn create_room(
        &self,
        scheduler: &str,
        region: Option<&str>,
        force: bool,
        user: &str,
    ) -> Result<OperationId> {
        let region = region.map(|name| self.configured_region(name)).transpose()?;
        let wanted = |record: &SchedulerRecord| {
            if let (Some(asked), Some(bound)) = (&region, &record.recipe.spec.region)
                && asked != bound
            {
                let reason =
                    format!("{asked} is not where rooms of this scheduler go: its spec.region is {bound}");
                return Err(Violations(vec![Violation::new("region", reason)]).into());
            }
            Ok((Definition::CreateRoom { region: region.clone() }, 1))
        };
        self.change_fleet(scheduler, wanted, force, user).await
    }

    async fn change_fleet(
        &self,
        scheduler: &str,
        wanted: impl Fn(&SchedulerRecord) -> Result<FleetChange>,
        force: bool,
        user: &str,
    ) -> Result<OperationId> {
        for _ in 0..ATTEMPTS {
            let record = self.scheduler(scheduler).await?;
            let autoscaled = record.autoscaling().is_some();
            if autoscaled && !force {
                return Err(Error::Conflict(AUTOSCALING_IS_ON.into()));
            }
            if record.state == SchedulerState::Deleting {
                return Err(Refusal::SchedulerBeingDeleted(record.name).into());
            }
            let (definition, delta) = wanted(&record)?;
            let from = record.fleet_size;
            let to = u32::try_from((i64::from(from) + delta).max(0)).unwrap_or(u32::MAX);
            if delta > 0 {
                self.check_ports(&record.recipe, to)?;
                self.check_capacity(&record.recipe, to, Some(&record))?;
            }
            let mut operation = self.new_operation(&record.name, definition, Origin::Person(user.into()));
            let id = operation.id;
            let mut update = record.update();
            if !autoscaled {
                operation.fleet_delta = i64::from(to) - i64::from(from);
                operation.reason += &format!("; fleet size {from} → {to}");
                update.fleet_size = (to != from).then_some(to);
            }
            let changes = vec![Change::UpdateScheduler(update), Change::Enqueue(operation)];
            if self.accepted(Transaction::new("request resize", &record.name, changes)).await? {
                self.ports.wake.queue_changed(&record.name);
                return Ok(id);
            }
        }
        Err(changes_too_fast(scheduler))
    }

    /// What autoscaling made of the fleet, whatever its size is said to be.
    async fn counted_rooms(&self, scheduler: &str) -> Result<u64> {
        let record = self.scheduler(scheduler).await?;
        let counts = self.ports.table.counts(&record.name).await;
        Ok(counts.or_if_created_now(&record, FleetCounts::default())?.by_status.total().into())
    }

    fn configured_region(&self, name: &str) -> Result<Region> {
        let wrong = |reason: String| Error::from(Violations(vec![Violation::new("region", reason)]));
        let region = Region::parse(name).map_err(wrong)?;
        if self.regions.is_configured(&region) {
            return Ok(region);
        }
        let names = self.regions.names();
        let known: Vec<&str> = names.iter().map(Region::as_str).collect();
        Err(wrong(format!("{name:?} is not a configured region; there is {}", known.join(", "))))
    }

    fn check_added(&self, field: &str, amount: u64) -> Result {
        check_amount(field, amount, "operations.rooms.add.limit", self.settings.rooms_add_limit)
    }

    fn check_removed(&self, field: &str, amount: u64) -> Result {
        check_amount(field, amount, "operations.rooms.remove.limit", self.settings.rooms_remove_limit)
    }
}

/// The fleet as Senlin's parser sees it. Its bounds are autoscaling's; without that, the fleet size is what counts, with
/// all that is on its way.
fn cluster(record: &SchedulerRecord, rooms: u64) -> Cluster {
    let size = u64::from(record.fleet_size);
    match record.autoscaling() {
        None => Cluster {
            current: Some(size),
            min_size: 0,
            max_size: Max::Unlimited,
            desired_capacity: size,
            nodes_max: Max::Unlimited,
        },
        Some(autoscaling) => Cluster {
            current: Some(rooms),
            min_size: autoscaling.min.into(),
            max_size: autoscaling.max.map_or(Max::Unlimited, |max| Max::Rooms(max.into())),
            desired_capacity: size,
            nodes_max: Max::Unlimited,
        },
    }
}

fn check_amount(field: &str, amount: u64, key: &str, limit: u32) -> Result {
    if amount == 0 {
        return Err(Error::Invalid(format!("{field} must be at least 1")));
    }
    if amount > u64::from(limit) {
        return Err(Error::Invalid(format!("{field}: {amount} is above the limit of {limit} ({key})")));
    }
    Ok(())
}
