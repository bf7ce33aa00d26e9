//! What every runtime does, whatever its rooms are made of.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join;
use maestro_core::room::{EndCause, Ending, RoomId};
use maestro_core::scheduler::SchedulerName;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use crate::ports::runtime::{
    Handle, Observation, RoomEvent, RoomToStart, RunningRoom, Runtime, RuntimeError,
};

/// For what must happen to have happened. Generous: machines that run tests are busy.
const SOON: Duration = Duration::from_secs(20);
/// For a room that ends when it is asked to.
const AMPLE: Duration = Duration::from_secs(3600);
const SHORT: Duration = Duration::from_millis(300);

/// What a room of the suite does. All but `CannotStart` write [`STARTED`] when they have come so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    /// Runs until it is asked to end.
    Runs,
    /// Runs until it is killed.
    IgnoresStop,
    /// Ends by itself with this code.
    Exits(i32),
    /// Writes so many lines, each its number from 0 on, before it writes [`STARTED`]; then runs.
    Writes(usize),
    /// Is something that this runtime must refuse to start.
    CannotStart,
}

/// The line by which a room of the suite says that it does now what it is meant to do.
pub const STARTED: &str = "started";

/// A place in which rooms run, empty at first, and the runtime that looks after it.
#[async_trait]
pub trait Place: Send {
    fn runtime(&self) -> Arc<dyn Runtime>;

    /// The runtime dies without a word and another one begins in the same place. Rooms do not notice.
    async fn begin_again(&mut self);

    /// A room of the suite; it need not belong to a scheduler that was created.
    fn room(&self, id: &str, behaviour: Behaviour) -> RoomToStart;

    /// Ends the room's instance with force, as neither the room nor the runtime would.
    async fn kill(&self, handle: &Handle);
}

/// Runs the whole suite, each part in a place of its own.
pub async fn suite<P: Place>(new_place: impl AsyncFn() -> P) {
    a_started_room_is_up_and_listed(new_place().await).await;
    one_room_id_is_one_room(new_place().await).await;
    a_refused_start_leaves_nothing(new_place().await).await;
    an_end_is_told_with_how_it_came(new_place().await).await;
    a_room_is_asked_before_it_is_killed(new_place().await).await;
    a_shorter_grace_counts(new_place().await).await;
    only_the_very_instance_is_stopped(new_place().await).await;
    what_is_seen_names_its_instance(new_place().await).await;
    rooms_outlive_their_runtime(new_place().await).await;
    what_nobody_adopts_can_be_stopped(new_place().await).await;
    logs_are_kept_until_they_are_forgotten(new_place().await).await;
    the_place_of_a_scheduler(new_place().await).await;
    the_last_one_turns_off_the_light(new_place().await).await;
}

async fn a_started_room_is_up_and_listed(place: impl Place) {
    let mut it = Running::new(place);
    assert!(it.runtime.observations().is_none(), "observations can be taken once");
    assert_eq!(it.runtime.list().await, Ok(vec![]));
    let handle = it.start("arena-1", Behaviour::Runs).await;
    assert!(!handle.host.is_empty());
    it.sees("arena-1", |event| *event == RoomEvent::Up).await;
    assert_eq!(it.runtime.list().await, Ok(vec![running("arena-1", &handle)]));
    it.clean_up().await;
}

async fn one_room_id_is_one_room(place: impl Place) {
    let mut it = Running::new(place);
    let room = it.place.room("arena-1", Behaviour::Runs);
    let (one, other) = join(it.runtime.start(&room), it.runtime.start(&room)).await;
    let handle = one.expect("it starts");
    assert_eq!(other.as_ref(), Ok(&handle), "started twice at once");
    it.sees("arena-1", |event| *event == RoomEvent::Up).await;
    it.forget_seen();
    assert_eq!(it.runtime.start(&room).await.as_ref(), Ok(&handle), "and once more");
    it.sees("arena-1", |event| *event == RoomEvent::Up).await;
    assert_eq!(it.runtime.list().await, Ok(vec![running("arena-1", &handle)]));
    it.clean_up().await;
}

async fn a_refused_start_leaves_nothing(place: impl Place) {
    let it = Running::new(place);
    let room = it.place.room("arena-1", Behaviour::CannotStart);
    let refused = it.runtime.start(&room).await;
    assert!(matches!(&refused, Err(RuntimeError::Refused(why)) if !why.is_empty()), "{refused:?}");
    assert_eq!(it.runtime.list().await, Ok(vec![]));
    assert_eq!(it.runtime.logs(&arena(), &RoomId::new("arena-1"), 10).await, Ok(None));
    it.clean_up().await;
}

