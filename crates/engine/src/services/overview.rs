//! All fleets at a glance: how many rooms they have and want, and their problems.

use maestro_core::autoscaling::{self, Demand};
use maestro_core::condition::{FleetSeen, Problem};
use maestro_core::room::RoomStatus;

use crate::operations::{StepError, whole_fleet};
use crate::ports::room_table::{FleetCounts, OrIfLost};
use crate::ports::store::SchedulerRecord;
use crate::silences::SeenCounts;
use crate::{Engine, Result};

use super::{FleetInfo, SchedulerFilter};

/// A fleet that lacks rooms is looked at as a whole. Where very many do, as after a restart, the first ones tell.
const FLEETS_READ_MAX: usize = 20;

#[derive(Debug, Clone)]
pub struct FleetOverview {
    pub info: FleetInfo,
    /// How many rooms it should have.
    pub wanted: u32,
    pub problem: Option<Problem>,
}

impl Engine {
    pub async fn fleet_overviews(&self, filter: &SchedulerFilter) -> Result<Vec<FleetOverview>> {
        let mut overviews = Vec::new();
        let mut fleets_left = FLEETS_READ_MAX;
        for scheduler in self.schedulers(filter).await? {
            let seen = self.fleet_counts(&scheduler.name).await?;
            let waiting = self.ports.table.waiting(&scheduler.name, self.now()).await.or_if_lost(0)?;
            let wanted = rooms_wanted(&scheduler, &seen.counts, waiting);
            let problem = self.problem_of(&scheduler, &seen, wanted, &mut fleets_left).await?;
            let counts = seen.counts;
            overviews.push(FleetOverview { info: FleetInfo { scheduler, counts }, wanted, problem });
        }
        Ok(overviews)
    }

    async fn problem_of(
        &self,
        scheduler: &SchedulerRecord,
        SeenCounts { counts, is_lost }: &SeenCounts,
        wanted: u32,
        fleets_left: &mut usize,
    ) -> Result<Option<Problem>> {
        let unreachable = counts
            .by_region
            .iter()
            .find(|(region, rooms)| !rooms.is_empty() && !self.regions.is_reachable(region));
        let seen = FleetSeen {
            wanted,
            ready: counts.by_status.of(RoomStatus::Ready),
            occupied: counts.by_status.occupied(),
            starting: counts.by_status.of(RoomStatus::Pending) + counts.by_status.of(RoomStatus::Unready),
            unknown: counts.unknown,
            rollout: scheduler.rollout.as_ref(),
            unreachable: unreachable.map(|(region, _)| region.as_str()),
            ..FleetSeen::default()
        };
        let may_be_silent = self.may_be_silent(counts.by_region.keys());
        if (seen.missing() == 0 && !may_be_silent) || *is_lost || *fleets_left == 0 {
            return Ok(seen.problem());
        }
        *fleets_left -= 1;
        let (seen_now, fleet) = match whole_fleet(self, &scheduler.name, None).await {
            Err(StepError::Lost(_)) => return Ok(seen.problem()),
            fleet => fleet?,
        };
        let plan = fleet.plan(&seen_now);
        Ok(FleetSeen { failed: fleet.latest_failure(), held_back: &plan.held_back, ..seen }.problem())
    }
}

/// As the next cycle would find it, before what regions can hold.
pub(crate) fn rooms_wanted(scheduler: &SchedulerRecord, counts: &FleetCounts, waiting: u32) -> u32 {
    let Some(autoscaling) = scheduler.autoscaling() else {
        return scheduler.fleet_size;
    };
    let demand = counts.demand(scheduler.recipe.match_allocation.max_matches);
    autoscaling::decide(&Demand { waiting, ..demand }, autoscaling).desired
}
