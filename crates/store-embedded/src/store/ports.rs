//! The ports, each method handed to the writer or to a reader.

use async_trait::async_trait;
use maestro_core::allocation::AllocationId;
use maestro_core::lock::Locks;
use maestro_core::operation::{Operation, OperationId, Stage, Token};
use maestro_core::room::{Region, RoomId};
use maestro_core::scheduler::{SchedulerName, Version};
use maestro_core::time::{Millis, Timestamp};
use maestro_engine::ports::Store;
use maestro_engine::ports::store::{
    AllocationPage, AllocationPageRequest, AllocationRecord, AllocationStore, EndedRoom, EventFilter,
    EventPage, EventPageRequest, EventQueue, FleetRecord, ForgetAllocations, OperationPage, OperationStore,
    OrphanedQueue, Outbox, PageRequest, QueueId, QueuedEvent, Refusal, RegionObservation, RegionRecord,
    RegionStore, Renewal, Result, RoomCount, RoomRecord, RoomRegistry, SchedulerRecord, SchedulerStore,
    StoreError, Transaction, UnreadableScheduler, UnreadableVersion, VersionRecord, Workforce,
};
use rusqlite::Connection;

use super::failure::Failure;
use super::{
    EmbeddedStore, allocation_rows, allocations, locks, operation_rows, operations, outbox, regions, rooms,
    schedulers, transaction, versions, workers,
};
use crate::failpoints::RENEW;

#[async_trait]
impl Store for EmbeddedStore {
    async fn now(&self) -> Result<Timestamp> {
        Ok(self.clock.now())
    }

    async fn fleet(&self, scheduler: &SchedulerName, ended_max: usize) -> Result<Option<FleetRecord>> {
        let (recipes, name) = (self.recipes.clone(), scheduler.clone());
        self.read("read the fleet", move |connection| {
            let Some(scheduler) = schedulers::one(connection, &recipes, &name)? else { return Ok(None) };
            Ok(Some(FleetRecord {
                scheduler,
                unfinished: operation_rows::unfinished_in_short(connection, &name)?,
                locks: locks::of(connection, &name)?,
                live: rooms::live(connection, &name)?,
                ended: rooms::ended(connection, &name, ended_max)?,
            }))
        })
        .await
    }

    async fn commit(&self, transaction: Transaction) -> Result {
        let (label, id) = (transaction.label, transaction.id);
        self.write(label, self.unless_carried_out(transaction)).await?;
        self.carried_out.lock().remember(id);
        Ok(())
    }

    async fn commit_each(&self, transactions: Vec<Transaction>) -> Result<Vec<Result<(), Refusal>>> {
        let ids: Vec<_> = transactions.iter().map(|transaction| transaction.id).collect();
        let writes = transactions.into_iter().map(|transaction| {
            let label = transaction.label;
            (label, self.unless_carried_out(transaction))
        });
        let answers = self.write_each(writes).await;
        let done = ids.into_iter().zip(&answers).filter(|(_, answer)| answer.is_ok());
        let mut carried_out = self.carried_out.lock();
        done.for_each(|(id, _)| carried_out.remember(id));
        drop(carried_out);
        let refused = |answer| match answer {
            Ok(()) => Ok(Ok(())),
            Err(StoreError::Refused(refusal)) => Ok(Err(refusal)),
            Err(error) => Err(error),
        };
        answers.into_iter().map(refused).collect()
    }
}

impl EmbeddedStore {
    fn unless_carried_out(
        &self,
        transaction: Transaction,
    ) -> impl Fn(&Connection) -> Result<(), Failure> + Send + use<> {
        let (carried_out, clock) = (self.carried_out.clone(), self.clock.clone());
        move |connection| {
            let is_done = carried_out.lock().includes(transaction.id);
            if is_done { Ok(()) } else { transaction::carry_out(connection, &transaction, clock.now()) }
        }
    }
}

#[async_trait]
impl SchedulerStore for EmbeddedStore {
    async fn scheduler(&self, name: &SchedulerName) -> Result<Option<SchedulerRecord>> {
        let (recipes, name) = (self.recipes.clone(), name.clone());
        self.read("read the scheduler", move |connection| schedulers::one(connection, &recipes, &name)).await
    }

    async fn scheduler_names(&self) -> Result<Vec<SchedulerName>> {
        self.read("read the names of schedulers", schedulers::names).await
    }

    async fn all_schedulers(&self) -> Result<(Vec<SchedulerRecord>, Vec<UnreadableScheduler>)> {
        let recipes = self.recipes.clone();
        self.read("read the schedulers", move |connection| schedulers::all(connection, &recipes)).await
    }

    async fn versions(&self, name: &SchedulerName) -> Result<(Vec<VersionRecord>, Vec<UnreadableVersion>)> {
        let (recipes, name) = (self.recipes.clone(), name.clone());
        self.read("read the versions", move |connection| versions::all(connection, &recipes, &name)).await
    }

