//! Rooms, allocations and regions: all of it is read only, and a read that fails has changed nothing.

use async_trait::async_trait;
use maestro_core::allocation::AllocationId;
use maestro_core::operation::OperationId;
use maestro_core::room::{Region, RoomId};
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::{Millis, Timestamp};
use maestro_engine::ports::store::{
    AllocationPage, AllocationPageRequest, AllocationRecord, AllocationStore, EndedRoom, ForgetAllocations,
    RegionObservation, RegionRecord, RegionStore, RoomCount, RoomRecord, RoomRegistry, StoreError,
};

use crate::broken;

use super::SimulatedStore;

#[async_trait]
impl RoomRegistry for SimulatedStore {
    async fn room(&self, scheduler: &SchedulerName, id: &RoomId) -> Result<Option<RoomRecord>, StoreError> {
        self.read(&"room", self.inner.room(scheduler, id)).await
    }

    async fn live_rooms(&self, scheduler: &SchedulerName) -> Result<Vec<RoomRecord>, StoreError> {
        let mut rows = self.read(&"live_rooms", self.inner.live_rooms(scheduler)).await?;
        rows.iter_mut().for_each(broken::registered);
        Ok(rows)
    }

    async fn leaving_rooms(
        &self,
        scheduler: &SchedulerName,
        operation: OperationId,
    ) -> Result<Vec<RoomRecord>, StoreError> {
        self.read(&"leaving_rooms", self.inner.leaving_rooms(scheduler, operation)).await
    }

    async fn room_counts(&self, scheduler: &SchedulerName) -> Result<Vec<RoomCount>, StoreError> {
        self.read(&"room_counts", self.inner.room_counts(scheduler)).await
    }

    async fn all_live_rooms(&self) -> Result<Vec<RoomRecord>, StoreError> {
        self.read(&"all_live_rooms", self.inner.all_live_rooms()).await
    }

    async fn rooms_made_by(
        &self,
        scheduler: &SchedulerName,
        operation: OperationId,
    ) -> Result<Vec<RoomRecord>, StoreError> {
        let made = self.inner.rooms_made_by(scheduler, operation);
        let mut rows = self.read(&"rooms_made_by", made).await?;
        broken::rooms_made(scheduler, operation, &mut rows);
        Ok(rows)
    }

    async fn ended_rooms(
        &self,
        scheduler: &SchedulerName,
        rooms_max: usize,
    ) -> Result<Vec<RoomRecord>, StoreError> {
        self.read(&"ended_rooms", self.inner.ended_rooms(scheduler, rooms_max)).await
    }

    async fn rooms_ended_before(
        &self,
        scheduler: &SchedulerName,
        before: Timestamp,
        after: Option<&EndedRoom>,
        rooms_max: usize,
    ) -> Result<Vec<EndedRoom>, StoreError> {
        self.read(&"rooms_ended_before", self.inner.rooms_ended_before(scheduler, before, after, rooms_max))
            .await
    }

    async fn ports_in_use(&self, region: &Region) -> Result<Vec<u16>, StoreError> {
        self.read(&"ports_in_use", self.inner.ports_in_use(region)).await
    }
}

#[async_trait]
impl AllocationStore for SimulatedStore {
    async fn allocation(
        &self,
        scheduler: &SchedulerName,
        id: AllocationId,
    ) -> Result<Option<AllocationRecord>, StoreError> {
        self.read(&"allocation", self.inner.allocation(scheduler, id)).await
    }

    async fn allocations_of_request(
        &self,
        scheduler: &SchedulerName,
        request: &str,
    ) -> Result<Vec<AllocationRecord>, StoreError> {
        self.read(&"allocations_of_request", self.inner.allocations_of_request(scheduler, request)).await
    }

    async fn allocations_to_forget(&self, forget: &ForgetAllocations) -> Result<u32, StoreError> {
        self.read(&"allocations_to_forget", self.inner.allocations_to_forget(forget)).await
    }

    async fn open_allocations(
        &self,
        scheduler: Option<&SchedulerName>,
    ) -> Result<Vec<AllocationRecord>, StoreError> {
        self.read(&"open_allocations", self.inner.open_allocations(scheduler)).await
    }

    async fn allocations(
        &self,
        scheduler: &SchedulerName,
        page: AllocationPageRequest,
    ) -> Result<AllocationPage, StoreError> {
        self.read(&"allocations", self.inner.allocations(scheduler, page)).await
    }
}

#[async_trait]
impl RegionStore for SimulatedStore {
    async fn regions(&self) -> Result<Vec<RegionRecord>, StoreError> {
        self.read(&"regions", self.inner.regions()).await
    }

    async fn region_observations(&self) -> Result<Vec<RegionObservation>, StoreError> {
        self.read(&"region_observations", self.inner.region_observations()).await
    }

    /// No crash point: who dies here has said something that it would have said again.
    async fn observe_region(
        &self,
        observation: RegionObservation,
        forget_before: Timestamp,
    ) -> Result<(), StoreError> {
        let observe = self.inner.observe_region(observation, forget_before);
        self.read(&"observe_region", observe).await
    }

    async fn bind_region(
        &self,
        region: &Region,
        host: &str,
        now: Timestamp,
        ttl: Millis,
    ) -> Result<String, StoreError> {
        let bind = self.inner.bind_region(region, host, now, ttl);
        self.write(&"bind_region", bind).await
    }
}
