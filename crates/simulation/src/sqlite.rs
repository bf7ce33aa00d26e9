//! SQLite in a world of virtual time. Its threads take real time, in which a paused clock would run on: so each call is
//! driven to its end on the spot, and nothing else happens meanwhile.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use async_trait::async_trait;
use maestro_core::lock::Locks;
use maestro_core::operation::{Operation, OperationId, Stage, Token};
use maestro_core::room::{Region, RoomId};
use maestro_core::scheduler::{SchedulerName, Version};
use maestro_core::time::{Millis, Timestamp};
use maestro_engine::ports::store::{
    EndedRoom, OperationPage, OperationStore, PageRequest, RegionRecord, RegionStore, Renewal, RoomCount,
    RoomRecord, RoomRegistry, SchedulerRecord, SchedulerStore, Store, StoreError, Transaction,
    UnreadableScheduler, UnreadableVersion, VersionRecord, Workforce,
};
use maestro_store_embedded::EmbeddedStore;
use tempfile::TempDir;

/// Where temporary files cost no disk, if there is such a place.
const MEMORY_DISK: &str = "/dev/shm";

pub(crate) struct OnTheSpot {
    store: EmbeddedStore,
    // The order matters: the store is closed before its directory goes.
    _directory: TempDir,
}

impl OnTheSpot {
    /// A new one in a directory of its own.
    pub(crate) fn open() -> Arc<Self> {
        let directory = TempDir::new_in(MEMORY_DISK).or_else(|_| TempDir::new());
        let opened = directory.map_err(|error| error.to_string()).and_then(|directory| {
            let store = EmbeddedStore::open(directory.path()).map_err(|error| error.to_string())?;
            Ok(Arc::new(Self { store, _directory: directory }))
        });
        match opened {
            Ok(store) => store,
            Err(error) => panic!("no SQLite to simulate on: {error}"),
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for the call as a thread does. Without tokio's budget, which only an await gives back.
fn wait_for<T>(call: impl Future<Output = T>) -> T {
    let mut call = pin!(tokio::task::unconstrained(call));
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match call.as_mut().poll(&mut context) {
            Poll::Ready(answer) => return answer,
            Poll::Pending => thread::park(),
        }
    }
}

#[async_trait]
impl Store for OnTheSpot {
    async fn commit(&self, transaction: Transaction) -> Result<(), StoreError> {
        wait_for(self.store.commit(transaction))
    }
}

#[async_trait]
impl SchedulerStore for OnTheSpot {
    async fn scheduler(&self, name: &SchedulerName) -> Result<Option<SchedulerRecord>, StoreError> {
        wait_for(self.store.scheduler(name))
    }

    async fn scheduler_names(&self) -> Result<Vec<SchedulerName>, StoreError> {
        wait_for(self.store.scheduler_names())
    }

    async fn schedulers(&self) -> Result<Vec<SchedulerRecord>, StoreError> {
        wait_for(self.store.schedulers())
    }

    async fn unreadable_schedulers(&self) -> Result<Vec<UnreadableScheduler>, StoreError> {
        wait_for(self.store.unreadable_schedulers())
    }

    async fn versions(&self, name: &SchedulerName) -> Result<Vec<VersionRecord>, StoreError> {
        wait_for(self.store.versions(name))
    }

    async fn unreadable_versions(&self, name: &SchedulerName) -> Result<Vec<UnreadableVersion>, StoreError> {
        wait_for(self.store.unreadable_versions(name))
    }

    async fn version_numbers(&self, name: &SchedulerName) -> Result<Vec<Version>, StoreError> {
        wait_for(self.store.version_numbers(name))
    }

    async fn version(
        &self,
        name: &SchedulerName,
        version: Version,
    ) -> Result<Option<VersionRecord>, StoreError> {
        wait_for(self.store.version(name, version))
    }
}

#[async_trait]
impl OperationStore for OnTheSpot {
    async fn operation(
        &self,
        scheduler: &SchedulerName,
        id: OperationId,
    ) -> Result<Option<Operation>, StoreError> {
        wait_for(self.store.operation(scheduler, id))
    }

    async fn unfinished(&self, scheduler: &SchedulerName) -> Result<Vec<Operation>, StoreError> {
        wait_for(self.store.unfinished(scheduler))
    }

    async fn version_operations(
        &self,
        scheduler: &SchedulerName,
        operations_max: u32,
    ) -> Result<Vec<Operation>, StoreError> {
        wait_for(self.store.version_operations(scheduler, operations_max))
    }

    async fn operations(
        &self,
        scheduler: &SchedulerName,
        stage: Stage,
        page: PageRequest,
    ) -> Result<OperationPage, StoreError> {
        wait_for(self.store.operations(scheduler, stage, page))
    }

    async fn schedulers_in_hand(&self) -> Result<u32, StoreError> {
        wait_for(self.store.schedulers_in_hand())
    }

    async fn has_operations_to_forget(
        &self,
        scheduler: &SchedulerName,
        ended_before: Timestamp,
        no_action_before: Timestamp,
    ) -> Result<bool, StoreError> {
        wait_for(self.store.has_operations_to_forget(scheduler, ended_before, no_action_before))
    }

    async fn own_all(
        &self,
        schedulers: &[SchedulerName],
        owner: &str,
        now: Timestamp,
        ttl: Millis,
    ) -> Result<Vec<(SchedulerName, Token)>, StoreError> {
        wait_for(self.store.own_all(schedulers, owner, now, ttl))
    }

    async fn renew(&self, renewal: Renewal<'_>) -> Result<Vec<(SchedulerName, Token)>, StoreError> {
        wait_for(self.store.renew(renewal))
    }

    async fn workers(&self) -> Result<Workforce, StoreError> {
        wait_for(self.store.workers())
    }

    async fn retire(&self, worker: &str) -> Result<(), StoreError> {
        wait_for(self.store.retire(worker))
    }

    async fn disown(&self, scheduler: &SchedulerName, token: Token) -> Result<(), StoreError> {
        wait_for(self.store.disown(scheduler, token))
    }

    async fn locks(&self, scheduler: &SchedulerName) -> Result<Locks, StoreError> {
        wait_for(self.store.locks(scheduler))
    }
}

#[async_trait]
impl RoomRegistry for OnTheSpot {
    async fn room(&self, scheduler: &SchedulerName, id: &RoomId) -> Result<Option<RoomRecord>, StoreError> {
        wait_for(self.store.room(scheduler, id))
    }

    async fn live_rooms(&self, scheduler: &SchedulerName) -> Result<Vec<RoomRecord>, StoreError> {
        wait_for(self.store.live_rooms(scheduler))
    }

    async fn leaving_rooms(
        &self,
        scheduler: &SchedulerName,
        operation: OperationId,
    ) -> Result<Vec<RoomRecord>, StoreError> {
        wait_for(self.store.leaving_rooms(scheduler, operation))
    }

    async fn room_counts(&self, scheduler: &SchedulerName) -> Result<Vec<RoomCount>, StoreError> {
        wait_for(self.store.room_counts(scheduler))
    }

    async fn all_live_rooms(&self) -> Result<Vec<RoomRecord>, StoreError> {
        wait_for(self.store.all_live_rooms())
    }

    async fn rooms_made_by(
        &self,
        scheduler: &SchedulerName,
        operation: OperationId,
    ) -> Result<Vec<RoomRecord>, StoreError> {
        wait_for(self.store.rooms_made_by(scheduler, operation))
    }

    async fn ended_rooms(
        &self,
        scheduler: &SchedulerName,
        rooms_max: usize,
    ) -> Result<Vec<RoomRecord>, StoreError> {
        wait_for(self.store.ended_rooms(scheduler, rooms_max))
    }

    async fn rooms_ended_before(
        &self,
        scheduler: &SchedulerName,
        before: Timestamp,
        after: Option<&EndedRoom>,
        rooms_max: usize,
    ) -> Result<Vec<EndedRoom>, StoreError> {
        wait_for(self.store.rooms_ended_before(scheduler, before, after, rooms_max))
    }

    async fn ports_in_use(&self, region: &Region) -> Result<Vec<u16>, StoreError> {
        wait_for(self.store.ports_in_use(region))
    }
}

#[async_trait]
impl RegionStore for OnTheSpot {
    async fn regions(&self) -> Result<Vec<RegionRecord>, StoreError> {
        wait_for(self.store.regions())
    }
}
