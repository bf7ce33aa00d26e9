//! The task that owns the processes of one room: it notices their ends, restarts them where the recipe says so, ends
//! the room when it is asked to, and tells what it sees.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select_all;
use maestro_core::room::Ending;
use maestro_engine::ports::runtime::{Observation, RoomEvent};
use rustix::process::Signal;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::members::Member;
use crate::plan::Restart;
use crate::process::{Exit, Process};
use crate::room::{Room, after, back_off};
use crate::runtime::Shared;

/// The wait before a restart doubles from one to the other: a room that cannot run must not use the machine up.
const BACK_OFF_MIN: Duration = Duration::from_secs(1);
const BACK_OFF_MAX: Duration = Duration::from_secs(60);
/// A container that ran for so long was well: its next restart is again the first one.
const RUN_THAT_COUNTS: Duration = Duration::from_secs(60);
/// How many events are kept until they can be sent: the newest ones. The end of a room comes last and is never dropped.
const UNSENT_MAX: usize = 8;

pub(crate) struct Watch {
    shared: Arc<Shared>,
    room: Arc<Room>,
    containers: Vec<Container>,
    /// The first container that ended for good, by itself.
    ended_by: Option<Ending>,
    is_going_down: bool,
    /// When what still runs then is killed.
    kill_at: Option<Instant>,
    was_killed: bool,
    unsent: VecDeque<RoomEvent>,
}

struct Container {
    name: String,
    state: State,
    started_at: Instant,
    /// Restarts in a row, without a run that counts in between.
    restarts: u32,
}

enum State {
    Running(Process),
    RestartsAt(Instant),
    Ended,
}

impl Watch {
    /// `processes`: of each container of the plan, in its order, what runs of it.
    pub(crate) fn new(shared: Arc<Shared>, room: Arc<Room>, processes: Vec<Option<Process>>) -> Self {
        let now = Instant::now();
        let names = room.plan.containers.iter().map(|container| container.name.clone());
        let containers = names
            .zip(processes)
            .map(|(name, process)| Container {
                name,
                state: process.map_or(State::Ended, State::Running),
                started_at: now,
                restarts: 0,
            })
            .collect();
        let mut watch = Self {
            shared,
            room,
            containers,
            ended_by: None,
            is_going_down: false,
            kill_at: None,
            was_killed: false,
            unsent: VecDeque::from([RoomEvent::Up]),
        };
        watch.make_up_for_the_missing();
        watch
    }

    /// Some containers ended while nobody watched: each is restarted, or it has ended the room.
    fn make_up_for_the_missing(&mut self) {
        if self.containers.iter().all(|container| container.is_running()) {
            return;
        }
        if self.room.plan.restart == Restart::Never {
            self.ended_by = Some(Ending::Unwatched);
            self.go_down(after(self.room.plan.grace_period()));
            return;
        }
        for container in &mut self.containers {
            if !container.is_running() {
                container.restart_after(Duration::ZERO);
            }
        }
        self.tell(RoomEvent::Pending);
    }

