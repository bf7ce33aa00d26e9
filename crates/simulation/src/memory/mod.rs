//! The durable side, in memory: all store ports over ordered tables with an undo journal. "Durable" here means that
//! it outlives the engine: a simulated crash drops the engine and keeps this.

mod allocations;
mod locks;
mod operations;
mod outbox;
mod regions;
mod rooms;
mod schedulers;
mod state;
mod table;
mod versions;
mod workers;

use std::sync::Arc;

use async_trait::async_trait;
use maestro_core::allocation::AllocationId;
use maestro_core::lock::Locks;
use maestro_core::operation::{Operation, OperationId, Stage, Token};
use maestro_core::room::{Region, RoomId};
use maestro_core::scheduler::{SchedulerName, Version};
use maestro_core::time::{Millis, Timestamp};
use maestro_engine::ports::Clock;
use maestro_engine::ports::store::{
    AllocationPage, AllocationPageRequest, AllocationRecord, AllocationStore, EndedRoom, EventFilter,
    EventPage, EventPageRequest, EventQueue, FleetRecord, ForgetAllocations, ObservedRegions, OperationPage,
    OperationStore, OrphanedQueue, Outbox, PageRequest, QueueId, QueuedEvent, Refusal, RegionObservation,
    RegionRecord, RegionStore, Renewal, RoomCount, RoomRecord, RoomRegistry, SchedulerRecord, SchedulerStore,
    Store, StoreError, Transaction, UnreadableScheduler, UnreadableVersion, VersionRecord, Workforce,
};
use parking_lot::Mutex;
use tokio::sync::watch;

use state::State;

/// Every call is one critical section, never held across an await.
pub struct MemoryStore {
    state: Mutex<State>,
    clock: Arc<dyn Clock>,
    observed_regions: Mutex<ObservedRegions>,
    /// Transactions with this label wait until another one, or none, stands here.
    held_back: watch::Sender<Option<&'static str>>,
}

impl MemoryStore {
    /// `clock` is the store's own, whatever those of its engines show.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            state: Mutex::default(),
            clock,
            observed_regions: Mutex::default(),
            held_back: watch::Sender::default(),
        }
    }

    pub fn on_clock(clock: Arc<dyn Clock>) -> Arc<dyn Store> {
        Arc::new(Self::new(clock))
    }

    /// From now on, transactions with this label are on their way, and nothing of them is done; `None` lets them go on.
    pub fn hold_back(&self, label: Option<&'static str>) {
        self.held_back.send_replace(label);
    }

    async fn until_let_go(&self, transaction: &Transaction) {
        let label = Some(transaction.label);
        // Not without need: even a wait that is over at once may let other tasks run first.
        if *self.held_back.borrow() == label {
            // The sender is there as long as the store.
            let _ = self.held_back.subscribe().wait_for(|held_back| *held_back != label).await;
        }
    }

    /// A write outside of a transaction, which cannot be refused half way.
    fn write<T>(&self, write: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock();
        let result = write(&mut state);
        state.keep();
        result
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn now(&self) -> Result<Timestamp, StoreError> {
        Ok(self.clock.now())
    }

    async fn fleet(
        &self,
        scheduler: &SchedulerName,
        ended_max: usize,
    ) -> Result<Option<FleetRecord>, StoreError> {
        let state = self.state.lock();
        let in_short = |operation| Operation { history: Vec::new(), ..operation };
        Ok(state.scheduler(scheduler).map(|record| FleetRecord {
            scheduler: record,
            unfinished: state.unfinished(scheduler).into_iter().map(in_short).collect(),
            locks: state.locks(scheduler),
            live: state.live_rooms(scheduler),
            ended: state.ended_rooms(scheduler, ended_max),
        }))
    }

    async fn commit(&self, transaction: Transaction) -> Result<(), StoreError> {
        self.until_let_go(&transaction).await;
        Ok(self.state.lock().commit(transaction, self.clock.now())?)
    }

    async fn commit_each(
        &self,
        transactions: Vec<Transaction>,
    ) -> Result<Vec<Result<(), Refusal>>, StoreError> {
        for transaction in &transactions {
            self.until_let_go(transaction).await;
        }
        let (mut state, now) = (self.state.lock(), self.clock.now());
        Ok(transactions.into_iter().map(|transaction| state.commit(transaction, now)).collect())
    }
}

#[async_trait]
impl SchedulerStore for MemoryStore {
    async fn scheduler(&self, name: &SchedulerName) -> Result<Option<SchedulerRecord>, StoreError> {
        Ok(self.state.lock().scheduler(name))
    }

