//! Events of schedulers that are deleted: what was accepted is delivered all the same, to the addresses that the forwarders
//! had in the end. What cannot be delivered in time is dropped, because nobody could ask for it any more.
//!
//! There is no scheduler that a worker could own, so each queue has an owner of its own, for a time. When it changes hands,
//! a delivery may be repeated.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use maestro_core::scheduler::Forwarder;
use maestro_core::time::Timestamp;

use crate::ports::store::{Change, LastAddress, OrphanedQueue, SchedulerRecord, StoreError};
use crate::tasks::interval;
use crate::{Engine, with_sources};

use super::round::{Destination, Round};
use super::{enabled, timeout_of};

/// How often queues are checked while there are any.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// To be written with the deletion of a scheduler: its events are still delivered, to where they would go now.
pub(crate) fn orphan_events(record: &SchedulerRecord) -> Change {
    let last = |forwarder: &Forwarder| {
        let (address, timeout_ms) = (forwarder.address.clone(), forwarder.timeout_ms);
        (forwarder.name.clone(), LastAddress { address, timeout_ms })
    };
    Change::OrphanEvents { scheduler: record.name.clone(), addresses: enabled(record).map(last).collect() }
}

pub(crate) async fn watch(engine: Arc<Engine>) {
    let engine = &*engine;
    let mut sync = interval(engine.settings.sync_interval);
    loop {
        sync.tick().await;
        loop {
            match deliver_due(engine).await {
                Ok(true) => tokio::time::sleep(CHECK_INTERVAL).await,
                Ok(false) => break,
                Err(error) => {
                    tracing::warn!(
                        error = with_sources(&error),
                        "events of deleted schedulers not delivered"
                    );
                    break;
                }
            }
        }
    }
}

/// False: there are no orphaned queues.
async fn deliver_due(engine: &Engine) -> Result<bool, StoreError> {
    let store = &engine.ports.store;
    if !store.has_orphaned_queues().await? {
        return Ok(false);
    }
    let now = engine.now();
    let queues = store.own_orphaned_queues(&engine.owner, engine.settings.ownership_ttl).await?;
    let due = queues.iter().filter(|queue| queue.next_at.is_some_and(|at: Timestamp| at <= now));
    for outcome in join_all(due.map(|queue| deliver(engine, queue))).await {
        outcome?;
    }
    Ok(true)
}

async fn deliver(engine: &Engine, queue: &OrphanedQueue) -> Result<usize, StoreError> {
    let OrphanedQueue { id, scheduler, forwarder, last, next_at: _ } = queue;
    let to = Destination::At { address: last.address.clone(), timeout: timeout_of(last.timeout_ms) };
    Round { engine, scheduler, forwarder, queue: *id, owned: None }.run(&to).await
}
