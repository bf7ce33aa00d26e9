//! What processes that can reach a region say of it to those that cannot: APIs, and workers on other hosts.

use std::sync::Arc;
use std::time::Duration;

use maestro_core::region::Region;
use maestro_core::time::{Millis, Timestamp, age};

use crate::ports::Store;
use crate::ports::store::{RegionObservation, StoreError};
use crate::tasks::interval;
use crate::{Engine, with_sources};

use super::{Contact, Known, NOT_TOLD, Regions};

/// How often they are read.
const READ_EVERY: Duration = Duration::from_secs(5);
/// What does not change is said again after this time, to show that somebody still looks.
const TELL_EVERY: Millis = Millis::from_seconds(30);
/// Whoever has said nothing for this long looks no more.
const TOLD_FOR: Millis = Millis::from_seconds(90);
/// Old observations are kept for this long, so that one can see who looked last.
const KEPT_FOR: Millis = Millis::from_seconds(3600);

impl Regions {
    /// What is to be said of a region now, if anything.
    fn untold(&self, region: &Region, observer: &str, now: Timestamp) -> Option<RegionObservation> {
        let mut regions = self.0.lock();
        let known = regions.get_mut(region).and_then(Known::looked_after)?;
        let observation = RegionObservation {
            region: region.clone(),
            observer: observer.to_owned(),
            at: now,
            contact: known.contact(),
            capacity: known.capacity,
        };
        let is_told = known.told.as_ref().is_some_and(|told| {
            let same = RegionObservation { at: told.at, ..observation.clone() };
            same == *told && told.at <= now && age(now, told.at) < TELL_EVERY
        });
        (!is_told).then_some(observation)
    }

    fn told(&self, observation: RegionObservation) {
        let mut regions = self.0.lock();
        if let Some(known) = regions.get_mut(&observation.region).and_then(Known::looked_after) {
            known.told = Some(observation);
        }
    }

    fn is_told_of(&self, observations: &[RegionObservation], now: Timestamp) {
        let fresh = |seen: &&RegionObservation| age(now, seen.at) < TOLD_FOR;
        for (region, known) in self.0.lock().iter_mut() {
            if let Known::Elsewhere { contact, capacity } = known {
                let of_region = || observations.iter().filter(|seen| seen.region == *region);
                (*contact, *capacity) = match of_region().filter(fresh).max_by_key(|seen| rank(seen)) {
                    Some(seen) => (seen.contact.clone(), seen.capacity),
                    None => (no_longer_told(of_region().map(|seen| seen.at).max()), None),
                };
            }
        }
    }
}

/// A region that one of several can reach, can be reached.
fn rank(seen: &RegionObservation) -> (u8, Timestamp) {
    let by_contact = match seen.contact {
        Contact::Reachable { .. } => 2,
        Contact::Unsettled { .. } => 1,
        Contact::Unreachable { .. } => 0,
    };
    (by_contact, seen.at)
}

/// That nobody looks says nothing of its rooms: they are not lost.
fn no_longer_told(last: Option<Timestamp>) -> Contact {
    let why = match last {
        Some(last) => format!("{NOT_TOLD} since {last:.0}"),
        None => NOT_TOLD.to_owned(),
    };
    Contact::Unsettled { why }
}

/// Binds a region of processes to this host, unless another one has it; the host that it is bound to.
pub async fn bind_region(store: &dyn Store, region: &Region, host: &str) -> Result<String, StoreError> {
    store.bind_region(region, host, store.now().await?, TOLD_FOR).await
}

/// Says how a region is, if others want to know and do not yet.
pub(super) async fn tell(engine: &Engine, region: &Region) {
    if engine.ports.wake_up_channel.is_none() {
        return;
    }
    let now = engine.now();
    let Some(observation) = engine.regions.untold(region, &engine.owner, now) else { return };
    let forget_before = now.checked_sub(KEPT_FOR.as_duration()).unwrap_or(Timestamp::MIN);
    match engine.ports.store.observe_region(observation.clone(), forget_before).await {
        Ok(()) => engine.regions.told(observation),
        Err(error) => {
            tracing::warn!(%region, error = with_sources(&error), "others cannot be told how a region is, trying again");
        }
    }
}

/// Reads how the regions are that others look after, for as long as the engine is up.
pub(crate) async fn watch(engine: Arc<Engine>) {
    let mut turn = interval(READ_EVERY);
    loop {
        turn.tick().await;
        if let Err(error) = read(&engine).await {
            tracing::warn!(error = with_sources(&error), "cannot read how regions are");
        }
    }
}

pub(crate) async fn read(engine: &Engine) -> Result<(), StoreError> {
    if !engine.ports.regions_elsewhere.is_empty() {
        let observations = engine.ports.store.region_observations().await?;
        engine.regions.is_told_of(&observations, engine.now());
    }
    Ok(())
}
