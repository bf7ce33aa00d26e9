//! Invariants in production: those that the engine can check at no cost, by the same checks as the simulated world.
//!
//! A violation means that Maestro has a bug, or that someone else wrote into the store. It is counted and logged, and the
//! work goes on, because stopping would not repair it.

use std::collections::{BTreeMap, BTreeSet};

use maestro_core::invariant::{
    InvariantViolation, Removal, legal_transition, occupied_stay, one_executing, only_fleet, ports_once,
    ready_kept, surge_kept, token_grew,
};
use maestro_core::operation::{Operation, OperationId, OperationStatus, Token};
use maestro_core::plan::{Plan, RoomFact, expiry};
use maestro_core::room::{HostPort, Region, RoomId, RoomStatus};
use maestro_core::scheduler::SchedulerName;
use parking_lot::Mutex;

use crate::Engine;
use crate::ports::store::RoomRecord;

/// The tokens that this engine was given last.
#[derive(Default)]
pub(crate) struct Tokens(Mutex<BTreeMap<SchedulerName, Token>>);

impl Tokens {
    /// Who owns a scheduler still keeps its token; otherwise it is a greater one.
    pub(crate) fn given(&self, scheduler: &SchedulerName, token: Token) -> Option<InvariantViolation> {
        let last = self.0.lock().insert(scheduler.clone(), token);
        token_grew(last.filter(|last| *last != token), token)
    }

    pub(crate) fn forget(&self, scheduler: &SchedulerName) {
        self.0.lock().remove(scheduler);
    }
}

/// The queue of one scheduler as its loop last saw it.
#[derive(Default)]
pub(crate) struct QueueWatch {
    statuses: BTreeMap<OperationId, OperationStatus>,
    /// Said once for as long as it lasts: a loop looks often.
    last: Vec<InvariantViolation>,
}

impl QueueWatch {
    /// What is wrong since the last look.
    pub(crate) fn look(&mut self, unfinished: &[Operation]) -> Vec<InvariantViolation> {
        let executing: Vec<_> =
            unfinished.iter().filter(|one| one.is_executing()).map(|one| one.id).collect();
        let changed = unfinished.iter().filter_map(|operation| {
            legal_transition(operation.id, self.statuses.get(&operation.id).copied(), operation.status)
        });
        let found: Vec<InvariantViolation> = one_executing(&executing).into_iter().chain(changed).collect();
        self.statuses = unfinished.iter().map(|operation| (operation.id, operation.status)).collect();
        let before = std::mem::replace(&mut self.last, found.clone());
        found.into_iter().filter(|violation| !before.contains(violation)).collect()
    }
}

/// Rooms that a removal of our own takes, and what it was decided on.
pub(crate) struct TakenRooms<'a> {
    pub(crate) facts: &'a [RoomFact],
    pub(crate) rooms: &'a [RoomId],
    pub(crate) plan: &'a Plan,
    /// How many ready rooms may be missing.
    pub(crate) may_be_missing: u32,
    /// A rollout may take occupied rooms; autoscaling may not.
    pub(crate) is_scale_down: bool,
}

impl Engine {
    pub(crate) fn report(
        &self,
        scheduler: &SchedulerName,
        found: impl IntoIterator<Item = InvariantViolation>,
    ) {
        for InvariantViolation { invariant, what } in found {
            self.metrics.violated(invariant);
            tracing::error!(scheduler_name = %scheduler, %invariant, what, "an invariant does not hold");
        }
    }

    pub(crate) fn watch_taken(&self, scheduler: &SchedulerName, taken: &TakenRooms<'_>) {
        let TakenRooms { facts, rooms, plan, may_be_missing, is_scale_down } = taken;
        let rooms: BTreeSet<&RoomId> = rooms.iter().collect();
        let taken = || facts.iter().filter(|room| rooms.contains(&room.id));
        if *is_scale_down {
            let occupied = taken().filter(|room| room.status.serves_players());
            self.report(scheduler, occupied_stay(&occupied.map(|room| room.id.clone()).collect::<Vec<_>>()));
        }
        let (now, limits) = (self.now(), self.settings.limits());
        let is_ready = |room: &&RoomFact| {
            room.status == RoomStatus::Ready && room.known && expiry(room, now, &limits).is_none()
        };
        let removal = Removal {
            ready: plan.seen.ready.into(),
            ready_taken: taken().filter(is_ready).count() as u64,
            ready_min: plan.desired_ready.saturating_sub(*may_be_missing).into(),
        };
        self.report(scheduler, ready_kept(removal));
    }

    /// What a health cycle counted, and what it is about to ask for.
    pub(crate) fn watch_plan(&self, scheduler: &SchedulerName, rows: &[RoomRecord], plan: &Plan) {
        self.report(scheduler, only_fleet(rows.iter().map(|row| (&row.id, row.purpose))));
        let mut by_region: BTreeMap<&Region, Vec<(&RoomId, &[HostPort])>> = BTreeMap::new();
        for row in rows {
            by_region.entry(&row.region).or_default().push((&row.id, &row.ports));
        }
        self.report(scheduler, by_region.into_values().filter_map(ports_once));
        if plan.add > 0 {
            let (desired, surge) = match &plan.rollout {
                None => (plan.decision.desired, 0),
                Some(cycle) => (cycle.desired, cycle.surge_max),
            };
            let total = u64::from(plan.seen.total) + u64::from(plan.add);
            self.report(scheduler, surge_kept(total, desired.into(), surge.into()));
        }
    }
}

#[cfg(test)]
mod tests {
    use maestro_core::invariant::Invariant;

    use super::*;

    #[test]
    fn a_token_is_kept_or_greater() {
        let arena = SchedulerName::parse("arena").unwrap();
        let tokens = Tokens::default();
        for (token, expected) in [(2, None), (2, None), (5, None), (4, Some(Invariant::TokensGrow))] {
            let found = tokens.given(&arena, Token(token));
            assert_eq!(found.map(|found| found.invariant), expected, "{token}");
        }
        tokens.forget(&arena);
        assert_eq!(tokens.given(&arena, Token(1)), None);
    }
}
