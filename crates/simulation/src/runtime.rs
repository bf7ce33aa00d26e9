//! The runtime port over a simulated host: one engine's view of it, from its connection to its end.

use std::fmt::from_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use maestro_core::region::{Reachability, Turn};
use maestro_core::room::{Ending, HostPort, Purpose, Region, RoomId};
use maestro_core::scheduler::SchedulerName;
use maestro_engine::ports::runtime::{
    Capacity, Checked, Handle, Observation, RoomEvent, RoomToStart, RunningRoom, Runtime, RuntimeError,
};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use crate::broken;
use crate::clock::VirtualClock;
use crate::coverage::RareEvent;
use crate::faults::{Call, FaultInjector, Loss, Surroundings, What};
use crate::host::{Host, NewRoom, Room, Span, State};
use crate::life::Life;
use crate::trace::Trace;

/// How many observations may wait for the engine; more are lost.
const OBSERVATIONS_MAX: usize = 1024;
/// How often a shutdown looks whether its rooms are gone.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

pub struct SimulatedRuntime {
    host: Arc<Host>,
    /// Of the engine that uses it: what comes from a dead one is not carried out.
    injector: FaultInjector,
    /// What the host knows it by.
    watcher: u64,
    observations: Mutex<Option<mpsc::Receiver<Observation>>>,
    is_closed: AtomicBool,
    /// What the engine must make of the answers that it got.
    reachability: Mutex<Reachability>,
}

impl SimulatedRuntime {
    /// Calls fail only if the host's host_faults say so.
    pub fn connect(host: Arc<Host>, life: Life) -> Arc<Self> {
        let trace = Trace::begin(VirtualClock::begin());
        Self::connect_from(host, Surroundings::quiet(life, trace))
    }

    pub(crate) fn connect_from(host: Arc<Host>, around: Surroundings) -> Arc<Self> {
        let (sender, receiver) = mpsc::channel(OBSERVATIONS_MAX);
        let watcher = host.change(|state, _| state.connect(sender));
        around.inspector.region_unseen(&around.node, host.region());
        let port = match host.region().as_str() {
            Region::DEFAULT => "runtime".into(),
            region => format!("runtime of {region}"),
        };
        Arc::new(Self {
            host,
            injector: FaultInjector::new(around, &port, |faults| faults.runtime),
            watcher,
            observations: Mutex::new(Some(receiver)),
            is_closed: AtomicBool::new(false),
            reachability: Mutex::default(),
        })
    }

    /// A call as it goes over a wire: on its way, carried out, on its way back. It can fail on both ways, and on the
    /// way back nobody can tell whether it was carried out.
    async fn call<T>(
        &self,
        call: Call<'_>,
        carry_out: impl FnOnce(&mut State, Instant) -> Result<T, RuntimeError>,
    ) -> Result<T, RuntimeError> {
        let life = &self.injector.around().life;
        let act = async {
            self.host.dawdle().await;
            life.still_alive().await;
            let answer = self.host.change(|state, now| {
                state.answers()?;
                carry_out(state, now)
            });
            self.host.dawdle().await;
            life.still_alive().await;
            self.host.change(|state, _| state.answers())?;
            answer
        };
        let lost = |_: Loss, why: &'static str| RuntimeError::Unavailable(why.into());
        self.injector.call(call, act, lost).await
    }

    async fn read<T>(
        &self,
        what: &What<'_>,
        look: impl FnOnce(&mut State, Instant) -> Result<T, RuntimeError>,
    ) -> Result<T, RuntimeError> {
        self.call(Call::read(what), look).await
    }

    async fn write<T>(
        &self,
        what: &What<'_>,
        carry_out: impl FnOnce(&mut State, Instant) -> Result<T, RuntimeError>,
    ) -> Result<T, RuntimeError> {
        self.call(Call::write(what, Span::ZERO), carry_out).await
    }
}

/// Whether the region answers, as an engine asks it: who is frozen for too long gives up, and has heard nothing.
struct Question<'a> {
    runtime: &'a SimulatedRuntime,
    answer: Result<(), String>,
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        let SimulatedRuntime { host, injector, reachability, .. } = self.runtime;
        let Surroundings { node, trace, coverage, inspector, .. } = injector.around();
        let mut reachability = reachability.lock();
        match reachability.heard(self.answer.clone(), trace.now()) {
            Some(Turn::Lost) => {
                injector.note("it counts as lost");
                coverage.saw(RareEvent::RegionLost);
                inspector.region_unseen(node, host.region());
            }
            Some(Turn::Back) => {
                injector.note("it is back");
                coverage.saw(RareEvent::RegionBack);
            }
            None => {}
        }
    }
}

