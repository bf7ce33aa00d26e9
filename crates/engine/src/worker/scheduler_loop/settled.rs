//! A look at every room that found nothing to do. It stays true while nothing but rooms changes and counters say that the
//! fleet is as large as it should be: players who come and go then cost no further look.

use maestro_core::autoscaling::Demand;
use maestro_core::operation::Operation;
use maestro_core::plan::{FleetCounters, Plan, Scaling, is_settled};
use maestro_core::time::Timestamp;

use crate::Engine;
use crate::operations::{PlannedCycle, Result};
use crate::ports::store::SchedulerRecord;

pub(super) struct SettledLook {
    /// Of the scheduler that was looked at.
    created_at: Timestamp,
    revision: u32,
    plan: Plan,
}

impl SettledLook {
    /// `None`: it says nothing of later.
    pub(super) fn of(planned: &PlannedCycle) -> Option<Self> {
        let PlannedCycle { scheduler, fleet, plan, .. } = planned;
        let is_whole = fleet.unfinished.is_empty() && !fleet.is_unheard && !fleet.is_contradicted;
        is_whole.then(|| Self {
            created_at: scheduler.created_at,
            revision: scheduler.revision,
            plan: plan.clone(),
        })
    }

    /// When a plan may look different although nothing happened.
    pub(super) fn look_again_at(&self) -> Option<Timestamp> {
        self.plan.look_again_at
    }

    /// Whether another look would find nothing either. A few counters are read, and no room.
    pub(super) async fn still_holds(
        &self,
        engine: &Engine,
        scheduler: &SchedulerRecord,
        unfinished: &[Operation],
    ) -> Result<bool> {
        let is_same = (self.created_at, self.revision) == (scheduler.created_at, scheduler.revision);
        let is_over = self.look_again_at().is_some_and(|at| at <= engine.now());
        if !is_same || is_over || !unfinished.is_empty() {
            return Ok(false);
        }
        let table = &engine.ports.table;
        let counts = table.counts(&scheduler.name).await?;
        let waiting = table.waiting(&scheduler.name, engine.now()).await?;
        let demand = Demand { waiting, ..counts.demand(scheduler.recipe.match_allocation.max_matches) };
        let scaling = match scheduler.autoscaling() {
            Some(autoscaling) => Scaling::Auto { autoscaling, last_shrunk_at: scheduler.last_shrunk_at },
            None => Scaling::FleetSize(scheduler.fleet_size),
        };
        let counters = FleetCounters { by_status: &counts.by_status, unknown: counts.unknown, demand };
        Ok(is_settled(&self.plan, scaling, counters))
    }
}
