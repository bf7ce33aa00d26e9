//! The same walks where nothing happens at once: operations wait for their turn, rooms take time to start and to go,
//! and some never become ready. Every cycle plans on top of what earlier ones have asked for.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::fleet::{Fleet, NEW};
use super::walks::{Walk, walks};
use super::*;

/// How many cycles things take, and how many of the first rooms fail.
#[derive(Debug, Clone, Copy)]
struct Pace {
    add: u32,
    remove: u32,
    start: u32,
    leave: u32,
    failures: u32,
    /// When a rollout begins, if the walk has not begun with one.
    rollout_at: Option<usize>,
}

fn paces() -> impl Strategy<Value = Pace> {
    let rollout_at = prop::option::weighted(0.3, 0_usize..20);
    (0_u32..5, 0_u32..5, 0_u32..5, 0_u32..5, prop_oneof![Just(0), 0_u32..8], rollout_at).prop_map(
        |(add, remove, start, leave, failures, rollout_at)| Pace {
            add,
            remove,
            start,
            leave,
            failures,
            rollout_at,
        },
    )
}

/// An operation that waits for its turn.
struct Waiting {
    rooms: u32,
    turn: u32,
}

struct SlowFleet {
    fleet: Fleet,
    pace: Pace,
    cycle: u32,
    adds: Vec<Waiting>,
    removals: Vec<Waiting>,
    starting: BTreeMap<RoomId, u32>,
    leaving: BTreeMap<RoomId, u32>,
    failed: u32,
    asked: u32,
    /// New rooms that a rollout took away to stay under its ceiling: it makes them again when old ones have gone.
    surplus: u32,
    /// Rooms that removals had asked for, and that were no longer too many at their turn.
    spared: u32,
    desired_peak: u32,
}

impl SlowFleet {
    fn new(walk: &Walk, pace: Pace) -> Self {
        Self {
            fleet: walk.fleet(),
            pace,
            cycle: 0,
            adds: Vec::new(),
            removals: Vec::new(),
            starting: BTreeMap::new(),
            leaving: BTreeMap::new(),
            failed: 0,
            asked: 0,
            surplus: 0,
            spared: 0,
            desired_peak: 0,
        }
    }

    /// Really ready now: what counts is not what the planner thinks of them.
    fn ready(&self) -> u32 {
        let ready = |room: &&RoomFact| room.status == RoomStatus::Ready && !room.leaving;
        count(self.fleet.rooms.iter().filter(ready).count())
    }

    /// Rooms that will be there when everything under way is done.
    fn under_way(&self) -> u32 {
        (self.staying(|_| true) + self.fleet.adding).saturating_sub(self.fleet.removing)
    }

    fn staying(&self, chosen: fn(&RoomFact) -> bool) -> u32 {
        let stays = |room: &&RoomFact| room.status.counts() && !room.leaving && chosen(room);
        count(self.fleet.rooms.iter().filter(stays).count())
    }

    fn leave(&mut self, rooms: &[RoomId]) {
        let until = self.cycle + self.pace.leave;
        for room in self.fleet.rooms.iter_mut().filter(|room| rooms.contains(&room.id)) {
            room.leaving = true;
            self.leaving.insert(room.id.clone(), until);
        }
    }

    fn count_waiting(&mut self) {
        self.fleet.adding = self.adds.iter().map(|add| add.rooms).sum();
        self.fleet.removing = self.removals.iter().map(|removal| removal.rooms).sum();
    }

    /// Time passes: what is due happens.
    fn pass(&mut self, scaling: Scaling<'_>) -> Result<(), TestCaseError> {
        self.cycle += 1;
        self.fleet.now += 10;
        let (cycle, now) = (self.cycle, at(self.fleet.now));
        self.fleet.rooms.iter_mut().for_each(|room| room.heard_at = Some(now));
        let gone = |room: &RoomFact| self.leaving.get(&room.id).is_some_and(|until| *until <= cycle);
        let homeless = self.fleet.rooms.iter().filter(|room| gone(room) && room.matches > 0).count();
        self.fleet.rejoining += count(homeless);
        self.fleet.rooms.retain(|room| !gone(room));
        for room in self.fleet.rooms.iter_mut().filter(|room| room.status == RoomStatus::Pending) {
            if self.starting.get(&room.id).is_none_or(|until| *until <= cycle) {
                let fails = self.failed < self.pace.failures;
                self.failed += u32::from(fails);
                room.status = if fails { RoomStatus::Error } else { RoomStatus::Ready };
                room.was_ready = !fails;
            }
        }
        let entering = self.fleet.rejoining.min(self.ready());
        self.fleet.occupy(entering);
        self.fleet.rejoining -= entering;
        for add in self.adds.extract_if(.., |add| add.turn <= cycle) {
            for _ in 0..add.rooms {
                self.fleet.make(NEW, false, RoomStatus::Pending);
                if let Some(made) = self.fleet.rooms.last_mut() {
                    made.was_ready = false;
                    self.starting.insert(made.id.clone(), cycle + self.pace.start);
                }
            }
        }
        while let Some(index) = self.removals.iter().position(|removal| removal.turn <= cycle) {
            let removal = self.removals.remove(index);
            self.count_waiting();
            self.choose(removal.rooms, scaling)?;
        }
        self.count_waiting();
        Ok(())
    }

