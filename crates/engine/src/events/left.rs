//! Events of schedulers that are deleted. What was accepted is delivered all the same, to where it would have gone when the
//! scheduler was deleted; what cannot be delivered in time is given up, because nobody could ask for it any more.
//!
//! There is no scheduler left to own, so each queue has an owner of its own, for a time. Two that take turns may repeat a
//! delivery.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use maestro_core::time::Timestamp;

use crate::ports::store::{LeftQueue, StoreError};
use crate::tasks::interval;
use crate::{Engine, with_sources};

use super::round::{Receiver, Round};
use super::timeout_of;

/// While something is left, how often it is looked at.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

pub(crate) async fn watch(engine: Arc<Engine>) {
    let engine = &*engine;
    let mut sync = interval(engine.settings.sync_interval);
    loop {
        sync.tick().await;
        loop {
            match deliver_due(engine).await {
                Ok(true) => tokio::time::sleep(LOOK_AGAIN).await,
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

/// True: something is left.
async fn deliver_due(engine: &Engine) -> Result<bool, StoreError> {
    let store = &engine.ports.store;
    if !store.has_left_queues().await? {
        return Ok(false);
    }
    let now = engine.now();
    let queues = store.own_left_queues(&engine.owner, now, engine.settings.ownership_ttl).await?;
    let due = queues.iter().filter(|queue| queue.next_at.is_some_and(|at: Timestamp| at <= now));
    for outcome in join_all(due.map(|queue| deliver(engine, queue))).await {
        outcome?;
    }
    Ok(true)
}

async fn deliver(engine: &Engine, queue: &LeftQueue) -> Result<usize, StoreError> {
    let LeftQueue { id, scheduler, forwarder, last, next_at: _ } = queue;
    let to = Receiver::At { address: last.address.clone(), timeout: timeout_of(last.timeout_ms) };
    Round { engine, scheduler, forwarder, queue: *id, owned: None }.run(&to).await
}
