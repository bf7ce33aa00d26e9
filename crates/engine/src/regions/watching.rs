//! Watches regions: one task for each asks its runtime every few seconds. A region that answers again is adopted before
//! anything else is done with it. Every wait has an end, so a region that hangs delays only itself.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use maestro_core::region::Region;
use tokio::time::timeout;

use crate::engine::Parts;
use crate::ports::Runtime;
use crate::ports::runtime::RuntimeError;
use crate::rooms::recovery;
use crate::tasks::interval;
use crate::{Engine, with_sources};

use super::{Contact, observed};

const CHECK_EVERY: Duration = Duration::from_secs(5);
/// To adopt and list thousands of rooms, and to make a place for each scheduler.
const ADOPTION_PATIENCE: Duration = Duration::from_secs(120);
const ADOPTION_ATTEMPTS: u32 = 3;
const ADOPTION_PAUSE: Duration = Duration::from_millis(500);

/// The first look, at all regions side by side. Those that do not answer are left to [`watch`].
pub(crate) async fn begin(engine: &Engine, parts: Parts) {
    engine.regions.begin();
    let runtimes = engine.ports.runtimes.iter();
    join_all(runtimes.map(|(region, runtime)| look(engine, parts, region, runtime))).await;
}

/// Looks at one region, for as long as the engine is up.
pub(crate) async fn watch(engine: Arc<Engine>, parts: Parts, region: Region, runtime: Arc<dyn Runtime>) {
    let mut turn = interval(CHECK_EVERY);
    // The first one is at once, and the first look was just made.
    turn.tick().await;
    loop {
        turn.tick().await;
        look(&engine, parts, &region, &runtime).await;
    }
}

async fn look(engine: &Engine, parts: Parts, region: &Region, runtime: &Arc<dyn Runtime>) {
    let before = engine.regions.contact(region);
    let answer = runtime.check().await.map_err(|error| match error {
        RuntimeError::Refused(why) | RuntimeError::Full(why) | RuntimeError::Unavailable(why) => why,
    });
    engine.regions.heard(region, answer, engine.now());
    if engine.regions.waits_to_be_adopted(region) {
        let outcome = adopt(engine, parts, region, runtime).await;
        engine.regions.adopted(region, outcome, engine.now());
    }
    tell(engine, parts, region, &before).await;
    observed::tell(engine, region).await;
}

/// Tried a few times: one call that is lost on its way must not move a fleet to other regions.
async fn adopt(
    engine: &Engine,
    parts: Parts,
    region: &Region,
    runtime: &Arc<dyn Runtime>,
) -> Result<(), String> {
    let mut why = String::new();
    for attempt in 0..ADOPTION_ATTEMPTS {
        if attempt > 0 {
            tokio::time::sleep(ADOPTION_PAUSE).await;
        }
        match timeout(ADOPTION_PATIENCE, recovery::adopt(engine, parts, region, runtime)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => why = with_sources(&error),
            Err(_) => return Err(format!("not done within {ADOPTION_PATIENCE:?}")),
        }
    }
    Err(why)
}

/// What changed is logged, counted, and looked at by every scheduler.
async fn tell(engine: &Engine, parts: Parts, region: &Region, before: &Contact) {
    let now = engine.regions.contact(region);
    if parts.reporter {
        engine.metrics.region_reachable(region, matches!(now, Contact::Reachable { .. }));
    }
    match (before, &now) {
        (Contact::Reachable { .. } | Contact::Unsettled { .. }, Contact::Unreachable { why }) => {
            tracing::warn!(%region, why, "region cannot be reached");
            engine.metrics.region_changed(region, "unreachable");
        }
        (Contact::Unreachable { .. } | Contact::Unsettled { .. }, Contact::Reachable { .. }) => {
            tracing::info!(%region, "region can be reached");
            // What it has is compared with the registry by the next cycle of each scheduler.
            engine.reconciled.forget();
            engine.metrics.region_changed(region, "reachable");
        }
        (
            Contact::Unreachable { why: before } | Contact::Unsettled { why: before },
            Contact::Unreachable { why } | Contact::Unsettled { why },
        ) if before != why => {
            tracing::debug!(%region, why, "region cannot be reached");
            return;
        }
        _ => return,
    }
    engine.tell_contact(region, &now).await;
    engine.ports.wake.rooms_changed();
}