async fn an_end_is_told_with_how_it_came(place: impl Place) {
    let mut it = Running::new(place);
    it.start("arena-1", Behaviour::Exits(3)).await;
    let ending = it.sees_the_end("arena-1").await;
    assert!(matches!(ending, Ending::Exited { code: 3, .. }), "{ending:?}");
    it.start("arena-2", Behaviour::Exits(0)).await;
    assert_eq!(it.sees_the_end("arena-2").await.cause(), EndCause::Completed);
    let handle = it.start("arena-3", Behaviour::Runs).await;
    it.place.kill(&handle).await;
    assert_eq!(it.sees_the_end("arena-3").await.cause(), EndCause::Failed);
    assert_eq!(it.runtime.list().await, Ok(vec![]), "whoever heard of the end finds nothing");
    it.clean_up().await;
}

async fn a_room_is_asked_before_it_is_killed(place: impl Place) {
    let mut it = Running::new(place);
    let handle = it.start("arena-1", Behaviour::Runs).await;
    it.stop("arena-1", Some(&handle), AMPLE).await;
    it.sees("arena-1", |event| *event == RoomEvent::GoingDown).await;
    assert_eq!(it.sees_the_end("arena-1").await, Ending::Stopped);

    let handle = it.start("arena-2", Behaviour::IgnoresStop).await;
    it.has_started("arena-2").await;
    let asked_at = Instant::now();
    it.stop("arena-2", Some(&handle), SHORT).await;
    assert_eq!(it.sees_the_end("arena-2").await, Ending::KilledAfterGrace);
    assert!(asked_at.elapsed() >= SHORT, "its grace period is its own");

    it.stop("arena-2", Some(&handle), SHORT).await;
    assert_eq!(it.sees_the_end("arena-2").await, Ending::Lost, "it is not there any more");
    it.stop("arena-3", None, SHORT).await;
    assert_eq!(it.sees_the_end("arena-3").await, Ending::Lost, "it never was");
    it.clean_up().await;
}

async fn a_shorter_grace_counts(place: impl Place) {
    let mut it = Running::new(place);
    it.start("arena-1", Behaviour::IgnoresStop).await;
    it.has_started("arena-1").await;
    it.stop("arena-1", None, AMPLE).await;
    it.stop("arena-1", None, SHORT).await;
    it.stop("arena-1", None, AMPLE).await;
    assert_eq!(it.sees_the_end("arena-1").await, Ending::KilledAfterGrace);
    it.clean_up().await;
}

async fn only_the_very_instance_is_stopped(place: impl Place) {
    let mut it = Running::new(place);
    let one = it.start("arena-1", Behaviour::Runs).await;
    let other = it.start("arena-2", Behaviour::Runs).await;
    it.stop("arena-1", Some(&other), SHORT).await;
    assert_eq!(it.sees_the_end("arena-1").await, Ending::Lost);
    it.lists(&[("arena-1", &one), ("arena-2", &other)]).await;
    it.clean_up().await;
}

async fn what_is_seen_names_its_instance(place: impl Place) {
    let mut it = Running::new(place);
    let one = it.start("arena-1", Behaviour::Runs).await;
    let other = it.start("arena-2", Behaviour::Runs).await;
    it.sees("arena-1", |event| *event == RoomEvent::Up).await;
    assert_eq!(it.instance_seen.as_ref(), Some(&one));
    it.stop("arena-1", Some(&other), SHORT).await;
    assert_eq!(it.sees_the_end("arena-1").await, Ending::Lost);
    assert_eq!(it.instance_seen.as_ref(), Some(&other), "the one that was to be stopped");
    it.stop("arena-3", None, SHORT).await;
    assert_eq!(it.sees_the_end("arena-3").await, Ending::Lost);
    assert_eq!(it.instance_seen, None);
    it.place.kill(&one).await;
    it.sees_the_end("arena-1").await;
    assert_eq!(it.instance_seen.as_ref(), Some(&one));
    it.begin_again().await;
    it.runtime.adopt(vec![running("arena-2", &other)]).await.expect("it is adopted");
    it.sees("arena-2", |event| *event == RoomEvent::Up).await;
    assert_eq!(it.instance_seen.as_ref(), Some(&other));
    it.clean_up().await;
}