    async fn scheduler_names(&self) -> Result<Vec<SchedulerName>, StoreError> {
        Ok(self.state.lock().schedulers().into_iter().map(|record| record.name).collect())
    }

    /// All can be read: nothing is stored in a form that has to be.
    async fn all_schedulers(&self) -> Result<(Vec<SchedulerRecord>, Vec<UnreadableScheduler>), StoreError> {
        Ok((self.state.lock().schedulers(), Vec::new()))
    }

    async fn versions(
        &self,
        name: &SchedulerName,
    ) -> Result<(Vec<VersionRecord>, Vec<UnreadableVersion>), StoreError> {
        Ok((self.state.lock().versions(name), Vec::new()))
    }

    async fn version_numbers(&self, name: &SchedulerName) -> Result<Vec<Version>, StoreError> {
        Ok(self.state.lock().version_numbers(name))
    }

    async fn version(
        &self,
        name: &SchedulerName,
        version: Version,
    ) -> Result<Option<VersionRecord>, StoreError> {
        Ok(self.state.lock().versions.get(&(name.clone(), version)).cloned())
    }
}

#[async_trait]
impl OperationStore for MemoryStore {
    async fn operation(
        &self,
        scheduler: &SchedulerName,
        id: OperationId,
    ) -> Result<Option<Operation>, StoreError> {
        Ok(self.state.lock().operation(scheduler, id))
    }

    async fn unfinished(&self, scheduler: &SchedulerName) -> Result<Vec<Operation>, StoreError> {
        Ok(self.state.lock().unfinished(scheduler))
    }

    async fn version_operations(
        &self,
        scheduler: &SchedulerName,
        operations_max: u32,
    ) -> Result<Vec<Operation>, StoreError> {
        Ok(self.state.lock().version_operations(scheduler, operations_max))
    }

    async fn operations(
        &self,
        scheduler: &SchedulerName,
        stage: Stage,
        page: PageRequest,
    ) -> Result<OperationPage, StoreError> {
        Ok(self.state.lock().page(scheduler, stage, page))
    }

    async fn schedulers_in_hand(&self) -> Result<u32, StoreError> {
        Ok(self.state.lock().schedulers_in_hand())
    }

    async fn has_operations_to_forget(
        &self,
        scheduler: &SchedulerName,
        ended_before: Timestamp,
        no_action_before: Timestamp,
    ) -> Result<bool, StoreError> {
        Ok(self.state.lock().has_operations_to_forget(scheduler, ended_before, no_action_before))
    }

    async fn own_all(
        &self,
        schedulers: &[SchedulerName],
        owner: &str,
        ttl: Millis,
    ) -> Result<Vec<(SchedulerName, Token)>, StoreError> {
        Ok(self.write(|state| {
            let now = self.clock.now();
            let own = |scheduler: &SchedulerName| {
                let token = state.own(scheduler, owner, now, ttl)?;
                Some((scheduler.clone(), token))
            };
            schedulers.iter().filter_map(own).collect()
        }))
    }

    async fn renew(&self, renewal: Renewal<'_>) -> Result<Vec<(SchedulerName, Token)>, StoreError> {
        Ok(self.write(|state| state.renew(renewal, self.clock.now())))
    }

    async fn workers(&self) -> Result<Workforce, StoreError> {
        Ok(self.state.lock().workforce())
    }

    async fn retire(&self, worker: &str) -> Result<(), StoreError> {
        self.write(|state| state.retire(worker));
        Ok(())
    }

    async fn disown(&self, scheduler: &SchedulerName, token: Token) -> Result<(), StoreError> {
        self.write(|state| state.disown(scheduler, token));
        Ok(())
    }

    async fn locks(&self, scheduler: &SchedulerName) -> Result<Locks, StoreError> {
        Ok(self.state.lock().locks(scheduler))
    }
}

#[async_trait]
impl RoomRegistry for MemoryStore {
    async fn room(&self, scheduler: &SchedulerName, id: &RoomId) -> Result<Option<RoomRecord>, StoreError> {
        Ok(self.state.lock().room(scheduler, id))
    }

    async fn live_rooms(&self, scheduler: &SchedulerName) -> Result<Vec<RoomRecord>, StoreError> {
        Ok(self.state.lock().live_rooms(scheduler))
    }

    async fn leaving_rooms(
        &self,
        scheduler: &SchedulerName,
        operation: OperationId,
    ) -> Result<Vec<RoomRecord>, StoreError> {
        Ok(self.state.lock().leaving_rooms(scheduler, operation))
    }

    async fn room_counts(&self, scheduler: &SchedulerName) -> Result<Vec<RoomCount>, StoreError> {
        Ok(self.state.lock().room_counts(scheduler))
    }

