//! The runtime port over local processes: which rooms there are, and who may touch which.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use maestro_core::room::{Ending, HostPort, Region, RoomId};
use maestro_core::scheduler::SchedulerName;
use maestro_engine::ports::runtime::{
    Capacity, Checked, Handle, Observation, Result, RoomEvent, RoomToStart, RunningRoom, Runtime,
    RuntimeError,
};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::adoption::Found;
use crate::blocking::{BlockingWork, unbounded};
use crate::cgroup::Cgroups;
use crate::directory::{self, Directory};
use crate::ended::EndedRooms;
use crate::log_keeper::{self, LogKeeper};
use crate::options::Options;
use crate::owners::{self, Reported};
use crate::places::Places;
use crate::room::{Room, lock};
use crate::{logs, ports};

/// How many observations may wait for the engine. Room tasks wait when it is full; starts and stops never do.
const EVENTS_MAX: usize = 1024;
/// Rooms share locks by the hash of their id: enough that strangers seldom wait for each other, and no list to tidy up.
const LOCKS: usize = 64;
/// A disk that hangs does not hold up a start.
const MADE_WITHIN: Duration = Duration::from_secs(10);
/// How long a shutdown waits until the engine has been told of the rooms that ended.
const LAST_EVENTS_WITHIN: Duration = Duration::from_secs(2);

/// The setting that bounds the number of rooms.
pub(crate) const ROOMS_MAX: &str = "adapters.runtime.process.roomsMax";

/// All regions of processes are on the machine that Maestro runs on, whatever they announce to players.
const THIS_HOST: &str = "this host";

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the directory for rooms, {path}, cannot be used")]
    Directory { path: PathBuf, source: io::Error },
    #[error("the processes of this host cannot be listed")]
    Processes { source: RuntimeError },
}

/// Rooms of one host as processes. Dropping it stops watching them; they run on.
pub struct ProcessRuntime {
    shared: Arc<Shared>,
    observations: Mutex<Option<mpsc::Receiver<Observation>>>,
}

/// What the runtime and the tasks of its rooms share.
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) directory: Directory,
    pub(crate) events: mpsc::Sender<Observation>,
    /// Rooms that have a task. A room is in here until its end is about to be told.
    rooms: Mutex<HashMap<RoomId, Arc<Room>>>,
    pub(crate) places: Places,
    /// Rooms that run and nobody watches, as of the last look at the process table.
    pub(crate) found: Mutex<HashMap<RoomId, Found>>,
    pub(crate) blocking: BlockingWork,
    pub(crate) log_keeper: Arc<LogKeeper>,
    pub(crate) ended: Mutex<EndedRooms>,
    pub(crate) cgroups: Option<Cgroups>,
    pub(crate) reported: Reported,
    locks: Vec<tokio::sync::Mutex<()>>,
    hasher: RandomState,
    tasks: TaskTracker,
    /// No room is started any more.
    is_closing: AtomicBool,
    is_looking: AtomicBool,
    /// Nothing is watched any more.
    closed: CancellationToken,
}

impl ProcessRuntime {
    /// Looks at once for rooms of this store that run already, so that none is started twice.
    pub async fn open(mut options: Options) -> Result<Arc<Self>, OpenError> {
        make_absolute(&mut options)?;
        // Servers and regions may share it.
        let homes = options.rooms_directory.as_ref();
        let homes = homes.map(|path| path.join(options.own_name()).join(options.region.as_str()));
        let directory = Directory::new(&options.directory, &options.data_directory, homes);
        let blocking = BlockingWork::new();
        let rooms = directory.rooms();
        let made = timeout(MADE_WITHIN, blocking.run(move || directory::make_private(&rooms))).await;
        if let Err(error) = made.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            // The other regions start all the same: this one counts as one that cannot be reached.
            let path = directory.rooms();
            tracing::warn!(region = %options.region, path = %path.display(), %error, "cannot make the directory of rooms");
        }
        let reported = Reported::default();
        let scanned = owners::scan(&options, &blocking, &reported).await;
        let found = Found::by_room(scanned.map_err(|source| OpenError::Processes { source })?.iter());
        let cgroups = {
            let (name, region) = (options.own_name(), options.region.clone());
            blocking.run(move || Cgroups::open(&name, &region)).await
        };
        let (events, observations) = mpsc::channel(EVENTS_MAX);
        let closed = CancellationToken::new();
        let log_keeper = LogKeeper::new(
            options.log_keeper.clone(),
            log_keeper::Settings {
                rooms: directory.rooms(),
                lock: directory.log_keeper_lock(),
                container_bytes: options.log_limit_bytes,
                scheduler_bytes: options.scheduler_log_limit_bytes,
            },
            blocking.clone(),
            closed.clone(),
        );
        if !found.is_empty()
            && let Err(error) = log_keeper.ensure_running().await
        {
            tracing::error!(region = %options.region, %error, "the log keeper cannot be started");
        }
        let places = Places::new(options.rooms_max);
        let shared = Arc::new(Shared {
            directory,
            options,
            events,
            rooms: Mutex::default(),
            places,
            found: Mutex::new(found),
            blocking,
            locks: std::iter::repeat_with(Default::default).take(LOCKS).collect(),
            hasher: RandomState::new(),
            tasks: TaskTracker::new(),
            is_closing: AtomicBool::new(false),
            is_looking: AtomicBool::new(false),
            log_keeper,
            ended: Mutex::default(),
            cgroups,
            reported,
            closed,
        });
        shared.spawn(Arc::clone(&shared).count_ended_before());
        Ok(Arc::new(Self { shared, observations: Mutex::new(Some(observations)) }))
    }
}

