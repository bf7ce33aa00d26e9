use super::*;
use crate::allocation::Allocation;

const INTERVAL: Duration = Duration::from_secs(10);

/// A state under a clock that the test moves.
struct World {
    now: Instant,
    state: State,
}

impl World {
    fn new(alive_within: Option<Duration>) -> Self {
        let now = Instant::now();
        Self { now, state: State::new(Pace::new(INTERVAL, 1), alive_within, now) }
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
    }

    /// The status and matches of the ping that is sent now, if one is.
    fn sends(&mut self) -> Option<(Status, u32)> {
        match self.state.next(self.now) {
            Next::Send(ping) => {
                self.accept(&ping, Vec::new());
                Some((ping.status, ping.running_matches))
            }
            Next::Farewell(ping) => Some((ping.status, ping.running_matches)),
            Next::Wait(_) => None,
        }
    }

    fn accept(&mut self, ping: &Ping, allocations: Vec<Allocation>) {
        self.answer(ping, Reply { answer: Answer::Accepted, allocations: Some(allocations) });
    }

    fn answer(&mut self, ping: &Ping, reply: Reply) {
        self.state.answered(self.now, (ping, SystemTime::UNIX_EPOCH), reply);
    }

    fn sent(&mut self) -> Ping {
        match self.state.next(self.now) {
            Next::Send(ping) | Next::Farewell(ping) => ping,
            Next::Wait(wait) => panic!("expected a ping, not a wait of {wait:?}"),
        }
    }

    fn waits(&mut self) -> Option<Duration> {
        match self.state.next(self.now) {
            Next::Wait(wait) => wait,
            next @ (Next::Send(_) | Next::Farewell(_)) => panic!("expected a wait, not {next:?}"),
        }
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn a_starting_room_says_nothing() {
    let mut world = World::new(None);
    world.pass(seconds(3600));
    assert_eq!(world.sends(), None);
    assert_eq!(world.waits(), None);
}

#[test]
fn a_status_is_said_at_once_and_then_at_intervals() {
    let mut world = World::new(None);
    world.state.report(world.now, Status::Ready, 0);
    assert_eq!(world.sends(), Some((Status::Ready, 0)));

    let wait = world.waits().unwrap();
    assert!((seconds(8)..=seconds(12)).contains(&wait));
    world.pass(wait - Duration::from_millis(1));
    assert_eq!(world.sends(), None);
    world.pass(Duration::from_millis(1));
    assert_eq!(world.sends(), Some((Status::Ready, 0)));
}

#[test]
fn the_same_report_again_sends_nothing() {
    let mut world = World::new(None);
    world.state.report(world.now, Status::Occupied, 2);
    assert_eq!(world.sends(), Some((Status::Occupied, 2)));
    world.pass(seconds(1));
    world.state.report(world.now, Status::Occupied, 2);
    assert_eq!(world.sends(), None);
    world.state.report(world.now, Status::Occupied, 3);
    assert_eq!(world.sends(), Some((Status::Occupied, 3)));
}

#[test]
fn there_is_no_way_back_from_terminating() {
    let mut world = World::new(None);
    world.state.report(world.now, Status::Occupied, 2);
    world.sends();
    world.pass(seconds(1));
    world.state.request_terminate(world.now);
    assert_eq!(world.sends(), Some((Status::Terminating, 2)));
    assert!(world.state.terminate_requested);

    world.pass(seconds(1));
    world.state.report(world.now, Status::Occupied, 1);
    assert_eq!(world.sends(), Some((Status::Terminating, 1)));
    world.pass(seconds(1));
    world.state.report(world.now, Status::Ready, 0);
    assert_eq!(world.sends(), Some((Status::Terminating, 0)));
}

#[test]
fn a_room_that_ends_at_once_still_says_terminating_first() {
    let mut world = World::new(None);
    world.state.report(world.now, Status::Ready, 0);
    world.sends();
    // No time passes: not even the smallest gap between two pings.
    world.state.request_terminate(world.now);
    world.state.close();
    assert_eq!(world.sends(), Some((Status::Terminating, 0)));
    assert_eq!(world.sends(), Some((Status::Terminated, 0)));
}

#[test]
fn a_room_that_never_started_says_terminated() {
    let mut world = World::new(None);
    world.state.close();
    assert_eq!(world.sends(), Some((Status::Terminated, 0)));
}

#[test]
fn a_refusal_can_be_read_and_is_repeated_sooner_than_the_interval() {
    let mut world = World::new(None);
    world.state.report(world.now, Status::Ready, 0);
    for failures in 1..=3 {
        let ping = world.sent();
        world.answer(&ping, Reply { answer: Answer::Refused, allocations: None });
        let last = world.state.last_ping.as_ref().unwrap();
        assert_eq!((&last.answer, last.failures), (&Answer::Refused, failures));
        let wait = world.waits().unwrap();
        assert!(wait <= seconds(2));
        world.pass(wait);
    }
    world.sends();
    assert_eq!(world.state.last_ping.as_ref().unwrap().failures, 0);
}

#[test]
fn a_stuck_game_falls_silent_until_it_moves_again() {
    let mut world = World::new(Some(seconds(5)));
    world.state.report(world.now, Status::Ready, 0);
    assert_eq!(world.sends(), Some((Status::Ready, 0)));
    world.pass(seconds(60));
    assert_eq!(world.sends(), None);
    assert_eq!(world.waits(), None);

    assert!(world.state.alive(world.now));
    assert_eq!(world.sends(), Some((Status::Ready, 0)));
    world.pass(seconds(4));
    assert!(!world.state.alive(world.now));
}

#[test]
fn a_stuck_game_still_says_that_it_was_told_to_end() {
    let mut world = World::new(Some(seconds(5)));
    world.state.report(world.now, Status::Ready, 0);
    world.sends();
    world.pass(seconds(60));
    world.state.request_terminate(world.now);
    assert_eq!(world.sends(), Some((Status::Terminating, 0)));
    world.pass(seconds(60));
    assert_eq!(world.sends(), None);
}

#[test]
fn metadata_rides_on_the_next_ping() {
    let mut world = World::new(None);
    world.state.set_metadata("map".to_owned(), Value::from("harbour"));
    assert_eq!(world.waits(), None);
    world.state.report(world.now, Status::Ready, 0);
    let Next::Send(ping) = world.state.next(world.now) else { panic!("nothing was sent") };
    assert_eq!(ping.metadata["map"], "harbour");
}

#[test]
fn a_match_that_has_begun_is_said_with_the_number_of_matches_until_it_is_heard() {
    let mut world = World::new(None);
    world.state.report(world.now, Status::Occupied, 1);
    assert_eq!(world.sends(), Some((Status::Occupied, 1)));
    world.pass(seconds(1));

    // One match has ended and another begun: the number is the same.
    world.state.begin(world.now, "a".to_owned(), 1);
    for lost in [Answer::Refused, Answer::Failed { reason: String::new() }] {
        let ping = world.sent();
        assert_eq!((ping.running_matches, ping.begun.as_slice()), (1, ["a".to_owned()].as_slice()));
        world.answer(&ping, Reply { answer: lost, allocations: None });
        world.pass(seconds(10));
    }
    let ping = world.sent();
    assert_eq!(ping.begun, ["a"]);
    // Begins while the ping is on its way.
    world.state.begin(world.now, "b".to_owned(), 2);
    world.accept(&ping, Vec::new());
    world.pass(seconds(1));
    let ping = world.sent();
    assert_eq!((ping.running_matches, ping.begun), (2, vec!["b".to_owned()]));
}
