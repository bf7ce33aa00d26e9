//! A store as one engine reaches it: writes take time, are traced, and can be the last thing that the engine does.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use maestro_core::lock::Locks;
use maestro_core::operation::{Operation, OperationId, Stage, Token};
use maestro_core::room::{Region, RoomId};
use maestro_core::scheduler::{SchedulerName, Version};
use maestro_core::time::{Millis, Timestamp};
use maestro_engine::ports::store::{
    OperationPage, OperationStore, PageRequest, RegionRecord, RegionStore, Renewal, RoomRecord, RoomRegistry,
    SchedulerRecord, SchedulerStore, Store, StoreError, Transaction, VersionRecord, Workforce,
};
use tokio::time::{Instant, sleep};

use crate::host::Span;
use crate::life::Life;
use crate::trace::Trace;

/// How long a write takes, and as long again until its answer is there.
const LATENCY: Span = Span::millis(0, 4);

/// More reads than this in one instant of virtual time are a loop that does not wait.
const READS_AT_ONCE_MAX: u32 = 100_000;

/// Where an engine dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashPoint {
    /// The write, counted from 1, is not done.
    Before(u64),
    /// The write is done, and the engine does not hear of it.
    After(u64),
}

/// Wraps any store: reads go through, writes are counted.
pub struct SimulatedStore {
    inner: Arc<dyn Store>,
    life: Life,
    trace: Trace,
    crash: Option<CrashPoint>,
    counts: Mutex<Counts>,
}

struct Counts {
    writes: u64,
    random: fastrand::Rng,
    /// Reads since time last passed.
    reads: u32,
    last_read_at: Instant,
}

impl SimulatedStore {
    pub fn new(
        inner: Arc<dyn Store>,
        life: Life,
        trace: Trace,
        crash: Option<CrashPoint>,
        seed: u64,
    ) -> Self {
        let random = fastrand::Rng::with_seed(seed);
        Self {
            inner,
            life,
            trace,
            crash,
            counts: Mutex::new(Counts { writes: 0, random, reads: 0, last_read_at: Instant::now() }),
        }
    }

    async fn write<T>(
        &self,
        what: &str,
        write: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.life.still_alive().await;
        let (number, there, back) = {
            let mut counts = self.counts();
            counts.writes += 1;
            let mut latency = || LATENCY.draw(&mut counts.random);
            let (there, back) = (latency(), latency());
            (counts.writes, there, back)
        };
        sleep(there).await;
        self.die_at(CrashPoint::Before(number), what).await;
        let outcome = write.await;
        if let Err(error) = &outcome {
            self.trace.note(format_args!("store: {what} refused: {error}"));
        }
        self.die_at(CrashPoint::After(number), what).await;
        sleep(back).await;
        self.life.still_alive().await;
        outcome
    }

    async fn die_at(&self, point: CrashPoint, what: &str) {
        if self.crash == Some(point) {
            self.trace.note(format_args!("crash: {point:?} ({what})"));
            self.life.end();
        }
        self.life.still_alive().await;
    }

    async fn read(&self) -> &dyn Store {
        self.life.still_alive().await;
        self.notice_spinning();
        &*self.inner
    }

