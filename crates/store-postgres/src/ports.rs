//! The ports, each method handed to a session that reads or to a write.

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

use crate::failure::Failure;
use crate::outbox_rows::OwnOrphaned;
use crate::regions::{Bind, Observe};
use crate::store::PostgresStore;
use crate::transaction::Commit;
use crate::workers::{GiveUp, Own, Renew};
use crate::{
    allocation_rows, allocations, fleet, locks, operation_rows, operations, outbox_rows, regions, room_rows,
    schedulers, time, versions, workers,
};

/// `|session| question`: asked on a connection of the pool. The words complete "the store could not …".
macro_rules! read {
    ($store:expr, $what:literal, |$session:ident| $question:expr) => {{
        let what = $what;
        let $session = $store.server.reader(what).await?;
        let $session = &$session;
        $question.await.map_err(|failure: Failure| failure.into_store_error(what))
    }};
}

/// The same where several questions are to be answered as of the same moment.
macro_rules! read_snapshot {
    ($store:expr, $what:literal, |$session:ident| $question:expr) => {{
        let what = $what;
        let answer = async {
            let $session = $store.server.snapshot().await?;
            let $session = &$session;
            let answer = $question.await?;
            $session.roll_back().await;
            Ok(answer)
        };
        answer.await.map_err(|failure: Failure| failure.into_store_error(what))
    }};
}

#[async_trait]
impl Store for PostgresStore {
    async fn now(&self) -> Result<Timestamp> {
        read!(self, "tell the time", |session| async { time::read(&session.ask_one(&time::now()).await?) })
    }

    async fn fleet(&self, scheduler: &SchedulerName, ended_max: usize) -> Result<Option<FleetRecord>> {
        read!(self, "read the fleet", |session| fleet::read(
            session,
            &self.server.recipes,
            scheduler,
            ended_max
        ))
    }

    async fn commit(&self, transaction: Transaction) -> Result {
        self.server.write(Commit(vec![transaction])).await.map(drop)
    }

    async fn commit_each(&self, transactions: Vec<Transaction>) -> Result<Vec<Result<(), Refusal>>> {
        match &transactions[..] {
            [] => Ok(Vec::new()),
            [_] => match self.server.write(Commit(transactions)).await {
                Err(StoreError::Refused(refusal)) => Ok(vec![Err(refusal)]),
                answer => answer,
            },
            _ => self.server.write(Commit(transactions)).await,
        }
    }
}

#[async_trait]
impl SchedulerStore for PostgresStore {
    async fn scheduler(&self, name: &SchedulerName) -> Result<Option<SchedulerRecord>> {
        read!(self, "read the scheduler", |session| async {
            let found = session.ask_one(&schedulers::one(name)).await?;
            schedulers::read_one(&self.server.recipes, &found.rows)
        })
    }

    async fn scheduler_names(&self) -> Result<Vec<SchedulerName>> {
        read!(self, "read the names of schedulers", |session| schedulers::names(session))
    }

    async fn all_schedulers(&self) -> Result<(Vec<SchedulerRecord>, Vec<UnreadableScheduler>)> {
        read!(self, "read the schedulers", |session| schedulers::all(session, &self.server.recipes))
    }

    async fn versions(&self, name: &SchedulerName) -> Result<(Vec<VersionRecord>, Vec<UnreadableVersion>)> {
        read!(self, "read the versions", |session| versions::all(session, &self.server.recipes, name))
    }

    async fn version_numbers(&self, name: &SchedulerName) -> Result<Vec<Version>> {
        read!(self, "read the numbers of versions", |session| versions::numbers(session, name))
    }

    async fn version(&self, name: &SchedulerName, version: Version) -> Result<Option<VersionRecord>> {
        read!(self, "read the version", |session| versions::one(session, &self.server.recipes, name, version))
    }
}

#[async_trait]
impl OperationStore for PostgresStore {
    async fn operation(&self, scheduler: &SchedulerName, id: OperationId) -> Result<Option<Operation>> {
        read!(self, "read the operation", |session| operation_rows::one(session, scheduler, id))
    }

