//! Cycle after cycle: what is seen goes into the planner, and what it says is carried out.

use maestro_core::autoscaling::ShrinkHold;
use maestro_core::plan::{FleetSnapshot, HeldBack, Plan, ReplacementRules, Scaling, plan};
use maestro_core::rollout::replacement_rules;
use maestro_core::room::RoomStatus;
use maestro_core::scheduler::Version;
use maestro_core::time::{Millis, Timestamp};

use crate::draw::falls_into;
use crate::fleet::{Carried, Fate, Fleet, at, count};
use crate::report::{Report, Row, Summary};
use crate::rollout::Rollout;
use crate::scenario::{Length, ROOMS_MAX, Scenario};

/// How many rooms all cycles together may look at: some minutes of one core.
const ROOM_CYCLES_MAX: u64 = 1_000_000_000;

/// A fleet that has not come to rest this long after its players did never will: every new room fails, say.
const RESTLESS_CYCLES_MAX: u32 = 1000;

/// Why a simulation was given up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TooLarge {
    #[error("loop {loop_number} would create more than {ROOMS_MAX} rooms")]
    Rooms { loop_number: u32 },
    #[error(
        "the rooms of all loops up to {loop_number} are more than {ROOM_CYCLES_MAX}; simulate fewer rooms or fewer cycles"
    )]
    Work { loop_number: u32 },
}

pub fn simulate(scenario: &Scenario) -> Result<Report, TooLarge> {
    let mut simulation = Simulation {
        scenario,
        fleet: Fleet::begin(scenario),
        rollout: None,
        last_shrunk_at: None,
        looked_at: 0,
        rows: Vec::new(),
        summary: Summary::default(),
    };
    let mut restless = 0;
    for number in 1.. {
        let time = Millis(u64::from(number - 1).saturating_mul(scenario.cycle.0));
        let plan = simulation.cycle(number, time)?;
        match scenario.length {
            Length::Cycles(cycles) if number >= cycles => break,
            Length::Cycles(_) => {}
            Length::UntilRest if simulation.may_still_change(time) => {}
            Length::UntilRest if simulation.rests(&plan) => {
                simulation.summary.at_rest = true;
                break;
            }
            Length::UntilRest if restless == RESTLESS_CYCLES_MAX => break,
            Length::UntilRest => restless += 1,
        }
    }
    Ok(simulation.report())
}

struct Simulation<'a> {
    scenario: &'a Scenario,
    fleet: Fleet<'a>,
    rollout: Option<Rollout>,
    last_shrunk_at: Option<Timestamp>,
    looked_at: u64,
    rows: Vec<Row>,
    summary: Summary,
}

