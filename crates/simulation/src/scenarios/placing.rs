//! Several regions: which runs have them, where their rooms may go, and what people say about regions.
//!
//! All of it comes from forks of the seed that nothing else draws from, so that a run in one region is the same as ever.

use maestro_core::policy::{Criteria, DeletionPolicy, PlacementPolicy, PlacementRegion, Policies};
use maestro_core::room::Region;
use maestro_core::scheduler::Recipe;
use maestro_engine::services::RegionOrder;

use crate::seed::fork;

use super::script::{Script, Wish};
use super::{Kind, Options};

const NAMES: [&str; 4] = ["us-east", "eu-west", "sa-east", "ap-south"];
/// One of so many runs that are not about regions has several all the same.
const SHARE: u64 = 3;

/// Those of a life, one in most.
pub(super) fn regions(seed: u64, kind: Kind, options: &Options) -> Vec<Region> {
    let drawn = fork(seed, "regions", 0);
    let several = match kind {
        Kind::Regions => true,
        Kind::Fleet
        | Kind::Autoscaling
        | Kind::Rollouts
        | Kind::Workers
        | Kind::Deletion
        | Kind::Mixed
        | Kind::Matchmakers
        | Kind::Events
        | Kind::FrozenAdder => options.several_regions.unwrap_or_else(|| drawn.is_multiple_of(SHARE)),
    };
    if !several {
        return vec![Region::default_region()];
    }
    let number = fastrand::Rng::with_seed(drawn).usize(2..=NAMES.len());
    NAMES[..number].iter().map(|name| Region((*name).into())).collect()
}

/// The same run in these regions: its fleets are placed, and people speak of regions too.
pub(super) fn spread(mut script: Script, regions: &[Region], random: &mut fastrand::Rng) -> Script {
    if regions.len() > 1 {
        script.recipes = script.recipes.into_iter().map(|recipe| place(recipe, regions, random)).collect();
        script.wishes.extend([
            (1, Wish::OrderRegion(RegionOrder::Cordon)),
            (1, Wish::OrderRegion(RegionOrder::Drain)),
            (2, Wish::OrderRegion(RegionOrder::Uncordon)),
            (2, Wish::OrderRegion(RegionOrder::ConfirmLost)),
        ]);
    }
    script
}

/// A fleet that is to be somewhere, if there is a choice.
pub(super) fn place(mut recipe: Recipe, regions: &[Region], random: &mut fastrand::Rng) -> Recipe {
    if regions.len() > 1 {
        recipe.policies = policies(regions, random);
        if random.u32(0..8) == 0 {
            recipe.spec.region = Some(regions[random.usize(0..regions.len())].clone());
        }
    }
    recipe
}

pub(super) fn policies(regions: &[Region], random: &mut fastrand::Rng) -> Policies {
    let criteria =
        [Criteria::OldestFirst, Criteria::YoungestFirst, Criteria::OldestProfileFirst, Criteria::Random];
    Policies {
        placement: (random.u32(0..4) > 0).then(|| placement(regions, random)),
        deletion: random
            .bool()
            .then(|| DeletionPolicy { criteria: criteria[random.usize(0..criteria.len())] }),
    }
}

/// One region takes whatever comes, so that every fleet fits when all is well. While that one is away, caps can be too
/// narrow.
fn placement(regions: &[Region], random: &mut fastrand::Rng) -> PlacementPolicy {
    let wide = random.usize(0..regions.len());
    let region = |(number, name): (usize, &Region)| {
        let is_wide = number == wide;
        PlacementRegion {
            name: name.clone(),
            weight: if !is_wide && random.u32(0..4) == 0 { 0 } else { random.u32(1..=200) },
            cap: (!is_wide && random.u32(0..3) == 0).then(|| random.u32(0..12)),
        }
    };
    PlacementPolicy { regions: regions.iter().enumerate().map(region).collect() }
}
