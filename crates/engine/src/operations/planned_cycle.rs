//! What a health cycle would do: a snapshot of the fleet, what its rollout has come to, and the plan that is made of both.
//! If there is something to do, it is handed to the cycle that is enqueued. If not, nothing else remains of its cycle.

use maestro_core::plan::Plan;
use maestro_core::rollout::{RemovalOutlook, Removals, Verdict};
use maestro_core::scheduler::SchedulerName;

use crate::Engine;
use crate::ports::store::SchedulerRecord;
use crate::rooms::reconciling;

use super::facts::occupied_pace;
use super::fleet::{FleetState, fleet};
use super::{Result, Work, health_controller, rollout};

pub(crate) struct PlannedCycle {
    pub(crate) scheduler: SchedulerRecord,
    pub(crate) fleet: FleetState,
    /// What has become of the rollout; `GoesOn` if there is none.
    pub(crate) verdict: Verdict,
    pub(crate) plan: Plan,
    /// The cycle is one on schedule, in which rooms with players may be removed.
    is_scheduled: bool,
}

/// What a cycle would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finding {
    Something,
    /// Rooms are to go, and that is all.
    Removals,
    Nothing,
}

impl PlannedCycle {
    pub(crate) async fn prepare(engine: &Engine, name: &SchedulerName, is_scheduled: bool) -> Result<Self> {
        let (scheduler, fleet) = fleet(engine, name, None).await?;
        engine.ports.table.set_allocation_rules(&scheduler.name, fleet.allocation_rules(&scheduler)).await?;
        let verdict = rollout::verdict(&scheduler, &fleet, engine.now());
        let plan = plan(engine, &scheduler, &fleet, is_scheduled);
        Ok(Self { scheduler, fleet, verdict, plan, is_scheduled })
    }

    /// The plan, if the rollout has become this one since.
    pub(super) fn replan(&self, engine: &Engine, scheduler: &SchedulerRecord) -> Plan {
        plan(engine, scheduler, &self.fleet, self.is_scheduled)
    }

    pub(crate) fn finding(&self, engine: &Engine) -> Finding {
        let Self { scheduler, fleet, verdict, plan, .. } = self;
        let removals = Removals::new(scheduler.rollout.as_ref(), &fleet.locks, engine.now());
        let RemovalOutlook { settles_lock, removes } = removals.outlook(plan.removes());
        let nothing_else = *verdict == Verdict::GoesOn && !settles_lock && fleet.orphans.is_empty();
        match (nothing_else && plan.add == 0, removes) {
            (true, false) => Finding::Nothing,
            (true, true) => Finding::Removals,
            (false, _) => Finding::Something,
        }
    }

    /// A cycle would do nothing, neither what is planned nor anything else.
    pub(crate) fn is_quiet(&self, engine: &Engine) -> bool {
        let FleetState { is_unheard, is_contradicted, .. } = self.fleet;
        !is_unheard && !is_contradicted && self.finding(engine) == Finding::Nothing
    }

    /// A cycle that begins with it has nothing to put right before it acts on the plan.
    pub(super) fn is_good_for(&self, cycle: &Work) -> bool {
        let Work { engine, scheduler, operation, .. } = cycle;
        let compares = reconciling::is_due(engine, &scheduler.name, self.fleet.is_contradicted);
        let is_whole = !self.fleet.is_unheard && self.fleet.orphans.is_empty();
        is_whole && !compares && self.is_scheduled == health_controller::is_scheduled(operation)
    }
}

fn plan(engine: &Engine, scheduler: &SchedulerRecord, fleet: &FleetState, is_scheduled: bool) -> Plan {
    let players_turn = occupied_pace(engine, scheduler).allows(engine.now(), is_scheduled);
    fleet.plan_with(scheduler, players_turn)
}
