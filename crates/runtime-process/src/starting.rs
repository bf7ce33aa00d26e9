//! Starting a room: all of its containers, or nothing.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use maestro_core::room::RoomId;
use maestro_core::scheduler::SchedulerName;
use maestro_engine::ports::runtime::{Handle, Result, RoomToStart, RuntimeError};
use rustix::process::Signal;
use tokio::time::timeout;

use crate::adoption::{Opened, open};
use crate::directory;
use crate::environment::Surroundings;
use crate::launch::{self, Launch, Launched};
use crate::members::Member;
use crate::plan::{ContainerPlan, Plan};
use crate::process::Process;
use crate::room::{Room, lock};
use crate::runtime::{ROOMS_MAX, Shared, unavailable};

/// How long a killed process may take to be gone; it takes longer only if the machine is in trouble.
const KILLED_WITHIN: Duration = Duration::from_secs(5);

impl Shared {
    pub(crate) async fn start(self: &Arc<Self>, room: &RoomToStart) -> Result<Handle> {
        let _alone = self.alone(&room.id).await;
        if self.is_closing() {
            return Err(unavailable("it is being shut down"));
        }
        if let Some(running) = self.room(&room.id) {
            running.asked_how_it_is.notify_one();
            return Ok(running.hand_out());
        }
        let plan = Plan::of(room);
        if let Some(opened) = self.find_started(&room.id, &plan).await? {
            self.places.hold(&room.id, &room.scheduler);
            return Ok(self.watch(&room.scheduler, &room.id, plan, opened, None).hand_out());
        }
        let place = self.places.take(room).ok_or_else(|| {
            let (region, max) = (&self.options.region, self.options.rooms_max);
            RuntimeError::Full(format!("region {region} holds at most {max} rooms ({ROOMS_MAX})"))
        })?;
        let (shared, to_launch, new) = (Arc::clone(self), plan.clone(), room.clone());
        let launch = move || shared.launch_all(&new.scheduler, &new.id, &to_launch);
        let opened = self.launch_watched(launch).await?;
        let running = self.watch(&room.scheduler, &room.id, plan, opened, None);
        place.keep();
        Ok(running.hand_out())
    }

    /// The room may have been started by a Maestro that died before it could write that down. If it died halfway, what
    /// it left is killed: a room that was never whole has no players.
    async fn find_started(&self, room: &RoomId, plan: &Plan) -> Result<Option<Vec<Opened>>> {
        let Some(found) = lock(&self.found).get(room).cloned() else {
            return Ok(None);
        };
        let opened = open(&found.leaders(&[])).map_err(unavailable)?;
        let is_there = |container: &ContainerPlan| {
            let is_it = |there: &Opened| there.container == container.name && there.process.id.is_running();
            opened.iter().any(is_it)
        };
        if plan.containers.iter().all(is_there) {
            lock(&self.found).remove(room);
            return Ok(Some(opened));
        }
        for Opened { container, process } in opened {
            process.signal_group(Signal::KILL);
            timeout(KILLED_WITHIN, process.ended()).await.map_err(|_| {
                unavailable(format!("container {container:?} of an earlier start does not die"))
            })?;
            process.bury().await;
        }
        // Only now: whoever fails before and tries again must not start it a second time.
        lock(&self.found).remove(room);
        Ok(None)
    }

    /// Starts processes that can be watched, and has their output kept, or leaves none behind.
    async fn launch_watched(
        &self,
        launch: impl FnOnce() -> Result<Vec<Launched>> + Send + 'static,
    ) -> Result<Vec<Opened>> {
        // Without a keeper a room could write only as much as fits into a pipe.
        let keeper = self.log_keeper.ensure_running().await;
        keeper.map_err(|error| unavailable(format!("the log keeper cannot be started: {error}")))?;
        let launched = self.blocking.run(launch).await?;
        let members: Vec<Member> = launched.iter().map(|launched| launched.member.clone()).collect();
        let why = match open(&members) {
            Ok(opened) if opened.len() == members.len() => {
                for Launched { source, output, .. } in launched {
                    self.log_keeper.keep(source, &output);
                }
                return Ok(opened);
            }
            Ok(_) => "somebody else reaps our children".to_owned(),
            Err(error) => error.to_string(),
        };
        self.blocking.run(move || launch::abandon_all(&launched)).await;
        Err(unavailable(format!("a container was started and cannot be watched: {why}")))
    }

    /// Blocking.
    fn launch_all(&self, scheduler: &SchedulerName, room: &RoomId, plan: &Plan) -> Result<Vec<Launched>> {
        let prepare = |container| self.prepare(scheduler, room, plan, container);
        let launches: Vec<Launch> = plan.containers.iter().map(prepare).collect::<Result<_, _>>()?;
        let place = self.directory.room(scheduler, room).ok_or_else(|| not_a_name(room))?;
        let home = self.home(scheduler, room)?;
        let is_new = !place.exists();
        let started = self
            .directory
            .make(&place)
            .and_then(|()| plan.write(&place))
            .and_then(|()| self.directory.make_home(&home, self.options.user.as_ref()))
            .map_err(|error| unavailable(format!("the directory of room {room}: {error}")))
            .and_then(|()| launch::run_all(&launches));
        match &started {
            Ok(launched) => self.add_to_cgroup(room, launched),
            Err(_) => {
                let removed = directory::remove(&home)
                    .and_then(|()| if is_new { directory::remove(&place) } else { Ok(()) });
                if let Err(error) = removed {
                    tracing::warn!(%room, %error, "the directory of a room that did not start cannot be removed");
                }
            }
        }
        started
    }

    /// Starts one container of a room again.
    pub(crate) async fn launch_again(self: &Arc<Self>, room: &Arc<Room>, index: usize) -> Result<Process> {
        let (shared, room) = (Arc::clone(self), Arc::clone(room));
        let launch = move || {
            let container = &room.plan.containers[index];
            let home = shared.home(&room.scheduler, &room.id)?;
            shared.directory.make_home(&home, shared.options.user.as_ref()).map_err(unavailable)?;
            let launched = shared.prepare(&room.scheduler, &room.id, &room.plan, container)?.run()?;
            shared.add_to_cgroup(&room.id, std::slice::from_ref(&launched));
            Ok(vec![launched])
        };
        let opened = self.launch_watched(launch).await?.pop();
        opened.map(|opened| opened.process).ok_or_else(|| unavailable("it has no process"))
    }

    /// Blocking.
    fn prepare(
        &self,
        scheduler: &SchedulerName,
        room: &RoomId,
        plan: &Plan,
        container: &ContainerPlan,
    ) -> Result<Launch> {
        let (options, directory) = (&self.options, &self.directory);
        let (ports, home) = (&plan.ports, &self.home(scheduler, room)?);
        Launch::prepare(container, &Surroundings { options, directory, scheduler, room, ports, home })
    }

    fn home(&self, scheduler: &SchedulerName, room: &RoomId) -> Result<PathBuf> {
        self.directory.home(scheduler, room).ok_or_else(|| not_a_name(room))
    }

    /// Blocking.
    fn add_to_cgroup(&self, room: &RoomId, launched: &[Launched]) {
        let Some(cgroups) = &self.cgroups else { return };
        for Launched { member, .. } in launched {
            if let Err(error) = cgroups.add(room, member.process.pid) {
                tracing::debug!(%room, %error, "a container is not in the cgroup of its room");
            }
        }
    }
}

fn not_a_name(room: &RoomId) -> RuntimeError {
    RuntimeError::Refused(format!("{room} is not the name of a directory"))
}
