//! Workers: who works on which scheduler.
//!
//! A scheduler has one owner at a time, by a lease with a fencing token. The manager takes what nobody owns, renews
//! what it has, and runs one [`scheduler_loop`] for each. Losing a lease only ends the loop: what the loop may still
//! write is refused by its token.

mod scheduler_loop;
mod step;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use maestro_core::operation::Token;
use maestro_core::scheduler::SchedulerName;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};

use crate::ports::store::{Renewal, StoreError};
use crate::{Engine, with_sources};

use scheduler_loop::SchedulerLoop;

pub(crate) struct Manager {
    engine: Arc<Engine>,
    stop: watch::Receiver<bool>,
    loops: BTreeMap<SchedulerName, Loop>,
}

struct Loop {
    token: Token,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Manager {
    pub(crate) fn new(engine: Arc<Engine>, stop: watch::Receiver<bool>) -> Self {
        Self { engine, stop, loops: BTreeMap::new() }
    }

    pub(crate) async fn run(mut self) {
        let settings = &self.engine.settings;
        let mut sync = interval(settings.sync_interval);
        let ttl = settings.ownership_ttl.min(settings.operation_lease_ttl);
        let mut renew = interval(ttl.as_duration() / 3);
        let mut bell = self.engine.ports.wake.workforce_bell();
        loop {
            // Stopping first, then renewing: neither may starve behind a busy sync.
            let outcome = tokio::select! {
                biased;
                _ = self.stop.changed() => break,
                _ = renew.tick() => self.renew().await,
                () = bell.rung() => self.sync().await,
                _ = sync.tick() => self.sync().await,
            };
            if let Err(error) = outcome {
                tracing::warn!(error = with_sources(&error), "the store does not answer the worker");
            }
        }
        self.shut_down().await;
    }

    /// Takes schedulers that nobody owns, and forgets loops that have ended.
    async fn sync(&mut self) -> Result<(), StoreError> {
        self.engine.metrics.workers_sync.inc();
        self.loops.retain(|_, running| !running.task.is_finished());
        for record in self.engine.ports.store.schedulers().await? {
            if !self.loops.contains_key(&record.name) {
                self.take(record.name).await?;
            }
        }
        Ok(())
    }

    async fn take(&mut self, scheduler: SchedulerName) -> Result<(), StoreError> {
        let engine = &self.engine;
        let ttl = engine.settings.ownership_ttl;
        let store = &engine.ports.store;
        let Some(token) = store.own(&scheduler, &engine.owner, engine.now(), ttl).await? else {
            return Ok(());
        };
        let (stop, stopped) = watch::channel(false);
        let work = SchedulerLoop::new(engine.clone(), scheduler.clone(), token, stopped);
        let task = engine.tasks.spawn(format!("worker of {scheduler}"), work.run());
        tracing::debug!(scheduler_name = %scheduler, token = token.0, "took ownership");
        self.loops.insert(scheduler, Loop { token, stop, task });
        Ok(())
    }

    async fn renew(&mut self) -> Result<(), StoreError> {
        let engine = &self.engine;
        let settings = &engine.settings;
        let renewal = Renewal {
            worker: &engine.owner,
            now: engine.now(),
            ownership_ttl: settings.ownership_ttl,
            operation_ttl: settings.operation_lease_ttl,
            lock_ttl: settings.lock_ttl,
        };
        let owned = engine.ports.store.renew(renewal).await?;
        let owned: BTreeMap<_, _> = owned.into_iter().collect();
        for (scheduler, running) in &self.loops {
            if owned.get(scheduler) != Some(&running.token) && !running.task.is_finished() {
                running.stop.send_replace(true);
            }
        }
        Ok(())
    }

    /// Lets the steps that are running come to their end, then gives everything up, so that others may take it at
    /// once.
    async fn shut_down(self) {
        for running in self.loops.values() {
            running.stop.send_replace(true);
        }
        let deadline = Instant::now() + self.engine.settings.stop_timeout;
        for (scheduler, running) in self.loops {
            if tokio::time::timeout_at(deadline, running.task).await.is_err() {
                tracing::warn!(scheduler_name = %scheduler, "a step did not end in time; its lease runs out by itself");
                continue;
            }
            if let Err(error) = self.engine.ports.store.disown(&scheduler, running.token).await {
                tracing::warn!(scheduler_name = %scheduler, error = with_sources(&error), "ownership not given up");
            }
        }
    }
}

fn interval(period: Duration) -> tokio::time::Interval {
    let mut interval = tokio::time::interval(period.max(Duration::from_millis(1)));
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}
