//! What was seen of regions, and which host each is bound to, for stores of one process: nothing of it has to outlive that.

use std::collections::BTreeMap;

use maestro_core::room::Region;
use maestro_core::time::{Millis, Timestamp, age};

use super::records::RegionObservation;

#[derive(Debug, Default)]
pub struct ObservedRegions {
    /// By region and observer.
    observations: BTreeMap<(Region, String), RegionObservation>,
    bindings: BTreeMap<Region, Binding>,
}

#[derive(Debug)]
struct Binding {
    host: String,
    at: Timestamp,
}

impl ObservedRegions {
    pub fn observe(&mut self, observation: RegionObservation, forget_before: Timestamp) {
        let region = observation.region.clone();
        self.observations.retain(|(of, _), known| *of != region || known.at >= forget_before);
        self.observations.insert((region, observation.observer.clone()), observation);
    }

    pub fn all(&self) -> Vec<RegionObservation> {
        self.observations.values().cloned().collect()
    }

    /// `has_rooms`: a room of the region has not ended.
    pub fn bind(
        &mut self,
        region: &Region,
        host: &str,
        now: Timestamp,
        ttl: Millis,
        has_rooms: bool,
    ) -> String {
        let bound = self.bindings.get(region);
        if let Some(other) = bound.filter(|bound| bound.host != host) {
            let observed = self.observations.values().filter(|observation| observation.region == *region);
            let mut signs = observed.map(|observation| observation.at).chain([other.at]);
            if has_rooms || signs.any(|at| age(now, at) < ttl) {
                return other.host.clone();
            }
        }
        self.bindings.insert(region.clone(), Binding { host: host.to_owned(), at: now });
        host.to_owned()
    }
}
