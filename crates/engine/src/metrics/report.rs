//! Gauges are read from the store and the room table now and then, by one task.

use std::collections::BTreeSet;
use std::sync::PoisonError;
use std::time::Duration;

use tokio::time::MissedTickBehavior;

use crate::{Engine, Error, with_sources};

/// How often the gauges of fleets are brought up to date.
const REPORT_EVERY: Duration = Duration::from_secs(10);

/// Brings the gauges of all fleets up to date, again and again.
pub(crate) async fn report(engine: &Engine) {
    let mut interval = tokio::time::interval(REPORT_EVERY);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        if let Err(error) = report_once(engine).await {
            tracing::warn!(error = with_sources(&error), "gauges not brought up to date");
        }
    }
}

async fn report_once(engine: &Engine) -> Result<(), Error> {
    let mut shown = BTreeSet::new();
    let mut seen = Vec::new();
    for scheduler in engine.ports.store.schedulers().await? {
        let counts = engine.fleet_counts(&scheduler.name).await?;
        shown.insert(engine.metrics.show(&scheduler, &counts));
        let locks = engine.ports.store.locks(&scheduler.name).await?;
        seen.push((scheduler, counts, locks));
    }
    engine.metrics.show_unreadable(&engine.ports.store.unreadable_schedulers().await?);
    for region in engine.ports.runtimes.keys() {
        engine.metrics.regions.silent(region, engine.spared(region).await?);
    }
    engine.metrics.locks.clear();
    engine.metrics.regions.clear();
    for (scheduler, counts, locks) in &seen {
        engine.metrics.locks.show(scheduler, locks, engine.now());
        engine.metrics.regions.show(scheduler, counts);
    }
    engine.metrics.forget_gone(seen.iter().map(|(scheduler, ..)| scheduler.name.to_string()).collect());
    let mut before = engine.metrics.shown.lock().unwrap_or_else(PoisonError::into_inner);
    for gone in before.difference(&shown) {
        engine.metrics.hide(gone);
    }
    *before = shown;
    Ok(())
}
