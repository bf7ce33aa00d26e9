//! A store as one engine reaches it: calls take time, fail, are traced, and can be the last thing that the engine
//! does.

mod registry;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use maestro_core::allocation::AllocationState;
use maestro_core::lock::{LockKind, Locks};
use maestro_core::operation::{Operation, OperationId, OperationStatus, Stage, Token};
use maestro_core::scheduler::{SchedulerName, Version};
use maestro_core::time::{Millis, Timestamp};
use maestro_engine::ports::store::{
    CarriedOut, Change, EventFilter, EventPage, EventPageRequest, EventQueue, FleetRecord, OperationPage,
    OperationStore, OrphanedQueue, Outbox, OwnershipRecord, PageRequest, QueueId, QueuedEvent, Refusal,
    Renewal, SchedulerRecord, SchedulerStore, Store, StoreError, Transaction, UnreadableScheduler,
    UnreadableVersion, VersionRecord, Workforce,
};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::broken;
use crate::coverage::RareEvent;
use crate::faults::{Call, FaultInjector, Loss, Surroundings, What};
use crate::host::Span;
use crate::invariants::Inspector;
use crate::life::Life;
use crate::story::scheduler_of;
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

/// Wraps any store whose calls end on the spot.
pub struct SimulatedStore {
    inner: Arc<dyn Store>,
    injector: FaultInjector,
    crash: Option<CrashPoint>,
    counts: Mutex<Counts>,
    /// What is done and was looked at.
    told: Mutex<CarriedOut>,
}

struct Counts {
    writes: u64,
    /// Reads since time last passed.
    reads: u32,
    last_read_at: Instant,
}

impl SimulatedStore {
    /// As a node reaches it with which nothing goes wrong.
    pub fn watched(inner: Arc<dyn Store>, node: &str, inspector: Inspector, trace: Trace, seed: u64) -> Self {
        let quiet = Surroundings::quiet(Life::new(), trace);
        Self::new(inner, Surroundings { node: node.into(), inspector, seed, ..quiet }, None)
    }

    pub(crate) fn new(inner: Arc<dyn Store>, around: Surroundings, crash: Option<CrashPoint>) -> Self {
        Self {
            inner,
            injector: FaultInjector::new(around, "store", |faults| faults.store),
            crash,
            counts: Mutex::new(Counts { writes: 0, reads: 0, last_read_at: Instant::now() }),
            told: Mutex::default(),
        }
    }

    async fn write<T>(
        &self,
        what: &What<'_>,
        write: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.write_after(LATENCY, what, write).await
    }

    async fn write_after<T>(
        &self,
        latency: Span,
        what: &What<'_>,
        write: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let act = async {
            let number = {
                let mut counts = self.counts.lock();
                counts.writes += 1;
                counts.writes
            };
            self.die_at(CrashPoint::Before(number), what).await;
            let outcome = write.await;
            if let Err(error) = &outcome {
                self.injector.note(format_args!("refused: {what}: {error}"));
            }
            self.die_at(CrashPoint::After(number), what).await;
            outcome
        };
        self.injector.call(Call::write(what, latency), act, lost).await
    }

    async fn die_at(&self, point: CrashPoint, what: &What<'_>) {
        let around = self.injector.around();
        if self.crash == Some(point) {
            around.trace.note(format_args!("crash: {point:?} ({what})"));
            around.life.end();
        }
        around.life.still_alive().await;
    }

    async fn read<T>(
        &self,
        what: &What<'_>,
        read: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let act = async {
            self.notice_spinning();
            read.await
        };
        self.injector.call(Call::read(what), act, lost).await
    }

    /// A loop that reads and reads and never waits would stop virtual time forever. Its task ends here, and the world
    /// sees that it did.
    fn notice_spinning(&self) {
        let now = Instant::now();
        let mut counts = self.counts.lock();
        if counts.last_read_at != now {
            counts.last_read_at = now;
            counts.reads = 0;
        }
        counts.reads += 1;
        if counts.reads > READS_AT_ONCE_MAX {
            self.injector.note("a task reads the store in a loop, and time does not pass");
            panic!("a task reads the store in a loop, and time does not pass");
        }
    }

