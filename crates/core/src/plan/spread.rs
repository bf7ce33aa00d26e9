//! In which regions the rooms of a rollout or a drain start and stop, if there are several.
//!
//! The regions' shares of the future fleet decide. Old rooms count towards a cap: if they leave no room for the new ones
//! that belong there, they are the first to go; elsewhere they go so that the remaining rooms are spread by shares. New
//! rooms beyond a region's share temporarily replace those that another region has no capacity for yet, and do not count
//! towards its share.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::placement::{RegionFact, Standing, Weight, grow, place_left, shrink};
use crate::room::Region;

use super::counted::{is_ready, is_replaced, serves_players, stays};
use super::{FleetSnapshot, Places, RoomFact, count};

pub(super) struct Spread<'a> {
    places: &'a Places,
    regions: BTreeMap<Region, InRegion>,
    /// New rooms are starting: when they are ready, old ones make way.
    starting: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct InRegion {
    /// Rooms that stay, old ones too, without those that are chosen to go.
    counted: u64,
    new: u64,
    /// How many rooms belong there when all are new.
    target: u64,
    /// How many more there is place for; `None`: any number.
    place: Option<u64>,
    /// Rooms on their way out, which still take place.
    leaving: u64,
}

impl<'a> Spread<'a> {
    /// `None`: there is nothing to choose.
    pub(super) fn of(snapshot: &FleetSnapshot<'a>, desired: u32) -> Option<Self> {
        let places =
            snapshot.places.filter(|places| places.bound_to.is_none() && places.regions.len() > 1)?;
        let standings = places.standings(snapshot.rooms, |room| stays(snapshot, room));
        let is_new = |room: &&RoomFact| stays(snapshot, room) && !is_replaced(room, &snapshot.replacement);
        let new = by_region(snapshot.rooms.iter().filter(is_new));
        let new_in = |region: &Region| new.get(region).copied().unwrap_or(0);
        let leaving = by_region(snapshot.rooms.iter().filter(|room| room.leaving));
        let facts: Vec<(&Region, RegionFact)> = places.policy.facts(&standings).collect();
        let targets = targets(&facts, new_in, desired.into());
        let in_region = |((name, fact), target): (&(&Region, RegionFact), u64)| {
            let place = place_left(&[*fact]);
            let leaving = leaving.get(name).copied().unwrap_or(0);
            let in_region =
                InRegion { counted: fact.rooms.counted, new: new_in(name), target, place, leaving };
            ((*name).clone(), in_region)
        };
        let regions = facts.iter().zip(targets).map(in_region).collect();
        let is_starting = |room: &RoomFact| !room.was_ready && !is_ready(room) && !serves_players(room);
        let starting = snapshot.adding > 0 || snapshot.rooms.iter().filter(is_new).any(is_starting);
        Some(Self { places, regions, starting })
    }

    /// New rooms that stand in for those of other regions.
    pub(super) fn standing_in(&self) -> u32 {
        let beyond = |region: &InRegion| region.new.saturating_sub(region.target);
        u32::try_from(self.regions.values().map(beyond).sum::<u64>()).unwrap_or(u32::MAX)
    }

    /// How many rooms are made now where they belong. `None`: there is no place for them, and none will be soon, so
    /// others stand in for them.
    pub(super) fn at_home(&self) -> Option<u64> {
        let place = self.regions.values().map(InRegion::place_at_home).sum();
        let is_leaving = |region: &InRegion| region.place_needed() > 0 && region.leaving > 0;
        let soon = self.starting || self.regions.values().any(is_leaving);
        (place > 0 || soon).then_some(place)
    }

