//! Policies, asked before rooms are added or removed. What they decide is stored in the operation's `data`, in the
//! transaction of the step that asked, and carried out by the steps that follow.

use std::collections::BTreeMap;

use maestro_core::autoscaling::Outcome;
use maestro_core::operation::{Definition, Operation};
use maestro_core::plan::{Places, RoomFact, removal_by_plan};
use maestro_core::policy::{
    self, Action, Candidate, Data, DeletionPolicy, Part, PlacementRegion, Policy, Refusal,
};
use maestro_core::room::{Region, RoomId};
use serde_json::Value;

use crate::rooms::stopping;

use super::fleet::{FleetState, fleet};
use super::{Result, Step, StepError, Work};

/// How many rooms an addition makes in each region.
pub(super) enum Growth {
    Planned(BTreeMap<Region, u32>),
    /// It has just been decided, and is to be written down first.
    Decided(Step),
}

/// Which rooms a removal tries to take, in this order.
pub(super) enum RemovalOrder {
    Planned(Vec<RoomId>),
    /// It has just been decided, and is to be written down first: what is taken before that would not be part of it.
    Decided(Value),
}

pub(super) async fn growth(work: &Work, amount: u32) -> Result<Growth> {
    match decided(&work.operation)? {
        Some(data) => match regions_to_grow(data) {
            Some(regions) => return Ok(Growth::Planned(regions)),
            None => return in_one_region(work, amount).await,
        },
        None if !has_policies(work) => return in_one_region(work, amount).await,
        None => {}
    }
    let (_, fleet) = fleet(&work.engine, &work.scheduler.name, Some(work.operation.id)).await?;
    // Whatever else adds rooms scales out.
    let action = match matches!(work.operation.definition, Definition::CreateRoom { .. }) {
        true => Action::CreateRoom,
        false => Action::ScaleOut { count: Some(amount.into()) },
    };
    let regions = fleet.standings(&work.scheduler);
    let bound_to = fleet.places.bound_to.as_ref();
    let asked = policy::Fleet { regions: &regions, bound_to, candidates: &[], seed: 0 };
    let places = places(work, &fleet);
    let scaling = scaling(work, Outcome::ScaleUp(amount));
    let policies: Vec<_> = scaling.into_iter().chain([Policy::Placement(&places.policy)]).collect();
    let data = Data { creation: resized_by(work, amount.into()), ..Data::default() };
    let outcome = policy::check(&policies, &action, &asked, data);
    let mut step = Step { data: Some(policy::to_json(&outcome)), ..Step::default() };
    // Senlin's message does not say which region is full, or why.
    if let (Err(_), Some(left)) = (outcome, places.left(&regions)) {
        step.history.push(places.why_left(left));
    }
    Ok(Growth::Decided(step))
}

/// Where an addition makes its rooms, as far as that is decided.
pub(super) fn promised(addition: &Operation) -> BTreeMap<Region, u32> {
    decided(addition).ok().flatten().and_then(regions_to_grow).unwrap_or_default()
}

fn regions_to_grow(data: Data) -> Option<BTreeMap<Region, u32>> {
    let regions = data.creation?.regions?;
    let narrowed = |(region, rooms)| (region, u32::try_from(rooms).unwrap_or(u32::MAX));
    Some(regions.into_iter().map(narrowed).collect())
}

/// Of rooms that may go, which ones do, and in what order.
pub(super) fn removal(
    work: &Work,
    fleet: &FleetState,
    candidates: &[&RoomFact],
    count: u64,
) -> Result<RemovalOrder> {
    if let Some(data) = decided(&work.operation)? {
        return Ok(RemovalOrder::Planned(removal_by_plan(&left_of(data, fleet, work), candidates)));
    }
    let is_explicit = work.scheduler.recipe.policies.placement.is_some();
    // Nobody wrote a policy that would have to refuse what cannot be: as many go as there are.
    let count = if is_explicit { count } else { count.min(candidates.len() as u64) };
    let deletion = work.scheduler.recipe.policies.deletion;
    if count == 0 || (!has_policies(work) && deletion.is_none()) {
        return Ok(RemovalOrder::Planned(candidates.iter().map(|room| room.id.clone()).collect()));
    }
    let outcome = check_removal(work, fleet, candidates, count, deletion);
    Ok(RemovalOrder::Decided(policy::to_json(&outcome)))
}