    async fn commit_after(&self, latency: Span, transaction: Transaction) -> Result<(), StoreError> {
        let what = self.injector.around().trace.headline(&transaction);
        let is_request = transaction.guard.is_none();
        let outcome = self.write_after(latency, &what, self.commit_watched(transaction.clone())).await;
        broken::answered(is_request, outcome)
    }

    /// A commit and all who look at it, in one instant.
    async fn commit_watched(&self, transaction: Transaction) -> Result<(), StoreError> {
        let Some(transaction) = broken::written(transaction) else { return Ok(()) };
        let around = self.injector.around();
        let before = match scheduler_of(&transaction) {
            Some(scheduler) => self.owner_of(scheduler).await?,
            None => None,
        };
        let is_told = self.told.lock().includes(transaction.id);
        let outcome = match around.active_faults.intercepts(&transaction) {
            Some(error) => Err(error),
            None => self.inner.commit(transaction.clone()).await,
        };
        match &outcome {
            // It was sent again, because its answer was lost.
            Ok(()) if is_told => around.coverage.saw(RareEvent::SentAgain),
            Ok(()) => {
                self.told.lock().remember(transaction.id);
                self.notice(&transaction);
                let (inspector, store) = (&around.inspector, &*self.inner);
                inspector.committed(&around.node, &transaction, before.as_ref(), store).await;
            }
            Err(error) => {
                if let Some(Refusal::StaleToken { .. }) = error.refusal() {
                    around.coverage.saw(RareEvent::StaleWriteRefused);
                    if around.life.freezes() > 0 {
                        around.coverage.saw(RareEvent::WokenWriteRefused);
                    }
                }
                if let Some(Refusal::EventQueueFull { .. }) = error.refusal() {
                    around.coverage.saw(RareEvent::EventQueueFull);
                }
            }
        }
        outcome
    }

    async fn owner_of(&self, scheduler: &SchedulerName) -> Result<Option<OwnershipRecord>, StoreError> {
        let workforce = self.inner.workers().await?;
        Ok(workforce.ownerships.into_iter().find(|ownership| ownership.scheduler == *scheduler))
    }

    fn notice(&self, transaction: &Transaction) {
        let Transaction { label, guard, changes, .. } = transaction;
        let Surroundings { trace, coverage, .. } = self.injector.around();
        self.injector.note(trace.told(transaction));
        match *label {
            "take over" => coverage.saw(RareEvent::TakeOver),
            "roll back" => coverage.saw(RareEvent::OperationRolledBack),
            "change rollout" => coverage.saw(RareEvent::RolloutChangedByPerson),
            _ => {}
        }
        for change in changes {
            match change {
                Change::UpdateScheduler(update)
                    if update.active_version.is_some() && matches!(update.rollout, Some(Some(_))) =>
                {
                    coverage.saw(RareEvent::RolloutBegun);
                }
                Change::AwaitLock { .. } => coverage.saw(RareEvent::LockAwaited),
                Change::RevokeLock { .. } => coverage.saw(RareEvent::LockReleased),
                Change::TakeLock(new) if new.kind == LockKind::Panic => coverage.saw(RareEvent::Panic),
                Change::EndAllocation { state: AllocationState::Begun, .. } => {
                    coverage.saw(RareEvent::MatchBegun);
                }
                Change::EndAllocation { state: AllocationState::Expired, .. } => {
                    coverage.saw(RareEvent::HoldExpired);
                }
                Change::DeleteScheduler { .. } => coverage.saw(RareEvent::SchedulerDeleted),
                Change::EventFailed { .. } => coverage.saw(RareEvent::EventRetried),
                Change::EventsDead { .. } => coverage.saw(RareEvent::EventDead),
                Change::ReplayEvents { .. } => coverage.saw(RareEvent::EventReplayed),
                Change::EventsDelivered { .. } if guard.is_none() => {
                    coverage.saw(RareEvent::OrphanedEventDelivered);
                }
                Change::SetRegion { to, .. } if to.draining => coverage.saw(RareEvent::RegionDrained),
                Change::SetRegion { to, .. } if to.cordoned => coverage.saw(RareEvent::RegionCordoned),
                Change::EndOperation { status: OperationStatus::Evicted, .. } => {
                    coverage.saw(RareEvent::OperationEvicted);
                }
                _ => {}
            }
        }
    }
}

fn lost(loss: Loss, why: &'static str) -> StoreError {
    match loss {
        Loss::NotDone => StoreError::unavailable("reach the other side", why),
        Loss::Unknown => StoreError::unknown("reach the other side", why),
    }
}

