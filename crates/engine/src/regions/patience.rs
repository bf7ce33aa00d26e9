//! A runtime that is not waited for without end: a call that takes too long has not been answered. Whoever asks a region
//! may hold the slot of a scheduler meanwhile, which other regions need too.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use maestro_core::room::{HostPort, Region, RoomId};
use maestro_core::scheduler::SchedulerName;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::ports::Runtime;
use crate::ports::runtime::{Capacity, Checked, Handle, Observation, RoomToStart, RunningRoom, RuntimeError};

/// Long for a call that costs little: a region that is slow is not lost.
const CALL: Duration = Duration::from_secs(10);
/// For what goes over all rooms of a region, or all files of a scheduler.
const LONG_CALL: Duration = Duration::from_secs(60);

pub(crate) struct Patient {
    runtime: Arc<dyn Runtime>,
    /// How long one room's start may take.
    start: Duration,
}

impl Patient {
    pub(crate) fn new(runtime: Arc<dyn Runtime>, start: Duration) -> Self {
        Self { runtime, start }
    }
}

async fn within<T>(
    patience: Duration,
    call: impl Future<Output = Result<T, RuntimeError>>,
) -> Result<T, RuntimeError> {
    let late = |_| Err(RuntimeError::Unavailable(format!("no answer within {patience:?}")));
    timeout(patience, call).await.unwrap_or_else(late)
}

#[async_trait]
impl Runtime for Patient {
    fn region(&self) -> &Region {
        self.runtime.region()
    }

    fn host(&self) -> Option<&str> {
        self.runtime.host()
    }

    fn runs_containers(&self) -> bool {
        self.runtime.runs_containers()
    }

    fn is_observed_by_starter(&self) -> bool {
        self.runtime.is_observed_by_starter()
    }

    fn capacity(&self, scheduler: &SchedulerName) -> Option<Capacity> {
        self.runtime.capacity(scheduler)
    }

    async fn check(&self) -> Result<Checked, RuntimeError> {
        within(CALL, self.runtime.check()).await
    }

    async fn create_scheduler(&self, scheduler: &SchedulerName) -> Result<(), RuntimeError> {
        within(CALL, self.runtime.create_scheduler(scheduler)).await
    }

    async fn delete_scheduler(&self, scheduler: &SchedulerName) -> Result<(), RuntimeError> {
        within(LONG_CALL, self.runtime.delete_scheduler(scheduler)).await
    }

    async fn start(&self, room: &RoomToStart) -> Result<Handle, RuntimeError> {
        within(self.start, self.runtime.start(room)).await
    }

    async fn stop(
        &self,
        scheduler: &SchedulerName,
        room: &RoomId,
        handle: Option<&Handle>,
        grace: Duration,
    ) -> Result<(), RuntimeError> {
        within(CALL, self.runtime.stop(scheduler, room, handle, grace)).await
    }

    async fn list(&self) -> Result<Vec<RunningRoom>, RuntimeError> {
        within(LONG_CALL, self.runtime.list()).await
    }

    async fn list_of(&self, scheduler: &SchedulerName) -> Result<Vec<RunningRoom>, RuntimeError> {
        within(LONG_CALL, self.runtime.list_of(scheduler)).await
    }

    async fn adopt(&self, rooms: Vec<RunningRoom>) -> Result<(), RuntimeError> {
        within(LONG_CALL, self.runtime.adopt(rooms)).await
    }

    fn observations(&self) -> Option<mpsc::Receiver<Observation>> {
        self.runtime.observations()
    }

    async fn free_ports(&self, ports: &[HostPort]) -> Result<Vec<HostPort>, RuntimeError> {
        within(CALL, self.runtime.free_ports(ports)).await
    }

    async fn logs(
        &self,
        scheduler: &SchedulerName,
        room: &RoomId,
        lines_max: usize,
    ) -> Result<Option<String>, RuntimeError> {
        within(CALL, self.runtime.logs(scheduler, room, lines_max)).await
    }

    async fn forget(&self, scheduler: &SchedulerName, room: &RoomId) -> Result<(), RuntimeError> {
        within(CALL, self.runtime.forget(scheduler, room)).await
    }

    /// Bounded by the rooms' own grace periods.
    async fn shut_down(&self, stop_rooms: bool) {
        self.runtime.shut_down(stop_rooms).await;
    }
}
