//! In which regions rooms are started and removed, so that every region has its share. Pure: the rooms of each region go
//! in, a number for each region comes out.
//!
//! A region's share is the part of all future rooms that its weight gives it. Of all distributions within the bounds, the
//! plan is the one with the smallest sum of squares of (rooms − share); ties go to the earlier region. See `level.rs`. There
//! is a plan whenever the bounds allow one.

mod level;
#[cfg(test)]
mod tests;

use level::Bounded;

/// How much of all rooms a region is due, beside the weights of the others. 0: none at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weight(u64);

impl Weight {
    pub const ZERO: Self = Self(0);
    /// A share is found by weighing up to 2^64 rooms in each of [`REGIONS_MAX`] regions: with larger weights the
    /// products would not fit into 128 bits.
    pub const MAX: Self = Self(1 << 54);

    pub fn new(weight: u64) -> Option<Self> {
        (weight <= Self::MAX.0).then_some(Self(weight))
    }

    pub fn get(self) -> u64 {
        self.0
    }
}

impl From<u32> for Weight {
    fn from(weight: u32) -> Self {
        Self(weight.into())
    }
}

/// Far more than there are places on Earth to put machines. Also what keeps the planner's numbers in range.
pub const REGIONS_MAX: usize = 256;

/// A region, as the planner needs to know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegionFact {
    pub weight: Weight,
    /// The most rooms that may be there; `None`: no limit.
    pub cap: Option<u64>,
    pub rooms: Standing,
}

/// The rooms of a fleet in one region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Standing {
    /// Rooms there or on their way: those that make up the region's share.
    pub counted: u64,
    /// Rooms in error and terminating: they are no part of the share, but still take place under the cap.
    pub beside: u64,
    /// Of `counted`, those that may not be removed.
    pub kept: u64,
    /// Of `counted`, those that go before any other, wherever they are: they are not chosen by shares.
    pub goes_first: u64,
    /// No new rooms for now.
    pub cordoned: bool,
    /// How many rooms of this fleet the region itself can hold, whatever a policy allows; `None`: any number.
    pub capacity: Option<u64>,
}

/// There is no way to place, or to remove, that many rooms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoPlan {
    /// For how many there is one.
    pub fits: u64,
}

/// How many of `count` new rooms each region gets.
pub fn grow(regions: &[RegionFact], count: u64) -> Result<Vec<u64>, NoPlan> {
    let bounded: Vec<_> = regions
        .iter()
        .map(|region| {
            let counted = u128::from(region.rooms.counted);
            let place = region.place_left().unwrap_or(count).min(count);
            Bounded { weight: region.weight, low: counted, high: counted + u128::from(place) }
        })
        .collect();
    let distribution = level::distribute(counted(regions) + u128::from(count), &bounded);
    let distribution =
        distribution.ok_or_else(|| NoPlan { fits: place_left(regions).unwrap_or(u64::MAX) })?;
    Ok(regions
        .iter()
        .zip(distribution)
        .map(|(region, rooms)| narrowed(rooms - u128::from(region.rooms.counted)))
        .collect())
}

/// How many of `count` rooms that are to go each region gives. Regions of weight 0 are emptied first.
pub fn shrink(regions: &[RegionFact], count: u64) -> Result<Vec<u64>, NoPlan> {
    let first: u64 = regions.iter().map(|region| region.rooms.goes_first).sum();
    let rest = count.checked_sub(first).ok_or(NoPlan { fits: first })?;
    let without_first = |region: &RegionFact| {
        let Standing { counted, goes_first, .. } = region.rooms;
        let rooms = Standing { counted: counted.saturating_sub(goes_first), ..region.rooms };
        RegionFact { rooms, ..*region }
    };
    let staying: Vec<RegionFact> = regions.iter().map(without_first).collect();
    let plan = shrink_by_shares(&staying, rest)
        .map_err(|NoPlan { fits }| NoPlan { fits: fits.saturating_add(first) })?;
    Ok(regions.iter().zip(plan).map(|(region, rooms)| rooms + region.rooms.goes_first).collect())
}

fn shrink_by_shares(regions: &[RegionFact], count: u64) -> Result<Vec<u64>, NoPlan> {
    let unweighted: u128 =
        regions.iter().filter(|region| region.weight == Weight::ZERO).map(RegionFact::spare).sum();
    let unweighted_suffice = u128::from(count) <= unweighted;
    let bounded: Vec<_> = regions
        .iter()
        .map(|region| {
            let counted = u128::from(region.rooms.counted);
            let kept = counted - region.spare();
            let (low, high) = match (region.weight == Weight::ZERO, unweighted_suffice) {
                (true, true) | (false, false) => (kept, counted),
                (true, false) => (kept, kept),
                (false, true) => (counted, counted),
            };
            Bounded { weight: region.weight, low, high }
        })
        .collect();
    let total = counted(regions).checked_sub(count.into());
    let distribution = total.and_then(|total| level::distribute(total, &bounded));
    let distribution =
        distribution.ok_or_else(|| NoPlan { fits: narrowed(regions.iter().map(RegionFact::spare).sum()) })?;
    Ok(regions
        .iter()
        .zip(distribution)
        .map(|(region, rooms)| narrowed(u128::from(region.rooms.counted) - rooms))
        .collect())
}

/// How many more rooms there is place for; `None`: as many as anybody wants.
pub fn place_left(regions: &[RegionFact]) -> Option<u64> {
    let places: Option<Vec<u64>> = regions.iter().map(RegionFact::place_left).collect();
    Some(places?.into_iter().fold(0, u64::saturating_add))
}

impl RegionFact {
    fn place_left(&self) -> Option<u64> {
        let Standing { counted, beside, kept: _, goes_first: _, cordoned, capacity } = self.rooms;
        if cordoned || self.weight == Weight::ZERO {
            return Some(0);
        }
        let most = self.cap.into_iter().chain(capacity).min();
        most.map(|most| most.saturating_sub(counted).saturating_sub(beside))
    }

    fn spare(&self) -> u128 {
        self.rooms.counted.saturating_sub(self.rooms.kept).into()
    }
}

fn counted(regions: &[RegionFact]) -> u128 {
    regions.iter().map(|region| u128::from(region.rooms.counted)).sum()
}

/// What a plan moves is at most the count it was asked for; what would fit may be more than anybody can count.
fn narrowed(rooms: u128) -> u64 {
    u64::try_from(rooms).unwrap_or(u64::MAX)
}
