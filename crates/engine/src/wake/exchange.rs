//! Tells other processes what rings here, and rings for what they tell.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::WakeUps;
use crate::ports::WakeUpChannel;
use crate::ports::wake_ups::{Named, SEND_INTERVAL, WakeUpBatch, WakeUpError};
use crate::{Engine, Health, with_sources};

/// What is not on its way by then is lost: it would say nothing new.
const SEND_MAX: Duration = Duration::from_secs(5);
/// How long to wait when the channel does not work.
const RETRY: Duration = Duration::from_secs(1);
/// Components of [`Health`].
const SENDING: &str = "wake-ups to other processes";
const RECEIVING: &str = "wake-ups of other processes";

/// Runs for as long as the engine is up. What it loses is found by those who look by themselves.
pub(crate) async fn exchange(engine: Arc<Engine>, channel: Arc<dyn WakeUpChannel>) {
    let (wake, health) = (&engine.ports.wake, engine.health());
    wake.0.outgoing.open();
    // What rang before, here or there, was not exchanged.
    take_in(&engine, &WakeUpBatch::everything());
    tokio::join!(send(wake, &*channel, health), receive(&engine, &*channel, health));
}

async fn send(wake: &WakeUps, channel: &dyn WakeUpChannel, health: &Health) {
    loop {
        let batch = wake.0.outgoing.take().await;
        let sent = timeout(SEND_MAX, channel.send(&batch)).await;
        let sent = sent.unwrap_or_else(|_| Err(WakeUpError("no answer in time".into())));
        match sent {
            Ok(()) => {
                health.clear(SENDING);
                sleep(SEND_INTERVAL).await;
            }
            Err(error) => {
                health.degraded(SENDING, with_sources(&error));
                sleep(RETRY).await;
            }
        }
    }
}

async fn receive(engine: &Engine, channel: &dyn WakeUpChannel, health: &Health) {
    loop {
        match channel.receive().await {
            Ok(batch) => {
                health.clear(RECEIVING);
                take_in(engine, &batch);
            }
            Err(error) => {
                health.degraded(RECEIVING, with_sources(&error));
                sleep(RETRY).await;
            }
        }
    }
}

fn take_in(engine: &Engine, batch: &WakeUpBatch) {
    engine.ports.wake.ring_for(batch);
    if !batch.rooms.is_empty() {
        engine.allocations.room_freed();
    }
    match &batch.events {
        Named::These(names) => names.iter().for_each(|name| engine.events.queued(name)),
        Named::All => engine.events.all_queued(),
    }
}
