//! Rooms that run already: finding them in the process table, watching them, ending them.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use maestro_core::room::{Ending, RoomId};
use maestro_core::scheduler::SchedulerName;
use maestro_engine::ports::runtime::{Handle, Result, RunningRoom};
use maestro_engine::{Importance, TaskName};

use crate::members::{self, Member, ProcessId};
use crate::plan::{ContainerPlan, Plan, Restart};
use crate::process::Process;
use crate::process_table::Marked;
use crate::room::{Room, lock};
use crate::runtime::{Shared, unavailable};
use crate::watch::Watch;

/// The processes of a room, as the process table shows them.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    scheduler: SchedulerName,
    /// In the order of their start. One container can be there several times: a process that a room started, and that
    /// made itself the leader of a group, has inherited the marks.
    members: Vec<Member>,
}

/// A process of a room, held by its pidfd.
pub(crate) struct Opened {
    pub(crate) container: String,
    pub(crate) process: Process,
}

/// Opens the processes that still exist.
pub(crate) fn open(members: &[Member]) -> io::Result<Vec<Opened>> {
    let mut opened = Vec::with_capacity(members.len());
    for member in members {
        if let Some(process) = Process::open(member.process)? {
            let container = member.container.clone();
            opened.push(Opened { container, process });
        }
    }
    Ok(opened)
}

impl Found {
    /// Only leaders of groups: all others are found through them.
    pub(crate) fn by_room<'a>(marked: impl Iterator<Item = &'a Marked>) -> HashMap<RoomId, Self> {
        let mut rooms: HashMap<RoomId, Self> = HashMap::new();
        for process in marked.filter(|process| process.leads_group) {
            let found = rooms
                .entry(process.room.clone())
                .or_insert_with(|| Self { scheduler: process.scheduler.clone(), members: Vec::new() });
            found.members.push(process.member.clone());
        }
        rooms
    }

    /// One process per container: the one that is named, or else the oldest, from which the others come.
    pub(crate) fn leaders(&self, named: &[Member]) -> Vec<Member> {
        let mut leaders: BTreeMap<&str, &Member> = BTreeMap::new();
        for member in &self.members {
            let leader = leaders.entry(&member.container).or_insert(member);
            if named.contains(member) {
                *leader = member;
            }
        }
        let mut leaders: Vec<Member> = leaders.into_values().cloned().collect();
        leaders.sort_by_key(|member| member.process.start_time);
        leaders
    }

    fn named(&self, named: &[Member]) -> Vec<Member> {
        self.members.iter().filter(|member| named.contains(member)).cloned().collect()
    }
}

impl Shared {
    /// What is watched, and what the process table shows beyond that. A container that waits for its restart has no
    /// process, and its room is there all the same. `only`: of one scheduler.
    pub(crate) async fn list(&self, only: Option<&SchedulerName>) -> Result<Vec<RunningRoom>> {
        let is_meant = |scheduler: &SchedulerName| only.is_none_or(|only| only == scheduler);
        let scanned = self.scan().await?;
        let found = Found::by_room(scanned.iter().filter(|process| is_meant(&process.scheduler)));
        let watched = self.rooms_that(|room| is_meant(&room.scheduler));
        let mut running: Vec<RunningRoom> = watched.iter().map(|room| room.as_running()).collect();
        let mut unwatched = found;
        for room in &watched {
            unwatched.remove(&room.id);
        }
        for (id, found) in &unwatched {
            let mut leaders = found.leaders(&[]);
            // What ended since the scan is about to be told, or has been.
            leaders.retain(|leader| leader.process.stat().is_some());
            if !leaders.is_empty() {
                running.push(RunningRoom {
                    id: id.clone(),
                    scheduler: found.scheduler.clone(),
                    handle: members::to_handle(&self.options.host, &leaders),
                });
            }
        }
        let mut known = lock(&self.found);
        known.retain(|_, found| !is_meant(&found.scheduler));
        known.extend(unwatched);
        Ok(running)
    }

    /// Rooms that ran before this process began were found when the runtime was opened. There is no second look, and
    /// plans are read in one turn: on a host with thousands of rooms, Maestro serves that much sooner.
    pub(crate) async fn adopt(self: &Arc<Self>, rooms: Vec<RunningRoom>) -> Result {
        let mut plans = self.read_plans_of_found(&rooms).await;
        for RunningRoom { id, scheduler, handle } in rooms {
            let _alone = self.alone(&id).await;
            if let Some(watched) = self.room(&id) {
                // Of another instance than is watched, nothing will be seen any more.
                if watched.is(&handle) {
                    watched.be_known_as(handle);
                }
                watched.asked_how_it_is.notify_one();
                continue;
            }
            let found = lock(&self.found).get(&id).cloned();
            let named = members::from_handle(&handle);
            let plan = plans.remove(&id).unwrap_or_else(Plan::unknown);
            let members = found.map_or_else(Vec::new, |found| match plan.restart {
                Restart::Never => found.named(&named),
                // Its processes may have been restarted after the handle was written down.
                Restart::OnFailure | Restart::Always => found.leaders(&named),
            });
            let mut opened = open(&members).map_err(unavailable)?;
            lock(&self.found).remove(&id);
            // A zombie that has ended since then is no more watched than one that had ended before.
            opened.retain(|there| there.process.id.is_running());
            if opened.is_empty() {
                self.tell_ended_unwatched(scheduler, id, handle);
                continue;
            }
            self.places.hold(&id, &scheduler);
            self.watch(&scheduler, &id, expecting(plan, &named), opened, Some(handle));
        }
        Ok(())
    }

