//! Where the rooms of a fleet may be: which regions are open, how many more rooms they can hold, and what is in each of
//! them when a policy is asked.

use std::collections::{BTreeMap, BTreeSet};

use crate::placement::{Standing, place_left};
use crate::policy::{Part, PlacementPolicy, PlacementRegion};
use crate::room::{Region, RoomId, RoomStatus};

use super::RoomFact;
use super::counted::serves_players;

/// The regions of an installation, as one scheduler may use them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// All that are configured.
    pub regions: BTreeMap<Region, Place>,
    /// Where no policy is written: all alike.
    pub policy: PlacementPolicy,
    /// The region that the recipe names: its rooms go there, whatever the policy says.
    pub bound_to: Option<Region>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    pub reachable: bool,
    /// Why it gets no new rooms.
    pub closed: Option<String>,
    /// Its rooms are to be replaced by others elsewhere.
    pub draining: bool,
    /// What the region itself can hold; `None`: any number.
    pub capacity: Option<PlaceCapacity>,
}

/// What is left of a region for one fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceCapacity {
    /// The most rooms that the fleet can have there, given what other fleets have.
    pub rooms: u32,
    /// For people: how much the region holds, and what to change to have more.
    pub why: String,
}

/// In what order rooms go, wherever they are: players come last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tier {
    Idle,
    Ready,
    Serving,
}

impl Places {
    /// What stands in each region that can be reached. `counts`: which rooms are part of the fleet; the others only take
    /// place under the caps.
    pub fn standings(
        &self,
        rooms: &[RoomFact],
        counts: impl Fn(&RoomFact) -> bool,
    ) -> BTreeMap<Region, Standing> {
        let reachable = self.regions.iter().filter(|(_, place)| place.reachable);
        let empty = |place: &Place| Standing {
            cordoned: place.closed.is_some(),
            capacity: place.capacity.as_ref().map(|capacity| capacity.rooms.into()),
            ..Standing::default()
        };
        let mut standings: BTreeMap<Region, Standing> =
            reachable.map(|(region, place)| (region.clone(), empty(place))).collect();
        for room in rooms {
            let Some(standing) = standings.get_mut(&room.region) else { continue };
            match counts(room) {
                true => standing.counted += 1,
                false => standing.beside += 1,
            }
        }
        standings
    }

    /// The same for a removal of `count` rooms, all of which are among the candidates: idle ones go first, then ready
    /// ones, wherever they are. Where the last of them come from is for the policy to say.
    pub fn standings_for_removal(
        &self,
        rooms: &[RoomFact],
        candidates: &[&RoomFact],
        count: u64,
        counts: impl Fn(&RoomFact) -> bool,
    ) -> BTreeMap<Region, Standing> {
        let ids: BTreeSet<&RoomId> = candidates.iter().map(|room| &room.id).collect();
        let is_candidate = |room: &RoomFact| ids.contains(&room.id);
        let mut standings = self.standings(rooms, |room| counts(room) || is_candidate(room));
        let last = last_tier(candidates, count);
        for standing in standings.values_mut() {
            standing.kept = standing.counted;
        }
        for room in candidates {
            let Some(standing) = standings.get_mut(&room.region) else { continue };
            let tier = Tier::of(room);
            standing.goes_first += u64::from(tier < last);
            standing.kept -= u64::from(tier <= last);
        }
        standings
    }

    /// How many more rooms there is place for; `None`: as many as anybody wants.
    pub fn left(&self, standings: &BTreeMap<Region, Standing>) -> Option<u64> {
        match &self.bound_to {
            Some(region) if self.closed(region).is_some() => Some(0),
            Some(region) => {
                let Standing { counted, beside, capacity, .. } = *standings.get(region)?;
                Some(capacity?.saturating_sub(counted).saturating_sub(beside))
            }
            None => place_left(&self.policy.facts(standings).map(|(_, fact)| fact).collect::<Vec<_>>()),
        }
    }

    /// The regions that may get more rooms than stand there.
    pub fn growing(&self, standings: &BTreeMap<Region, Standing>) -> Vec<Region> {
        let grows = |region: &Region, cap: Option<u32>| {
            let Some(Standing { counted, beside, capacity, .. }) = standings.get(region) else {
                return false;
            };
            let most = capacity.iter().copied().chain(cap.map(u64::from)).min();
            self.closed(region).is_none() && most.is_none_or(|most| counted.saturating_add(*beside) < most)
        };
        match &self.bound_to {
            Some(region) => [region].into_iter().filter(|region| grows(region, None)).cloned().collect(),
            None => {
                let listed = self.policy.regions.iter();
                let growing = listed.filter(|region| region.weight > 0 && grows(&region.name, region.cap));
                growing.map(|region| region.name.clone()).collect()
            }
        }
    }

