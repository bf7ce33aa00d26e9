//! Workers: who works on which scheduler.
//!
//! A scheduler has one owner at a time, by a lease with a fencing token. The manager takes its share of what nobody
//! owns, gives up what is above it when others come, renews what it has, and runs one [`scheduler_loop`] for each.
//! Losing a lease only ends the loop: what the loop may still write is refused by its token.

mod reach;
mod retries;
mod scheduler_loop;
mod step;
mod tenure;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use maestro_core::operation::Token;
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::{Timestamp, age};
use maestro_core::workforce;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::events::deliverer::Deliverer;
use crate::ports::store::{Guard, Renewal, StoreError, UnreadableScheduler, Workforce};
use crate::tasks::interval;
use crate::{Engine, Importance, TaskName, with_sources};

use scheduler_loop::SchedulerLoop;
pub(crate) use tenure::Tenure;

/// It looks for what has run out at least this often.
const EXPIRY_LOOK_MAX: Duration = Duration::from_secs(3600);

/// How long it rests before it looks again because of what others did: many schedulers that come and go are looked at
/// together.
const SYNC_GAP: Duration = Duration::from_millis(20);

/// Schedulers that one write takes: what is taken must not run out before it is renewed for the first time.
const TAKEN_AT_ONCE_MAX: usize = 1000;

/// The component of [`crate::Health`] that stands for writes to the store.
const STORE_WRITES: &str = "store writes";

pub(crate) struct Manager {
    engine: Arc<Engine>,
    stop: watch::Receiver<bool>,
    loops: BTreeMap<SchedulerName, Loop>,
    /// Schedulers that are left alone, as they were last seen.
    unreadable: BTreeSet<SchedulerName>,
    /// Those that workers on other hosts work on.
    out_of_reach: BTreeSet<SchedulerName>,
    /// It is time to see which they are: that takes reading every recipe.
    unreadable_is_due: bool,
    synced_at: Option<Instant>,
    /// When something of another worker runs out, if nothing changes until then.
    next_expiry: Option<Instant>,
}

struct Loop {
    token: Token,
    tenure: Tenure,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
    /// It was told to end so that another worker may take the scheduler.
    is_given_up: bool,
}

impl Manager {
    pub(crate) fn new(engine: Arc<Engine>, stop: watch::Receiver<bool>) -> Self {
        Self {
            engine,
            stop,
            loops: BTreeMap::new(),
            unreadable: BTreeSet::new(),
            out_of_reach: BTreeSet::new(),
            unreadable_is_due: true,
            synced_at: None,
            next_expiry: None,
        }
    }

    /// Called again after a crash, it goes on with the loops that it had begun.
    pub(crate) async fn run(&mut self) {
        let settings = &self.engine.settings;
        let mut sync = interval(settings.sync_interval);
        // One request renews all three.
        let ttl = settings.ownership_ttl.min(settings.operation_lease_ttl).min(settings.lock_ttl);
        let mut renew = interval(ttl.as_duration() / 3);
        let mut bell = self.engine.ports.wake.workforce_bell();
        let mut stop = self.stop.clone();
        loop {
            // Stopping first, then renewing: neither may starve behind a busy sync.
            let expiry = self.next_expiry.unwrap_or_else(|| Instant::now() + EXPIRY_LOOK_MAX);
            let soonest = self.synced_at.map(|synced| synced + SYNC_GAP);
            let outcome = tokio::select! {
                biased;
                () = told_to(&mut stop) => break,
                _ = renew.tick() => self.renew().await,
                () = bell.rung(soonest) => self.sync().await,
                () = tokio::time::sleep_until(expiry) => self.sync().await,
                _ = sync.tick() => {
                    self.unreadable_is_due = true;
                    self.sync().await
                }
            };
            if let Err(error) = outcome {
                tracing::warn!(error = with_sources(&error), "the store does not answer the worker");
            }
        }
        self.shut_down().await;
    }

    async fn sync(&mut self) -> Result<(), StoreError> {
        self.engine.metrics.workers_sync.inc();
        let synced = self.take_and_give_up().await;
        self.synced_at = Some(Instant::now());
        synced
    }

