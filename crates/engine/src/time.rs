//! What time it is: the store's, whatever the clock of this host shows. All engines that share a store mean the same moment
//! by the same time, so the times that one of them writes down can be compared by any other.
//!
//! The store is asked when an engine starts and every second from then on; `maestro_core::store_time` makes an estimate of
//! its answers. While it does not answer, time goes on from the last estimate, by the clock that tenures count on.

use std::sync::Arc;
use std::time::Duration;

use maestro_core::store_time::{StoreTimeAnswer, StoreTimeEstimate};
use maestro_core::time::{Millis, Timestamp, age};
use parking_lot::Mutex;

use crate::listening::CLOCK_STEP;
use crate::ports::Clock;
use crate::ports::store::StoreError;
use crate::tasks::interval;
use crate::{Engine, Result, with_sources};

/// How often the store is asked. A clock that is set must not go unnoticed for long: until then, this engine and the store
/// mean different moments by the same time.
const ASK_INTERVAL: Duration = Duration::from_secs(1);

/// One of a few answers is a quick one.
const ANSWERS_AT_START: usize = 5;

/// An answer that takes longer says too little.
const ANSWER_MAX: Duration = Duration::from_secs(5);

pub(crate) struct StoreTime {
    clock: Arc<dyn Clock>,
    estimate: Mutex<StoreTimeEstimate>,
}

impl StoreTime {
    /// Until the store is asked, which is the first thing that an engine does when it starts, it is what this host's clock
    /// shows.
    #[expect(clippy::disallowed_methods, reason = "nothing is decided before the store is asked")]
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let estimate = StoreTimeEstimate::guess(clock.now(), clock.since_boot());
        Self { clock, estimate: Mutex::new(estimate) }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.estimate.lock().now(self.clock.since_boot())
    }

    fn heard(&self, answer: &StoreTimeAnswer) {
        let mut estimate = self.estimate.lock();
        let (before, moved) = (*estimate, estimate.confined(answer));
        *estimate = moved;
        drop(estimate);
        let (was, is) = (before.now(answer.answered_at), moved.now(answer.answered_at));
        if age(was, is).max(age(is, was)) > CLOCK_STEP {
            tracing::warn!(%was, %is, "the store's clock was set, or this host stood still");
        }
    }
}

/// Asks the store for the first time. Without its time there is nothing that an engine could do.
pub(crate) async fn learn(engine: &Engine) -> Result {
    let mut answers = Vec::with_capacity(ANSWERS_AT_START);
    for _ in 0..ANSWERS_AT_START {
        match ask(engine).await {
            Ok(answer) => answers.push(answer),
            Err(error) if answers.is_empty() => return Err(error.into()),
            Err(_) => break,
        }
    }
    if let Some(estimate) = StoreTimeEstimate::of_best(&answers) {
        *engine.time.estimate.lock() = estimate;
    }
    Ok(())
}

pub(crate) async fn watch(engine: Arc<Engine>) {
    let mut due = interval(ASK_INTERVAL);
    loop {
        due.tick().await;
        match ask(&engine).await {
            Ok(answer) => engine.time.heard(&answer),
            // Whoever needs more of the store than its time says so louder.
            Err(error) => tracing::debug!(error = with_sources(&error), "the store does not tell its time"),
        }
    }
}

async fn ask(engine: &Engine) -> Result<StoreTimeAnswer, StoreError> {
    let clock = &engine.ports.clock;
    let asked_at = clock.since_boot();
    let answered = tokio::time::timeout(ANSWER_MAX, engine.ports.store.now()).await;
    let late =
        |_| StoreError::unavailable("tell its time", format!("no answer in {}", Millis::from(ANSWER_MAX)));
    let store_time = answered.map_err(late)??;
    Ok(StoreTimeAnswer { asked_at, answered_at: clock.since_boot(), store_time })
}
