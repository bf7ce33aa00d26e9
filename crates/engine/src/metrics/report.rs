//! Gauges are read from the store and the room table now and then, by one task.

use std::sync::Arc;
use std::time::Duration;

use maestro_core::scheduler::{Forwarder, SchedulerState};
use tokio::time::Instant;

use crate::ports::room_table::FleetCounts;
use crate::ports::store::SchedulerRecord;
use crate::silences::SeenCounts;
use crate::tasks::interval;
use crate::{Engine, Result, with_sources};

use super::QueueReport;
use super::fleets::FleetReport;

/// How often the gauges of fleets are brought up to date.
const REPORT_EVERY: Duration = Duration::from_secs(10);

/// Brings the gauges of all fleets up to date, again and again. `plans`: this process makes plans, which find silent rooms.
pub(crate) async fn report(engine: Arc<Engine>, plans: bool) {
    let mut interval = interval(REPORT_EVERY);
    loop {
        interval.tick().await;
        if let Err(error) = report_once(&engine, plans).await {
            tracing::warn!(error = with_sources(&error), "gauges not brought up to date");
        }
    }
}

/// Where nobody reports, the counters of schedulers that are gone go all the same.
pub(crate) async fn forget_gone(engine: Arc<Engine>) {
    let mut interval = interval(REPORT_EVERY);
    loop {
        interval.tick().await;
        match engine.ports.store.scheduler_names().await {
            Ok(names) => engine.metrics.forget_gone(names.iter().map(ToString::to_string).collect()),
            Err(error) => {
                tracing::warn!(error = with_sources(&error), "metrics of deleted schedulers not dropped");
            }
        }
    }
}

async fn report_once(engine: &Engine, plans: bool) -> Result {
    let store = &engine.ports.store;
    let (mut fleets, mut queues, mut untold) = (Vec::new(), Vec::new(), Vec::new());
    let (schedulers, unreadable) = store.all_schedulers().await?;
    engine.metrics.show_unreadable(&unreadable);
    let names = schedulers.iter().map(|scheduler| scheduler.name.to_string()).collect();
    let began = Instant::now();
    for scheduler in schedulers {
        queues.extend(queues_of(engine, &scheduler).await?);
        // A table that does not answer at all is not asked for each of a thousand fleets.
        let is_silent = !untold.is_empty() && began.elapsed() > REPORT_EVERY;
        let counts = if is_silent { None } else { counts_of(engine, &scheduler).await };
        let Some(counts) = counts else {
            untold.push(scheduler.name);
            continue;
        };
        let locks = engine.shown_locks(&scheduler.name).await?;
        fleets.push(FleetReport { scheduler, counts, locks, at: engine.now() });
    }
    engine.metrics.forget_gone(names);
    engine.metrics.fleets.show(fleets);
    engine.metrics.events.show_queues(queues);
    engine.metrics.show_untold(&untold);
    for region in &engine.regions.names() {
        if !plans {
            engine.look_for_silence(region).await?;
        }
        engine.metrics.silent(region, engine.spared(region).await?);
        let is_reachable = engine.regions.is_reachable(region);
        engine.metrics.region_reachable(region, is_reachable);
    }
    Ok(())
}

/// `None`: the room table has lost the fleet, or does not answer. Others are shown all the same.
async fn counts_of(engine: &Engine, scheduler: &SchedulerRecord) -> Option<FleetCounts> {
    let counts = engine.fleet_counts(&scheduler.name).await;
    let name = &scheduler.name;
    counts
        .inspect_err(
            |error| tracing::warn!(scheduler_name = %name, error = with_sources(error), "rooms not counted"),
        )
        .ok()
        .and_then(|SeenCounts { counts, is_lost }| {
            // A scheduler that is being created has no rooms that could have been lost.
            let is_known = !is_lost || scheduler.state == SchedulerState::Creating;
            is_known.then_some(counts)
        })
}

/// Of every forwarder: one for which nothing waits is shown with 0.
async fn queues_of(engine: &Engine, scheduler: &SchedulerRecord) -> Result<Vec<QueueReport>> {
    let forwarders = &scheduler.recipe.forwarders;
    if forwarders.is_empty() {
        return Ok(Vec::new());
    }
    let queues = engine.ports.store.event_queues(&scheduler.name).await?;
    let report = |forwarder: &Forwarder| {
        let queue = queues.iter().find(|queue| queue.forwarder == forwarder.name);
        QueueReport::new(&scheduler.name, &forwarder.name, queue, engine.now())
    };
    Ok(forwarders.iter().map(report).collect())
}
