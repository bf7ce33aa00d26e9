//! Whether all rooms of a scheduler are there.
//!
//! The mark of a scheduler holds which history the data of Redis was of when the rooms were all there: `master_replid`,
//! which is another one after a restart and after a failover (and when a server gets its first replica, or has had none for
//! an hour: nothing is lost then, and nobody can tell). Each script compares the two first. If they differ, or there is no mark
//! (after `FLUSHALL`), the rooms are lost: not gone, and not what they were. Then nothing is done and nothing is told,
//! until the scheduler's owner has inserted them again.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use maestro_core::scheduler::SchedulerName;

use crate::failure::Failure;
use crate::scripts::CLEARING;
use crate::table::Table;

/// Removed at once.
const PART: usize = 250;

/// Rooms that come back, until [`finish_rebuild`](crate::RedisRoomTable::finish_rebuild).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rebuild {
    scheduler: SchedulerName,
    token: String,
}

impl Table {
    pub(crate) async fn is_marked(self: &Arc<Self>, scheduler: &SchedulerName) -> Result<bool, Failure> {
        self.mark("is", scheduler, "").await
    }

    pub(crate) async fn mark_new(self: &Arc<Self>, scheduler: &SchedulerName) -> Result<(), Failure> {
        match self.mark("new", scheduler, "").await? {
            true => Ok(()),
            false => Err(Failure::Lost(scheduler.clone())),
        }
    }

    pub(crate) async fn begin_rebuild(
        self: &Arc<Self>,
        scheduler: &SchedulerName,
    ) -> Result<Rebuild, Failure> {
        // Of two who rebuild at the same time, one ends it: the other one's rooms may not all be there.
        let token = format!("{:016x}", RandomState::new().hash_one(0));
        self.clear(scheduler, &format!("{CLEARING}{token}")).await?;
        match self.mark("begin", scheduler, &token).await? {
            true => Ok(Rebuild { scheduler: scheduler.clone(), token }),
            false => Err(Failure::Lost(scheduler.clone())),
        }
    }

    pub(crate) async fn finish_rebuild(self: &Arc<Self>, rebuild: &Rebuild) -> Result<(), Failure> {
        match self.mark("end", &rebuild.scheduler, &rebuild.token).await? {
            true => Ok(()),
            false => Err(Failure::Lost(rebuild.scheduler.clone())),
        }
    }

    pub(crate) async fn remove_all(self: &Arc<Self>, scheduler: &SchedulerName) -> Result<(), Failure> {
        self.clear(scheduler, "").await?;
        self.mark("gone", scheduler, "").await?;
        self.carry_all().await?;
        self.forget_source(scheduler.as_str()).await?;
        self.groups.lock().remove(scheduler);
        Ok(())
    }

    async fn clear(self: &Arc<Self>, scheduler: &SchedulerName, mark: &str) -> Result<(), Failure> {
        while self.run::<u8>(&self.scripts.clear, scheduler, &(PART, mark)).await? == 1 {}
        Ok(())
    }

    async fn mark(
        self: &Arc<Self>,
        what: &str,
        scheduler: &SchedulerName,
        token: &str,
    ) -> Result<bool, Failure> {
        Ok(self.run::<u8>(&self.scripts.mark, scheduler, &(what, token)).await? == 1)
    }
}
