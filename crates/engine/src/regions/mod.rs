//! What this engine knows about its regions: which of them can be reached, and since when.
//!
//! A region can be reached if its runtime answers (`maestro_core::region` decides that, with hysteresis) *and* its rooms
//! have been adopted since. A region that was lost and is not adopted again is still lost: its rooms are neither counted nor
//! touched. A region that has not been lost since the engine began is given time: nothing is done there, but its rooms
//! count, so that a restart of Maestro beside a slow runtime does not start the same fleet again elsewhere.
//!
//! Of a region that other processes look after, it knows what they last said in the store ([`observed`]).

mod capacity;
pub(crate) mod observed;
mod patience;
pub(crate) mod watching;

use std::collections::BTreeMap;

use maestro_core::plan::{Place, Places};
use maestro_core::policy::PlacementPolicy;
use maestro_core::region::{Reachability, Region, Sight, Turn};
use maestro_core::scheduler::Recipe;
use maestro_core::time::Timestamp;
use parking_lot::Mutex;

pub(crate) use capacity::may_have_rooms;
pub(crate) use patience::Patient;

use crate::Engine;
use crate::ports::Ports;
use crate::ports::runtime::Checked;
use crate::ports::store::{RegionObservation, RegionRecord, SchedulerRecord, StoreError};

pub(crate) use crate::ports::store::Contact;

/// Regions that are configured, by name.
pub(crate) struct Regions(Mutex<BTreeMap<Region, Known>>);

#[derive(Debug, Clone)]
enum Known {
    Here(Box<LookedAfter>),
    /// What those said who look after it.
    Elsewhere {
        contact: Contact,
        capacity: Option<u32>,
    },
}

#[derive(Debug, Clone, Default)]
struct LookedAfter {
    reachability: Reachability,
    /// Its rooms are not adopted yet.
    not_adopted: Option<NotAdopted>,
    /// When it was last adopted after it had been away.
    back_since: Option<Timestamp>,
    /// As it said last.
    capacity: Option<u32>,
    /// What was last said of it to other processes.
    told: Option<RegionObservation>,
}

#[derive(Debug, Clone)]
struct NotAdopted {
    why: String,
    /// Attempts that failed, all in a row.
    failures: u32,
}

/// Nobody has said anything of a region that others look after.
const NOT_TOLD: &str = "no process that can reach it says how it is";
/// Failed attempts to adopt its rooms after which a region counts as lost, although it answers.
const ADOPTION_FAILURES: u32 = 3;

impl Regions {
    pub(crate) fn of(ports: &Ports) -> Self {
        let here = ports.runtimes.keys().map(|region| (region.clone(), Known::Here(Box::default())));
        let elsewhere = ports.regions_elsewhere.keys().map(|region| {
            let contact = Contact::Unsettled { why: NOT_TOLD.into() };
            (region.clone(), Known::Elsewhere { contact, capacity: None })
        });
        // What this process looks after, it knows best.
        Self(Mutex::new(elsewhere.chain(here).collect()))
    }

    pub(crate) fn names(&self) -> Vec<Region> {
        self.0.lock().keys().cloned().collect()
    }

    pub(crate) fn is_configured(&self, region: &Region) -> bool {
        self.0.lock().contains_key(region)
    }

    /// Something can be done there. A region that is not configured cannot be reached.
    pub(crate) fn is_reachable(&self, region: &Region) -> bool {
        matches!(self.contact(region), Contact::Reachable { .. })
    }

    /// Nobody waits for what is there.
    pub(crate) fn is_lost(&self, region: &Region) -> bool {
        matches!(self.contact(region), Contact::Unreachable { .. })
    }

    pub(crate) fn contact(&self, region: &Region) -> Contact {
        match self.0.lock().get(region) {
            Some(known) => known.contact(),
            None => Contact::Unreachable { why: "it is not configured".into() },
        }
    }

    /// Of all regions, at one moment.
    pub(crate) fn contacts(&self) -> BTreeMap<Region, Contact> {
        self.0.lock().iter().map(|(region, known)| (region.clone(), known.contact())).collect()
    }

    pub(crate) fn all_reachable(&self) -> bool {
        self.0.lock().values().all(|known| matches!(known.contact(), Contact::Reachable { .. }))
    }

    pub(crate) fn capacity(&self, region: &Region) -> Option<u32> {
        self.0.lock().get(region).and_then(Known::capacity)
    }

    /// Nothing is adopted yet: the engine has just begun.
    fn begin(&self) {
        for known in self.0.lock().values_mut().filter_map(Known::looked_after) {
            known.not_adopted = Some(NotAdopted { why: "it has not been looked at yet".into(), failures: 0 });
        }
    }

    fn heard(&self, region: &Region, answer: Result<Checked, String>, now: Timestamp) {
        let mut regions = self.0.lock();
        let Some(known) = regions.get_mut(region).and_then(Known::looked_after) else { return };
        if let Ok(checked) = &answer {
            known.capacity = checked.capacity;
        }
        if let (Err(why), Some(not_adopted)) = (&answer, &mut known.not_adopted) {
            not_adopted.why.clone_from(why);
        }
        match known.reachability.heard(answer.map(|_| ()), now) {
            Some(Turn::Lost) | None => {}
            Some(Turn::Back) => {
                known.not_adopted =
                    Some(NotAdopted { why: "its rooms are being adopted".into(), failures: 0 });
            }
        }
    }

