//! Limits how many schedulers are being created or deleted at once. Clients that create them faster than workers can create
//! and delete them wait for the answer to each request; otherwise work would pile up for as long as they go on.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;

use crate::{Engine, Error, Result};

/// Enough to keep workers busy, and few enough to be done within seconds.
const IN_HAND_MAX: u32 = 200;

/// How long a request waits for others' schedulers to be done.
const WAIT_MAX: Duration = Duration::from_secs(10);

const LOOK_INTERVAL: Duration = Duration::from_millis(20);

#[derive(Default)]
pub(crate) struct Admission {
    /// How many more may be taken on before it is counted again what is in hand.
    left: Mutex<u32>,
    /// Those that are being written: the store does not count them yet.
    being_written: AtomicU32,
}

/// To be held until the scheduler is written.
pub(crate) struct Admitted<'a>(&'a AtomicU32);

impl Engine {
    pub(crate) async fn admit_scheduler(&self) -> Result<Admitted<'_>> {
        let refusal = || {
            Error::Conflict(format!(
                "{IN_HAND_MAX} schedulers or more are being created or deleted: try again when some of them are done"
            ))
        };
        tokio::time::timeout(WAIT_MAX, self.wait_for_hands()).await.unwrap_or_else(|_| Err(refusal()))
    }

    async fn wait_for_hands(&self) -> Result<Admitted<'_>> {
        let Admission { left, being_written } = &self.admission;
        // Who came first goes first, and nobody else counts meanwhile.
        let mut left = left.lock().await;
        while *left == 0 {
            // Before the store is asked: what is written between the two counts twice, and not never.
            let being_written = being_written.load(Ordering::Acquire);
            let in_hand = self.ports.store.schedulers_in_hand().await?.saturating_add(being_written);
            // Half of what is free: what others take, and deletions, which are never kept waiting, come on top.
            *left = IN_HAND_MAX.saturating_sub(in_hand).div_ceil(2);
            if *left == 0 {
                tokio::time::sleep(LOOK_INTERVAL).await;
            }
        }
        *left -= 1;
        being_written.fetch_add(1, Ordering::AcqRel);
        Ok(Admitted(being_written))
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