impl Drop for SimulatedRuntime {
    fn drop(&mut self) {
        self.host.change(|state, _| state.watchers.remove(&self.watcher));
    }
}

#[async_trait]
impl Runtime for SimulatedRuntime {
    fn region(&self) -> &Region {
        self.host.region()
    }

    fn host(&self) -> Option<&str> {
        Some(&self.host.region().0)
    }

    fn runs_containers(&self) -> bool {
        false
    }

    fn capacity(&self, scheduler: &SchedulerName) -> Option<Capacity> {
        self.host.change(|state, _| {
            let rooms = state.host_faults.rooms_max?;
            let others = state.rooms.values().filter(|room| room.scheduler != *scheduler).count();
            if state.rooms.len() >= rooms as usize {
                self.injector.around().coverage.saw(RareEvent::HostFull);
            }
            Some(Capacity {
                rooms,
                taken_by_others: u32::try_from(others).unwrap_or(u32::MAX),
                setting: "its own limit",
            })
        })
    }

    /// At once: it is asked every few seconds, and must not take from the chance that other calls depend on.
    async fn check(&self) -> Result<Checked, RuntimeError> {
        let mut question = Question { runtime: self, answer: Err("it was not waited for".into()) };
        self.injector.around().life.still_alive().await;
        let answer = self.host.change(|state, _| state.answers());
        question.answer = answer.clone().map_err(|error| error.to_string());
        answer.map(|()| Checked::default())
    }

    async fn create_scheduler(&self, scheduler: &SchedulerName) -> Result<(), RuntimeError> {
        self.write(&"create_scheduler", |state, _| {
            if state.host_faults.refuses_schedulers {
                return Err(RuntimeError::Unavailable("the disk is full".into()));
            }
            state.places.insert(scheduler.clone());
            Ok(())
        })
        .await
    }

    async fn delete_scheduler(&self, scheduler: &SchedulerName) -> Result<(), RuntimeError> {
        self.write(&"delete_scheduler", |state, _| {
            let left = state.rooms.values().filter(|room| room.scheduler == *scheduler).count();
            if left > 0 {
                let text = format!("{left} rooms of scheduler {scheduler} still run");
                return Err(RuntimeError::Unavailable(text));
            }
            state.places.remove(scheduler);
            state.logs.retain(|(name, _), _| name != scheduler);
            Ok(())
        })
        .await
    }