    /// The most rooms that the caps can ever hold; `None`: any number. That a region cannot be reached, or is cordoned,
    /// does not make the fleet smaller: its rooms are wanted all the same.
    pub(super) fn hold_at_most(&self, standings: &BTreeMap<Region, Standing>) -> Option<u64> {
        if self.bound_to.is_some() {
            return None;
        }
        let there = |region: &Region| standings.get(region).map_or(0, |standing| standing.counted);
        let mut most: u64 = 0;
        for PlacementRegion { name, weight, cap } in &self.policy.regions {
            most = most.saturating_add(match weight {
                0 => there(name),
                _ => u64::from((*cap)?).max(there(name)),
            });
        }
        let listed = |region: &Region| self.policy.regions.iter().any(|listed| listed.name == *region);
        let others = standings.keys().filter(|region| !listed(region));
        Some(others.map(there).fold(most, u64::saturating_add))
    }

    /// Why there is place for so few.
    pub fn why_left(&self, left: u64) -> String {
        let reasons = match &self.bound_to {
            Some(region) => {
                self.closed(region).or_else(|| self.why_at_capacity(region)).into_iter().collect()
            }
            None => self.policy.regions.iter().filter_map(|region| self.why_full(region)).collect::<Vec<_>>(),
        };
        let reasons = reasons.join("; ");
        match left {
            0 => format!("no region may have new rooms: {reasons}"),
            left => format!("regions have capacity for only {left}: {reasons}"),
        }
    }

    fn why_full(&self, region: &PlacementRegion) -> Option<String> {
        let PlacementRegion { name, weight, cap } = region;
        self.closed(name).or_else(|| match (weight, cap) {
            (0, _) => Some(format!("{name} has weight 0")),
            (_, Some(cap)) if !self.holds_less_than(name, *cap) => Some(format!("{name} has a cap of {cap}")),
            (_, Some(_) | None) => self.why_at_capacity(name),
        })
    }

    fn why_at_capacity(&self, region: &Region) -> Option<String> {
        Some(self.regions.get(region)?.capacity.as_ref()?.why.clone())
    }

    fn holds_less_than(&self, region: &Region, rooms: u32) -> bool {
        let capacity = self.regions.get(region).and_then(|place| place.capacity.as_ref());
        capacity.is_some_and(|capacity| capacity.rooms < rooms)
    }

    /// Why a region gets no new rooms.
    pub fn closed(&self, region: &Region) -> Option<String> {
        match self.regions.get(region) {
            Some(place) => place.closed.clone(),
            None => Some(format!("{region} is not configured")),
        }
    }

    /// Those that are drained.
    pub fn drained(&self) -> impl Iterator<Item = &Region> {
        self.regions.iter().filter(|(_, place)| place.draining).map(|(region, _)| region)
    }

    /// Where a room goes that is no part of the fleet, and so takes no place under a cap.
    pub fn for_validation(&self) -> Result<Region, String> {
        if let Some(region) = &self.bound_to {
            return self.closed(region).map_or_else(|| Ok(region.clone()), Err);
        }
        let open = self.policy.regions.iter().filter(|region| self.closed(&region.name).is_none());
        // Of equals the first.
        let heaviest = open.filter(|region| region.weight > 0).rev().max_by_key(|region| region.weight);
        heaviest.map(|region| region.name.clone()).ok_or_else(|| self.why_left(0))
    }
}

impl Tier {
    fn of(room: &RoomFact) -> Self {
        match room.status {
            _ if serves_players(room) => Self::Serving,
            RoomStatus::Ready => Self::Ready,
            _ => Self::Idle,
        }
    }
}

/// The tier that the last of `count` rooms is of.
fn last_tier(candidates: &[&RoomFact], count: u64) -> Tier {
    let number = |last| candidates.iter().filter(|room| Tier::of(room) <= last).count() as u64;
    let reaches = |tier: &Tier| count <= number(*tier);
    [Tier::Idle, Tier::Ready].into_iter().find(reaches).unwrap_or(Tier::Serving)
}

/// The candidates in the order in which a removal takes them: those that the plan names, or that its regions are to give,
/// and then the others. So a region that is short of rooms passes its number on. Players come last in any case: some may
/// have entered since the plan was made.
pub fn removal_by_plan(plan: &Part, candidates: &[&RoomFact]) -> Vec<RoomId> {
    let (chosen, others): (Vec<&RoomFact>, Vec<&RoomFact>) = match (&plan.candidates, &plan.regions) {
        (Some(named), _) => {
            let place: BTreeMap<&RoomId, usize> = named.iter().zip(0..).collect();
            let (mut chosen, others): (Vec<_>, Vec<_>) =
                candidates.iter().copied().partition(|room| place.contains_key(&room.id));
            // Named region by region; but players go last in all of them.
            chosen.sort_by_key(|room| (Tier::of(room), place.get(&room.id)));
            (chosen, others)
        }
        (None, Some(regions)) => {
            let mut left = regions.clone();
            candidates.iter().copied().partition(|room| {
                let number = left.get_mut(&room.region).filter(|number| **number > 0);
                number.map(|number| *number -= 1).is_some()
            })
        }
        (None, None) => (candidates.to_vec(), Vec::new()),
    };
    let mut order: Vec<&RoomFact> = chosen.into_iter().chain(others).collect();
    order.sort_by_key(|room| Tier::of(room) == Tier::Serving);
    order.into_iter().map(|room| room.id.clone()).collect()
}
