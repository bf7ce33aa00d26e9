//! Changes of status on their way into the ring of events.
//!
//! The script that changes a room adds the change to a list of its scheduler, in the same step. That list is carried to the
//! ring from there, which may be in another slot of a cluster: read, appended, and only then cut off. Every change has a
//! number, and the ring remembers the last one of each scheduler, so that nothing is in it twice when several processes
//! carry, or one is killed in between. What a process leaves behind is carried with the scheduler's next change. Where
//! changes were dropped, because the ring could not be reached for too long, another ring begins.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use maestro_core::room::RoomId;
use maestro_core::scheduler::SchedulerName;
use maestro_core::stream::{Happened, StreamEvent};
use maestro_core::time::Timestamp;
use serde::Deserialize;
use serde_bytes::ByteBuf;

use crate::failure::Failure;
use crate::record::word;
use crate::ring::Source;
use crate::table::Table;

/// Carried at once.
const BATCH_MAX: usize = 500;

#[derive(Default)]
pub(crate) struct Carrying {
    /// In this process, so that it does not do everything several times.
    one_at_a_time: tokio::sync::Mutex<()>,
    /// A task carries, or is about to.
    is_running: AtomicBool,
}

/// A change of status as room.lua tells it.
#[derive(Deserialize)]
struct Told(i64, String, u8, u8);

/// What of a scheduler is not in the ring.
#[derive(Deserialize)]
struct Untold {
    epoch: String,
    before: u64,
    changes: Vec<ByteBuf>,
}

impl Table {
    pub(crate) fn carry_later(self: &Arc<Self>, scheduler: &SchedulerName) {
        self.untold.lock().insert(scheduler.clone());
        if !self.carrying.is_running.swap(true, Ordering::AcqRel) {
            let table = self.clone();
            tokio::spawn(async move {
                table.carrying.is_running.store(false, Ordering::Release);
                if let Err(failure) = table.carry_all().await {
                    tracing::debug!(error = %failure, "changes of status are told later");
                }
            });
        }
    }

    /// When it returns, everything that this process has changed before is in the ring.
    pub(crate) async fn carry_all(self: &Arc<Self>) -> Result<(), Failure> {
        let _one_at_a_time = self.carrying.one_at_a_time.lock().await;
        let schedulers = std::mem::take(&mut *self.untold.lock());
        let mut result = Ok(());
        for scheduler in schedulers {
            if let Err(failure) = self.carry(&scheduler).await {
                self.untold.lock().insert(scheduler);
                result = Err(failure);
            }
        }
        result
    }

    async fn carry(self: &Arc<Self>, scheduler: &SchedulerName) -> Result<(), Failure> {
        let (mut epoch, mut carried) = (String::new(), 0);
        loop {
            let untold: Untold =
                self.run(&self.scripts.told, scheduler, &(BATCH_MAX, &epoch, carried)).await?;
            if untold.changes.is_empty() {
                return Ok(());
            }
            carried = untold.before + untold.changes.len() as u64;
            let events =
                untold.changes.iter().map(|change| event(scheduler, change)).collect::<Result<_, _>>()?;
            let source =
                Source { scheduler: scheduler.as_str(), epoch: &untold.epoch, before: untold.before };
            self.append_events(events, false, Some(source)).await?;
            epoch = untold.epoch;
        }
    }
}

fn event(scheduler: &SchedulerName, packed: &[u8]) -> Result<StreamEvent, Failure> {
    let unreadable = |why: String| Failure::unreadable("a change of status", why);
    let Told(at, room, before, after) =
        rmp_serde::from_slice(packed).map_err(|error| unreadable(error.to_string()))?;
    let at = Timestamp::from_microsecond(at).map_err(|error| unreadable(error.to_string()))?;
    let what = Happened::RoomChanged { room: RoomId::new(&room), before: word(before)?, after: word(after)? };
    Ok(StreamEvent { at, scheduler: Some(scheduler.clone()), what })
}
