//! A runtime whose rooms all run and go on running: what a worker sees of a fleet that needs nothing from it.

use std::time::Duration;

use async_trait::async_trait;
use maestro_core::room::{HostPort, Region, RoomId};
use maestro_core::scheduler::SchedulerName;
use maestro_engine::ports::Runtime;
use maestro_engine::ports::runtime::{Checked, Handle, Observation, RoomToStart, RunningRoom, RuntimeError};
use tokio::sync::mpsc;

pub(super) struct StillRuntime {
    pub(super) region: Region,
    pub(super) rooms: Vec<RunningRoom>,
}

#[async_trait]
impl Runtime for StillRuntime {
    fn region(&self) -> &Region {
        &self.region
    }

    fn host(&self) -> Option<&str> {
        Some("127.0.0.1")
    }

    fn runs_containers(&self) -> bool {
        false
    }

    async fn check(&self) -> Result<Checked, RuntimeError> {
        Ok(Checked::default())
    }

    async fn create_scheduler(&self, _scheduler: &SchedulerName) -> Result<(), RuntimeError> {
        Ok(())
    }

    async fn delete_scheduler(&self, _scheduler: &SchedulerName) -> Result<(), RuntimeError> {
        Ok(())
    }

    async fn start(&self, room: &RoomToStart) -> Result<Handle, RuntimeError> {
        Err(RuntimeError::Refused(format!("room {} is not part of the benchmark", room.id)))
    }

    async fn stop(
        &self,
        _scheduler: &SchedulerName,
        room: &RoomId,
        _handle: Option<&Handle>,
        _grace: Duration,
    ) -> Result<(), RuntimeError> {
        Err(RuntimeError::Refused(format!("room {room} stays")))
    }

    async fn list(&self) -> Result<Vec<RunningRoom>, RuntimeError> {
        Ok(self.rooms.clone())
    }

    async fn adopt(&self, _rooms: Vec<RunningRoom>) -> Result<(), RuntimeError> {
        Ok(())
    }

    fn observations(&self) -> Option<mpsc::Receiver<Observation>> {
        None
    }

    async fn free_ports(&self, ports: &[HostPort]) -> Result<Vec<HostPort>, RuntimeError> {
        Ok(ports.to_vec())
    }

    async fn logs(
        &self,
        _scheduler: &SchedulerName,
        _room: &RoomId,
        _lines_max: usize,
    ) -> Result<Option<String>, RuntimeError> {
        Ok(None)
    }

    async fn forget(&self, _scheduler: &SchedulerName, _room: &RoomId) -> Result<(), RuntimeError> {
        Ok(())
    }

    async fn shut_down(&self, _stop_rooms: bool) {}
}
