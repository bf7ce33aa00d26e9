//! A runtime starts, stops, lists and watches the rooms of one region.
//!
//! Nothing that it does can be fenced: a start that is in flight when its worker dies still happens. It is made harmless
//! instead. The registry knows what is wanted before the runtime is asked, two starts for the same room id make one room,
//! and rooms that the registry does not want are stopped.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use maestro_core::room::{Ending, HostPort, Purpose, Region, RoomId};
use maestro_core::scheduler::{Recipe, SchedulerName, Version};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

pub type Result<T = (), E = RuntimeError> = std::result::Result<T, E>;

#[async_trait]
pub trait Runtime: Send + Sync {
    fn region(&self) -> &Region;

    /// The name of the host, if all rooms share one; `None` if there are several. On one host a port range bounds the
    /// number of rooms, and regions on the same host share its ports.
    fn host(&self) -> Option<&str>;

    /// Whether rooms are containers, which need an image and resources. Processes need neither.
    fn runs_containers(&self) -> bool;

    /// Whether only the process that starts a room, or adopts it, learns what happens to it. Otherwise anybody can, and
    /// runtime watchers do.
    fn is_observed_by_starter(&self) -> bool {
        false
    }

    /// Whether the region can be reached. This is asked every few seconds, so it must be cheap.
    async fn check(&self) -> Result<Checked>;

    /// How many rooms the region can hold for a scheduler at this moment; `None` if that is not known. This is asked for
    /// every plan, so it must be cheap.
    fn capacity(&self, scheduler: &SchedulerName) -> Option<Capacity> {
        let _ = scheduler;
        None
    }

    /// Prepares the region for rooms of this scheduler. May be repeated.
    async fn create_scheduler(&self, scheduler: &SchedulerName) -> Result;

    /// Undoes that, and removes everything that is kept of the scheduler's rooms (logs). May be repeated.
    /// [`RuntimeError::Unavailable`] while a room of the scheduler is running, and nothing is removed: it may belong to a
    /// later scheduler of the same name, because a removal that is in flight when its worker dies still happens.
    async fn delete_scheduler(&self, scheduler: &SchedulerName) -> Result;

    /// Starts the room, or finds it running: one room id is one room, however often this is called. An error means
    /// that it does not run and nothing of it is left, unless it is [`RuntimeError::Unavailable`]. The state of the room is
    /// reported as an observation each time, because a caller that asks again may have lost earlier ones.
    async fn start(&self, room: &RoomToStart) -> Result<Handle>;

    /// Asks the room to end, and kills it after the grace period. Returns when the room was asked; its end is observed
    /// later. For a room that does not exist, `Lost` is observed. May be repeated; the shorter grace period counts. Only
    /// processes that carry the room's id are killed and, if a handle is given, only that very instance.
    async fn stop(
        &self,
        scheduler: &SchedulerName,
        room: &RoomId,
        handle: Option<&Handle>,
        grace: Duration,
    ) -> Result;

    /// All rooms of this store that run here, whether anybody wants them or not.
    async fn list(&self) -> Result<Vec<RunningRoom>>;

    /// The rooms of one scheduler. Many callers ask at the same moment, so an adapter should look once for all of them.
    async fn list_of(&self, scheduler: &SchedulerName) -> Result<Vec<RunningRoom>> {
        let mut rooms = self.list().await?;
        rooms.retain(|room| room.scheduler == *scheduler);
        Ok(rooms)
    }

    /// Watches rooms that were running before this process began. Their state is reported as observations, also of rooms
    /// that are already watched; rooms that no longer run are observed as `Ended` with [`Ending::Unwatched`].
    async fn adopt(&self, rooms: Vec<RunningRoom>) -> Result;

    /// The stream of observations; it can be taken once.
    fn observations(&self) -> Option<mpsc::Receiver<Observation>>;

    /// Which of the ports nobody listens on at this moment.
    async fn free_ports(&self, ports: &[HostPort]) -> Result<Vec<HostPort>>;

    /// The last lines that a room wrote, of all containers; `None` if nothing is kept of such a room.
    async fn logs(
        &self,
        scheduler: &SchedulerName,
        room: &RoomId,
        lines_max: usize,
    ) -> Result<Option<String>>;

    /// Deletes what is kept of an ended room (logs). May be repeated.
    async fn forget(&self, scheduler: &SchedulerName, room: &RoomId) -> Result;

    /// Stops watching; with `stop_rooms` ends all rooms first (bounded by their grace periods).
    async fn shut_down(&self, stop_rooms: bool);
}

/// What a runtime says about its region when it is checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Checked {
    /// How many rooms it can hold in total; `None` if that is not known.
    pub capacity: Option<u32>,
}

/// What a region can hold, seen by one scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Of all schedulers together.
    pub rooms: u32,
    /// Of those, how many other schedulers have.
    pub taken_by_others: u32,
    /// What to change to have more.
    pub setting: &'static str,
}

/// All that a runtime needs to know to start a room.
#[derive(Debug, Clone)]
pub struct RoomToStart {
    pub id: RoomId,
    pub scheduler: SchedulerName,
    pub version: Version,
    pub recipe: Arc<Recipe>,
    pub ports: Vec<HostPort>,
    /// A validation room is started even if the region is full.
    pub purpose: Purpose,
}

/// How a runtime finds the very instance again. Durable; `detail` is the adapter's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Handle {
    /// Where players reach the room.
    pub host: String,
    pub pids: Vec<u32>,
    #[serde(default)]
    pub detail: serde_json::Value,
}

impl Handle {
    /// Lists in what the adapter wrote may be in another order after a restart.
    pub fn is_of_same_instance(&self, other: &Self) -> bool {
        let sorted = |detail: &serde_json::Value| match detail {
            serde_json::Value::Array(members) => {
                let mut members: Vec<String> = members.iter().map(ToString::to_string).collect();
                members.sort_unstable();
                members
            }
            whole => vec![whole.to_string()],
        };
        sorted(&self.detail) == sorted(&other.detail)
    }
}

/// A room that a runtime has, or is believed to have.
#[derive(Debug, Clone, PartialEq)]
pub struct RunningRoom {
    pub id: RoomId,
    pub scheduler: SchedulerName,
    pub handle: Handle,
}

/// What a runtime sees happen to a room.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    pub scheduler: SchedulerName,
    pub room: RoomId,
    /// Of which instance: the handle that [`Runtime::start`] returned, or that [`Runtime::adopt`] or [`Runtime::stop`] was
    /// called with, the latest of them, whatever was started again inside since. What is seen of another instance than the
    /// registry's is ignored. `None`: the runtime was not told of any.
    pub instance: Option<Handle>,
    pub event: RoomEvent,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoomEvent {
    /// The instance is coming up.
    Pending,
    /// The instance is up.
    Up,
    /// The instance is going down, whoever asked for it.
    GoingDown,
    /// The instance is gone.
    Ended(Ending),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuntimeError {
    /// This can never work. The text says what and why, for the operation's history.
    #[error("{0}")]
    Refused(String),
    /// The region is full for now. The text says how many rooms it can hold. Nothing was started.
    #[error("{0}")]
    Full(String),
    /// The runtime does not answer; the request may or may not have been carried out.
    #[error("the runtime is not available: {0}")]
    Unavailable(String),
}
