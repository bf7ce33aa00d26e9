//! Records of health cycles and clean-ups that had nothing to do. Each is one row, and the rows of one second are written in
//! one commit.
//!
//! Nothing depends on these rows. An engine that is killed before they are written, or whose store does not answer, loses
//! the record of some cycles in which nothing happened.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::Mutex;

use crate::ports::store::{Change, Guard, NoAction, Transaction};
use crate::{Engine, with_sources};

/// How long the first one waits for others.
const TOGETHER: Duration = Duration::from_secs(1);

/// More than a worker looks at in that time; if there are more, the store is what cannot keep up.
const WAITING_MAX: usize = 10_000;

/// Written at once: as many as a store can well group.
const AT_ONCE_MAX: usize = 250;

/// Records that wait to be written.
#[derive(Default)]
pub(crate) struct NoActions(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    records: Vec<(Guard, NoAction)>,
    /// Someone will come for them.
    is_awaited: bool,
}

impl Engine {
    pub(crate) fn record_no_action(self: &Arc<Self>, guard: Guard, record: NoAction) {
        let mut waiting = self.no_actions.0.lock();
        if waiting.records.len() >= WAITING_MAX {
            self.metrics.no_actions_lost.inc();
            return;
        }
        waiting.records.push((guard, record));
        if !std::mem::replace(&mut waiting.is_awaited, true) {
            let engine = self.clone();
            self.tasks.spawn("records of idle cycles", async move {
                tokio::time::sleep(TOGETHER).await;
                engine.write_no_actions().await;
            });
        }
    }

    /// Writes what waits now.
    pub(crate) async fn write_no_actions(&self) {
        let records = {
            let mut waiting = self.no_actions.0.lock();
            waiting.is_awaited = false;
            std::mem::take(&mut waiting.records)
        };
        let mut records = records.into_iter().map(|(guard, record)| {
            let changes = vec![Change::RecordNoAction(record)];
            self.commit(Transaction::guarded("no action", guard, changes))
        });
        loop {
            let at_once: Vec<_> = records.by_ref().take(AT_ONCE_MAX).collect();
            if at_once.is_empty() {
                return;
            }
            let mut failures = join_all(at_once).await.into_iter().filter_map(Result::err);
            // Who is refused does not own the scheduler any more, or it is gone.
            let unavailable = failures.by_ref().filter(|error| error.refusal().is_none());
            let mut lost = 0;
            let mut last = None;
            for error in unavailable {
                lost += 1;
                last = Some(error);
            }
            if let Some(error) = last {
                self.metrics.no_actions_lost.inc_by(lost);
                tracing::warn!(records = lost, error = with_sources(&error), "idle cycles not recorded");
            }
        }
    }
}
