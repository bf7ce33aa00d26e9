//! Caps: no addition takes the rooms of a fleet in a region above what its placement policy allows there.

use std::collections::BTreeSet;

use maestro_core::invariant::{Invariant, InvariantViolation};
use maestro_core::room::{Purpose, Region};
use maestro_core::scheduler::{Recipe, SchedulerName};
use maestro_engine::ports::store::{Change, Store, StoreError, Transaction};

/// The caps that a transaction has just overstepped. Rooms that were too many before, or under a version with a
/// greater cap, are nobody's fault: only where rooms are added it counts, and the greatest cap of all versions.
pub(super) async fn overstepped(
    scheduler: &SchedulerName,
    transaction: &Transaction,
    store: &dyn Store,
) -> Result<Vec<InvariantViolation>, StoreError> {
    let grown: BTreeSet<&Region> = transaction.changes.iter().filter_map(added_to).collect();
    if grown.is_empty() {
        return Ok(Vec::new());
    }
    let (versions, _) = store.versions(scheduler).await?;
    let rows = store.live_rooms(scheduler).await?;
    let overstepped = |region: &Region| {
        let caps: Option<Vec<u32>> = versions.iter().map(|version| cap(&version.recipe, region)).collect();
        let most = caps?.into_iter().max()?;
        // Those that are to go count: they are still there.
        let there = rows.iter().filter(|row| row.purpose == Purpose::Fleet && row.region == *region).count();
        (there > most as usize).then(|| {
            let what = format!(
                "an addition takes {scheduler} to {there} rooms in region {region}, and {most} may be there"
            );
            InvariantViolation::new(Invariant::CapsKept, what)
        })
    };
    Ok(grown.into_iter().filter_map(overstepped).collect())
}

fn added_to(change: &Change) -> Option<&Region> {
    match change {
        Change::IntendRoom(room) if room.purpose == Purpose::Fleet => Some(&room.region),
        _ => None,
    }
}

/// `None`: no limit. A recipe that names its region leaves placement out.
fn cap(recipe: &Recipe, region: &Region) -> Option<u32> {
    let placement = recipe.policies.placement.as_ref().filter(|_| recipe.spec.region.is_none())?;
    placement.regions.iter().find(|listed| listed.name == *region)?.cap
}