async fn rooms_outlive_their_runtime(place: impl Place) {
    let mut it = Running::new(place);
    let one = it.start("arena-1", Behaviour::Runs).await;
    let two = it.start("arena-2", Behaviour::Runs).await;
    let three = it.start("arena-3", Behaviour::Runs).await;
    for id in ["arena-1", "arena-2", "arena-3"] {
        it.has_started(id).await;
    }
    it.begin_again().await;
    it.place.kill(&three).await;
    it.lists(&[("arena-1", &one), ("arena-2", &two)]).await;

    let room = it.place.room("arena-1", Behaviour::Runs);
    assert_eq!(it.runtime.start(&room).await.as_ref(), Ok(&one), "a start that was repeated finds it");
    let rooms = vec![running("arena-1", &one), running("arena-2", &two), running("arena-3", &three)];
    it.runtime.adopt(rooms.clone()).await.expect("they are adopted");
    assert_eq!(it.sees_the_end("arena-3").await, Ending::Unwatched);
    it.forget_seen();
    it.runtime.adopt(rooms[..2].to_vec()).await.expect("once more");
    for id in ["arena-1", "arena-2"] {
        it.sees(id, |event| *event == RoomEvent::Up).await;
    }
    it.lists(&[("arena-1", &one), ("arena-2", &two)]).await;

    it.place.kill(&one).await;
    let ending = it.sees_the_end("arena-1").await;
    assert!(matches!(ending.cause(), EndCause::Failed | EndCause::Unknown), "{ending:?}");
    it.stop("arena-2", Some(&two), AMPLE).await;
    assert_eq!(it.sees_the_end("arena-2").await, Ending::Stopped);
    it.clean_up().await;
}

async fn what_nobody_adopts_can_be_stopped(place: impl Place) {
    let mut it = Running::new(place);
    let one = it.start("arena-1", Behaviour::Runs).await;
    it.start("arena-2", Behaviour::Runs).await;
    it.begin_again().await;
    it.stop("arena-1", Some(&one), AMPLE).await;
    it.stop("arena-2", None, AMPLE).await;
    assert_eq!(it.sees_the_end("arena-1").await, Ending::Stopped);
    assert_eq!(it.sees_the_end("arena-2").await, Ending::Stopped);
    assert_eq!(it.runtime.list().await, Ok(vec![]));
    it.clean_up().await;
}

async fn logs_are_kept_until_they_are_forgotten(place: impl Place) {
    let mut it = Running::new(place);
    let id = RoomId::new("arena-1");
    assert_eq!(it.runtime.logs(&arena(), &id, 10).await, Ok(None));
    it.start("arena-1", Behaviour::Writes(20)).await;
    it.has_started("arena-1").await;
    it.stop("arena-1", None, AMPLE).await;
    it.sees_the_end("arena-1").await;
    assert_eq!(it.runtime.logs(&arena(), &id, 3).await, Ok(Some("18\n19\nstarted\n".into())));
    for _ in 0..2 {
        it.runtime.forget(&arena(), &id).await.expect("it is forgotten");
    }
    assert_eq!(it.runtime.logs(&arena(), &id, 10).await, Ok(None));
    it.clean_up().await;
}

async fn the_place_of_a_scheduler(place: impl Place) {
    let mut it = Running::new(place);
    for _ in 0..2 {
        it.runtime.create_scheduler(&arena()).await.expect("it is created");
    }
    it.start("arena-1", Behaviour::Exits(0)).await;
    it.sees_the_end("arena-1").await;
    let lives_here = it.start("arena-2", Behaviour::Runs).await;
    it.has_started("arena-2").await;
    let refused = it.runtime.delete_scheduler(&arena()).await;
    assert!(matches!(refused, Err(RuntimeError::Unavailable(_))), "{refused:?}");
    it.lists(&[("arena-2", &lives_here)]).await;
    it.stop("arena-2", None, AMPLE).await;
    it.sees_the_end("arena-2").await;
    for _ in 0..2 {
        it.runtime.delete_scheduler(&arena()).await.expect("it is deleted");
    }
    let logs = it.runtime.logs(&arena(), &RoomId::new("arena-1"), 10).await;
    assert_eq!(logs, Ok(None), "everything in it is gone");
    it.clean_up().await;
}

async fn the_last_one_turns_off_the_light(place: impl Place) {
    let mut it = Running::new(place);
    let one = it.start("arena-1", Behaviour::Runs).await;
    it.has_started("arena-1").await;
    it.runtime.shut_down(false).await;
    it.begin_again().await;
    it.lists(&[("arena-1", &one)]).await;
    it.start("arena-2", Behaviour::Runs).await;
    it.has_started("arena-2").await;
    it.runtime.shut_down(true).await;
    assert_eq!(it.sees_the_end("arena-1").await, Ending::Stopped);
    assert_eq!(it.sees_the_end("arena-2").await, Ending::Stopped);
    let refused = it.runtime.start(&it.place.room("arena-3", Behaviour::Runs)).await;
    assert!(matches!(refused, Err(RuntimeError::Unavailable(_))), "{refused:?}");
    it.begin_again().await;
    assert_eq!(it.runtime.list().await, Ok(vec![]));
    it.clean_up().await;
}