    async fn version_numbers(&self, name: &SchedulerName) -> Result<Vec<Version>> {
        self.read_of("read the numbers of versions", name, versions::numbers).await
    }

    async fn version(&self, name: &SchedulerName, version: Version) -> Result<Option<VersionRecord>> {
        let (recipes, name) = (self.recipes.clone(), name.clone());
        self.read("read the version", move |connection| versions::one(connection, &recipes, &name, version))
            .await
    }
}

#[async_trait]
impl OperationStore for EmbeddedStore {
    async fn operation(&self, scheduler: &SchedulerName, id: OperationId) -> Result<Option<Operation>> {
        self.read_of("read the operation", scheduler, move |connection, scheduler| {
            operation_rows::one(connection, scheduler, id)
        })
        .await
    }

    async fn unfinished(&self, scheduler: &SchedulerName) -> Result<Vec<Operation>> {
        self.read_of("read the queue", scheduler, operation_rows::unfinished).await
    }

    async fn version_operations(
        &self,
        scheduler: &SchedulerName,
        operations_max: u32,
    ) -> Result<Vec<Operation>> {
        self.read_of("read the version operations", scheduler, move |connection, scheduler| {
            operation_rows::of_versions(connection, scheduler, operations_max)
        })
        .await
    }

    async fn operations(
        &self,
        scheduler: &SchedulerName,
        stage: Stage,
        page: PageRequest,
    ) -> Result<OperationPage> {
        self.read_of("read the operations", scheduler, move |connection, scheduler| {
            operation_rows::page(connection, scheduler, stage, page)
        })
        .await
    }

    async fn schedulers_in_hand(&self) -> Result<u32> {
        self.read("count schedulers in hand", operations::schedulers_in_hand).await
    }

    async fn has_operations_to_forget(
        &self,
        scheduler: &SchedulerName,
        ended_before: Timestamp,
        no_action_before: Timestamp,
    ) -> Result<bool> {
        self.read_of("look for operations to forget", scheduler, move |connection, scheduler| {
            operations::has_any_to_forget(connection, scheduler, ended_before, no_action_before)
        })
        .await
    }

    async fn own_all(
        &self,
        schedulers: &[SchedulerName],
        owner: &str,
        ttl: Millis,
    ) -> Result<Vec<(SchedulerName, Token)>> {
        let (schedulers, owner, clock) = (schedulers.to_vec(), owner.to_owned(), self.clock.clone());
        self.write("own", move |connection| {
            workers::own_all(connection, &schedulers, &owner, clock.now(), ttl)
        })
        .await
    }

    async fn renew(&self, renewal: Renewal<'_>) -> Result<Vec<(SchedulerName, Token)>> {
        let (worker, clock) = (renewal.worker.to_owned(), self.clock.clone());
        let Renewal { worker: _, ownership_ttl, operation_ttl, lock_ttl } = renewal;
        self.write(RENEW, move |connection| {
            let renewal = Renewal { worker: &worker, ownership_ttl, operation_ttl, lock_ttl };
            workers::renew(connection, renewal, clock.now())
        })
        .await
    }

    async fn workers(&self) -> Result<Workforce> {
        self.read("read the workers", workers::workforce).await
    }

    async fn retire(&self, worker: &str) -> Result {
        let worker = worker.to_owned();
        self.write("retire", move |connection| workers::retire(connection, &worker)).await
    }

    async fn disown(&self, scheduler: &SchedulerName, token: Token) -> Result {
        let scheduler = scheduler.clone();
        self.write("disown", move |connection| workers::disown(connection, &scheduler, token)).await
    }

    async fn locks(&self, scheduler: &SchedulerName) -> Result<Locks> {
        self.read_of("read the locks", scheduler, locks::of).await
    }
}

#[async_trait]
impl RoomRegistry for EmbeddedStore {
    async fn room(&self, scheduler: &SchedulerName, id: &RoomId) -> Result<Option<RoomRecord>> {
        let (scheduler, id) = (scheduler.clone(), id.clone());
        self.read("read the room", move |connection| rooms::one(connection, &scheduler, &id)).await
    }

    async fn live_rooms(&self, scheduler: &SchedulerName) -> Result<Vec<RoomRecord>> {
        self.read_of("read the rooms", scheduler, rooms::live).await
    }

    async fn leaving_rooms(
        &self,
        scheduler: &SchedulerName,
        operation: OperationId,
    ) -> Result<Vec<RoomRecord>> {
        self.read_of("read the rooms that leave", scheduler, move |connection, scheduler| {
            rooms::leaving(connection, scheduler, operation)
        })
        .await
    }

    async fn room_counts(&self, scheduler: &SchedulerName) -> Result<Vec<RoomCount>> {
        self.read_of("count the rooms", scheduler, rooms::counts).await
    }

    async fn all_live_rooms(&self) -> Result<Vec<RoomRecord>> {
        self.read("read all rooms", rooms::all_live).await
    }

