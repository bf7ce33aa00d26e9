//! Panic scaling: when a room says that it is occupied and the fleet is nearly full, rooms are added at once.
//!
//! A ping only raises a flag. One task of the engine looks at the schedulers whose flag is up, so that ten thousand pings
//! lead to a handful of looks. The panic lock, taken in the transaction that enqueues the rooms, makes sure that only one
//! operation follows, however many engines decide the same.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::operations::{Result, whole_fleet};
use crate::ports::store::{Change, SchedulerRecord, SchedulerState, StoreError, Transaction};
use crate::tasks::interval;
use crate::{Engine, with_sources};
use maestro_core::autoscaling::Demand;
use maestro_core::lock::{LockKind, Taker};
use maestro_core::operation::{Definition, Origin};
use maestro_core::panic_scaling::{Need, need};
use maestro_core::plan::Counted;
use maestro_core::scheduler::{Autoscaling, SchedulerName};
use parking_lot::RwLock;
use tokio::sync::Notify;

/// Looks keep at least this distance: short beside the start of a room, long beside a burst of pings.
const LOOK_GAP: Duration = Duration::from_millis(100);

/// The schedulers that panic, and of which of them a room said that it is occupied since the last look.
///
/// Read from the store when the task begins and with every sync interval; a worker also says what it reads of its own
/// schedulers, so that where it works a new version counts at once.
#[derive(Default)]
pub(crate) struct Panics {
    /// Whether there are any: all that a ping asks where nobody panics.
    any: AtomicBool,
    heard: RwLock<BTreeMap<SchedulerName, AtomicBool>>,
    bell: Notify,
}

impl Panics {
    /// A room says that it is occupied, or was given to a matchmaker. Called with every such ping.
    pub(crate) fn occupied(&self, scheduler: &str) {
        if !self.any.load(Ordering::Relaxed) {
            return;
        }
        // Most find the flag up already, and need not write to what all of them read.
        if let Some(heard) = self.heard.read().get(scheduler)
            && !heard.load(Ordering::Relaxed)
            && !heard.swap(true, Ordering::Relaxed)
        {
            self.bell.notify_one();
        }
    }

    /// What a scheduler's recipe says by now.
    pub(crate) fn update(&self, record: &SchedulerRecord) {
        let panics = record.autoscaling().and_then(Autoscaling::panic_scale).is_some();
        if self.heard.read().contains_key(&record.name) == panics {
            return;
        }
        let mut heard = self.heard.write();
        match panics {
            true => heard.entry(record.name.clone()).or_default().store(false, Ordering::Relaxed),
            false => drop(heard.remove(&record.name)),
        }
        self.any.store(!heard.is_empty(), Ordering::Relaxed);
    }

    fn update_all(&self, records: &[SchedulerRecord]) {
        records.iter().for_each(|record| self.update(record));
        let names: BTreeSet<&SchedulerName> = records.iter().map(|record| &record.name).collect();
        let mut heard = self.heard.write();
        heard.retain(|name, _| names.contains(name));
        self.any.store(!heard.is_empty(), Ordering::Relaxed);
    }

    /// Those that were heard of, each once.
    fn take_heard(&self) -> Vec<SchedulerName> {
        let heard = self.heard.read();
        let flags = heard.iter().filter(|(_, flag)| flag.swap(false, Ordering::Relaxed));
        flags.map(|(name, _)| name.clone()).collect()
    }
}

/// Looks at the schedulers that rooms speak of, for as long as the engine is up.
pub(crate) async fn watch(engine: Arc<Engine>) {
    let engine = &*engine;
    let mut sync = interval(engine.settings.sync_interval);
    loop {
        tokio::select! {
            biased;
            _ = sync.tick() => match engine.ports.store.schedulers().await {
                Ok(records) => engine.panics.update_all(&records),
                Err(error) => {
                    tracing::warn!(error = with_sources(&error), "cannot read which schedulers have panic scaling");
                }
            },
            () = engine.panics.bell.notified() => {
                for scheduler in engine.panics.take_heard() {
                    if let Err(error) = look(engine, &scheduler).await {
                        // The next ping asks again.
                        tracing::warn!(scheduler_name = %scheduler, error = with_sources(&error), "panic check failed");
                    }
                }
                tokio::time::sleep(LOOK_GAP).await;
            }
        }
    }
}

/// Decides on the counters, which cost nothing, and if they say so once more on everything that is on its way.
async fn look(engine: &Engine, scheduler: &SchedulerName) -> Result {
    let Some(record) = engine.ports.store.scheduler(scheduler).await? else { return Ok(()) };
    let Some(autoscaling) = at_work(&record) else { return Ok(()) };
    let matches_max = record.recipe.match_allocation.max_matches;
    let counts = engine.ports.table.counts(scheduler).await?;
    // The counters do not know which regions can be reached: with one that is lost, there are fewer places.
    if engine.regions.all_reachable() && need(&counts.demand(matches_max), autoscaling).is_none() {
        return Ok(());
    }
    let (record, fleet) = whole_fleet(engine, scheduler, None).await?;
    let Some(autoscaling) = at_work(&record) else { return Ok(()) };
    if fleet.panic || fleet.place_left(&record) == Some(0) {
        return Ok(());
    }
    let Counted { matches, occupied, total, .. } = fleet.plan(&record).seen;
    let Some(need) = need(&Demand { matches, occupied, total, matches_max, waiting: 0 }, autoscaling) else {
        return Ok(());
    };
    // Rooms that end early help nobody, however great the need is.
    let held = fleet.starts_held(&record, need.delta).map_or(0, |backoff| backoff.rooms);
    match need.delta.saturating_sub(held) {
        0 => Ok(()),
        delta => ask_for_rooms(engine, &record, Need { delta, ..need }).await,
    }
}

fn at_work(record: &SchedulerRecord) -> Option<&Autoscaling> {
    record.autoscaling().filter(|_| record.state == SchedulerState::InSync)
}

/// The lock and the rooms in one transaction: of all who ask for the same, one gets them.
async fn ask_for_rooms(engine: &Engine, record: &SchedulerRecord, need: Need) -> Result {
    let need = Need { delta: need.delta.min(engine.settings.rooms_add_limit), ..need };
    let definition = Definition::AddRooms { amount: need.delta };
    let mut operation = engine.new_operation(&record.name, definition, Origin::Panic);
    operation.priority = true;
    operation.reason = need.to_string();
    let taker = Taker::of(operation.holder());
    let lock = engine.take_lock(&record.name, LockKind::Panic, taker, &operation.reason);
    let changes = vec![lock, Change::Enqueue(operation)];
    match engine.commit(Transaction::new("panic", &record.name, changes)).await {
        Ok(()) => {}
        // Somebody else was faster, or there is nothing left to add to.
        Err(StoreError::Refused(refusal)) => {
            tracing::debug!(scheduler_name = %record.name, %refusal, "panic scaling not started");
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    }
    tracing::warn!(scheduler_name = %record.name, reason = %need, "panic: rooms are added at once");
    engine.metrics.panicked(record);
    engine.ports.wake.queue_changed(&record.name);
    Ok(())
}