impl Simulation<'_> {
    fn cycle(&mut self, number: u32, time: Millis) -> Result<Plan, TooLarge> {
        let now = at(time);
        self.fleet.observe(now);
        self.change_version(number, time);
        let waiting = self.fleet.serve(self.scenario.demand.at(time), time);
        let plan = self.plan(now);
        self.looked_at += u64::from(self.fleet.len());
        if self.looked_at > ROOM_CYCLES_MAX {
            return Err(TooLarge::Work { loop_number: number });
        }
        if self.fleet.len().saturating_add(plan.add) > ROOMS_MAX {
            return Err(TooLarge::Rooms { loop_number: number });
        }
        self.note_failed_rooms(&plan);
        if let Some(rollout) = &mut self.rollout {
            rollout.note_occupied(&plan, now);
        }
        let row = self.row(number, &plan);
        let carried = self.carry_out(&plan, now);
        self.count(&row, &plan, carried, waiting);
        self.rows.push(row);
        Ok(plan)
    }

    /// The new version arrives, or the rollout of it ends.
    fn change_version(&mut self, number: u32, time: Millis) {
        let now = at(time);
        let changed = match &mut self.rollout {
            Some(rollout) => rollout.judge(&self.scenario.recipe, self.fleet.rooms(), now, number),
            None if self.scenario.new_version_at.is_some_and(|at| at <= time) => {
                self.rollout = Some(Rollout::begin(self.scenario.start.version, now, number));
                true
            }
            None => false,
        };
        if let Some(rollout) = self.rollout.as_ref().filter(|_| changed) {
            self.fleet.mark_old(|version| rollout.is_old(version));
        }
    }

    fn plan(&self, now: Timestamp) -> Plan {
        let recipe = &self.scenario.recipe;
        let scaling = Scaling::of(recipe, self.last_shrunk_at);
        // Players whose room went play elsewhere by the next cycle, or wait like everybody else. Failures are only rooms
        // that end by themselves; those that never become ready are taken away.
        plan(&FleetSnapshot::at_rest(
            now,
            scaling,
            recipe.match_allocation.max_matches,
            self.replacement(now),
            self.fleet.rooms(),
            self.scenario.limits,
        ))
    }

    fn replacement(&self, now: Timestamp) -> ReplacementRules {
        let recipe = &self.scenario.recipe;
        match &self.rollout {
            Some(rollout) => rollout.rules(recipe, now, self.scenario.cycle),
            None => replacement_rules(None, recipe, now, false),
        }
    }

    fn note_failed_rooms(&mut self, plan: &Plan) {
        let Some(rollout) = &mut self.rollout else { return };
        for expired in &plan.expired {
            let rooms = self.fleet.rooms();
            if let Ok(index) = rooms.binary_search_by(|room| room.id.cmp(&expired.room)) {
                rollout.note_failed_room(&rooms[index]);
            }
        }
    }

    fn carry_out(&mut self, plan: &Plan, now: Timestamp) -> Carried {
        let carried = self.fleet.remove(plan);
        if plan.remove > 0 {
            self.last_shrunk_at = Some(now);
        }
        let version = self.active_version();
        for _ in 0..plan.add {
            let fate = self.fate(version);
            self.fleet.start_room(version, now, fate);
        }
        carried
    }

    fn active_version(&self) -> Version {
        self.rollout.as_ref().map_or(self.scenario.start.version, Rollout::active)
    }

    /// If a version arrives, it is the one that may be broken.
    fn fate(&self, version: Version) -> Fate {
        let scenario = self.scenario;
        let may_fail = scenario.new_version_at.is_none() || version != scenario.start.version;
        if may_fail && falls_into(scenario.failures, scenario.seed, self.fleet.made()) {
            Fate::NeverReady
        } else {
            Fate::BecomesReady
        }
    }

    fn row(&self, number: u32, plan: &Plan) -> Row {
        let new_version = self.rollout.as_ref().map(Rollout::to);
        let is_available = |status: RoomStatus| status == RoomStatus::Ready || status.serves_players();
        let rooms = self.fleet.rooms().iter();
        let new = rooms.filter(|room| Some(room.version) == new_version && is_available(room.status));
        let cycle = plan.rollout.as_ref();
        let replaced = cycle.map_or(0, |cycle| cycle.replaced.len() + cycle.surplus.len());
        Row {
            number,
            ready: plan.seen.ready,
            occupied: plan.seen.occupied,
            available: plan.seen.ready + plan.seen.occupied,
            new: count(new.count()),
            desired: cycle.map_or(plan.decision.desired, |cycle| cycle.desired),
            desired_ready: plan.desired_ready,
            to_surge: plan.add,
            to_be_deleted: plan.remove + count(replaced + plan.expired.len()),
        }
    }

    /// A cycle stands for the time until the next one.
    fn count(&mut self, row: &Row, plan: &Plan, carried: Carried, waiting: u32) {
        let cycle = self.scenario.cycle.0;
        let summary = &mut self.summary;
        summary.loops += 1;
        summary.simulated.0 = summary.simulated.0.saturating_add(cycle);
        if row.ready < row.desired_ready {
            summary.under_ready_target.0 = summary.under_ready_target.0.saturating_add(cycle);
        }
        if waiting > 0 {
            summary.matches_waited.0 = summary.matches_waited.0.saturating_add(cycle);
            summary.matches_waiting_max = summary.matches_waiting_max.max(waiting);
        }
        summary.room_time_ms += u128::from(self.fleet.len()) * u128::from(cycle);
        summary.rooms_started += u64::from(plan.add);
        summary.rooms_stopped += u64::from(carried.stopped);
        summary.matches_moved += u64::from(carried.matches_moved);
    }

    /// The players, or the new version, are still to come.
    fn may_still_change(&self, time: Millis) -> bool {
        let settled = self.scenario.demand.settles_at().is_some_and(|at| at <= time);
        let arrived = self.scenario.new_version_at.is_none_or(|at| at <= time);
        !settled || !arrived
    }

    fn rests(&self, plan: &Plan) -> bool {
        let waits = |held: &HeldBack| match held {
            HeldBack::BackingOff(_)
            | HeldBack::Capped { .. }
            | HeldBack::Unknown { .. }
            | HeldBack::OccupiedPace { .. } => true,
            // Nobody pings on paper, there are no regions to lose, and nobody pauses a rollout.
            HeldBack::Panic { .. }
            | HeldBack::NoPlace { .. }
            | HeldBack::Paused { .. }
            | HeldBack::Silent(_) => false,
            HeldBack::ScaleDown { hold, .. } => matches!(hold, ShrinkHold::Cooldown { .. }),
            // Players who stay keep their rooms forever.
            HeldBack::Serving { .. } => false,
        };
        let replaces = self.rollout.as_ref().is_some_and(Rollout::is_under_way) && plan.seen.old > 0;
        plan.is_empty() && plan.seen.idle == 0 && !replaces && !plan.held_back.iter().any(waits)
    }

    fn report(mut self) -> Report {
        self.summary.scheduler = self.scenario.recipe.name.to_string();
        self.summary.rollout = self.rollout.as_ref().map(|rollout| rollout.report.clone());
        Report { rows: self.rows, summary: self.summary }
    }
}
