//! A runtime whose rooms are up as soon as they are started and gone as soon as they are stopped. Only those of a
//! scheduler called `slow` take a second to start. A test can make it unreachable: its rooms run on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use maestro_core::room::{Ending, HostPort, Region, RoomId};
use maestro_core::scheduler::SchedulerName;
use maestro_engine::ports::Runtime;
use maestro_engine::ports::runtime::{
    Capacity, Checked, Handle, Observation, RoomEvent, RoomToStart, RunningRoom, RuntimeError,
};
use serde_json::Value;
use tokio::sync::mpsc;

pub(crate) struct InstantRuntime {
    region: Region,
    is_away: AtomicBool,
    runs_containers: AtomicBool,
    /// 0: it holds any number of rooms.
    rooms_max: AtomicU32,
    /// Schedulers that have a place here.
    places: Mutex<BTreeSet<SchedulerName>>,
    rooms: Mutex<BTreeMap<RoomId, RunningRoom>>,
    seen: mpsc::Sender<Observation>,
    observations: Mutex<Option<mpsc::Receiver<Observation>>>,
}

impl InstantRuntime {
    pub(crate) fn new(region: Region) -> Self {
        let (seen, observations) = mpsc::channel(1000);
        Self {
            region,
            is_away: AtomicBool::new(false),
            runs_containers: AtomicBool::new(false),
            rooms_max: AtomicU32::new(0),
            places: Mutex::default(),
            rooms: Mutex::default(),
            seen,
            observations: Mutex::new(Some(observations)),
        }
    }

    pub(crate) fn set_away(&self, is_away: bool) {
        self.is_away.store(is_away, Ordering::Relaxed);
    }

    /// From now on, rooms need an image and resources.
    pub(crate) fn run_containers(&self) {
        self.runs_containers.store(true, Ordering::Relaxed);
    }

    pub(crate) fn set_rooms_max(&self, rooms_max: u32) {
        self.rooms_max.store(rooms_max, Ordering::Relaxed);
    }

    /// What really runs, whether or not anybody can see it.
    pub(crate) fn rooms(&self) -> Vec<String> {
        self.rooms.lock().unwrap().keys().map(ToString::to_string).collect()
    }

    fn answers(&self) -> Result<(), RuntimeError> {
        match self.is_away.load(Ordering::Relaxed) {
            true => Err(RuntimeError::Unavailable("no route to host".into())),
            false => Ok(()),
        }
    }

    async fn observe(&self, room: RunningRoom, event: RoomEvent) {
        let RunningRoom { id, scheduler, handle } = room;
        let observation = Observation { scheduler, room: id, instance: Some(handle), event };
        self.seen.send(observation).await.unwrap();
    }
}

#[async_trait]
impl Runtime for InstantRuntime {
    fn region(&self) -> &Region {
        &self.region
    }

    fn host(&self) -> Option<&str> {
        Some(&self.region.0)
    }

    fn runs_containers(&self) -> bool {
        self.runs_containers.load(Ordering::Relaxed)
    }

    fn capacity(&self, scheduler: &SchedulerName) -> Option<Capacity> {
        let rooms = self.rooms_max.load(Ordering::Relaxed);
        let others = self.rooms.lock().unwrap().values().filter(|room| room.scheduler != *scheduler).count();
        let capacity = Capacity { rooms, taken_by_others: others.try_into().unwrap(), setting: "roomsMax" };
        (rooms > 0).then_some(capacity)
    }

    async fn check(&self) -> Result<Checked, RuntimeError> {
        self.answers()?;
        Ok(Checked::default())
    }

    async fn create_scheduler(&self, scheduler: &SchedulerName) -> Result<(), RuntimeError> {
        self.answers()?;
        self.places.lock().unwrap().insert(scheduler.clone());
        Ok(())
    }

    async fn delete_scheduler(&self, scheduler: &SchedulerName) -> Result<(), RuntimeError> {
        self.answers()?;
        self.places.lock().unwrap().remove(scheduler);
        Ok(())
    }

    async fn start(&self, room: &RoomToStart) -> Result<Handle, RuntimeError> {
        self.answers()?;
        if !self.places.lock().unwrap().contains(&room.scheduler) {
            return Err(RuntimeError::Refused(format!("{} has no place in {}", room.scheduler, self.region)));
        }
        if room.scheduler.as_str() == "slow" {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let handle = Handle { host: "203.0.113.7".into(), pids: vec![4711], detail: Value::Null };
        let running =
            RunningRoom { id: room.id.clone(), scheduler: room.scheduler.clone(), handle: handle.clone() };
        self.rooms.lock().unwrap().insert(room.id.clone(), running.clone());
        self.observe(running, RoomEvent::Up).await;
        Ok(handle)
    }

    async fn stop(
        &self,
        _: &SchedulerName,
        room: &RoomId,
        _: Option<&Handle>,
        _: Duration,
    ) -> Result<(), RuntimeError> {
        self.answers()?;
        let stopped = self.rooms.lock().unwrap().remove(room);
        if let Some(stopped) = stopped {
            self.observe(stopped, RoomEvent::Ended(Ending::Stopped)).await;
        }
        Ok(())
    }

    async fn list(&self) -> Result<Vec<RunningRoom>, RuntimeError> {
        self.answers()?;
        Ok(self.rooms.lock().unwrap().values().cloned().collect())
    }

    async fn adopt(&self, _: Vec<RunningRoom>) -> Result<(), RuntimeError> {
        self.answers()
    }

    fn observations(&self) -> Option<mpsc::Receiver<Observation>> {
        self.observations.lock().unwrap().take()
    }

    async fn free_ports(&self, ports: &[HostPort]) -> Result<Vec<HostPort>, RuntimeError> {
        self.answers()?;
        Ok(ports.to_vec())
    }

    async fn logs(
        &self,
        _: &SchedulerName,
        room: &RoomId,
        lines_max: usize,
    ) -> Result<Option<String>, RuntimeError> {
        let lines = (1..=3).rev().take(lines_max).map(|line| format!("{room} line {line}\n"));
        Ok(Some(lines.collect::<Vec<_>>().into_iter().rev().collect()))
    }

    async fn forget(&self, _: &SchedulerName, _: &RoomId) -> Result<(), RuntimeError> {
        Ok(())
    }

    async fn shut_down(&self, _: bool) {}
}
