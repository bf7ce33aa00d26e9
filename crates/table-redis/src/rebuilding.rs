//! Whether all rooms of a scheduler are there.
//!
//! The mark of a scheduler holds which history the data of Redis was of when the rooms were all there: `master_replid`,
//! which is another one after a restart and after a failover (and when a server gets its first replica, or has had none for
//! an hour: nothing is lost then, and nobody can tell). Each script compares the two first. If they differ, or there is no mark
//! (after `FLUSHALL`), the rooms are lost: not gone, and not what they were. Then nothing is done and nothing is told,
//! until the scheduler's owner has inserted them again.

use std::sync::Arc;

use maestro_core::scheduler::SchedulerName;

use crate::failure::Failure;
use crate::scripts::{CLEARING, REMOVING};
use crate::table::Table;

/// Removed at once.
const PART: usize = 250;

impl Table {
    pub(crate) async fn begin_rebuild(self: &Arc<Self>, scheduler: &SchedulerName) -> Result<bool, Failure> {
        self.clear(scheduler, CLEARING).await
    }

    pub(crate) async fn end_rebuild(self: &Arc<Self>, scheduler: &SchedulerName) -> Result<(), Failure> {
        self.run::<u8>(&self.scripts.mark, scheduler, &0).await?;
        Ok(())
    }

    pub(crate) async fn remove_all(self: &Arc<Self>, scheduler: &SchedulerName) -> Result<(), Failure> {
        self.clear(scheduler, REMOVING).await?;
        self.carry_all().await?;
        self.forget_source(scheduler.as_str()).await?;
        self.groups.lock().remove(scheduler);
        Ok(())
    }

    /// Whether anything had to be done.
    async fn clear(self: &Arc<Self>, scheduler: &SchedulerName, why: &str) -> Result<bool, Failure> {
        let mut begins = true;
        loop {
            let asked = (PART, why, u8::from(begins));
            let (more, done): (u8, u8) = self.run(&self.scripts.clear, scheduler, &asked).await?;
            if more == 0 {
                return Ok(done == 1);
            }
            begins = false;
        }
    }
}