/// A process changes its directory before it looks for its program: relative paths would be looked for there.
fn make_absolute(options: &mut Options) -> Result<(), OpenError> {
    let paths = [&mut options.directory, &mut options.data_directory, &mut options.working_directory];
    for path in paths.into_iter().chain(&mut options.rooms_directory) {
        *path = std::path::absolute(&*path)
            .map_err(|source| OpenError::Directory { path: path.clone(), source })?;
    }
    Ok(())
}

impl Drop for ProcessRuntime {
    fn drop(&mut self) {
        self.shared.closed.cancel();
    }
}

#[async_trait]
impl Runtime for ProcessRuntime {
    fn region(&self) -> &Region {
        &self.shared.options.region
    }

    fn host(&self) -> Option<&str> {
        Some(THIS_HOST)
    }

    fn runs_containers(&self) -> bool {
        false
    }

    /// Only a parent learns how its child ended.
    fn is_observed_by_starter(&self) -> bool {
        true
    }

    fn capacity(&self, scheduler: &SchedulerName) -> Option<Capacity> {
        let taken_by_others = self.shared.places.taken_by_others(scheduler);
        Some(Capacity { rooms: self.shared.options.rooms_max, taken_by_others, setting: ROOMS_MAX })
    }

    /// A room can be started as long as there is a place for its files.
    async fn check(&self) -> Result<Checked> {
        let path = self.shared.directory.rooms();
        // On a disk that hangs each look keeps a thread: there is one of them, however often one asks.
        if self.shared.is_looking.swap(true, Ordering::AcqRel) {
            return Err(unavailable(format!("{} does not answer", path.display())));
        }
        let shared = Arc::clone(&self.shared);
        let looked = unbounded(move || {
            let looked = std::fs::metadata(&path);
            shared.is_looking.store(false, Ordering::Release);
            (looked, path)
        })
        .await;
        match looked {
            (Ok(metadata), _) if metadata.is_dir() => {
                Ok(Checked { capacity: Some(self.shared.options.rooms_max) })
            }
            (Ok(_), path) => Err(unavailable(format!("{} is no directory", path.display()))),
            (Err(error), path) => Err(unavailable(format!("{} cannot be used: {error}", path.display()))),
        }
    }

    async fn create_scheduler(&self, scheduler: &SchedulerName) -> Result {
        let directory = self.shared.directory.clone();
        let path = directory.scheduler(scheduler);
        self.shared.blocking.run(move || directory.make(&path)).await.map_err(unavailable)
    }

    async fn delete_scheduler(&self, scheduler: &SchedulerName) -> Result {
        let left = self.list_of(scheduler).await?.len();
        if left > 0 {
            return Err(RuntimeError::Unavailable(format!(
                "{left} rooms of scheduler {scheduler} still run"
            )));
        }
        self.shared.forget_ended(scheduler, None);
        let (path, homes) =
            (self.shared.directory.scheduler(scheduler), self.shared.directory.homes(scheduler));
        let removal = move || directory::remove(&homes).and_then(|()| directory::remove(&path));
        self.shared.blocking.run(removal).await.map_err(unavailable)
    }

    /// In a task of its own: a caller that stops waiting does not leave a process behind that nobody watches.
    async fn start(&self, room: &RoomToStart) -> Result<Handle> {
        let (shared, room) = (Arc::clone(&self.shared), room.clone());
        let started = self.shared.tasks.spawn(async move { shared.start(&room).await });
        started.await.map_err(unavailable)?
    }

    async fn stop(
        &self,
        scheduler: &SchedulerName,
        room: &RoomId,
        handle: Option<&Handle>,
        grace: Duration,
    ) -> Result {
        self.shared.stop(scheduler, room, handle, Some(grace)).await
    }

    async fn list(&self) -> Result<Vec<RunningRoom>> {
        self.shared.list(None).await
    }

    async fn list_of(&self, scheduler: &SchedulerName) -> Result<Vec<RunningRoom>> {
        self.shared.list(Some(scheduler)).await
    }

    async fn adopt(&self, rooms: Vec<RunningRoom>) -> Result {
        self.shared.adopt(rooms).await
    }

    fn observations(&self) -> Option<mpsc::Receiver<Observation>> {
        lock(&self.observations).take()
    }

