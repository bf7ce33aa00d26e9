//! A runtime starts, stops, lists and watches the rooms of one region.
//!
//! Nothing it does can be fenced: a start that is in flight when its worker dies still happens. It is made harmless
//! instead. The registry knows what is wanted before the runtime is asked, a start for the same room id twice makes
//! one room, and what a runtime has and the registry does not want is stopped.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use maestro_core::room::{Ending, HostPort, Purpose, Region, RoomId};
use maestro_core::scheduler::{Recipe, SchedulerName, Version};
use tokio::sync::mpsc;

#[async_trait]
pub trait Runtime: Send + Sync {
    fn region(&self) -> &Region;

    /// The name of the one host that all rooms share; `None`: there are several. On one host a port range bounds the
    /// number of rooms, and regions on the same host share its ports.
    fn host(&self) -> Option<&str>;

    /// Rooms are containers, which need an image and resources. Processes need neither.
    fn runs_containers(&self) -> bool {
        false
    }

    /// Whether the region can be reached, by a call that costs next to nothing: it is made every few seconds.
    async fn check(&self) -> Result<Checked, RuntimeError>;

    /// How much the region holds for a scheduler at this moment; `None`: it does not say. Asked for every plan, so it costs
    /// next to nothing.
    fn capacity(&self, scheduler: &SchedulerName) -> Option<Capacity> {
        let _ = scheduler;
        None
    }

    /// Makes the place where rooms of this scheduler live. May be repeated.
    async fn create_scheduler(&self, scheduler: &SchedulerName) -> Result<(), RuntimeError>;

    /// Removes that place and everything kept in it (logs). May be repeated. [`RuntimeError::Unavailable`] while a room of
    /// the scheduler runs there, and nothing is removed: it may be one of a later scheduler of this name, because a
    /// removal that is in flight when its worker dies still happens.
    async fn delete_scheduler(&self, scheduler: &SchedulerName) -> Result<(), RuntimeError>;

    /// Starts the room, or finds it running: one room id is one room, however often this is called. An error means
    /// that it does not run and nothing of it is left, unless it is [`RuntimeError::Unavailable`]. How the room is, is
    /// observed each time: whoever asks again may have lost what was observed before.
    async fn start(&self, room: &RoomToStart) -> Result<Handle, RuntimeError>;

    /// Asks the room to end, and kills it after the grace period. Returns when it is asked, not when it is gone:
    /// that is observed. Of a room that is not there, `Lost` is observed. May be repeated; a shorter grace counts.
    /// What is killed is what carries the room's id *and*, if a handle is given, is that very instance.
    async fn stop(
        &self,
        scheduler: &SchedulerName,
        room: &RoomId,
        handle: Option<&Handle>,
        grace: Duration,
    ) -> Result<(), RuntimeError>;

    /// All rooms of this store that run here, whether anybody wants them or not.
    async fn list(&self) -> Result<Vec<RunningRoom>, RuntimeError>;

    /// Those of one scheduler. Many ask at the same moment: an adapter looks once for all of them.
    async fn list_of(&self, scheduler: &SchedulerName) -> Result<Vec<RunningRoom>, RuntimeError> {
        let mut rooms = self.list().await?;
        rooms.retain(|room| room.scheduler == *scheduler);
        Ok(rooms)
    }

    /// Watches rooms that were running before this process began. How they are is observed, also of those that are
    /// watched already; those that do not run any more are observed as `Ended` with [`Ending::Unwatched`].
    async fn adopt(&self, rooms: Vec<RunningRoom>) -> Result<(), RuntimeError>;

    /// The stream of observations; it can be taken once.
    fn observations(&self) -> Option<mpsc::Receiver<Observation>>;

    /// Those of the ports that nobody listens to at this moment.
    async fn free_ports(&self, ports: &[HostPort]) -> Result<Vec<HostPort>, RuntimeError>;

    /// The last lines that a room wrote, all containers; `None`: nothing is kept of such a room.
    async fn logs(
        &self,
        scheduler: &SchedulerName,
        room: &RoomId,
        lines_max: usize,
    ) -> Result<Option<String>, RuntimeError>;

    /// Drops what is kept of an ended room (logs). May be repeated.
    async fn forget(&self, scheduler: &SchedulerName, room: &RoomId) -> Result<(), RuntimeError>;

    /// Stops watching; with `stop_rooms` ends all rooms first (bounded by their grace periods).
    async fn shut_down(&self, stop_rooms: bool);
}

/// What a runtime says of its region when it is asked how it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Checked {
    /// How many rooms it can hold all together; `None`: it cannot say.
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
    /// One that tries a version is started also where a region holds no more rooms.
    pub purpose: Purpose,
}

/// How a runtime finds the very instance again. Durable; `detail` is the adapter's own.
#[derive(Debug, Clone, PartialEq)]
pub struct Handle {
    /// Where players reach the room.
    pub host: String,
    pub pids: Vec<u32>,
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
    /// This cannot work as it is written: naming what and why, for the operation's history.
    #[error("{0}")]
    Refused(String),
    /// The region holds no more rooms for now: how many it holds. Nothing was started.
    #[error("{0}")]
    Full(String),
    /// The runtime does not answer; what was asked may or may not have happened.
    #[error("the runtime is not available: {0}")]
    Unavailable(String),
}
