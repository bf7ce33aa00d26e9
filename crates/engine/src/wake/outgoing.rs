//! What other processes are still to be told. Where there are none, nothing is kept.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::ports::wake_ups::WakeUpBatch;

#[derive(Default)]
pub(super) struct Outgoing {
    /// Somebody sends it.
    is_open: AtomicBool,
    batch: Mutex<WakeUpBatch>,
    filled: Notify,
}

impl Outgoing {
    /// From now on what is added is kept until it is taken.
    pub(super) fn open(&self) {
        self.is_open.store(true, Ordering::Relaxed);
    }

    /// Called with every ping that changes something.
    pub(super) fn add(&self, add: impl FnOnce(&mut WakeUpBatch)) {
        if !self.is_open.load(Ordering::Relaxed) {
            return;
        }
        let mut batch = self.batch.lock();
        let was_empty = batch.is_empty();
        add(&mut batch);
        drop(batch);
        if was_empty {
            self.filled.notify_one();
        }
    }

    /// Waits until there is something.
    pub(super) async fn take(&self) -> WakeUpBatch {
        loop {
            let batch = std::mem::take(&mut *self.batch.lock());
            if !batch.is_empty() {
                return batch;
            }
            self.filled.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_added_is_taken_together_once_somebody_sends_it() {
        let outgoing = Outgoing::default();
        outgoing.add(|batch| batch.regions = true);
        outgoing.open();
        outgoing.add(|batch| batch.rooms.add("arena"));
        outgoing.add(|batch| batch.workforce = true);
        let mut expected = WakeUpBatch { workforce: true, ..WakeUpBatch::default() };
        expected.rooms.add("arena");
        assert_eq!(outgoing.take().await, expected);
        let later = async {
            outgoing.add(|batch| batch.regions = true);
        };
        let (batch, ()) = tokio::join!(outgoing.take(), later);
        assert_eq!(batch, WakeUpBatch { regions: true, ..WakeUpBatch::default() });
    }
}