    async fn unfinished(&self, scheduler: &SchedulerName) -> Result<Vec<Operation>> {
        read!(self, "read the queue", |session| async {
            let found = session.ask_one(&operation_rows::unfinished(scheduler)).await?;
            operation_rows::read_queue(&found.rows)
        })
    }

    async fn version_operations(
        &self,
        scheduler: &SchedulerName,
        operations_max: u32,
    ) -> Result<Vec<Operation>> {
        read!(self, "read the version operations", |session| operation_rows::of_versions(
            session,
            scheduler,
            operations_max
        ))
    }

    async fn operations(
        &self,
        scheduler: &SchedulerName,
        stage: Stage,
        page: PageRequest,
    ) -> Result<OperationPage> {
        read_snapshot!(self, "read the operations", |session| operation_rows::page(
            session, scheduler, stage, page
        ))
    }

    async fn schedulers_in_hand(&self) -> Result<u32> {
        read!(self, "count schedulers in hand", |session| operations::schedulers_in_hand(session))
    }

    async fn has_operations_to_forget(
        &self,
        scheduler: &SchedulerName,
        ended_before: Timestamp,
        no_action_before: Timestamp,
    ) -> Result<bool> {
        read!(self, "look for operations to forget", |session| operations::has_any_to_forget(
            session,
            scheduler,
            ended_before,
            no_action_before
        ))
    }

    async fn own_all(
        &self,
        schedulers: &[SchedulerName],
        owner: &str,
        ttl: Millis,
    ) -> Result<Vec<(SchedulerName, Token)>> {
        let own = Own { schedulers: schedulers.to_vec(), owner: owner.to_owned(), ttl };
        self.server.write(own).await
    }

    async fn renew(&self, renewal: Renewal<'_>) -> Result<Vec<(SchedulerName, Token)>> {
        let owned = self.server.write(Renew::from(renewal)).await?;
        self.server.forget_now_and_then();
        Ok(owned)
    }

    async fn workers(&self) -> Result<Workforce> {
        read_snapshot!(self, "read the workers", |session| workers::workforce(session))
    }

    async fn retire(&self, worker: &str) -> Result {
        self.server.write(GiveUp::All(worker.to_owned())).await
    }

    async fn disown(&self, scheduler: &SchedulerName, token: Token) -> Result {
        self.server.write(GiveUp::Scheduler(scheduler.clone(), token)).await
    }

    async fn locks(&self, scheduler: &SchedulerName) -> Result<Locks> {
        read_snapshot!(self, "read the locks", |session| locks::all(session, scheduler))
    }
}

#[async_trait]
impl RoomRegistry for PostgresStore {
    async fn room(&self, scheduler: &SchedulerName, id: &RoomId) -> Result<Option<RoomRecord>> {
        read!(self, "read the room", |session| room_rows::one(session, scheduler, id))
    }

    async fn live_rooms(&self, scheduler: &SchedulerName) -> Result<Vec<RoomRecord>> {
        read!(self, "read the rooms", |session| room_rows::several(session, room_rows::live(scheduler)))
    }

    async fn leaving_rooms(
        &self,
        scheduler: &SchedulerName,
        operation: OperationId,
    ) -> Result<Vec<RoomRecord>> {
        let leaving = room_rows::leaving(scheduler, operation);
        read!(self, "read the rooms that leave", |session| room_rows::several(session, leaving))
    }

    async fn room_counts(&self, scheduler: &SchedulerName) -> Result<Vec<RoomCount>> {
        read!(self, "count the rooms", |session| room_rows::counts(session, scheduler))
    }

    async fn all_live_rooms(&self) -> Result<Vec<RoomRecord>> {
        read!(self, "read all rooms", |session| room_rows::all_live(session))
    }

    async fn rooms_made_by(
        &self,
        scheduler: &SchedulerName,
        operation: OperationId,
    ) -> Result<Vec<RoomRecord>> {
        let made = room_rows::made_by(scheduler, operation);
        read!(self, "read the rooms of an operation", |session| room_rows::several(session, made))
    }