/// A place, its runtime, and what was seen.
struct Running<P> {
    place: P,
    runtime: Arc<dyn Runtime>,
    observations: mpsc::Receiver<Observation>,
    /// Seen while something else was looked for.
    unclaimed: Vec<Observation>,
    /// Of what was looked for last.
    instance_seen: Option<Handle>,
}

impl<P: Place> Running<P> {
    fn new(place: P) -> Self {
        let runtime = place.runtime();
        let observations = runtime.observations().expect("nobody has taken the observations");
        Self { place, runtime, observations, unclaimed: Vec::new(), instance_seen: None }
    }

    async fn begin_again(&mut self) {
        self.place.begin_again().await;
        self.runtime = self.place.runtime();
        self.observations = self.runtime.observations().expect("a new runtime has them");
        self.unclaimed.clear();
    }

    /// What was seen until now counts for nothing that is looked for later.
    fn forget_seen(&mut self) {
        while self.observations.try_recv().is_ok() {}
        self.unclaimed.clear();
    }

    async fn start(&self, id: &str, behaviour: Behaviour) -> Handle {
        let room = self.place.room(id, behaviour);
        self.runtime.start(&room).await.expect("the room starts")
    }

    async fn stop(&self, id: &str, handle: Option<&Handle>, grace: Duration) {
        let id = RoomId::new(id);
        let stopped = self.runtime.stop(&arena(), &id, handle, grace).await;
        stopped.expect("it is asked");
    }

    /// What the room says itself, in the only way that it has.
    async fn has_started(&self, id: &str) {
        let id = RoomId::new(id);
        let has_said_so = async {
            loop {
                let logs = self.runtime.logs(&arena(), &id, 1).await.expect("logs can be read");
                if logs.is_some_and(|logs| logs.contains(STARTED)) {
                    return;
                }
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(SOON, has_said_so).await.expect("the room says that it has started");
    }

    async fn lists(&self, expected: &[(&str, &Handle)]) {
        let expected: Vec<RunningRoom> = expected.iter().map(|(id, handle)| running(id, handle)).collect();
        let mut listed = Vec::new();
        let agrees = async {
            loop {
                listed = self.runtime.list().await.expect("rooms can be listed");
                listed.sort_by(|one, other| one.id.cmp(&other.id));
                if listed == expected {
                    return;
                }
                sleep(Duration::from_millis(5)).await;
            }
        };
        let agreed = timeout(SOON, agrees).await;
        assert!(agreed.is_ok(), "listed {listed:?}, expected {expected:?}");
    }

    async fn sees_the_end(&mut self, id: &str) -> Ending {
        let event = self.sees(id, |event| matches!(event, RoomEvent::Ended(_))).await;
        match event {
            RoomEvent::Ended(ending) => ending,
            other => unreachable!("{other:?} is no end"),
        }
    }

    /// Waits for the event and everything of this room before it.
    async fn sees(&mut self, id: &str, is_it: impl Fn(&RoomEvent) -> bool) -> RoomEvent {
        let is_it = |seen: &Observation| seen.room.as_str() == id && is_it(&seen.event);
        if let Some(at) = self.unclaimed.iter().position(is_it) {
            let seen = self.unclaimed.remove(at);
            self.instance_seen = seen.instance;
            return seen.event;
        }
        let next = async {
            loop {
                let seen = self.observations.recv().await.expect("the runtime watches");
                assert_eq!(seen.scheduler, arena());
                if is_it(&seen) {
                    return seen;
                }
                self.unclaimed.push(seen);
            }
        };
        match timeout(SOON, next).await {
            Ok(seen) => {
                self.instance_seen = seen.instance;
                seen.event
            }
            Err(_) => panic!("{id}: not seen; seen was {:?}", self.unclaimed),
        }
    }

    async fn clean_up(self) {
        for room in self.runtime.list().await.expect("rooms can be listed") {
            self.place.kill(&room.handle).await;
        }
        self.runtime.shut_down(true).await;
    }
}

fn running(id: &str, handle: &Handle) -> RunningRoom {
    RunningRoom { id: RoomId::new(id), scheduler: arena(), handle: handle.clone() }
}

/// The scheduler of all rooms of the suite.
pub fn arena() -> SchedulerName {
    SchedulerName::parse("arena").expect("it is a name")
}
