//! Waiting for events: one connection of its own, whoever waits.

use std::sync::Arc;
use std::time::Duration;

use maestro_core::stream::StreamId;
use parking_lot::Mutex;
use redis::Value;
use redis::aio::MultiplexedConnection;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::failure::Failure;
use crate::table::Table;

/// After so long, whoever waits looks by itself: another ring may have begun, with lower numbers.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Between attempts to connect.
const CONNECT_EVERY: Duration = Duration::from_millis(500);

/// The task that waits in Redis, from the first time that anybody waits.
#[derive(Default)]
pub(crate) struct Watching(Mutex<Option<(JoinHandle<()>, watch::Receiver<()>)>>);

impl Watching {
    pub(crate) fn stop(&self) {
        if let Some((task, _)) = self.0.lock().take() {
            task.abort();
        }
    }
}

impl Table {
    pub(crate) async fn wait_until_grown(self: &Arc<Self>, next: StreamId) -> Result<(), Failure> {
        let mut grown = self.watch();
        // From here on nothing is missed, so what was before can be looked at.
        grown.borrow_and_update();
        if self.last_event().await? == Some(next) {
            // Too late, or the watch is over: the caller looks again anyway.
            let _ = tokio::time::timeout(WAIT_MAX, grown.changed()).await;
        }
        Ok(())
    }

    fn watch(self: &Arc<Self>) -> watch::Receiver<()> {
        let mut watching = self.watching.0.lock();
        if let Some((task, grown)) = &*watching
            && !task.is_finished()
        {
            return grown.clone();
        }
        let (sender, grown) = watch::channel(());
        let table = self.clone();
        let task = tokio::spawn(async move {
            loop {
                let watched = table.watch_one_connection(&sender);
                if let Err(failure) = watched.await {
                    tracing::debug!(error = %failure, "events are waited for again");
                }
                tokio::time::sleep(CONNECT_EVERY).await;
            }
        });
        *watching = Some((task, grown.clone()));
        grown
    }

    async fn watch_one_connection(&self, grown: &watch::Sender<()>) -> Result<(), Failure> {
        let mut connection = self.server.connect_to_wait(WAIT_MAX).await?;
        let mut seen = None;
        loop {
            let last = self.last_event().await?;
            if last != seen {
                // What happened before anybody could be told here.
                grown.send_replace(());
                seen = last;
            }
            self.wait_for_entry(&mut connection, last.map_or(0, |last| last.number)).await?;
        }
    }

    async fn wait_for_entry(&self, connection: &mut MultiplexedConnection, last: u64) -> Result<(), Failure> {
        let mut wait = redis::cmd("XREAD");
        wait.arg("COUNT").arg(1).arg("BLOCK").arg(WAIT_MAX.as_millis() as u64);
        wait.arg("STREAMS").arg(self.ring_key()).arg(format!("{last}-0"));
        let waited = wait.query_async::<Value>(connection).await;
        waited.map(drop).map_err(|error| Failure::Unavailable(error.to_string()))
    }
}