    async fn all_live_rooms(&self) -> Result<Vec<RoomRecord>, StoreError> {
        Ok(self.state.lock().all_live_rooms())
    }

    async fn rooms_made_by(
        &self,
        scheduler: &SchedulerName,
        operation: OperationId,
    ) -> Result<Vec<RoomRecord>, StoreError> {
        Ok(self.state.lock().rooms_made_by(scheduler, operation))
    }

    async fn ended_rooms(
        &self,
        scheduler: &SchedulerName,
        rooms_max: usize,
    ) -> Result<Vec<RoomRecord>, StoreError> {
        Ok(self.state.lock().ended_rooms(scheduler, rooms_max))
    }

    async fn rooms_ended_before(
        &self,
        scheduler: &SchedulerName,
        before: Timestamp,
        after: Option<&EndedRoom>,
        rooms_max: usize,
    ) -> Result<Vec<EndedRoom>, StoreError> {
        Ok(self.state.lock().rooms_ended_before(scheduler, before, after, rooms_max))
    }

    async fn ports_in_use(&self, region: &Region) -> Result<Vec<u16>, StoreError> {
        Ok(self.state.lock().ports_in_use(region))
    }
}

#[async_trait]
impl AllocationStore for MemoryStore {
    async fn allocation(
        &self,
        scheduler: &SchedulerName,
        id: AllocationId,
    ) -> Result<Option<AllocationRecord>, StoreError> {
        Ok(self.state.lock().allocation(scheduler, id))
    }

    async fn allocations_of_request(
        &self,
        scheduler: &SchedulerName,
        request: &str,
    ) -> Result<Vec<AllocationRecord>, StoreError> {
        Ok(self.state.lock().allocations_of_request(scheduler, request))
    }

    async fn allocations_to_forget(&self, forget: &ForgetAllocations) -> Result<u32, StoreError> {
        let found = self.state.lock().allocations_to_forget(forget).len();
        Ok(u32::try_from(found).unwrap_or(u32::MAX))
    }

    async fn open_allocations(
        &self,
        scheduler: Option<&SchedulerName>,
    ) -> Result<Vec<AllocationRecord>, StoreError> {
        Ok(self.state.lock().open_allocations(scheduler))
    }

    async fn allocations(
        &self,
        scheduler: &SchedulerName,
        page: AllocationPageRequest,
    ) -> Result<AllocationPage, StoreError> {
        Ok(self.state.lock().allocation_page(scheduler, &page))
    }
}

#[async_trait]
impl RegionStore for MemoryStore {
    async fn regions(&self) -> Result<Vec<RegionRecord>, StoreError> {
        Ok(self.state.lock().regions())
    }

    async fn region_observations(&self) -> Result<Vec<RegionObservation>, StoreError> {
        Ok(self.observed_regions.lock().all())
    }

    async fn observe_region(
        &self,
        observation: RegionObservation,
        forget_before: Timestamp,
    ) -> Result<(), StoreError> {
        self.observed_regions.lock().observe(observation, forget_before);
        Ok(())
    }

    async fn bind_region(
        &self,
        region: &Region,
        host: &str,
        now: Timestamp,
        ttl: Millis,
    ) -> Result<String, StoreError> {
        let has_rooms = self.all_live_rooms().await?.iter().any(|room| room.region == *region);
        Ok(self.observed_regions.lock().bind(region, host, now, ttl, has_rooms))
    }
}

#[async_trait]
impl Outbox for MemoryStore {
    async fn event_queues(&self, scheduler: &SchedulerName) -> Result<Vec<EventQueue>, StoreError> {
        Ok(self.state.lock().event_queues(scheduler))
    }

    async fn due_events(
        &self,
        queue: QueueId,
        now: Timestamp,
        rooms_max: usize,
        events_max: usize,
    ) -> Result<Vec<QueuedEvent>, StoreError> {
        Ok(self.state.lock().due_events(queue, now, rooms_max, events_max))
    }

    async fn events(
        &self,
        scheduler: &SchedulerName,
        only: &EventFilter,
        page: EventPageRequest,
    ) -> Result<EventPage, StoreError> {
        Ok(self.state.lock().events(scheduler, only, page))
    }

    async fn has_orphaned_queues(&self) -> Result<bool, StoreError> {
        Ok(self.state.lock().has_orphaned_queues())
    }

    async fn own_orphaned_queues(&self, owner: &str, ttl: Millis) -> Result<Vec<OrphanedQueue>, StoreError> {
        Ok(self.write(|state| state.own_orphaned_queues(owner, self.clock.now(), ttl)))
    }
}