    /// Takes schedulers that nobody owns up to its share, and gives up what is above it.
    async fn take_and_give_up(&mut self) -> Result<(), StoreError> {
        // A store that does not answer is asked again at the next period, not at once.
        self.next_expiry = None;
        self.forget_ended().await?;
        if self.unreadable_is_due {
            self.name_unreadable().await?;
        }
        let store = &self.engine.ports.store;
        let mut schedulers = store.scheduler_names().await?;
        schedulers.retain(|name| !self.unreadable.contains(name));
        let workforce = store.workers().await?;
        let now = self.engine.now();
        self.next_expiry = next_expiry(&workforce, &self.engine.owner, now);
        let share = match self.engine.ports.regions_elsewhere.is_empty() {
            true => self.share(&workforce, schedulers.len(), now),
            // Who else could work on them is not known.
            false => {
                self.leave_out_of_reach().await?;
                schedulers.retain(|name| !self.out_of_reach.contains(name));
                schedulers.len()
            }
        };
        let kept = self.loops.values().filter(|running| !running.is_given_up).count();
        if kept > share {
            self.give_up(kept - share);
            return self.give_back_orphans(&workforce).await;
        }
        let anothers = workforce
            .ownerships
            .iter()
            .filter(|ownership| ownership.owner != self.engine.owner && ownership.expires_at > now);
        let anothers: BTreeSet<&SchedulerName> = anothers.map(|ownership| &ownership.scheduler).collect();
        let free = |name: &SchedulerName| !self.loops.contains_key(name) && !anothers.contains(name);
        let mut free: Vec<SchedulerName> = schedulers.into_iter().filter(free).collect();
        let (mut wanted, mut asked) = (share - kept, 0);
        // Others may be faster with some of them: then there are those that come next.
        while wanted > 0 && !free.is_empty() {
            if asked >= TAKEN_AT_ONCE_MAX {
                // The rest follows, and renewals come between.
                self.next_expiry = Some(Instant::now());
                break;
            }
            let batch: Vec<_> = free.drain(..wanted.min(free.len()).min(TAKEN_AT_ONCE_MAX)).collect();
            asked += batch.len();
            wanted -= self.take(&batch).await?;
        }
        self.give_back_orphans(&workforce).await
    }

    /// Schedulers that this build cannot read are nobody's: they and their rooms stay as they are, and that is said.
    async fn name_unreadable(&mut self) -> Result<(), StoreError> {
        let health = self.engine.health();
        let component = |name: &SchedulerName| format!("scheduler {name}");
        let mut unreadable = BTreeSet::new();
        let (_, found) = self.engine.ports.store.all_schedulers().await?;
        for UnreadableScheduler { name, why, .. } in found {
            health.degraded(component(&name), format!("{why}; it and its rooms are left alone"));
            unreadable.insert(name);
        }
        for gone in self.unreadable.difference(&unreadable) {
            health.clear(&component(gone));
        }
        self.unreadable = unreadable;
        self.unreadable_is_due = false;
        Ok(())
    }

    /// What it owns and does not work on: the answer that it had become the owner was lost, and its renewals would keep
    /// others away forever.
    async fn give_back_orphans(&self, workforce: &Workforce) -> Result<(), StoreError> {
        let own = workforce.ownerships.iter().filter(|ownership| ownership.owner == self.engine.owner);
        for orphan in own.filter(|ownership| !self.loops.contains_key(&ownership.scheduler)) {
            self.engine.ports.store.disown(&orphan.scheduler, orphan.token).await?;
            self.engine.ports.wake.workforce_changed();
        }
        Ok(())
    }

    fn share(&self, workforce: &Workforce, schedulers: usize, now: Timestamp) -> usize {
        let there = workforce.workers.iter().filter(|worker| worker.expires_at > now);
        workforce::share(&self.engine.owner, there.map(|worker| worker.name.as_str()), schedulers)
    }

    /// Loops that have ended. A scheduler that was given up is free for others from now on.
    async fn forget_ended(&mut self) -> Result<(), StoreError> {
        let ended: Vec<SchedulerName> = self
            .loops
            .iter()
            .filter(|(_, running)| running.task.is_finished())
            .map(|(scheduler, _)| scheduler.clone())
            .collect();
        for scheduler in ended {
            let Some(running) = self.loops.get(&scheduler) else { continue };
            if running.is_given_up {
                self.engine.ports.store.disown(&scheduler, running.token).await?;
                self.engine.ports.wake.workforce_changed();
            }
            self.loops.remove(&scheduler);
        }
        Ok(())
    }

    /// The last ones by name: they end after the step that is running, and ring when they have.
    fn give_up(&mut self, amount: usize) {
        let kept = self.loops.iter_mut().rev().filter(|(_, running)| !running.is_given_up);
        for (scheduler, running) in kept.take(amount) {
            tracing::debug!(scheduler_name = %scheduler, "giving it up for another worker");
            running.is_given_up = true;
            running.stop.send_replace(true);
        }
    }

    /// Those of them that nobody else has taken meanwhile; how many that are.
    async fn take(&mut self, schedulers: &[SchedulerName]) -> Result<usize, StoreError> {
        let engine = self.engine.clone();
        let ttl = engine.settings.ownership_ttl;
        let asked_at = engine.ports.clock.since_boot();
        let owned = engine.ports.store.own_all(schedulers, &engine.owner, ttl).await?;
        let taken = owned.len();
        for (scheduler, token) in owned {
            engine.report(&scheduler, engine.tokens.given(&scheduler, token));
            tracing::debug!(scheduler_name = %scheduler, token = token.0, "took ownership");
            let tenure = Tenure::begin(engine.ports.clock.clone(), asked_at, ttl.as_duration());
            self.begin_loop(scheduler, token, tenure);
        }
        Ok(taken)
    }

