//! The loop of one scheduler: what is next in its queue, one bounded step at a time. What the engine puts into that queue
//! itself, again and again, is in `due`.

mod due;
mod settled;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use maestro_core::lock::{Locks, Taker};
use maestro_core::operation::{
    Activity, Definition, HistoryEvent, Operation, OperationId, OperationStatus, Token, Wait, queue,
};
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::{Timestamp, age};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::invariants::QueueWatch;
use crate::metrics::WorkerFailure;
use crate::operations::{PlannedCycle, Result, StepError, executor, scheduled};
use crate::ports::store::{
    Change, Guard, OperationUpdate, Refusal, SchedulerRecord, SchedulerState, StoreError, Transaction,
};
use crate::rooms::recovery;
use crate::wake::Bell;
use crate::{Engine, with_sources};

use super::retries::{FIRST_RETRY, is_due, longer};
use super::step::Stepper;
use super::tenure::Tenure;
use settled::SettledLook;

/// A burst of events leads to one check of the plan.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// The loop checks its queue at least this often, whatever else is due.
const IDLE_MAX: Duration = Duration::from_secs(3600);

pub(super) struct SchedulerLoop {
    engine: Arc<Engine>,
    scheduler: SchedulerName,
    guard: Guard,
    bell: Bell,
    stop: watch::Receiver<bool>,
    stepper: Stepper,
    watch: QueueWatch,
    next_cycle: Instant,
    /// The first one comes at once; those after it have their place in the period.
    has_begun: bool,
    next_clean_up: Instant,
    /// When to check whether the plan has changed, if at all before the next cycle.
    next_check: Option<Instant>,
    /// The last one that found nothing.
    last_check: Option<Instant>,
    /// The last look at the fleet, if it found nothing and nothing was done since.
    settled: Option<SettledLook>,
    last_early_cycle: Option<Instant>,
    /// What the cycle that was enqueued last begins with.
    planned: Option<(OperationId, Instant, PlannedCycle)>,
    /// It was time for a cycle while another one was waiting or at work: the next to begin is that one.
    cycle_is_owed: bool,
    /// What has failed if a turn ends with an error.
    attempted: WorkerFailure,
    retry: Duration,
    /// The room table, and nothing else since.
    has_rebuilt: bool,
}

enum Turn {
    /// Something was done: look again at once.
    Busy,
    /// Nothing to do before this.
    Idle(Instant),
    /// There is no such scheduler any more.
    Gone,
}

impl SchedulerLoop {
    pub(super) fn new(
        engine: Arc<Engine>,
        scheduler: SchedulerName,
        token: Token,
        tenure: Tenure,
        stop: watch::Receiver<bool>,
    ) -> Self {
        let now = Instant::now();
        let guard = Guard { scheduler: scheduler.clone(), token, operation: None, locks: Vec::new() };
        Self {
            bell: engine.ports.wake.bell(&scheduler),
            stepper: Stepper::new(engine.clone(), guard.clone(), tenure),
            watch: QueueWatch::default(),
            next_cycle: now,
            has_begun: false,
            next_clean_up: now + due::turn_in(&scheduler, engine.settings.storage_clean_up_interval),
            next_check: None,
            last_check: None,
            settled: None,
            last_early_cycle: None,
            planned: None,
            cycle_is_owed: false,
            attempted: WorkerFailure::Next,
            retry: FIRST_RETRY,
            has_rebuilt: false,
            engine,
            scheduler,
            guard,
            stop,
        }
    }

    pub(super) async fn run(mut self) {
        self.engine.metrics.worker_began(self.scheduler.as_str());
        self.engine.reconciled.begin(&self.scheduler);
        let mut taken_over = false;
        while !*self.stop.borrow() {
            let turn = match taken_over {
                false => self.take_over().await.map(|()| Turn::Busy),
                true => self.turn().await,
            };
            match turn {
                Ok(turn) => {
                    taken_over = true;
                    self.retry = FIRST_RETRY;
                    self.has_rebuilt = false;
                    match turn {
                        Turn::Busy => {}
                        Turn::Idle(until) => self.wait_until(until).await,
                        Turn::Gone => break,
                    }
                }
                Err(StepError::Store(StoreError::Refused(Refusal::StaleToken { .. }))) => {
                    tracing::warn!(scheduler_name = %self.scheduler, "another worker owns the scheduler now");
                    break;
                }
                Err(StepError::Lost(scheduler)) if scheduler == self.scheduler && !self.has_rebuilt => {
                    self.rebuild_table().await;
                }
                Err(error) => self.back_off(&error).await,
            }
        }
        self.engine.health().clear(&self.table_component());
        self.engine.reconciled.end(&self.scheduler);
        self.engine.metrics.worker_ended(self.scheduler.as_str());
    }