    pub(crate) async fn run(mut self) {
        let events = self.shared.events.clone();
        let room = Arc::clone(&self.room);
        let mut orders = room.asked_to_end();
        // Whatever was asked before this task began is news to it.
        orders.mark_changed();
        while !self.containers.iter().all(|container| matches!(container.state, State::Ended)) {
            let due = self.next_due();
            // Ends first: a room that ended by itself just before it was asked to has ended by itself.
            tokio::select! {
                biased;
                index = first_ended(&self.containers) => self.container_ended(index).await,
                _ = orders.changed() => {
                    if let Some(kill_at) = *orders.borrow_and_update() {
                        self.go_down(kill_at);
                    }
                }
                () = room.asked_how_it_is.notified() => self.tell(self.how_it_is()),
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    self.do_what_is_due().await;
                }
                permit = events.reserve(), if !self.unsent.is_empty() => self.send_one(permit.ok()),
            }
        }
        let ending = match self.ended_by.take() {
            Some(ending) => ending,
            None if self.was_killed => Ending::KilledAfterGrace,
            None => Ending::Stopped,
        };
        tracing::info!(room = %self.room.id, scheduler = %self.room.scheduler, how = %ending, "room ended");
        self.shared.clear_up_after(&self.room.scheduler, &self.room.id).await;
        // Before it is told: whoever hears of the end finds its last words, and does not find the room any more.
        self.shared.log_keeper.drain(&self.room.scheduler, &self.room.id).await;
        self.shared.remove(&self.room);
        self.shared.count_ended(&self.room.scheduler, &self.room.id).await;
        self.room.gone.cancel();
        self.unsent.push_back(RoomEvent::Ended(ending));
        while !self.unsent.is_empty() {
            self.send_one(events.reserve().await.ok());
        }
    }

    async fn container_ended(&mut self, index: usize) {
        let container = &mut self.containers[index];
        let State::Running(process) = std::mem::replace(&mut container.state, State::Ended) else {
            return;
        };
        let exit = process.bury().await;
        if self.is_going_down {
            return;
        }
        tracing::info!(room = %self.room.id, container = container.name, ?exit, "container ended");
        if self.room.plan.restart.follows(exit) {
            container.restart_after(container.started_at.elapsed());
            self.tell(RoomEvent::Pending);
            return;
        }
        self.ended_by = Some(match exit {
            Exit::Code(code) => Ending::Exited { container: container.name.clone(), code },
            Exit::Signal(signal) => Ending::Killed { container: container.name.clone(), signal },
            Exit::Unknown => Ending::Unwatched,
        });
        self.go_down(after(self.room.plan.grace_period()));
    }

    /// The first time asks every process to end; each time, the earliest moment to kill them counts.
    fn go_down(&mut self, kill_at: Instant) {
        self.kill_at = Some(self.kill_at.map_or(kill_at, |earlier| earlier.min(kill_at)));
        if self.is_going_down {
            return;
        }
        self.is_going_down = true;
        for container in &mut self.containers {
            match &container.state {
                State::Running(process) => process.signal_group(Signal::TERM),
                State::RestartsAt(_) | State::Ended => container.state = State::Ended,
            }
        }
        self.tell(RoomEvent::GoingDown);
    }

    fn next_due(&self) -> Option<Instant> {
        let restarts = self.containers.iter().filter_map(|container| match container.state {
            State::RestartsAt(at) => Some(at),
            State::Running(_) | State::Ended => None,
        });
        // What was killed is only waited for.
        restarts.chain(self.kill_at.filter(|_| !self.was_killed)).min()
    }

    async fn do_what_is_due(&mut self) {
        let now = Instant::now();
        if self.kill_at.is_some_and(|at| at <= now) && !self.was_killed {
            self.was_killed = true;
            for container in &self.containers {
                if let State::Running(process) = &container.state {
                    process.signal_group(Signal::KILL);
                }
            }
        }
        for index in 0..self.containers.len() {
            if matches!(self.containers[index].state, State::RestartsAt(at) if at <= now) {
                self.restart(index).await;
            }
        }
    }

    async fn restart(&mut self, index: usize) {
        let launched = self.shared.launch_again(&self.room, index).await;
        let container = &mut self.containers[index];
        match launched {
            Ok(process) => {
                self.room.replace(Member { container: container.name.clone(), process: process.id });
                container.started_at = Instant::now();
                container.state = State::Running(process);
            }
            Err(error) => {
                tracing::warn!(room = %self.room.id, container = container.name, %error, "restart failed");
                container.restart_after(Duration::ZERO);
            }
        }
        if self.how_it_is() == RoomEvent::Up {
            self.tell(RoomEvent::Up);
        }
    }

    fn how_it_is(&self) -> RoomEvent {
        if self.is_going_down {
            RoomEvent::GoingDown
        } else if self.containers.iter().all(Container::is_running) {
            RoomEvent::Up
        } else {
            RoomEvent::Pending
        }
    }

    fn tell(&mut self, event: RoomEvent) {
        if self.unsent.len() == UNSENT_MAX {
            self.unsent.pop_front();
        }
        self.unsent.push_back(event);
    }

    /// Without a permit nobody listens any more.
    fn send_one(&mut self, permit: Option<mpsc::Permit<'_, Observation>>) {
        let event = self.unsent.pop_front();
        if let (Some(permit), Some(event)) = (permit, event) {
            permit.send(Observation {
                scheduler: self.room.scheduler.clone(),
                room: self.room.id.clone(),
                instance: Some(self.room.known_as()),
                event,
            });
        }
    }
}

impl Container {
    fn is_running(&self) -> bool {
        matches!(self.state, State::Running(_))
    }

    /// Starts it again, later, as it ended after such a run.
    fn restart_after(&mut self, run: Duration) {
        if run >= RUN_THAT_COUNTS {
            self.restarts = 0;
        }
        self.state = State::RestartsAt(Instant::now() + back_off(self.restarts, BACK_OFF_MIN, BACK_OFF_MAX));
        self.restarts = self.restarts.saturating_add(1);
    }
}

/// Never returns if none runs.
async fn first_ended(containers: &[Container]) -> usize {
    let running: Vec<_> = containers
        .iter()
        .enumerate()
        .filter_map(|(index, container)| match &container.state {
            State::Running(process) => Some(Box::pin(async move {
                process.ended().await;
                index
            })),
            State::RestartsAt(_) | State::Ended => None,
        })
        .collect();
    if running.is_empty() {
        return std::future::pending().await;
    }
    select_all(running).await.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_a_minute() {
        let waits: Vec<u64> =
            (0..9).map(|restarts| back_off(restarts, BACK_OFF_MIN, BACK_OFF_MAX).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(back_off(u32::MAX, BACK_OFF_MIN, BACK_OFF_MAX), BACK_OFF_MAX);
    }
}