    async fn rooms_made_by(
        &self,
        scheduler: &SchedulerName,
        operation: OperationId,
    ) -> Result<Vec<RoomRecord>> {
        self.read_of("read the rooms of an operation", scheduler, move |connection, scheduler| {
            rooms::made_by(connection, scheduler, operation)
        })
        .await
    }

    async fn ended_rooms(&self, scheduler: &SchedulerName, rooms_max: usize) -> Result<Vec<RoomRecord>> {
        self.read_of("read the ended rooms", scheduler, move |connection, scheduler| {
            rooms::ended(connection, scheduler, rooms_max)
        })
        .await
    }

    async fn rooms_ended_before(
        &self,
        scheduler: &SchedulerName,
        before: Timestamp,
        after: Option<&EndedRoom>,
        rooms_max: usize,
    ) -> Result<Vec<EndedRoom>> {
        let (scheduler, after) = (scheduler.clone(), after.cloned());
        self.read("read the ended rooms", move |connection| {
            rooms::ended_before(connection, &scheduler, before, after.as_ref(), rooms_max)
        })
        .await
    }

    async fn ports_in_use(&self, region: &Region) -> Result<Vec<u16>> {
        let region = region.clone();
        self.read("read the ports in use", move |connection| rooms::ports_in_use(connection, &region)).await
    }
}

#[async_trait]
impl AllocationStore for EmbeddedStore {
    async fn allocation(
        &self,
        scheduler: &SchedulerName,
        id: AllocationId,
    ) -> Result<Option<AllocationRecord>> {
        self.read_of("read the allocation", scheduler, move |connection, scheduler| {
            allocation_rows::one(connection, scheduler, id)
        })
        .await
    }

    async fn allocations_of_request(
        &self,
        scheduler: &SchedulerName,
        request: &str,
    ) -> Result<Vec<AllocationRecord>> {
        let request = request.to_owned();
        self.read_of("read the request's allocations", scheduler, move |connection, scheduler| {
            allocation_rows::of_request(connection, scheduler, &request)
        })
        .await
    }

    async fn allocations_to_forget(&self, forget: &ForgetAllocations) -> Result<u32> {
        let forget = forget.clone();
        self.read("count old allocations", move |connection| allocations::to_forget(connection, &forget))
            .await
    }

    async fn open_allocations(&self, scheduler: Option<&SchedulerName>) -> Result<Vec<AllocationRecord>> {
        let what = "read the open allocations";
        match scheduler {
            Some(scheduler) => self.read_of(what, scheduler, allocation_rows::open).await,
            None => self.read(what, allocation_rows::all_open).await,
        }
    }

    async fn allocations(
        &self,
        scheduler: &SchedulerName,
        page: AllocationPageRequest,
    ) -> Result<AllocationPage> {
        self.read_of("read the allocations", scheduler, move |connection, scheduler| {
            allocation_rows::page(connection, scheduler, &page)
        })
        .await
    }
}

#[async_trait]
impl RegionStore for EmbeddedStore {
    async fn regions(&self) -> Result<Vec<RegionRecord>> {
        self.read("read the regions", regions::all).await
    }

    async fn region_observations(&self) -> Result<Vec<RegionObservation>> {
        Ok(self.observed_regions.lock().all())
    }

    async fn observe_region(&self, observation: RegionObservation, forget_before: Timestamp) -> Result {
        self.observed_regions.lock().observe(observation, forget_before);
        Ok(())
    }

    async fn bind_region(&self, region: &Region, host: &str, now: Timestamp, ttl: Millis) -> Result<String> {
        let has_rooms = self.all_live_rooms().await?.iter().any(|room| room.region == *region);
        Ok(self.observed_regions.lock().bind(region, host, now, ttl, has_rooms))
    }
}

#[async_trait]
impl Outbox for EmbeddedStore {
    async fn event_queues(&self, scheduler: &SchedulerName) -> Result<Vec<EventQueue>> {
        self.read_of("read the queues of events", scheduler, outbox::queues).await
    }

    async fn due_events(
        &self,
        queue: QueueId,
        now: Timestamp,
        rooms_max: usize,
        events_max: usize,
    ) -> Result<Vec<QueuedEvent>> {
        self.read("read the events", move |connection| {
            outbox::due(connection, queue, now, rooms_max, events_max)
        })
        .await
    }

    async fn events(
        &self,
        scheduler: &SchedulerName,
        only: &EventFilter,
        page: EventPageRequest,
    ) -> Result<EventPage> {
        let only = only.clone();
        self.read_of("read the events", scheduler, move |connection, scheduler| {
            outbox::page(connection, scheduler, &only, page)
        })
        .await
    }

    async fn has_orphaned_queues(&self) -> Result<bool> {
        self.read("look for orphaned events", outbox::has_orphaned).await
    }

    async fn own_orphaned_queues(&self, owner: &str, ttl: Millis) -> Result<Vec<OrphanedQueue>> {
        let (owner, clock) = (owner.to_owned(), self.clock.clone());
        self.write("own orphaned events", move |connection| {
            outbox::own_orphaned(connection, &owner, clock.now(), ttl)
        })
        .await
    }
}
