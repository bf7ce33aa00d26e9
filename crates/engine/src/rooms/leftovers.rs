//! Rooms of schedulers that do not exist. A start that was in flight when its worker lost the scheduler happens at last,
//! perhaps when the scheduler is gone: then it has no cycle that would find the room.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::MissedTickBehavior;

use crate::ports::Runtime;
use crate::{Engine, Error, with_sources};

/// Listing a runtime costs, and leftovers are rare.
const EVERY: Duration = Duration::from_secs(60);

pub(crate) async fn watch(engine: &Engine) {
    let mut look = tokio::time::interval(EVERY);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        let reachable =
            engine.ports.runtimes.iter().filter(|(region, _)| engine.regions.is_reachable(region));
        for (region, runtime) in reachable {
            if let Err(error) = stop(engine, &**runtime).await {
                tracing::warn!(%region, error = with_sources(&error), "not known whether rooms are left over");
            }
        }
    }
}

/// The runtime is listed first: a scheduler that is made after that has none of these rooms.
pub(crate) async fn stop(engine: &Engine, runtime: &dyn Runtime) -> Result<(), Error> {
    let running = runtime.list().await?;
    if running.is_empty() {
        return Ok(());
    }
    let schedulers = engine.ports.store.schedulers().await?;
    let schedulers: BTreeSet<_> = schedulers.into_iter().map(|record| record.name).collect();
    for room in running.iter().filter(|room| !schedulers.contains(&room.scheduler)) {
        tracing::warn!(room_id = %room.id, scheduler_name = %room.scheduler, "stopping a room of a scheduler that does not exist");
        runtime.stop(&room.scheduler, &room.id, Some(&room.handle), Duration::ZERO).await?;
    }
    Ok(())
}