    async fn back_off(&mut self, error: &StepError) {
        self.engine.metrics.worker_failed(&self.stepper.game, &self.scheduler, self.attempted);
        let error = with_sources(error);
        tracing::warn!(scheduler_name = %self.scheduler, error, retry_in = ?self.retry, "cannot go on now");
        self.wait_until(Instant::now() + self.retry).await;
        self.retry = longer(self.retry);
        self.has_rebuilt = false;
    }

    /// Puts the rooms of the registry into the room table, which has lost them. Until that is done, nothing that depends on
    /// rooms is.
    async fn rebuild_table(&mut self) {
        let (engine, scheduler) = (self.engine.clone(), self.scheduler.clone());
        let lost = StepError::Lost(scheduler.clone());
        tracing::warn!(scheduler_name = %scheduler, "{lost}");
        engine.health().degraded(self.table_component(), lost.to_string());
        match recovery::rebuild(&engine, &scheduler, || self.stepper.still_owner()).await {
            Ok(is_rebuilt) => {
                engine.health().clear(&self.table_component());
                if is_rebuilt {
                    engine.metrics.table_rebuilt(&self.stepper.game, &scheduler);
                }
                // Lost once more before anything came of it, it is not tried again at once.
                self.has_rebuilt = true;
                self.settled = None;
                self.check_in(Duration::ZERO);
            }
            Err(error) => self.back_off(&error).await,
        }
    }

    /// What stands for its part of the room table in [`crate::Health`].
    fn table_component(&self) -> String {
        format!("room table of scheduler {}", self.scheduler)
    }

    async fn wait_until(&mut self, until: Instant) {
        // Stopping first; what rang meanwhile is seen at the next turn in any case.
        tokio::select! {
            biased;
            _ = self.stop.changed() => {}
            () = self.bell.rung() => {}
            () = tokio::time::sleep_until(until) => {}
        }
    }

    /// Operations that an earlier owner left in progress go on under our lease. Those that are parked look again at
    /// once: whoever was to do what they wait for (to kill a room after its grace period, say) may have died with
    /// that owner.
    async fn take_over(&mut self) -> Result {
        let now = self.engine.now();
        for operation in self.engine.ports.store.unfinished(&self.scheduler).await? {
            let is_ours = operation.lease.as_ref().is_some_and(|lease| lease.token == self.guard.token);
            if operation.status != OperationStatus::InProgress || is_ours {
                continue;
            }
            let event = taken_over_event(&operation, &self.engine.owner, now);
            let mut update = OperationUpdate::of(operation.id);
            update.lease = Some(self.stepper.lease());
            if let Activity::Parked(wait) = operation.activity {
                update.activity = Some(Activity::Parked(Wait { until: now, ..wait }));
            }
            update.history = vec![HistoryEvent { at: now, event }];
            self.commit("take over", vec![Change::UpdateOperation(update)]).await?;
        }
        // A worker without others has adopted all rooms when it began.
        if self.engine.ports.wake_up_channel.is_some()
            && let Err(error) = recovery::adopt_from_others(&self.engine, &self.scheduler).await
        {
            tracing::warn!(scheduler_name = %self.scheduler, error = with_sources(&error), "rooms not watched yet");
        }
        Ok(())
    }

    async fn turn(&mut self) -> Result<Turn> {
        self.attempted = WorkerFailure::Next;
        let store = self.engine.ports.store.clone();
        let Some(record) = store.scheduler(&self.scheduler).await? else {
            self.engine.tokens.forget(&self.scheduler);
            return Ok(Turn::Gone);
        };
        self.stepper.game.clone_from(&record.recipe.game);
        self.engine.panics.update(&record);
        self.engine.events.update(&record);
        let unfinished = store.unfinished(&self.scheduler).await?;
        self.engine.report(&self.scheduler, self.watch.look(&unfinished));
        self.engine.metrics.operation_queue(&record, &unfinished);
        if self.enqueue_due(&record, &unfinished).await? {
            return Ok(Turn::Busy);
        }
        let woken = self.woken(&record, &unfinished).await?;
        let facts = queue::SchedulerFacts {
            being_deleted: record.state == SchedulerState::Deleting,
            active_version: record.active_version,
        };
        let next = queue::next(&unfinished, facts, |operation| woken.contains(&operation.id));
        let find = |id: OperationId| unfinished.iter().find(|operation| operation.id == id).cloned();
        match next {
            queue::NextWork::Nothing => return Ok(Turn::Idle(self.idle_until(&record, &unfinished))),
            queue::NextWork::Evict(id, eviction) => {
                if let Some(operation) = find(id) {
                    self.stepper.evict(&operation, eviction).await?;
                }
            }
            queue::NextWork::Start(id) => {
                self.attempted = WorkerFailure::Start;
                if let Some(operation) = find(id) {
                    let is_cycle = operation.definition == Definition::HealthController;
                    let progress = (is_cycle && self.cycle_is_owed).then(scheduled);
                    self.stepper.start(record, operation, progress).await?;
                    self.cycle_is_owed &= !is_cycle;
                }
            }
            queue::NextWork::Wake(id) => {
                let mut update = OperationUpdate::of(id);
                update.activity = Some(Activity::Executing);
                self.commit("wake operation", vec![Change::UpdateOperation(update)]).await?;
            }
            queue::NextWork::Continue(id) => {
                self.attempted = WorkerFailure::Advance;
                if let Some(operation) = find(id) {
                    let planned = self.handed_cycle(&record, &unfinished, id);
                    self.settled = None;
                    if self.stepper.advance(record, operation, planned).await? {
                        // What it did may be followed by something else, sooner than the next cycle.
                        self.check_in(DEBOUNCE);
                    }
                }
            }
        }
        Ok(Turn::Busy)
    }