    /// Chooses among rooms that are equal but for their region. Those that are chosen do not count any more.
    pub(super) fn choose<'r>(
        &mut self,
        mut rooms: Vec<&'r RoomFact>,
        number: usize,
        order: impl Fn(&RoomFact, &RoomFact) -> Ordering,
    ) -> Vec<&'r RoomFact> {
        let mut left = self.numbers(&rooms, number);
        rooms.sort_unstable_by(|one, other| order(one, other));
        let (mut chosen, others): (Vec<_>, Vec<_>) = rooms.into_iter().partition(|room| {
            let left = left.get_mut(&room.region).filter(|left| **left > 0);
            left.map(|left| *left -= 1).is_some()
        });
        // A region that no policy can speak of has no share, and keeps nothing from going.
        chosen.extend(others.into_iter().take(number.saturating_sub(chosen.len())));
        for room in &chosen {
            self.gone(room);
        }
        chosen
    }

    pub(super) fn gone(&mut self, room: &RoomFact) {
        if let Some(region) = self.regions.get_mut(&room.region) {
            region.counted = region.counted.saturating_sub(1);
            region.place = region.place.map(|place| place.saturating_add(1));
        }
    }

    /// How many of them go from each region.
    fn numbers(&self, rooms: &[&RoomFact], number: usize) -> BTreeMap<Region, u64> {
        let candidates = by_region(rooms.iter().copied());
        let number = rooms.len().min(number) as u64;
        let in_the_way = |(region, there): (&&Region, &u64)| {
            let needed = self.regions.get(*region).map_or(0, InRegion::place_needed);
            ((*region).clone(), needed.min(*there))
        };
        let in_the_way: BTreeMap<Region, u64> = candidates.iter().map(in_the_way).collect();
        let first = number.min(in_the_way.values().sum());
        let mut numbers = evenly(&in_the_way, first);
        let taken = |region: &Region| numbers.get(region).copied().unwrap_or(0);
        // The rest so that what stays is spread by shares.
        let mut standings = BTreeMap::new();
        for (name, region) in &self.regions {
            let counted = region.counted.saturating_sub(taken(name));
            let spare = candidates.get(name).map_or(0, |there| there - taken(name));
            let kept = counted.saturating_sub(spare);
            standings.insert(name.clone(), Standing { counted, kept, ..Standing::default() });
        }
        let (names, facts): (Vec<&Region>, Vec<RegionFact>) = self.places.policy.facts(&standings).unzip();
        if let Ok(plan) = shrink(&facts, number - first) {
            for (name, rooms) in names.into_iter().zip(plan) {
                *numbers.entry(name.clone()).or_default() += rooms;
            }
        }
        numbers
    }
}

impl InRegion {
    fn missing(&self) -> u64 {
        self.target.saturating_sub(self.new)
    }

    fn place_at_home(&self) -> u64 {
        self.place.map_or(self.missing(), |place| place.min(self.missing()))
    }

    /// How many rooms are in the way of those that belong there.
    fn place_needed(&self) -> u64 {
        self.missing() - self.place_at_home()
    }
}

fn by_region<'r>(rooms: impl Iterator<Item = &'r RoomFact>) -> BTreeMap<&'r Region, u64> {
    let mut numbers = BTreeMap::new();
    for room in rooms {
        *numbers.entry(&room.region).or_default() += 1;
    }
    numbers
}

/// The fleet spread as if all of it were made now; regions that get no new rooms keep those new ones that they have.
fn targets(facts: &[(&Region, RegionFact)], new_in: impl Fn(&Region) -> u64, desired: u64) -> Vec<u64> {
    let empty: Vec<RegionFact> = facts
        .iter()
        .map(|(name, fact)| {
            let is_closed = fact.rooms.cordoned || fact.weight == Weight::ZERO;
            let counted = if is_closed { new_in(name) } else { 0 };
            let Standing { cordoned, capacity, .. } = fact.rooms;
            let rooms = Standing { counted, cordoned, capacity, ..Standing::default() };
            RegionFact { rooms, ..*fact }
        })
        .collect();
    let fixed: u64 = empty.iter().map(|fact| fact.rooms.counted).sum();
    let wanted = desired.saturating_sub(fixed);
    let grown = grow(&empty, wanted).or_else(|none| grow(&empty, none.fits.min(wanted)));
    let grown = grown.unwrap_or_else(|_| vec![0; empty.len()]);
    empty.iter().zip(grown).map(|(fact, grown)| fact.rooms.counted + grown).collect()
}

/// So many of all, as evenly as there are.
fn evenly(numbers: &BTreeMap<Region, u64>, number: u64) -> BTreeMap<Region, u64> {
    let fact = |there: &u64| RegionFact {
        weight: Weight::from(1),
        cap: None,
        rooms: Standing { counted: *there, ..Standing::default() },
    };
    let facts: Vec<RegionFact> = numbers.values().map(fact).collect();
    let plan = shrink(&facts, number).unwrap_or_default();
    numbers.keys().cloned().zip(plan).collect()
}

/// Whole groups of equals as long as they fit, and of the last one those that the regions are to give.
pub(super) fn first_by_regions<'r>(
    spread: Option<&mut Spread<'_>>,
    mut rooms: Vec<&'r RoomFact>,
    number: usize,
    order: impl Fn(&RoomFact, &RoomFact) -> Ordering + Copy,
) -> Vec<&'r RoomFact> {
    let Some(spread) = spread else {
        return super::replacement::first(rooms, number, order);
    };
    rooms.sort_unstable_by(|one, other| order(one, other));
    let mut chosen = Vec::new();
    for group in rooms.chunk_by(|one, other| one.version == other.version) {
        let left = number.saturating_sub(chosen.len());
        if group.len() > left {
            chosen.extend(spread.choose(group.to_vec(), left, order));
            break;
        }
        group.iter().for_each(|room| spread.gone(room));
        chosen.extend_from_slice(group);
    }
    debug_assert!(count(chosen.len()) <= count(number));
    chosen
}
