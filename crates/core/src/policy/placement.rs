//! RegionFact placement: how a fleet is distributed over regions.

use super::action::Change;
use super::data::{Data, Part};
use super::{Fleet, Refusal};
use crate::placement::{RegionFact, Weight, grow, shrink};
use crate::room::Region;

/// A region gets its weight's share of the rooms, up to its cap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementPolicy {
    /// Never empty, no name twice, at least one weight above 0, at most [`crate::placement::REGIONS_MAX`].
    pub regions: Vec<PlacementRegion>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementRegion {
    pub name: Region,
    /// 0: no new rooms, and the first to give some up.
    pub weight: u32,
    /// The most rooms of this fleet that may be there; `None`: no limit, written -1.
    pub cap: Option<u32>,
}

impl PlacementRegion {
    pub const DEFAULT_WEIGHT: u32 = 100;
}

impl PlacementPolicy {
    pub const PRIORITY: u32 = 200;
    pub const TYPE: &str = "senlin.policy.region_placement";

    /// What holds where several regions are configured and no policy is written: all are alike.
    pub fn even(regions: impl IntoIterator<Item = Region>) -> Self {
        let region = |name| PlacementRegion { name, weight: PlacementRegion::DEFAULT_WEIGHT, cap: None };
        Self { regions: regions.into_iter().map(region).collect() }
    }

    /// Writes how many rooms each region gets, or gives.
    pub(super) fn check(&self, change: Change, fleet: &Fleet<'_>, data: &mut Data) -> Result<(), Refusal> {
        let (names, regions): (Vec<&Region>, Vec<RegionFact>) = self.usable(fleet).into_iter().unzip();
        let (count, plan, part, usable) = match change {
            Change::None => return Ok(()),
            Change::Grow(count) => {
                let open = regions.iter().any(|region| !region.rooms.cordoned);
                (count, grow(&regions, count), &mut data.creation, open)
            }
            Change::Shrink(count) => {
                (count, shrink(&regions, count), &mut data.deletion, !regions.is_empty())
            }
        };
        if !usable {
            return Err(Refusal::NoRegionUsable);
        }
        let plan = plan.map_err(Refusal::NoFeasiblePlan)?;
        let numbers = names.into_iter().cloned().zip(plan).filter(|(_, rooms)| *rooms > 0).collect();
        let part = part.get_or_insert_with(Part::default);
        part.count = Some(count);
        part.regions = Some(numbers);
        Ok(())
    }

    /// The regions of the policy that can be reached, in its order. One that has rooms and is not in the policy follows
    /// with weight 0: it gets none, and gives its rooms first.
    fn usable<'a>(&'a self, fleet: &'a Fleet<'_>) -> Vec<(&'a Region, RegionFact)> {
        let listed = self.regions.iter().filter_map(|region| {
            let rooms = *fleet.regions.get(&region.name)?;
            let cap = region.cap.map(u64::from);
            Some((&region.name, RegionFact { weight: region.weight.into(), cap, rooms }))
        });
        let mut usable: Vec<_> = listed.collect();
        if !usable.is_empty() {
            let is_listed = |name: &Region| self.regions.iter().any(|region| region.name == *name);
            let others = fleet.regions.iter().filter(|(name, _)| !is_listed(name));
            usable.extend(
                others.map(|(name, rooms)| {
                    (name, RegionFact { weight: Weight::ZERO, cap: None, rooms: *rooms })
                }),
            );
        }
        usable
    }
}