    async fn start(&self, room: &RoomToStart) -> Result<Handle, RuntimeError> {
        let RoomToStart { id, scheduler, version: _, recipe, ports, purpose } = room;
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(RuntimeError::Unavailable("it is shut down".into()));
        }
        let what = from_fn(|f| write!(f, "start of room {id}"));
        self.write(&what, |state, now| {
            if !state.rooms.contains_key(id) {
                if let Some(why) = &state.host_faults.refuses_starts {
                    self.injector.around().coverage.saw(RareEvent::StartRefused);
                    return Err(RuntimeError::Refused(why.clone()));
                }
                let is_full =
                    state.host_faults.rooms_max.is_some_and(|max| state.rooms.len() >= max as usize);
                if is_full && *purpose == Purpose::Fleet {
                    return Err(RuntimeError::Full("the host holds no more rooms".into()));
                }
                if !state.places.contains(scheduler) {
                    let text = format!("scheduler {scheduler} has no place on this host");
                    return Err(RuntimeError::Refused(text));
                }
                // If it arrives late, its port may be another room's by now: what counts is what the registry gave.
                let new = NewRoom {
                    id: id.clone(),
                    scheduler: scheduler.clone(),
                    ports: ports.clone(),
                    grace: recipe.spec.termination_grace_period,
                    flags: recipe
                        .spec
                        .containers
                        .iter()
                        .flat_map(|container| container.command.clone())
                        .collect(),
                    is_invented: false,
                };
                state.start(new, now);
            }
            state.watch(self.watcher, id);
            // It was there or was made just now, and nothing happens in between.
            let gone = || RuntimeError::Unavailable(format!("room {id} is not there"));
            state.rooms.get(id).map(Room::handle).ok_or_else(gone)
        })
        .await
    }

    async fn stop(
        &self,
        scheduler: &SchedulerName,
        room: &RoomId,
        handle: Option<&Handle>,
        grace: Duration,
    ) -> Result<(), RuntimeError> {
        let what = from_fn(|f| write!(f, "stop of room {room}"));
        self.write(&what, |state, now| {
            let there = state.rooms.get(room);
            let is_it = |handle: &Handle| there.is_some_and(|room| room.is(handle));
            if there.is_some() && handle.is_none_or(is_it) {
                state.watch(self.watcher, room);
                state.stop(room, grace, now);
            } else {
                state.tell_watcher(self.watcher, ended(scheduler, room, handle.cloned(), Ending::Lost));
            }
            Ok(())
        })
        .await
    }

    async fn list(&self) -> Result<Vec<RunningRoom>, RuntimeError> {
        let running = self
            .read(&"list", |state, _| {
                let listed =
                    state.rooms.values().filter(|room| !room.is_invented || broken::lists_unwanted());
                let running = listed.map(|room| RunningRoom {
                    id: room.id.clone(),
                    scheduler: room.scheduler.clone(),
                    handle: room.handle(),
                });
                Ok(running.collect())
            })
            .await?;
        let Surroundings { node, inspector, .. } = self.injector.around();
        inspector.region_listed(node, self.host.region());
        Ok(running)
    }

    async fn adopt(&self, rooms: Vec<RunningRoom>) -> Result<(), RuntimeError> {
        self.write(&"adopt", |state, _| {
            for RunningRoom { id, scheduler, handle } in &rooms {
                let runs = state.rooms.get(id).is_some_and(|room| room.is(handle));
                if runs {
                    state.watch(self.watcher, id);
                } else {
                    let instance = Some(handle.clone());
                    state.tell_watcher(self.watcher, ended(scheduler, id, instance, Ending::Unwatched));
                }
            }
            Ok(())
        })
        .await?;
        // It is what an engine does before it counts on a region.
        let Surroundings { node, inspector, .. } = self.injector.around();
        inspector.region_adopted(node, self.host.region());
        Ok(())
    }

    fn observations(&self) -> Option<mpsc::Receiver<Observation>> {
        self.observations.lock().take()
    }

    async fn free_ports(&self, ports: &[HostPort]) -> Result<Vec<HostPort>, RuntimeError> {
        self.read(&"free_ports", |state, _| {
            let bound = state.bound_ports();
            let free = ports.iter().filter(|port| !bound.contains(&port.host_port));
            Ok(free.cloned().collect())
        })
        .await
    }

    async fn logs(
        &self,
        scheduler: &SchedulerName,
        room: &RoomId,
        lines_max: usize,
    ) -> Result<Option<String>, RuntimeError> {
        self.read(&"logs", |state, _| {
            let lines = state.logs.get(&(scheduler.clone(), room.clone()));
            Ok(lines.map(|lines| {
                let last = &lines[lines.len().saturating_sub(lines_max)..];
                last.iter().map(|line| format!("{line}\n")).collect()
            }))
        })
        .await
    }

    async fn forget(&self, scheduler: &SchedulerName, room: &RoomId) -> Result<(), RuntimeError> {
        self.write(&"forget", |state, _| {
            state.logs.remove(&(scheduler.clone(), room.clone()));
            Ok(())
        })
        .await
    }

    async fn shut_down(&self, stop_rooms: bool) {
        self.is_closed.store(true, Ordering::Relaxed);
        if stop_rooms {
            self.host.change(|state, now| {
                let rooms: Vec<_> = state.rooms.values().map(|room| (room.id.clone(), room.grace)).collect();
                for (room, grace) in rooms {
                    state.watch(self.watcher, &room);
                    state.stop(&room, grace, now);
                }
            });
            while !self.host.rooms().is_empty() {
                sleep(LOOK_AGAIN).await;
            }
        }
        self.host.change(|state, _| state.watchers.remove(&self.watcher));
    }
}

fn ended(scheduler: &SchedulerName, room: &RoomId, instance: Option<Handle>, ending: Ending) -> Observation {
    Observation {
        scheduler: scheduler.clone(),
        room: room.clone(),
        instance,
        event: RoomEvent::Ended(ending),
    }
}