    /// A loop that reads and reads and never waits would stop virtual time for ever. Its task ends here, and the world
    /// sees that it did.
    fn notice_spinning(&self) {
        let now = Instant::now();
        let mut counts = self.counts();
        if counts.last_read_at != now {
            counts.last_read_at = now;
            counts.reads = 0;
        }
        counts.reads += 1;
        if counts.reads > READS_AT_ONCE_MAX {
            self.trace.note("a task reads the store in a loop, and time does not pass");
            panic!("a task reads the store in a loop, and time does not pass");
        }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Store for SimulatedStore {
    async fn commit(&self, transaction: Transaction) -> Result<(), StoreError> {
        let label = transaction.label;
        let changes = transaction.changes.len();
        let write = async {
            let outcome = self.inner.commit(transaction).await;
            if outcome.is_ok() {
                self.trace.note(format_args!("store: {label} ({changes} changes)"));
            }
            outcome
        };
        self.write(label, write).await
    }
}

#[async_trait]
impl SchedulerStore for SimulatedStore {
    async fn scheduler(&self, name: &SchedulerName) -> Result<Option<SchedulerRecord>, StoreError> {
        self.read().await.scheduler(name).await
    }

    async fn schedulers(&self) -> Result<Vec<SchedulerRecord>, StoreError> {
        self.read().await.schedulers().await
    }

    async fn versions(&self, name: &SchedulerName) -> Result<Vec<VersionRecord>, StoreError> {
        self.read().await.versions(name).await
    }

    async fn version(
        &self,
        name: &SchedulerName,
        version: Version,
    ) -> Result<Option<VersionRecord>, StoreError> {
        self.read().await.version(name, version).await
    }
}

#[async_trait]
impl OperationStore for SimulatedStore {
    async fn operation(
        &self,
        scheduler: &SchedulerName,
        id: OperationId,
    ) -> Result<Option<Operation>, StoreError> {
        self.read().await.operation(scheduler, id).await
    }

    async fn unfinished(&self, scheduler: &SchedulerName) -> Result<Vec<Operation>, StoreError> {
        self.read().await.unfinished(scheduler).await
    }

    async fn operations(
        &self,
        scheduler: &SchedulerName,
        stage: Stage,
        page: PageRequest,
    ) -> Result<OperationPage, StoreError> {
        self.read().await.operations(scheduler, stage, page).await
    }

    async fn own(
        &self,
        scheduler: &SchedulerName,
        owner: &str,
        now: Timestamp,
        ttl: Millis,
    ) -> Result<Option<Token>, StoreError> {
        self.write("own", self.inner.own(scheduler, owner, now, ttl)).await
    }

    async fn renew(&self, renewal: Renewal<'_>) -> Result<Vec<(SchedulerName, Token)>, StoreError> {
        self.write("renew", self.inner.renew(renewal)).await
    }

    async fn workers(&self) -> Result<Workforce, StoreError> {
        self.read().await.workers().await
    }

    async fn retire(&self, worker: &str) -> Result<(), StoreError> {
        self.write("retire", self.inner.retire(worker)).await
    }

    async fn disown(&self, scheduler: &SchedulerName, token: Token) -> Result<(), StoreError> {
        self.write("disown", self.inner.disown(scheduler, token)).await
    }

    async fn locks(&self, scheduler: &SchedulerName) -> Result<Locks, StoreError> {
        self.read().await.locks(scheduler).await
    }
}

#[async_trait]
impl RoomRegistry for SimulatedStore {
    async fn room(&self, scheduler: &SchedulerName, id: &RoomId) -> Result<Option<RoomRecord>, StoreError> {
        self.read().await.room(scheduler, id).await
    }

    async fn live_rooms(&self, scheduler: &SchedulerName) -> Result<Vec<RoomRecord>, StoreError> {
        self.read().await.live_rooms(scheduler).await
    }

    async fn all_live_rooms(&self) -> Result<Vec<RoomRecord>, StoreError> {
        self.read().await.all_live_rooms().await
    }

    async fn rooms_made_by(
        &self,
        scheduler: &SchedulerName,
        operation: OperationId,
    ) -> Result<Vec<RoomRecord>, StoreError> {
        self.read().await.rooms_made_by(scheduler, operation).await
    }

    async fn ended_rooms(
        &self,
        scheduler: &SchedulerName,
        rooms_max: usize,
    ) -> Result<Vec<RoomRecord>, StoreError> {
        self.read().await.ended_rooms(scheduler, rooms_max).await
    }

    async fn rooms_ended_before(
        &self,
        scheduler: &SchedulerName,
        before: Timestamp,
        rooms_max: usize,
    ) -> Result<Vec<RoomId>, StoreError> {
        let store = self.read().await;
        store.rooms_ended_before(scheduler, before, rooms_max).await
    }

    async fn ports_in_use(&self, region: &Region) -> Result<Vec<u16>, StoreError> {
        self.read().await.ports_in_use(region).await
    }
}

#[async_trait]
impl RegionStore for SimulatedStore {
    async fn regions(&self) -> Result<Vec<RegionRecord>, StoreError> {
        self.read().await.regions().await
    }
}
