//! What is left of schedulers that do not exist: their operations, once they are old enough, and rooms. A start that was in flight when its worker lost the scheduler happens at last,
//! perhaps when the scheduler is gone: then it has no cycle that would find the room.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::operations::{forget_no_action, forget_operations};
use crate::ports::Runtime;
use crate::ports::store::{Change, Transaction};
use crate::tasks::interval;
use crate::{Engine, Result, with_sources};

/// Listing a runtime costs, and leftovers are rare.
const EVERY: Duration = Duration::from_secs(60);

pub(crate) async fn watch(engine: Arc<Engine>) {
    let engine = &*engine;
    let mut look = interval(EVERY);
    let mut next_clean_up = Instant::now();
    loop {
        look.tick().await;
        forget(engine, forget_no_action(engine)).await;
        if Instant::now() >= next_clean_up {
            next_clean_up = Instant::now() + engine.settings.storage_clean_up_interval;
            forget(engine, forget_operations(engine, None)).await;
        }
        let reachable =
            engine.ports.runtimes.iter().filter(|(region, _)| engine.regions.is_reachable(region));
        for (region, runtime) in reachable {
            if let Err(error) = stop(engine, &**runtime).await {
                tracing::warn!(%region, error = with_sources(&error), "not known whether rooms are left over");
            }
        }
    }
}

async fn forget(engine: &Engine, what: Change) {
    let transaction = Transaction::of_no_scheduler("forget operations", vec![what]);
    if let Err(error) = engine.commit(transaction).await {
        tracing::warn!(error = with_sources(&error), "expired operations could not be deleted, trying again");
    }
}

/// The runtime is listed first: a scheduler that is made after that has none of these rooms.
pub(crate) async fn stop(engine: &Engine, runtime: &dyn Runtime) -> Result {
    let running = runtime.list().await?;
    if running.is_empty() {
        return Ok(());
    }
    let schedulers: BTreeSet<_> = engine.ports.store.scheduler_names().await?.into_iter().collect();
    for room in running.iter().filter(|room| !schedulers.contains(&room.scheduler)) {
        tracing::warn!(room_id = %room.id, scheduler_name = %room.scheduler, "stopping a room of a scheduler that does not exist");
        // The next look tries again: one that does not go must not keep others from their region.
        if let Err(error) = runtime.stop(&room.scheduler, &room.id, Some(&room.handle), Duration::ZERO).await
        {
            tracing::warn!(room_id = %room.id, scheduler_name = %room.scheduler, %error, "room could not be stopped, trying again");
        }
    }
    Ok(())
}