    /// `grace`: `None` is the room's own.
    pub(crate) async fn stop(
        self: &Arc<Self>,
        scheduler: &SchedulerName,
        id: &RoomId,
        handle: Option<&Handle>,
        grace: Option<Duration>,
    ) -> Result {
        let _alone = self.alone(id).await;
        let watched = self.room(id);
        let is_it = |room: &Arc<Room>| handle.is_none_or(|handle| room.is(handle));
        let room = match watched {
            Some(room) if is_it(&room) => Some(room),
            Some(_) => None,
            None => self.watch_unwanted(scheduler, id, handle).await?,
        };
        match room {
            Some(room) => room.ask_to_end(grace.unwrap_or_else(|| room.plan.grace_period())),
            None => self.tell_ended(scheduler, id, handle.cloned(), Ending::Lost),
        }
        Ok(())
    }

    /// A room that nobody wants is watched too, to be ended: its end is told like any other.
    async fn watch_unwanted(
        self: &Arc<Self>,
        scheduler: &SchedulerName,
        id: &RoomId,
        handle: Option<&Handle>,
    ) -> Result<Option<Arc<Room>>> {
        let scanned = self.scan().await?;
        let of_room = scanned.iter().filter(|process| process.room == *id);
        let Some(found) = Found::by_room(of_room).remove(id) else {
            return Ok(None);
        };
        lock(&self.found).remove(id);
        let members = match handle {
            Some(handle) => found.named(&members::from_handle(handle)),
            None => found.leaders(&[]),
        };
        let opened = open(&members).map_err(unavailable)?;
        if opened.is_empty() {
            return Ok(None);
        }
        let room = self.directory.room(scheduler, id);
        let read = self.blocking.run(move || room.and_then(|room| Plan::read(&room)));
        let plan = read.await.unwrap_or_else(Plan::unknown);
        self.places.hold(id, scheduler);
        Ok(Some(self.watch(scheduler, id, expecting(plan, &members), opened, handle.cloned())))
    }

    /// Watches a room from now on. `known_as`: the handle in the store, if there may be one.
    pub(crate) fn watch(
        self: &Arc<Self>,
        scheduler: &SchedulerName,
        id: &RoomId,
        plan: Plan,
        opened: Vec<Opened>,
        known_as: Option<Handle>,
    ) -> Arc<Room> {
        let process = |member: &Member| member.process;
        let members: Vec<Member> = opened.iter().map(Opened::member).collect();
        let known_as = known_as.unwrap_or_else(|| members::to_handle(&self.options.host, &members));
        let handed_out = members::from_handle(&known_as);
        let first: Vec<ProcessId> = members.iter().chain(&handed_out).map(process).collect();
        let mut processes: HashMap<String, Process> =
            opened.into_iter().map(|Opened { container, process }| (container, process)).collect();
        let processes = plan.containers.iter().map(|container| processes.remove(&container.name)).collect();
        let host = self.options.host.clone();
        let room = Arc::new(Room::new(id.clone(), scheduler.clone(), plan, host, members, first, known_as));
        self.insert(Arc::clone(&room));
        let watch = Watch::new(Arc::clone(self), Arc::clone(&room), processes);
        self.spawn_watch(&room, watch);
        room
    }

    /// A watch that crashes has lost its processes: the room is found again as after a restart.
    fn spawn_watch(self: &Arc<Self>, room: &Arc<Room>, watch: Watch) {
        let (done, is_done) = tokio::sync::watch::channel(false);
        let (shared, watched) = (Arc::clone(self), Arc::clone(room));
        let mut watch = Some(watch);
        let make = move || {
            let (watch, shared, room, done) =
                (watch.take(), Arc::clone(&shared), Arc::clone(&watched), done.clone());
            async move {
                match watch {
                    Some(watch) => watch.run().await,
                    None => shared.find_again(&room).await,
                }
                done.send_replace(true);
            }
        };
        let name = TaskName::of("room watch", &room.id);
        self.spawn(self.options.tasks.clone().supervised(name, Importance::Part, is_done, make));
    }

    async fn find_again(self: &Arc<Self>, room: &Arc<Room>) {
        self.remove(room);
        let found = match self.list(Some(&room.scheduler)).await {
            Ok(_) => self.adopt(vec![RunningRoom { handle: room.known_as(), ..room.as_running() }]).await,
            Err(error) => Err(error),
        };
        if let Err(error) = found {
            tracing::warn!(room = %room.id, %error, "not watched until registry and runtime are compared");
        }
    }

    /// The plans of all rooms that were found running, as far as they can be read.
    async fn read_plans_of_found(&self, rooms: &[RunningRoom]) -> HashMap<RoomId, Plan> {
        let directories: Vec<(RoomId, PathBuf)> = {
            let found = lock(&self.found);
            let running = rooms.iter().filter(|room| found.contains_key(&room.id));
            let directory =
                |room: &RunningRoom| Some((room.id.clone(), self.directory.room(&room.scheduler, &room.id)?));
            running.filter_map(directory).collect()
        };
        let read = |(id, room): (RoomId, PathBuf)| Some((id, Plan::read(&room)?));
        self.blocking.run(move || directories.into_iter().filter_map(read).collect()).await
    }
}

impl Opened {
    fn member(&self) -> Member {
        Member { container: self.container.clone(), process: self.process.id }
    }
}

/// A plan that was lost, or is of another time, still has every container that the handle names.
fn expecting(mut plan: Plan, members: &[Member]) -> Plan {
    for Member { container, .. } in members {
        if plan.containers.iter().all(|known| known.name != *container) {
            plan.containers.push(ContainerPlan { name: container.clone(), ..ContainerPlan::default() });
        }
    }
    plan
}