    async fn free_ports(&self, wanted: &[HostPort]) -> Result<Vec<HostPort>> {
        let wanted = wanted.to_vec();
        self.shared.blocking.run(move || ports::free(&wanted)).await.map_err(unavailable)
    }

    async fn logs(
        &self,
        scheduler: &SchedulerName,
        room: &RoomId,
        lines_max: usize,
    ) -> Result<Option<String>> {
        let Some(place) = self.shared.directory.room(scheduler, room) else {
            return Ok(None);
        };
        self.shared.log_keeper.drain(scheduler, room).await;
        self.shared.blocking.run(move || logs::tail(&place, lines_max)).await.map_err(unavailable)
    }

    async fn forget(&self, scheduler: &SchedulerName, room: &RoomId) -> Result {
        let Some(place) = self.shared.directory.room(scheduler, room) else {
            return Ok(());
        };
        self.shared.forget_ended(scheduler, Some(room));
        self.shared.blocking.run(move || directory::remove(&place)).await.map_err(unavailable)
    }

    async fn shut_down(&self, stop_rooms: bool) {
        self.shared.shut_down(stop_rooms).await;
    }
}

impl Shared {
    /// Everything that finds out whether a room runs, and changes it, does so alone.
    pub(crate) async fn alone(&self, room: &RoomId) -> tokio::sync::MutexGuard<'_, ()> {
        let hash = self.hasher.hash_one(room);
        self.locks[(hash % LOCKS as u64) as usize].lock().await
    }

    pub(crate) fn room(&self, id: &RoomId) -> Option<Arc<Room>> {
        lock(&self.rooms).get(id).cloned()
    }

    pub(crate) fn rooms_that(&self, is_meant: impl Fn(&Room) -> bool) -> Vec<Arc<Room>> {
        lock(&self.rooms).values().filter(|room| is_meant(room)).cloned().collect()
    }

    pub(crate) fn insert(&self, room: Arc<Room>) {
        lock(&self.rooms).insert(room.id.clone(), room);
    }

    pub(crate) fn remove(&self, room: &Arc<Room>) {
        let mut rooms = lock(&self.rooms);
        if rooms.get(&room.id).is_some_and(|there| Arc::ptr_eq(there, room)) {
            rooms.remove(&room.id);
            self.places.release(&room.id);
        }
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::SeqCst)
    }

    /// A task that ends when nothing is watched any more.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let closed = self.closed.clone();
        self.tasks.spawn(async move {
            closed.run_until_cancelled_owned(task).await;
        });
    }

    /// Tells of a room that has no task. Never waits.
    pub(crate) fn tell_ended(
        &self,
        scheduler: &SchedulerName,
        room: &RoomId,
        instance: Option<Handle>,
        ending: Ending,
    ) {
        let events = self.events.clone();
        let (scheduler, room) = (scheduler.clone(), room.clone());
        let observation = Observation { scheduler, room, instance, event: RoomEvent::Ended(ending) };
        self.spawn(async move {
            // An error means that nobody listens any more.
            let _ = events.send(observation).await;
        });
    }

    /// Reports the end of a room that was to be adopted and no longer runs. What it left behind is ended first, as if its
    /// end had been seen.
    pub(crate) fn tell_ended_unwatched(
        self: &Arc<Self>,
        scheduler: SchedulerName,
        room: RoomId,
        instance: Handle,
    ) {
        let shared = Arc::clone(self);
        self.spawn(async move {
            shared.clear_up_after(&scheduler, &room).await;
            shared.tell_ended(&scheduler, &room, Some(instance), Ending::Unwatched);
        });
    }

    async fn shut_down(self: &Arc<Self>, stop_rooms: bool) {
        self.is_closing.store(true, Ordering::SeqCst);
        // Whoever began to start a room before holds its lock until the room is known.
        for lock in &self.locks {
            drop(lock.lock().await);
        }
        if stop_rooms {
            self.stop_all().await;
            self.tasks.close();
            // The engine takes what is in the channel then; without this wait, an end might not get that far.
            let _ = timeout(LAST_EVENTS_WITHIN, self.tasks.wait()).await;
        }
        self.closed.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.log_keeper.close();
    }

    async fn stop_all(self: &Arc<Self>) {
        let running = self.list(None).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "rooms that are not watched cannot be found; only the others are ended");
            Vec::new()
        });
        for room in running {
            if let Err(error) = self.stop(&room.scheduler, &room.id, None, None).await {
                tracing::warn!(room = %room.id, %error, "room cannot be ended");
            }
        }
        let rooms = self.rooms_that(|_| true);
        for room in &rooms {
            room.ask_to_end(room.plan.grace_period());
        }
        join_all(rooms.iter().map(|room| room.gone.cancelled())).await;
    }
}

pub(crate) fn unavailable(error: impl std::fmt::Display) -> RuntimeError {
    RuntimeError::Unavailable(error.to_string())
}
