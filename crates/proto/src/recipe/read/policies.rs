//! Policies: Senlin's documents, or the same in short. There is one of a kind.

use maestro_core::policy::{Criteria, DeletionPolicy, PlacementPolicy, PlacementRegion, Policies};
use maestro_core::room::Region;

use super::field::{Field, Refused};
use super::senlin;
use crate::v1::{self, CreateSchedulerRequest};

pub(super) fn policies(root: &Field<'_>, wire: &CreateSchedulerRequest) -> Result<Policies, Refused> {
    let placement = wire.placement.as_ref().map(|wire| {
        let field = root.child("placement");
        let read = |region: &v1::PlacementRegion| RegionRead {
            name: Ok(region.name.clone()),
            weight: Ok(region.weight),
            cap: Ok(region.cap),
        };
        let regions = regions(&field.child("regions"), wire.regions.iter().map(read).collect());
        (field, regions)
    });
    let deletion = wire.deletion.as_ref().map(|wire| {
        let field = root.child("deletion");
        let policy = criteria(&field.child("criteria"), wire.criteria.as_deref());
        (field, policy.map(|criteria| DeletionPolicy { criteria }))
    });
    let (mut placements, mut deletions) = (Vec::from_iter(placement), Vec::from_iter(deletion));
    let mut refused = None;
    for (index, wire) in wire.policies.iter().enumerate() {
        let field = root.child("policies").item(index);
        let properties = wire.properties.clone().unwrap_or_default().into();
        match senlin::kind(&field, wire) {
            Ok(senlin::Kind::Placement) => {
                let policy = senlin::placement(&field.child("properties"), &properties);
                placements.push((field, policy));
            }
            Ok(senlin::Kind::Deletion) => {
                let policy = senlin::deletion(&field.child("properties"), &properties);
                deletions.push((field, policy));
            }
            Err(reason) => refused = Some(reason),
        }
    }
    let placement = only_one("placement", placements);
    let deletion = only_one("deletion", deletions);
    let policies = Policies { placement: placement?, deletion: deletion? };
    refused.map_or(Ok(policies), Err)
}

/// If a policy were written twice, in either form, it would be unclear which one counts.
fn only_one<T>(kind: &str, policies: Vec<(Field<'_>, Result<T, Refused>)>) -> Result<Option<T>, Refused> {
    let mut policies = policies.into_iter();
    let Some((first, policy)) = policies.next() else {
        return Ok(None);
    };
    for (field, _) in policies {
        field.refuse(format!("there is a {kind} policy already, {first}; only one can be"));
    }
    policy.map(Some)
}

/// A region as it was read: what has the right type, and is not judged yet.
pub(super) struct RegionRead {
    pub(super) name: Result<String, Refused>,
    pub(super) weight: Result<Option<i32>, Refused>,
    pub(super) cap: Result<Option<i32>, Refused>,
}

/// `field` is the list of regions.
pub(super) fn regions(field: &Field<'_>, regions: Vec<RegionRead>) -> Result<PlacementPolicy, Refused> {
    field.refuse_all(PlacementPolicy::wrong_with_list(
        &regions.iter().map(RegionRead::listed).collect::<Vec<_>>(),
    ));
    let regions: Vec<_> =
        regions.into_iter().enumerate().map(|(index, read)| region(&field.item(index), read)).collect();
    Ok(PlacementPolicy { regions: regions.into_iter().collect::<Result<_, _>>()? })
}

impl RegionRead {
    fn listed(&self) -> (&str, Option<u64>) {
        let weight = self.weight.ok().map(|weight| weight.map(u64::try_from));
        let weight = match weight {
            Some(None) => Some(PlacementRegion::DEFAULT_WEIGHT.into()),
            Some(Some(Ok(weight))) => Some(weight),
            Some(Some(Err(_))) | None => None,
        };
        (self.name.as_deref().unwrap_or_default(), weight)
    }
}

fn region(field: &Field<'_>, read: RegionRead) -> Result<PlacementRegion, Refused> {
    let RegionRead { name, weight, cap } = read;
    let name = name.and_then(|name| field.child("name").take(Region::parse(&name)));
    let weight = weight.and_then(|weight| match weight {
        None => Ok(PlacementRegion::DEFAULT_WEIGHT),
        Some(weight) => field.child("weight").number(weight, 0, i32::MAX),
    });
    let cap = cap.and_then(|cap| match cap {
        None | Some(-1) => Ok(None),
        Some(cap) => u32::try_from(cap)
            .map(Some)
            .map_err(|_| field.child("cap").refuse(format!("{cap} is not at least 0; -1 means no limit"))),
    });
    Ok(PlacementRegion { name: name?, weight: weight?, cap: cap? })
}

/// Senlin's default.
pub(super) fn criteria(field: &Field<'_>, text: Option<&str>) -> Result<Criteria, Refused> {
    text.map_or(Ok(Criteria::Random), |text| field.choose(text))
}