    /// A loop that crashes begins anew under the same token: nothing that it needs is in memory only.
    fn begin_loop(&mut self, scheduler: SchedulerName, token: Token, tenure: Tenure) {
        let (stop, stopped) = watch::channel(false);
        let make = {
            let (engine, scheduler, tenure) = (self.engine.clone(), scheduler.clone(), tenure.clone());
            let (stop, stopped) = (stop.clone(), stopped.clone());
            move || {
                let (engine, scheduler) = (engine.clone(), scheduler.clone());
                let wake = engine.ports.wake.clone();
                let guard = Guard { scheduler: scheduler.clone(), token, operation: None, locks: Vec::new() };
                let deliverer = Deliverer::new(engine.clone(), guard, tenure.clone());
                let work = SchedulerLoop::new(engine, scheduler, token, tenure.clone(), stopped.clone());
                let stop = stop.clone();
                async move {
                    // Events are delivered for as long as the scheduler is owned, and not a moment longer.
                    tokio::select! {
                        biased;
                        () = Box::pin(work.run()) => {}
                        () = Box::pin(deliverer.run()) => {}
                    }
                    // It has nothing left to do, and is not to be started again.
                    stop.send_replace(true);
                    wake.workforce_changed();
                }
            }
        };
        let name = TaskName::of("scheduler loop", &scheduler);
        let task = self.engine.tasks.supervise(name, Importance::Part, stopped, make);
        self.loops.insert(scheduler, Loop { token, tenure, stop, task, is_given_up: false });
    }

    async fn renew(&mut self) -> Result<(), StoreError> {
        let engine = &self.engine;
        let settings = &engine.settings;
        let renewal = Renewal {
            worker: &engine.owner,
            ownership_ttl: settings.ownership_ttl,
            operation_ttl: settings.operation_lease_ttl,
            lock_ttl: settings.lock_ttl,
        };
        let asked_at = engine.ports.clock.since_boot();
        let renewed = engine.ports.store.renew(renewal).await;
        // The write that is made whatever else happens: while it fails, others do too.
        match &renewed {
            Ok(_) => engine.health().clear(STORE_WRITES),
            Err(error) => engine.health().not_ready(STORE_WRITES, with_sources(error)),
        }
        let owned = renewed?;
        let owned: BTreeMap<_, _> = owned.into_iter().collect();
        for (scheduler, running) in &self.loops {
            if owned.get(scheduler) == Some(&running.token) {
                running.tenure.renewed(asked_at, settings.ownership_ttl.as_duration());
            } else if !running.task.is_finished() {
                running.stop.send_replace(true);
            }
        }
        Ok(())
    }

    /// Lets the steps that are running come to their end, then gives everything up, so that others may take it at
    /// once.
    async fn shut_down(&mut self) {
        for running in self.loops.values() {
            running.stop.send_replace(true);
        }
        // While the tokens still count.
        self.engine.write_no_actions().await;
        let store = &self.engine.ports.store;
        let deadline = Instant::now() + self.engine.settings.stop_timeout;
        let mut all_ended = true;
        for (scheduler, running) in std::mem::take(&mut self.loops) {
            if tokio::time::timeout_at(deadline, running.task).await.is_err() {
                tracing::warn!(scheduler_name = %scheduler, "a step did not end in time; its lease runs out by itself");
                all_ended = false;
            } else if let Err(error) = store.disown(&scheduler, running.token).await {
                tracing::warn!(scheduler_name = %scheduler, error = with_sources(&error), "ownership not given up");
            }
        }
        if all_ended && let Err(error) = store.retire(&self.engine.owner).await {
            tracing::warn!(
                error = with_sources(&error),
                "worker not deregistered; others wait until its lease expires"
            );
        }
        self.engine.ports.wake.workforce_changed();
    }
}

/// When the first thing of another worker runs out: it is looked at just then, not at the next period.
fn next_expiry(workforce: &Workforce, owner: &str, now: Timestamp) -> Option<Instant> {
    let workers = workforce.workers.iter().map(|worker| (&worker.name, worker.expires_at));
    let ownerships = workforce.ownerships.iter().map(|ownership| (&ownership.owner, ownership.expires_at));
    let others = workers.chain(ownerships).filter(|(name, at)| *name != owner && *at > now);
    let first = others.map(|(_, at)| at).min()?;
    Some(Instant::now() + age(first, now).as_duration() + Duration::from_millis(1))
}

async fn told_to(stop: &mut watch::Receiver<bool>) {
    // An error means that whoever could tell is gone, which is an end too.
    drop(stop.wait_for(|stopped| *stopped).await);
}
