//! What the scheduler's worker says of allocations, as it is stored. Scripts only compare the text.

use maestro_core::allocation::AllocationRules;
use maestro_core::room::Region;
use maestro_core::scheduler::Version;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::record::version;

#[derive(Serialize, Deserialize)]
struct Stored {
    old_versions: Vec<String>,
    draining_regions: Vec<String>,
    unreachable_regions: Vec<String>,
    version_of_new_rooms: Option<String>,
    growing_regions: Option<Vec<String>>,
}

pub(crate) fn write_rules(rules: &AllocationRules) -> Result<String, Failure> {
    let AllocationRules {
        old_versions,
        draining_regions,
        unreachable_regions,
        version_of_new_rooms,
        growing_regions,
    } = rules;
    let names = |regions: &[Region]| regions.iter().map(ToString::to_string).collect::<Vec<_>>();
    let stored = Stored {
        old_versions: old_versions.iter().map(ToString::to_string).collect(),
        draining_regions: names(draining_regions),
        unreachable_regions: names(unreachable_regions),
        version_of_new_rooms: version_of_new_rooms.map(|version| version.to_string()),
        growing_regions: growing_regions.as_deref().map(names),
    };
    serde_json::to_string(&stored).map_err(|error| Failure::Unavailable(error.to_string()))
}

/// Nothing written: nothing is known.
pub(crate) fn parse_rules(text: &str) -> Result<AllocationRules, Failure> {
    if text.is_empty() {
        return Ok(AllocationRules::default());
    }
    let stored: Stored =
        serde_json::from_str(text).map_err(|error| Failure::unreadable("the rules of allocations", error))?;
    let regions = |names: Vec<String>| names.into_iter().map(|name| Region(name.into())).collect::<Vec<_>>();
    let versions =
        stored.old_versions.iter().map(|text| version(text)).collect::<Result<Vec<Version>, _>>()?;
    Ok(AllocationRules {
        old_versions: versions,
        draining_regions: regions(stored.draining_regions),
        unreachable_regions: regions(stored.unreachable_regions),
        version_of_new_rooms: stored.version_of_new_rooms.map(|text| version(&text)).transpose()?,
        growing_regions: stored.growing_regions.map(regions),
    })
}