#[async_trait]
impl Store for SimulatedStore {
    async fn now(&self) -> Result<Timestamp, StoreError> {
        let now = self.read(&"now", self.inner.now()).await?;
        Ok(broken::time(now, &*self.injector.around().clock))
    }

    async fn fleet(
        &self,
        scheduler: &SchedulerName,
        ended_max: usize,
    ) -> Result<Option<FleetRecord>, StoreError> {
        let mut fleet = self.read(&"fleet", self.inner.fleet(scheduler, ended_max)).await?;
        if let Some(FleetRecord { scheduler, unfinished, live, .. }) = &mut fleet {
            broken::scheduler(scheduler);
            broken::unfinished(unfinished);
            live.iter_mut().for_each(broken::registered);
        }
        Ok(fleet)
    }

    async fn commit(&self, transaction: Transaction) -> Result<(), StoreError> {
        self.commit_after(LATENCY, transaction).await
    }

    /// Each of them is a write with a fate of its own: what becomes of some of them can stay unknown although others are
    /// done, and an engine can die between any two. Those after the first one take no time.
    async fn commit_each(
        &self,
        transactions: Vec<Transaction>,
    ) -> Result<Vec<Result<(), Refusal>>, StoreError> {
        let mut answers = Vec::with_capacity(transactions.len());
        let mut latency = LATENCY;
        for transaction in transactions {
            let answer = self.commit_after(latency, transaction).await;
            answers.push(match answer {
                Err(StoreError::Refused(refusal)) => Ok(Err(refusal)),
                done_or_unknown => done_or_unknown.map(Ok),
            });
            latency = Span::ZERO;
        }
        let some_are_done = answers.iter().any(Result::is_ok);
        let answers: Result<Vec<_>, StoreError> = answers.into_iter().collect();
        answers.map_err(|error| match error {
            StoreError::Unavailable { step, source } if some_are_done => StoreError::Unknown { step, source },
            error => error,
        })
    }
}

#[async_trait]
impl SchedulerStore for SimulatedStore {
    async fn scheduler(&self, name: &SchedulerName) -> Result<Option<SchedulerRecord>, StoreError> {
        let mut record = self.read(&"scheduler", self.inner.scheduler(name)).await?;
        record.iter_mut().for_each(broken::scheduler);
        Ok(record)
    }

    async fn scheduler_names(&self) -> Result<Vec<SchedulerName>, StoreError> {
        self.read(&"scheduler_names", self.inner.scheduler_names()).await
    }

    async fn all_schedulers(&self) -> Result<(Vec<SchedulerRecord>, Vec<UnreadableScheduler>), StoreError> {
        let (mut records, unreadable) = self.read(&"schedulers", self.inner.all_schedulers()).await?;
        records.iter_mut().for_each(broken::scheduler);
        Ok((records, unreadable))
    }

    async fn versions(
        &self,
        name: &SchedulerName,
    ) -> Result<(Vec<VersionRecord>, Vec<UnreadableVersion>), StoreError> {
        self.read(&"versions", self.inner.versions(name)).await
    }

    async fn version_numbers(&self, name: &SchedulerName) -> Result<Vec<Version>, StoreError> {
        self.read(&"version numbers", self.inner.version_numbers(name)).await
    }

    async fn version(
        &self,
        name: &SchedulerName,
        version: Version,
    ) -> Result<Option<VersionRecord>, StoreError> {
        self.read(&"version", self.inner.version(name, version)).await
    }
}

#[async_trait]
impl OperationStore for SimulatedStore {
    async fn operation(
        &self,
        scheduler: &SchedulerName,
        id: OperationId,
    ) -> Result<Option<Operation>, StoreError> {
        self.read(&"operation", self.inner.operation(scheduler, id)).await
    }

    async fn unfinished(&self, scheduler: &SchedulerName) -> Result<Vec<Operation>, StoreError> {
        let mut unfinished = self.read(&"unfinished", self.inner.unfinished(scheduler)).await?;
        broken::unfinished(&mut unfinished);
        Ok(unfinished)
    }

    async fn version_operations(
        &self,
        scheduler: &SchedulerName,
        operations_max: u32,
    ) -> Result<Vec<Operation>, StoreError> {
        let found = self.inner.version_operations(scheduler, operations_max);
        self.read(&"version operations", found).await
    }