    /// The parked operations whose wait is over.
    async fn woken(
        &self,
        record: &SchedulerRecord,
        unfinished: &[Operation],
    ) -> Result<BTreeSet<OperationId>> {
        let now = self.engine.now();
        let parked: Vec<&Operation> = unfinished.iter().filter(|operation| operation.is_parked()).collect();
        let mut woken = BTreeSet::new();
        if parked.is_empty() {
            return Ok(woken);
        }
        let locks = self.engine.ports.store.locks(&self.scheduler).await?;
        for operation in parked {
            let Activity::Parked(wait) = &operation.activity else {
                continue;
            };
            if is_due(wait, now)
                || has_to_roll_back(operation)
                || !wait.unanswered && self.wait_is_over(record, operation, &locks).await?
            {
                woken.insert(operation.id);
            }
        }
        Ok(woken)
    }

    async fn wait_is_over(
        &self,
        record: &SchedulerRecord,
        operation: &Operation,
        locks: &Locks,
    ) -> Result<bool> {
        let Some(executor) = executor(operation.definition.kind()) else {
            return Ok(true);
        };
        let work = self.stepper.work(record.clone(), operation.clone(), locks.clone(), None);
        let holder = operation.holder();
        let place = locks.waiters.iter().find(|waiter| waiter.holder == holder);
        let Some(place) = place.filter(|_| operation.rollback.is_none()) else {
            return executor.wait_is_over(&work).await;
        };
        let needs = executor.needs(&work).await?;
        match needs.into_iter().find(|need| need.kind == place.kind) {
            Some(need) => {
                let may_take = locks.may_take(place.kind, Taker::of(holder), self.engine.now()).is_ok();
                Ok(may_take || work.has_lock(need))
            }
            // It does not need that lock any more, and waits for something else.
            None => executor.wait_is_over(&work).await,
        }
    }

    fn idle_until(&self, record: &SchedulerRecord, unfinished: &[Operation]) -> Instant {
        let (now, idle_max) = (self.engine.now(), self.idle_max());
        let in_time = |at: Timestamp| Instant::now() + age(at, now).as_duration().min(idle_max);
        let waits = unfinished.iter().filter_map(|operation| match &operation.activity {
            Activity::Parked(wait) if operation.is_parked() => Some(in_time(wait.until)),
            _ => None,
        });
        // Own timers count only where `enqueue_due` sets them anew; otherwise one that has passed would have this loop
        // spin.
        let due = match record.state {
            SchedulerState::InSync => [Some(self.next_cycle), Some(self.next_clean_up), self.next_check],
            SchedulerState::Creating | SchedulerState::Deleting => [None; 3],
        };
        let idle = Instant::now() + idle_max;
        due.into_iter().flatten().chain(waits).fold(idle, Instant::min)
    }

    /// What other processes enqueue is found by then, even if nothing that they say arrives.
    fn idle_max(&self) -> Duration {
        match self.engine.ports.wake_up_channel {
            Some(_) => self.engine.settings.sync_interval.min(IDLE_MAX),
            None => IDLE_MAX,
        }
    }

    async fn commit(&self, label: &'static str, changes: Vec<Change>) -> Result {
        let transaction = Transaction::guarded(label, self.guard.clone(), changes);
        Ok(self.engine.commit(transaction).await?)
    }
}

/// Someone asked it to roll back while it waited for something else.
fn has_to_roll_back(operation: &Operation) -> bool {
    operation.cancel.is_some() && operation.rollback.is_none()
}

fn taken_over_event(operation: &Operation, owner: &str, now: Timestamp) -> String {
    match &operation.lease {
        Some(lease) if lease.expires_at > now => {
            format!("Taken over by {owner}: {} had it, and owns the scheduler no more", lease.owner)
        }
        Some(lease) => format!(
            "Taken over by {owner}: {} held the lease until {:.3}, {} ago",
            lease.owner,
            lease.expires_at,
            age(now, lease.expires_at)
        ),
        None => format!("Taken over by {owner}: it had no lease"),
    }
}