fn check_removal(
    work: &Work,
    fleet: &FleetState,
    candidates: &[&RoomFact],
    count: u64,
    deletion: Option<DeletionPolicy>,
) -> Result<Data, Refusal> {
    let regions = fleet.standings_for_removal(candidates, count);
    let rooms: Vec<Candidate> = candidates.iter().map(|room| room.as_candidate()).collect();
    // The same draw chooses the same rooms again.
    let seed = work.operation.id.seed();
    let bound_to = fleet.places.bound_to.as_ref();
    let asked = policy::Fleet { regions: &regions, bound_to, candidates: &rooms, seed };
    let scaling = scaling(work, Outcome::ScaleDown(u32::try_from(count).unwrap_or(u32::MAX)));
    let placement = Policy::Placement(&fleet.places.policy);
    let policies: Vec<_> =
        scaling.into_iter().chain([placement]).chain(deletion.map(Policy::Deletion)).collect();
    let action = Action::ScaleIn { count: Some(count) };
    let data = Data { deletion: resized_by(work, count), ..Data::default() };
    policy::check(&policies, &action, &asked, data)
}

/// What an operation's policies have decided; `None`: nothing yet. Refused, it ends the operation.
fn decided(operation: &Operation) -> Result<Option<Data>> {
    match operation.data["status"].as_str() {
        Some(_) if is_refused(&operation.data) => {
            let reason = operation.data["reason"].as_str().unwrap_or("a policy refused it");
            Err(StepError::Failed(reason.to_owned()))
        }
        Some(_) => Ok(Some(Data::from_json(&operation.data))),
        None => Ok(None),
    }
}

pub(super) fn is_refused(data: &Value) -> bool {
    data["status"] == "ERROR"
}

/// What was decided before any policy is asked: what a resize comes to.
fn resized_by(work: &Work, count: u64) -> Option<Part> {
    let is_resize = matches!(work.operation.definition, Definition::Resize { .. });
    is_resize.then(|| Part { count: Some(count), ..Part::default() })
}

/// Autoscaling is the policy that says how many, in what it asks for itself.
fn scaling(work: &Work, outcome: Outcome) -> Option<Policy<'static>> {
    let is_its_own = work.scheduler.autoscaling().is_some() && !work.operation.origin.is_person();
    is_its_own.then_some(Policy::Scaling(outcome))
}

/// Where there is one region and nothing is said about it, nothing has to be decided.
fn has_policies(work: &Work) -> bool {
    work.scheduler.recipe.policies.placement.is_some() || work.engine.regions.names().len() > 1
}

/// A request that names a region chooses among one; its cap holds.
fn places(work: &Work, fleet: &FleetState) -> Places {
    let mut places = fleet.places.clone();
    if let Definition::CreateRoom { region: Some(name) } = &work.operation.definition {
        let listed = places.policy.regions.iter().find(|region| region.name == *name);
        let cap = listed.and_then(|region| region.cap);
        places.policy.regions = vec![PlacementRegion { name: name.clone(), weight: 1, cap }];
    }
    places
}

/// That of the recipe that they are made from, or the only one there is.
async fn in_one_region(work: &Work, amount: u32) -> Result<Growth> {
    let named = work.recipe_of(work.scheduler.version_to_make()).await?.spec.region.clone();
    let region = named.or_else(|| work.engine.regions.names().into_iter().next());
    Ok(Growth::Planned(BTreeMap::from([(region.unwrap_or_else(Region::default_region), amount)])))
}

/// The plan, without the rooms that were asked to go already.
fn left_of(data: Data, fleet: &FleetState, work: &Work) -> Part {
    let mut part = data.deletion.unwrap_or_default();
    if let Some(regions) = &mut part.regions {
        for row in fleet.rows.iter().filter(|row| stopping::is_stopped_by(row, work)) {
            if let Some(left) = regions.get_mut(&row.region) {
                *left = left.saturating_sub(1);
            }
        }
    }
    part
}
