//! The regions of a server as its planner sees them, from what the server shows of them.

use std::collections::BTreeMap;

use maestro_core::plan::{Place, Places};
use maestro_core::policy::PlacementPolicy;
use maestro_core::room::Region;
use maestro_core::scheduler::Recipe;

use crate::cli::{Client, Failure, Json, Resource};

/// How the reason begins of a region that answers, and whose rooms nobody has looked for since the server started. The
/// list calls it unreachable; its rooms count all the same until the server has looked.
const NOT_ADOPTED: &str = "is not adopted yet";

/// The regions as rooms of one recipe may use them.
pub(super) struct Regions {
    pub(super) places: Places,
    /// Regions whose rooms are not known yet.
    pub(super) not_adopted: Vec<Region>,
}

impl Regions {
    pub(super) fn read(client: &Client, recipe: &Recipe) -> Result<Self, Failure> {
        let answer = client.get(&Resource::new(&["regions"]), "regions")?;
        let (mut regions, mut not_adopted) = (BTreeMap::new(), Vec::new());
        for listed in answer.get("regions").items() {
            let Some(name) = listed.get("name").as_str().map(|name| Region(name.into())) else { continue };
            if !listed.get("reachable").is_true() && reason(listed).starts_with(NOT_ADOPTED) {
                not_adopted.push(name.clone());
            }
            regions.insert(name.clone(), place(&name, listed));
        }
        let policy = recipe.policies.placement.clone();
        let policy = policy.unwrap_or_else(|| PlacementPolicy::even(regions.keys().cloned()));
        let places = Places { regions, policy, bound_to: recipe.spec.region.clone() };
        Ok(Self { places, not_adopted })
    }
}

/// In the words in which the server says why a region gets no new rooms.
fn place(name: &Region, listed: &Json) -> Place {
    let (answers, reason) = (listed.get("reachable").is_true(), reason(listed));
    let closed = match (answers, listed.get("cordoned").is_true(), reason) {
        (true, false, _) => None,
        (true, true, "") => Some(format!("{name} is cordoned")),
        (true, true, reason) => Some(format!("{name} is {reason}")),
        (false, _, "") => Some(format!("{name} cannot be reached")),
        (false, _, reason) => Some(format!("{name} {reason}")),
    };
    Place {
        reachable: answers || reason.starts_with(NOT_ADOPTED),
        closed,
        draining: listed.get("draining").is_true(),
        // What other fleets have of it is not known here.
        capacity: None,
    }
}

fn reason(listed: &Json) -> &str {
    listed.get("reason").as_str().unwrap_or_default()
}