    fn waits_to_be_adopted(&self, region: &Region) -> bool {
        let waits =
            |known: &mut LookedAfter| known.reachability.is_reachable() && known.not_adopted.is_some();
        self.0.lock().get_mut(region).and_then(Known::looked_after).is_some_and(waits)
    }

    fn adopted(&self, region: &Region, outcome: Result<(), String>, now: Timestamp) {
        let mut regions = self.0.lock();
        let Some(known) = regions.get_mut(region).and_then(Known::looked_after) else { return };
        match outcome {
            Ok(()) => {
                let was_lost = matches!(known.contact(), Contact::Unreachable { .. });
                known.not_adopted = None;
                known.back_since = was_lost.then_some(now);
            }
            Err(why) => {
                let failures = known.not_adopted.as_ref().map_or(0, |not_adopted| not_adopted.failures) + 1;
                let why = format!("its rooms cannot be adopted: {why}");
                known.not_adopted = Some(NotAdopted { why, failures });
            }
        }
    }
}

impl Known {
    fn looked_after(&mut self) -> Option<&mut LookedAfter> {
        match self {
            Self::Here(known) => Some(known),
            Self::Elsewhere { .. } => None,
        }
    }

    fn contact(&self) -> Contact {
        match self {
            Self::Here(known) => known.contact(),
            Self::Elsewhere { contact, .. } => contact.clone(),
        }
    }

    fn capacity(&self) -> Option<u32> {
        match self {
            Self::Here(known) => known.capacity,
            Self::Elsewhere { capacity, .. } => *capacity,
        }
    }
}

impl LookedAfter {
    fn contact(&self) -> Contact {
        match (self.reachability.sight(), &self.not_adopted) {
            (Sight::Unreachable { since, why }, _) => {
                Contact::Unreachable { why: format!("{why} (since {since:.0})") }
            }
            (Sight::Reachable { since: None }, Some(NotAdopted { why, failures }))
                if *failures < ADOPTION_FAILURES =>
            {
                Contact::Unsettled { why: why.clone() }
            }
            (Sight::Reachable { .. }, Some(NotAdopted { why, .. })) => {
                Contact::Unreachable { why: why.clone() }
            }
            (Sight::Reachable { .. }, None) => Contact::Reachable { since: self.back_since },
        }
    }
}

impl Engine {
    /// The regions, as rooms of this recipe may use them.
    pub(crate) async fn places(&self, recipe: &Recipe) -> Result<Places, StoreError> {
        let said = self.ports.store.regions().await?;
        let place = |region: &Region| Place {
            reachable: !self.regions.is_lost(region),
            closed: self.why_unusable(region, &said),
            draining: said.iter().any(|record| record.name == *region && record.draining),
            capacity: self.place_capacity(region, &recipe.name),
        };
        let names = self.regions.names();
        let policy = recipe.policies.placement.clone();
        let policy = policy.unwrap_or_else(|| PlacementPolicy::even(names.iter().cloned()));
        Ok(Places {
            regions: names.into_iter().map(|region| (region.clone(), place(&region))).collect(),
            policy,
            bound_to: recipe.spec.region.clone(),
        })
    }

    /// The same for new rooms of a scheduler, which may be made from another version than the active one: that one says
    /// where they are bound to.
    pub(crate) async fn places_of(&self, scheduler: &SchedulerRecord) -> Result<Places, StoreError> {
        let places = self.places(&scheduler.recipe).await?;
        let version = scheduler.version_to_make();
        if version == scheduler.active_version {
            return Ok(places);
        }
        let made = self.ports.store.version(&scheduler.name, version).await?;
        Ok(Places { bound_to: made.and_then(|made| made.recipe.spec.region.clone()), ..places })
    }

    /// Why a region gets no new rooms; `None`: it may.
    fn why_unusable(&self, region: &Region, said: &[RegionRecord]) -> Option<String> {
        match self.regions.contact(region) {
            Contact::Reachable { .. } => {}
            Contact::Unsettled { why } => return Some(format!("{region} is not adopted yet: {why}")),
            Contact::Unreachable { why } => return Some(format!("{region} cannot be reached: {why}")),
        }
        let record = said.iter().find(|record| record.name == *region);
        let RegionRecord { draining, by, reason, .. } = record.filter(|record| record.cordoned)?;
        let state = if *draining { "drained" } else { "cordoned" };
        Some(format!("{region} is {state} by {by}: {reason}"))
    }

    /// Other regions whose rooms share the host of this one, and with it its ports.
    pub(crate) fn regions_beside(&self, region: &Region) -> Vec<Region> {
        let runtimes = &self.ports.runtimes;
        let Some(host) = runtimes.get(region).and_then(|runtime| runtime.host()) else {
            return Vec::new();
        };
        let beside =
            runtimes.iter().filter(|(other, runtime)| *other != region && runtime.host() == Some(host));
        beside.map(|(other, _)| other.clone()).collect()
    }
}
