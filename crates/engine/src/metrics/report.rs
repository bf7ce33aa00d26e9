//! Gauges are read from the store and the room table now and then, by one task.

use std::sync::Arc;
use std::time::Duration;

use crate::tasks::interval;
use crate::{Engine, Result, with_sources};

use super::fleets::FleetReport;

/// How often the gauges of fleets are brought up to date.
const REPORT_EVERY: Duration = Duration::from_secs(10);

/// Brings the gauges of all fleets up to date, again and again.
pub(crate) async fn report(engine: Arc<Engine>) {
    let mut interval = interval(REPORT_EVERY);
    loop {
        interval.tick().await;
        if let Err(error) = report_once(&engine).await {
            tracing::warn!(error = with_sources(&error), "gauges not brought up to date");
        }
    }
}

async fn report_once(engine: &Engine) -> Result {
    let store = &engine.ports.store;
    let mut fleets = Vec::new();
    let (schedulers, unreadable) = store.all_schedulers().await?;
    engine.metrics.show_unreadable(&unreadable);
    for scheduler in schedulers {
        let counts = engine.fleet_counts(&scheduler.name).await?;
        let locks = engine.shown_locks(&scheduler.name).await?;
        fleets.push(FleetReport { scheduler, counts, locks, at: engine.now() });
    }
    for region in engine.ports.runtimes.keys() {
        engine.metrics.silent(region, engine.spared(region).await?);
    }
    engine.metrics.forget_gone(fleets.iter().map(|fleet| fleet.scheduler.name.to_string()).collect());
    engine.metrics.fleets.show(fleets);
    Ok(())
}