    async fn operations(
        &self,
        scheduler: &SchedulerName,
        stage: Stage,
        page: PageRequest,
    ) -> Result<OperationPage, StoreError> {
        self.read(&"operations", self.inner.operations(scheduler, stage, page)).await
    }

    async fn schedulers_in_hand(&self) -> Result<u32, StoreError> {
        self.read(&"schedulers_in_hand", self.inner.schedulers_in_hand()).await
    }

    async fn has_operations_to_forget(
        &self,
        scheduler: &SchedulerName,
        ended_before: Timestamp,
        no_action_before: Timestamp,
    ) -> Result<bool, StoreError> {
        let asked = self.inner.has_operations_to_forget(scheduler, ended_before, no_action_before);
        self.read(&"has_operations_to_forget", asked).await
    }

    async fn own_all(
        &self,
        schedulers: &[SchedulerName],
        owner: &str,
        ttl: Millis,
    ) -> Result<Vec<(SchedulerName, Token)>, StoreError> {
        let around = self.injector.around();
        let gave_some = AtomicBool::new(false);
        let act = async {
            let (before, now) = (self.inner.workers().await?.ownerships, self.inner.now().await?);
            let asked = before.iter().filter(|ownership| schedulers.contains(&ownership.scheduler));
            for lost in asked.filter(|ownership| broken::runs_out(ownership, owner, &*around.clock)) {
                self.inner.disown(&lost.scheduler, lost.token).await?;
            }
            let owned = self.inner.own_all(schedulers, owner, ttl).await?;
            for (scheduler, token) in &owned {
                self.injector.note(format_args!("owns {scheduler} by token {}", token.0));
                let last = before.iter().find(|ownership| ownership.scheduler == *scheduler);
                around.inspector.owned(&around.node, scheduler, *token, last, now);
            }
            gave_some.store(!owned.is_empty(), Ordering::Relaxed);
            Ok(owned)
        };
        let answer = self.write(&"own", act).await;
        if answer.is_err() && gave_some.into_inner() {
            around.coverage.saw(RareEvent::UnheardOwnership);
        }
        answer
    }

    async fn renew(&self, renewal: Renewal<'_>) -> Result<Vec<(SchedulerName, Token)>, StoreError> {
        self.write(&"renew", self.inner.renew(renewal)).await
    }

    async fn workers(&self) -> Result<Workforce, StoreError> {
        self.read(&"workers", self.inner.workers()).await
    }

    async fn retire(&self, worker: &str) -> Result<(), StoreError> {
        self.write(&"retire", self.inner.retire(worker)).await
    }

    async fn disown(&self, scheduler: &SchedulerName, token: Token) -> Result<(), StoreError> {
        self.write(&"disown", self.inner.disown(scheduler, token)).await
    }

    async fn locks(&self, scheduler: &SchedulerName) -> Result<Locks, StoreError> {
        self.read(&"locks", self.inner.locks(scheduler)).await
    }
}

#[async_trait]
impl Outbox for SimulatedStore {
    async fn event_queues(&self, scheduler: &SchedulerName) -> Result<Vec<EventQueue>, StoreError> {
        self.read(&"event_queues", self.inner.event_queues(scheduler)).await
    }

    async fn due_events(
        &self,
        queue: QueueId,
        now: Timestamp,
        rooms_max: usize,
        events_max: usize,
    ) -> Result<Vec<QueuedEvent>, StoreError> {
        let mut due =
            self.read(&"due_events", self.inner.due_events(queue, now, rooms_max, events_max)).await?;
        broken::due(&mut due);
        Ok(due)
    }

    async fn events(
        &self,
        scheduler: &SchedulerName,
        only: &EventFilter,
        page: EventPageRequest,
    ) -> Result<EventPage, StoreError> {
        self.read(&"events", self.inner.events(scheduler, only, page)).await
    }

    async fn has_orphaned_queues(&self) -> Result<bool, StoreError> {
        self.read(&"has_orphaned_queues", self.inner.has_orphaned_queues()).await
    }

    async fn own_orphaned_queues(&self, owner: &str, ttl: Millis) -> Result<Vec<OrphanedQueue>, StoreError> {
        self.write(&"own orphaned events", self.inner.own_orphaned_queues(owner, ttl)).await
    }
}
