//! Policies of a scheduler, and the chain in which they are checked before an operation.
//!
//! They are those of OpenStack Senlin, whose documents a recipe may contain (`docs/placement.md`). Each one reads what was
//! asked for and what earlier ones decided, and adds its own decision. By priority: scaling (100) says how many rooms, region placement (200) where, deletion (400) which. The first refusal
//! ends the chain, and the operation with it.

mod action;
mod data;
mod deletion;
mod placement;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::autoscaling::Outcome;
use crate::placement::{NoPlan, Standing};
use crate::resize;
use crate::room::Region;

pub use action::Action;
pub use data::{Data, Part, to_json};
pub use deletion::{Candidate, Criteria, DeletionPolicy};
pub use placement::{PlacementPolicy, PlacementRegion};

/// What a recipe says beside autoscaling, which is its scaling policy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policies {
    pub placement: Option<PlacementPolicy>,
    pub deletion: Option<DeletionPolicy>,
}

/// One policy, with what it works on.
#[derive(Debug, Clone, Copy)]
pub enum Policy<'a> {
    Scaling(Outcome),
    Placement(&'a PlacementPolicy),
    Deletion(DeletionPolicy),
}

/// The fleet that an operation changes.
#[derive(Debug, Clone, Copy)]
pub struct Fleet<'a> {
    /// What stands in each region that can be reached, also where that is nothing.
    pub regions: &'a BTreeMap<Region, Standing>,
    /// The region that its rooms are bound to: `spec.region` of the recipe, or what the request names. It takes
    /// precedence, and placement is left out.
    pub bound_to: Option<&'a Region>,
    /// Rooms that may go, for an operation that may remove some.
    pub candidates: &'a [Candidate],
    /// Of random choices.
    pub seed: u64,
}

/// Why an operation cannot be carried out, in Senlin's words: what its `data` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("No region is found usable.")]
    NoRegionUsable,
    #[error("There is no feasible plan to handle all nodes.")]
    NoFeasiblePlan(NoPlan),
    #[error(transparent)]
    Resize(#[from] resize::Invalid),
}

/// Checks the policies in the order of their priorities, on top of what `data` says already.
pub fn check(
    policies: &[Policy<'_>],
    action: &Action,
    fleet: &Fleet<'_>,
    mut data: Data,
) -> Result<Data, Refusal> {
    let mut chain = policies.to_vec();
    chain.sort_by_key(Policy::priority);
    for policy in chain {
        policy.check(action, fleet, &mut data)?;
    }
    Ok(data)
}

impl Policy<'_> {
    pub fn priority(&self) -> u32 {
        match self {
            Self::Scaling(_) => 100,
            Self::Placement(_) => PlacementPolicy::PRIORITY,
            Self::Deletion(_) => DeletionPolicy::PRIORITY,
        }
    }

    fn check(&self, action: &Action, fleet: &Fleet<'_>, data: &mut Data) -> Result<(), Refusal> {
        match self {
            Self::Scaling(outcome) => {
                scale(*outcome, action, data);
                Ok(())
            }
            Self::Placement(_) if fleet.bound_to.is_some() => Ok(()),
            Self::Placement(policy) => policy.check(action.change(data)?, fleet, data),
            Self::Deletion(policy) => {
                if let resize::Resized::Delete(count @ 1..) = action.change(data)? {
                    let part = data.deletion.get_or_insert_with(Part::default);
                    policy.choose(count, fleet.candidates, fleet.seed, part);
                }
                Ok(())
            }
        }
    }
}

/// Says how many, where it is what the operation is about.
fn scale(outcome: Outcome, action: &Action, data: &mut Data) {
    let (part, count) = match (action, outcome) {
        (Action::ScaleOut { .. }, Outcome::ScaleUp(count)) => (&mut data.creation, count),
        (Action::ScaleIn { .. }, Outcome::ScaleDown(count)) => (&mut data.deletion, count),
        (
            Action::ScaleOut { .. } | Action::ScaleIn { .. } | Action::Resize { .. } | Action::CreateRoom,
            _,
        ) => return,
    };
    part.get_or_insert_with(Part::default).count = Some(count.into());
}