    async fn ended_rooms(&self, scheduler: &SchedulerName, rooms_max: usize) -> Result<Vec<RoomRecord>> {
        let ended = room_rows::ended(scheduler, rooms_max);
        read!(self, "read the ended rooms", |session| room_rows::several(session, ended))
    }

    async fn rooms_ended_before(
        &self,
        scheduler: &SchedulerName,
        before: Timestamp,
        after: Option<&EndedRoom>,
        rooms_max: usize,
    ) -> Result<Vec<EndedRoom>> {
        read!(self, "read the ended rooms", |session| room_rows::ended_before(
            session, scheduler, before, after, rooms_max
        ))
    }

    async fn ports_in_use(&self, region: &Region) -> Result<Vec<u16>> {
        read!(self, "read the ports in use", |session| room_rows::ports_in_use(session, region))
    }
}

#[async_trait]
impl AllocationStore for PostgresStore {
    async fn allocation(
        &self,
        scheduler: &SchedulerName,
        id: AllocationId,
    ) -> Result<Option<AllocationRecord>> {
        read!(self, "read the allocation", |session| allocation_rows::one(session, scheduler, id))
    }

    async fn allocations_of_request(
        &self,
        scheduler: &SchedulerName,
        request: &str,
    ) -> Result<Vec<AllocationRecord>> {
        read!(self, "read the request's allocations", |session| allocation_rows::of_request(
            session, scheduler, request
        ))
    }

    async fn allocations_to_forget(&self, forget: &ForgetAllocations) -> Result<u32> {
        read_snapshot!(self, "count old allocations", |session| allocations::to_forget(session, forget))
    }

    async fn open_allocations(&self, scheduler: Option<&SchedulerName>) -> Result<Vec<AllocationRecord>> {
        read!(self, "read the open allocations", |session| async {
            match scheduler {
                Some(scheduler) => allocation_rows::open(session, scheduler).await,
                None => allocation_rows::all_open(session).await,
            }
        })
    }

    async fn allocations(
        &self,
        scheduler: &SchedulerName,
        page: AllocationPageRequest,
    ) -> Result<AllocationPage> {
        read_snapshot!(self, "read the allocations", |session| allocation_rows::page(
            session, scheduler, &page
        ))
    }
}

#[async_trait]
impl RegionStore for PostgresStore {
    async fn regions(&self) -> Result<Vec<RegionRecord>> {
        read!(self, "read the regions", |session| regions::all(session))
    }

    async fn region_observations(&self) -> Result<Vec<RegionObservation>> {
        read!(self, "read what was seen of regions", |session| regions::observations(session))
    }

    async fn observe_region(&self, observation: RegionObservation, forget_before: Timestamp) -> Result {
        self.server.write(Observe { observation, forget_before }).await
    }

    async fn bind_region(&self, region: &Region, host: &str, now: Timestamp, ttl: Millis) -> Result<String> {
        let (region, host) = (region.clone(), host.to_owned());
        self.server.write(Bind { region, host, now, ttl }).await
    }
}

#[async_trait]
impl Outbox for PostgresStore {
    async fn event_queues(&self, scheduler: &SchedulerName) -> Result<Vec<EventQueue>> {
        read!(self, "read the queues of events", |session| outbox_rows::queues(session, scheduler))
    }

    async fn due_events(
        &self,
        queue: QueueId,
        now: Timestamp,
        rooms_max: usize,
        events_max: usize,
    ) -> Result<Vec<QueuedEvent>> {
        read!(self, "read the events", |session| outbox_rows::due(session, queue, now, rooms_max, events_max))
    }

    async fn events(
        &self,
        scheduler: &SchedulerName,
        only: &EventFilter,
        page: EventPageRequest,
    ) -> Result<EventPage> {
        read_snapshot!(self, "read the events", |session| outbox_rows::page(session, scheduler, only, page))
    }

    async fn has_orphaned_queues(&self) -> Result<bool> {
        read!(self, "look for orphaned events", |session| outbox_rows::has_orphaned(session))
    }

    async fn own_orphaned_queues(&self, owner: &str, ttl: Millis) -> Result<Vec<OrphanedQueue>> {
        self.server.write(OwnOrphaned { owner: owner.to_owned(), ttl }).await
    }
}
