//! A room table as one engine reaches it: what it reads and claims is watched.

use std::sync::Arc;

use async_trait::async_trait;
use maestro_core::operation::OperationId;
use maestro_core::room::{InstanceStatus, RoomId};
use maestro_core::scheduler::SchedulerName;
use maestro_engine::ports::Store;
use maestro_engine::ports::room_table::{
    Claim, FleetCounts, NewRoom, Ping, PingError, Pinged, RoomTable, RoomView, StatusChange, TableError,
};

use crate::store::Watch;

pub(crate) struct WatchedTable<T> {
    inner: T,
    watch: Watch,
    store: Arc<dyn Store>,
}

impl<T> WatchedTable<T> {
    pub(crate) fn new(inner: T, watch: Watch, store: Arc<dyn Store>) -> Self {
        Self { inner, watch, store }
    }
}

#[async_trait]
impl<T: RoomTable> RoomTable for WatchedTable<T> {
    async fn insert(&self, room: NewRoom) -> Result<(), TableError> {
        self.inner.insert(room).await
    }

    async fn ping(&self, ping: Ping<'_>) -> Result<Pinged, PingError> {
        self.inner.ping(ping).await
    }

    async fn observe(
        &self,
        scheduler: &SchedulerName,
        room: &RoomId,
        instance: InstanceStatus,
    ) -> Result<Option<StatusChange>, TableError> {
        self.inner.observe(scheduler, room, instance).await
    }

    async fn claim(&self, claim: Claim<'_>) -> Result<Vec<RoomId>, TableError> {
        let claimed = self.inner.claim(claim).await?;
        let Watch { inspector, node } = &self.watch;
        inspector.claimed(node, &claim, &claimed, &*self.store).await;
        Ok(claimed)
    }

    async fn unclaim(
        &self,
        scheduler: &SchedulerName,
        operation: OperationId,
        rooms: &[RoomId],
    ) -> Result<(), TableError> {
        self.inner.unclaim(scheduler, operation, rooms).await
    }

    async fn remove(&self, scheduler: &SchedulerName, room: &RoomId) -> Result<Option<RoomView>, TableError> {
        self.inner.remove(scheduler, room).await
    }

    async fn remove_scheduler(&self, scheduler: &SchedulerName) -> Result<(), TableError> {
        self.inner.remove_scheduler(scheduler).await
    }

    async fn set_matches_max(&self, scheduler: &SchedulerName, matches_max: u32) -> Result<(), TableError> {
        self.inner.set_matches_max(scheduler, matches_max).await
    }

    async fn room(&self, scheduler: &SchedulerName, room: &RoomId) -> Result<Option<RoomView>, TableError> {
        self.inner.room(scheduler, room).await
    }

    async fn rooms(&self, scheduler: &SchedulerName) -> Result<Vec<RoomView>, TableError> {
        let views = self.inner.rooms(scheduler).await?;
        self.watch.inspector.table_read(&self.watch.node, scheduler, &views);
        Ok(views)
    }

    async fn counts(&self, scheduler: &SchedulerName) -> Result<FleetCounts, TableError> {
        self.inner.counts(scheduler).await
    }
}
