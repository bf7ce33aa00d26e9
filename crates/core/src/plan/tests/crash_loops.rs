//! Fleets on paper whose rooms end early, second by second.

use proptest::prelude::*;

use super::*;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;

/// How many of the latest ends a plan gets to see.
const ENDED_SEEN: usize = 200;

/// A fleet of rooms that live as long as they are told, and become ready a second after they were made.
struct Paper {
    size: u32,
    /// Of the next rooms, in turns; `None`: forever.
    lives: Vec<Option<i64>>,
    rooms: Vec<(RoomFact, Option<i64>)>,
    ended: Vec<EndedFact>,
    /// When rooms were started.
    starts: Vec<i64>,
    made: usize,
    operations: u128,
}

impl Paper {
    fn new(size: u32, lives: Vec<Option<i64>>) -> Self {
        Self { size, lives, rooms: vec![], ended: vec![], starts: vec![], made: 0, operations: 0 }
    }

    fn run(&mut self, seconds: std::ops::Range<i64>) {
        for second in seconds {
            self.end_rooms(second);
            let facts: Vec<RoomFact> = self.rooms.iter().map(|(fact, _)| fact.clone()).collect();
            let seen = &self.ended[..self.ended.len().min(ENDED_SEEN)];
            let snapshot = FleetSnapshot { now: at(second), ended: seen, ..snapshot(self.size, &facts) };
            let add = plan(&snapshot).add;
            self.operations += u128::from(add > 0);
            for _ in 0..add {
                self.start(second);
            }
        }
    }

    fn start(&mut self, second: i64) {
        let mut fact = rooms(RoomStatus::Pending, 1).remove(0);
        fact.created_at = at(second);
        fact.heard_at = Some(at(second));
        // Which operation made it, to be told when it ends.
        fact.id = RoomId::new(&format!("{}-{}", self.operations, self.made));
        let life = self.lives[self.made % self.lives.len()];
        self.made += 1;
        self.starts.push(second);
        self.rooms.push((fact, life.map(|life| second + life)));
    }

    fn end_rooms(&mut self, second: i64) {
        for (fact, ends) in std::mem::take(&mut self.rooms) {
            if ends.is_some_and(|ends| ends <= second) {
                let operation = fact.id.as_str().split('-').next().unwrap().parse().unwrap();
                let end = ended(operation, second, fact.was_ready, EndCause::Failed);
                self.ended.insert(0, EndedFact { created_at: fact.created_at, ..end });
                continue;
            }
            let was_ready = at(second) > fact.created_at;
            let status = if was_ready { RoomStatus::Ready } else { RoomStatus::Pending };
            let fact = RoomFact { was_ready, status, heard_at: Some(at(second)), ..fact };
            self.rooms.push((fact, ends));
        }
    }

    fn starts_in(&self, seconds: std::ops::Range<i64>) -> usize {
        self.starts.iter().filter(|start| seconds.contains(start)).count()
    }
}

#[test]
fn rooms_of_different_lives_that_all_end_early_are_tried_a_few_a_minute() {
    // (rooms wanted, lives) → starts in each minute after the first ten
    for (size, lives, a_minute) in [
        (1, vec![0], 1),
        (10, vec![0], 1),
        (10, (0..10).collect::<Vec<_>>(), 1),
        (50, (0..10).collect(), 5),
        (50, (0..10).rev().collect(), 5),
        (50, vec![9, 0, 0, 0], 5),
        (500, (0..10).collect(), 10),
        (3, vec![2, 9], 1),
        (10, vec![15], 1),
        (50, (0..30).collect(), 5),
    ] {
        let mut paper = Paper::new(size, lives.iter().copied().map(Some).collect());
        paper.run(0..HOUR);
        for minute in 10..60 {
            let starts = paper.starts_in(minute * MINUTE..(minute + 1) * MINUTE);
            assert!(starts <= a_minute, "{size} rooms: {starts} starts in minute {minute}");
        }
        assert!(paper.starts_in(HOUR - 5 * MINUTE..HOUR) > 0, "{size} rooms: it goes on trying");

        paper.lives = vec![None];
        paper.run(HOUR..HOUR + 2 * MINUTE);
        assert_eq!(paper.rooms.iter().filter(|(_, ends)| ends.is_none()).count(), size as usize, "mended");
    }
}

#[test]
fn one_crash_among_many_rooms_is_replaced_at_once() {
    for (crashes_at, replaced_within) in [(600, 1), (40, 1), (20, 2), (5, 2), (0, 2)] {
        let mut lives = vec![None; 50];
        lives[17] = Some(crashes_at);
        let mut paper = Paper::new(50, lives);
        paper.run(0..1);
        paper.lives = vec![None];
        paper.run(1..crashes_at + 1 + replaced_within);
        assert_eq!(paper.rooms.len(), 50, "crashed after {crashes_at} s");
        assert_eq!(paper.starts.len(), 51);
    }
}

#[test]
fn a_room_that_always_crashes_holds_back_no_growth() {
    let mut paper = Paper::new(20, vec![None]);
    paper.run(0..MINUTE);
    // One more, which never lives for long.
    paper.size = 21;
    paper.lives = vec![Some(1)];
    paper.run(MINUTE..HOUR);
    assert!(paper.starts_in(MINUTE..HOUR) < 75, "{} starts", paper.starts.len());
    paper.size = 31;
    paper.lives = vec![None; 10];
    paper.run(HOUR..HOUR + 1);
    assert!(paper.rooms.len() >= 30, "{} rooms", paper.rooms.len());
}

#[test]
fn rooms_that_have_nothing_more_to_do_are_no_crash_loop() {
    // Made, ready, one match of 20 seconds, and an end by themselves with code 0.
    let done = |second: i64| {
        let end = ended(second as u128, second, true, EndCause::Completed);
        EndedFact { created_at: at(second - 20), ..end }
    };
    let row: Vec<_> = (0..20).rev().map(|n| done(n * 20)).collect();
    let plan = plan(&FleetSnapshot { ended: &row, now: at(19 * 20), ..snapshot(1, &[]) });
    assert_eq!(plan.add, 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn starts_are_bounded_however_rooms_end(
        size in 1_u32..40,
        lives in prop::collection::vec(0_i64..30, 1..20),
    ) {
        let mut paper = Paper::new(size, lives.into_iter().map(Some).collect());
        paper.run(0..HOUR);
        // Now and then one lives for longer than all before it and seems to be well; still each room is started at most
        // once a minute.
        let starts = paper.starts_in(HOUR / 2..HOUR);
        prop_assert!(starts <= 30 * size as usize, "{starts} starts of {size} rooms in half an hour");
        paper.lives = vec![None];
        paper.run(HOUR..HOUR + 3 * MINUTE);
        prop_assert_eq!(paper.rooms.iter().filter(|(_, ends)| ends.is_none()).count(), size as usize);
    }
}