    /// The turn of a removal by amount: no more than a plan without it would still ask for.
    fn choose(&mut self, rooms: u32, scaling: Scaling<'_>) -> Result<(), TestCaseError> {
        let plan = self.fleet.plan(scaling);
        let ready_before = self.ready();
        let mut chosen = removal_order(&self.fleet.rooms, Occupied::Stay);
        chosen.retain(|id| !plan.expired.iter().any(|expired| expired.room == *id));
        chosen.truncate(rooms.min(plan.remove) as usize);
        self.spared += rooms - count(chosen.len());
        self.leave(&chosen);
        self.check_ready(ready_before, &plan)
    }

    fn check_ready(&self, before: u32, plan: &Plan) -> Result<(), TestCaseError> {
        let floor = plan.desired_ready.min(before);
        prop_assert!(self.ready() >= floor, "{} of {before} stay ready, target {floor}", self.ready());
        Ok(())
    }

    /// One cycle, and what must hold of it; true if nothing is asked for and nothing is under way.
    fn cycle(&mut self, scaling: Scaling<'_>) -> Result<bool, TestCaseError> {
        let rests = self.look(scaling)?;
        self.pass(scaling)?;
        Ok(rests)
    }

    fn look(&mut self, scaling: Scaling<'_>) -> Result<bool, TestCaseError> {
        let plan = self.fleet.plan(scaling);
        let (ready_before, under_way) = (self.ready(), self.under_way());
        let (desired, surge_max) = match &plan.rollout {
            Some(cycle) => (cycle.desired, cycle.surge_max),
            None => (plan.decision.desired, 0),
        };
        self.desired_peak = self.desired_peak.max(desired);
        // What earlier plans asked for counts, as if it were done.
        prop_assert_eq!(plan.seen.total, under_way);
        prop_assert!(plan.add == 0 || under_way + plan.add <= desired + surge_max, "too many: {plan:?}");
        prop_assert!(plan.remove == 0 || under_way - plan.remove >= desired, "too few: {plan:?}");

        let cycle = plan.rollout.clone().unwrap_or_default();
        let mut going: Vec<RoomId> = plan.expired.iter().map(|expired| expired.room.clone()).collect();
        self.surplus += count(cycle.surplus.len());
        going.extend(cycle.surplus);
        going.extend(cycle.replaced.iter().map(|replaced| replaced.room.clone()));
        let may_serve =
            |id: &RoomId| cycle.replaced.iter().any(|gone| gone.room == *id && gone.serves_players);
        for room in self.fleet.rooms.iter().filter(|room| going.contains(&room.id)) {
            prop_assert!(!room.leaving, "{} is asked to go twice", room.id);
            prop_assert!(!room.status.serves_players() || may_serve(&room.id), "{} is occupied", room.id);
        }
        // A removal can take what has a row, serves nobody, and is not taken by an earlier one.
        let removable = count(removal_order(&self.fleet.rooms, Occupied::Stay).len() - plan.expired.len());
        prop_assert!(plan.remove == 0 || self.fleet.removing + plan.remove <= removable, "twice: {plan:?}");

        self.leave(&going);
        self.check_ready(ready_before, &plan)?;
        self.asked += plan.add;
        if plan.add > 0 {
            self.adds.push(Waiting { rooms: plan.add, turn: self.cycle + self.pace.add });
        }
        if plan.remove > 0 {
            self.removals.push(Waiting { rooms: plan.remove, turn: self.cycle + self.pace.remove });
        }
        self.count_waiting();
        let is_starting = self.fleet.rooms.iter().any(|room| room.status == RoomStatus::Pending);
        let is_leaving = self.fleet.rooms.iter().any(|room| room.leaving);
        let waits = !self.adds.is_empty() || !self.removals.is_empty();
        Ok(plan.is_empty() && !waits && !is_starting && !is_leaving)
    }

    /// Demand stands still: it comes to rest, stays there, and has asked for what was missing, once.
    fn settle(&mut self, scaling: Scaling<'_>) -> Result<(), TestCaseError> {
        let is_rollout = self.staying(|room| room.old) > 0;
        let failed = self.failed;
        // Below zero where rooms failed that a removal is to take: as many more are asked for.
        let there = match is_rollout {
            true => i64::from(self.staying(|room| !room.old) + self.fleet.adding),
            false => i64::from(self.staying(|_| true) + self.fleet.adding) - i64::from(self.fleet.removing),
        };
        (self.asked, self.surplus, self.spared, self.desired_peak) = (0, 0, 0, 0);
        for _ in 0..5000 {
            if self.cycle(scaling)? {
                for _ in 0..3 {
                    prop_assert!(self.cycle(scaling)?, "it flaps");
                }
                prop_assert!(self.fleet.rooms.iter().all(|room| !room.old), "old rooms are left");
                let missing = u32::try_from(i64::from(self.desired_peak) - there).unwrap_or(0);
                let failed = self.failed - failed;
                prop_assert!(
                    self.asked <= missing + failed + self.surplus,
                    "{} asked for, {missing} missing, {failed} failed",
                    self.asked
                );
                let filled = self.asked + self.spared;
                prop_assert!(is_rollout || filled >= missing, "{filled} of {missing}");
                return Ok(());
            }
        }
        Err(TestCaseError::fail("it never comes to rest"))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn every_slow_walk_is_safe_and_ends(walk in walks(), pace in paces()) {
        let mut slow = SlowFleet::new(&walk, pace);
        for (index, step) in walk.steps.iter().enumerate() {
            slow.cycle(walk.scaling())?;
            if pace.rollout_at == Some(index) {
                slow.fleet.rooms.iter_mut().for_each(|room| room.old = true);
            }
            match *step {
                more if more > 0 => slow.fleet.occupy(more.unsigned_abs()),
                fewer => slow.fleet.free(fewer.unsigned_abs()),
            }
        }
        slow.settle(walk.scaling())?;
    }
}
