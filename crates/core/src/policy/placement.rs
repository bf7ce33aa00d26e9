//! Region placement: how a fleet is distributed over regions.

use std::collections::{BTreeMap, BTreeSet};

use super::data::{Data, Part};
use super::{Fleet, Refusal};
use crate::placement::{REGIONS_MAX, RegionFact, Standing, Weight, grow, shrink};
use crate::resize::Resized;
use crate::room::Region;
use crate::violation::Violation;

/// A region gets its weight's share of the rooms, up to its cap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementPolicy {
    /// Never empty, no name twice, at least one weight above 0, at most [`REGIONS_MAX`].
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

    /// What is wrong with a list of regions as a whole, by name and weight; fields are relative to the list. A weight
    /// that could not be read is `None`.
    pub fn wrong_with_list(regions: &[(&str, Option<u64>)]) -> Vec<Violation> {
        let mut violations = Vec::new();
        if regions.is_empty() {
            violations.push(Violation::new("", "is empty; name at least one region"));
        } else if regions.iter().all(|(_, weight)| *weight == Some(0)) {
            let reason = "all weights are 0, so no region could ever get a room; give one a weight";
            violations.push(Violation::new("", reason));
        }
        if regions.len() > REGIONS_MAX {
            let reason = format!("has {} regions; at most {REGIONS_MAX} can be", regions.len());
            violations.push(Violation::new("", reason));
        }
        let mut seen = BTreeSet::new();
        for (index, (name, _)) in regions.iter().enumerate().filter(|(_, (name, _))| !name.is_empty()) {
            if !seen.insert(name) {
                violations
                    .push(Violation::new(format!("[{index}].name"), format!("{name:?} is there twice")));
            }
        }
        violations
    }

    /// What holds where several regions are configured and no policy is written: all are alike.
    pub fn even(regions: impl IntoIterator<Item = Region>) -> Self {
        let region = |name| PlacementRegion { name, weight: PlacementRegion::DEFAULT_WEIGHT, cap: None };
        Self { regions: regions.into_iter().map(region).collect() }
    }

    /// Writes how many rooms each region gets, or gives.
    pub(super) fn check(&self, change: Resized, fleet: &Fleet<'_>, data: &mut Data) -> Result<(), Refusal> {
        // One that is cordoned is as good as lost to new rooms: the others have its share.
        let grows = matches!(change, Resized::Create(_));
        let usable = self.facts(fleet.regions).filter(|(_, region)| !grows || !region.rooms.cordoned);
        let (names, regions): (Vec<&Region>, Vec<RegionFact>) = usable.unzip();
        let (count, plan, part) = match change {
            Resized::Create(0) | Resized::Delete(0) => return Ok(()),
            Resized::Create(count) => (count, grow(&regions, count), &mut data.creation),
            Resized::Delete(count) => (count, shrink(&regions, count), &mut data.deletion),
        };
        if !names.iter().any(|name| self.lists(name)) {
            return Err(Refusal::NoRegionUsable);
        }
        let plan = plan.map_err(Refusal::NoFeasiblePlan)?;
        let numbers = names.into_iter().cloned().zip(plan).filter(|(_, rooms)| *rooms > 0).collect();
        let part = part.get_or_insert_with(Part::default);
        part.count = Some(count);
        part.regions = Some(numbers);
        Ok(())
    }

    fn lists(&self, name: &Region) -> bool {
        self.regions.iter().any(|region| region.name == *name)
    }

    /// The regions of the policy that can be reached, in its order. One that has rooms and is not in the policy follows
    /// with weight 0: it gets none, and gives its rooms first.
    pub(crate) fn facts<'a>(
        &'a self,
        standings: &'a BTreeMap<Region, Standing>,
    ) -> impl Iterator<Item = (&'a Region, RegionFact)> {
        let listed = self.regions.iter().filter_map(|region| {
            let rooms = *standings.get(&region.name)?;
            let cap = region.cap.map(u64::from);
            Some((&region.name, RegionFact { weight: region.weight.into(), cap, rooms }))
        });
        let any_is_usable = self.regions.iter().any(|region| standings.contains_key(&region.name));
        let others = standings.iter().filter(move |(name, _)| any_is_usable && !self.lists(name));
        let unweighted = |(name, rooms): (&'a Region, &'a Standing)| {
            (name, RegionFact { weight: Weight::ZERO, cap: None, rooms: *rooms })
        };
        listed.chain(others.map(unweighted))
    }
}
