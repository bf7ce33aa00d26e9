//! The fairest distribution, found without looking at any single room.
//!
//! Room number `n + 1` of a region adds `2 · (n − share) + 1` to the sum of squares. So the best distribution takes
//! rooms in the order of `n − share`, and stops at some level that is common to all regions: each has all of its rooms
//! below that level and none above, as far as its bounds allow. The level is found by binary search, and rooms exactly
//! at it go to the earlier regions.
//!
//! Everything is counted in whole rooms and parts of a room, of which there are as many as all weights together: a
//! share is a whole number of them.

use std::ops::RangeInclusive;

use super::Weight;

/// A region that may have from `low` to `high` rooms, both included.
pub(super) struct Bounded {
    pub(super) weight: Weight,
    pub(super) low: u128,
    pub(super) high: u128,
}

/// How many of `total` rooms each region has; `None` if the bounds do not allow that many, or so few.
pub(super) fn distribute(total: u128, regions: &[Bounded]) -> Option<Vec<u128>> {
    let lowest: u128 = regions.iter().map(|region| region.low).sum();
    let highest: u128 = regions.iter().map(|region| region.high).sum();
    if !(lowest..=highest).contains(&total) {
        return None;
    }
    let scale = Scale::new(total, regions);
    let level = scale.level(total);
    let mut distribution: Vec<u128> = scale.regions.iter().map(|region| scale.below(region, level)).collect();
    let mut left = total - distribution.iter().sum::<u128>();
    for (rooms, region) in distribution.iter_mut().zip(&scale.regions) {
        if left > 0 && scale.is_at(region, *rooms, level) {
            *rooms += 1;
            left -= 1;
        }
    }
    Some(distribution)
}

/// A number of rooms, as a whole number and parts of one more.
#[derive(Debug, Clone, Copy)]
struct Amount {
    whole: i128,
    /// Below [`Scale::parts`].
    part: i128,
}

struct Scale {
    /// How many parts a room has: all weights together, at least 1.
    parts: i128,
    regions: Vec<Shared>,
}

struct Shared {
    share: Amount,
    bounds: RangeInclusive<i128>,
}

impl Scale {
    fn new(total: u128, regions: &[Bounded]) -> Self {
        let weights: u128 = regions.iter().map(|region| u128::from(region.weight.get())).sum();
        let parts = weights.max(1);
        let shared = |region: &Bounded| {
            let due = total * u128::from(region.weight.get());
            let share = Amount { whole: (due / parts).cast_signed(), part: (due % parts).cast_signed() };
            Shared { share, bounds: region.low.cast_signed()..=region.high.cast_signed() }
        };
        Self { parts: parts.cast_signed(), regions: regions.iter().map(shared).collect() }
    }

    /// The highest level below which there are not more than `total` rooms.
    fn level(&self, total: u128) -> Amount {
        let fits = |level: Amount| {
            self.regions.iter().map(|region| self.below(region, level)).sum::<u128>() <= total
        };
        // At the first one all regions are at their lower bounds, at the last one at their upper bounds.
        let above_share = |region: &Shared| {
            (region.bounds.start() - region.share.whole - 1, region.bounds.end() - region.share.whole)
        };
        let (first, last) = self
            .regions
            .iter()
            .map(above_share)
            .fold((0, 0), |(first, last), (low, high)| (first.min(low), last.max(high)));
        let whole = last_that(first..=last, |whole| fits(Amount { whole, part: 0 }));
        let part = last_that(0..=self.parts - 1, |part| fits(Amount { whole, part }));
        Amount { whole, part }
    }

    /// How many rooms the region has below the level, within its bounds: `⌈level + share⌉`.
    fn below(&self, region: &Shared, level: Amount) -> u128 {
        let Shared { share, bounds } = region;
        let part = share.part + level.part;
        let begun = i128::from(part > 0) + i128::from(part > self.parts);
        (share.whole + level.whole + begun).clamp(*bounds.start(), *bounds.end()).cast_unsigned()
    }

    /// Whether the next room of a region that has `rooms` would lie exactly at the level.
    fn is_at(&self, region: &Shared, rooms: u128, level: Amount) -> bool {
        let Shared { share, bounds } = region;
        let rooms = rooms.cast_signed();
        let part = share.part + level.part;
        let is_level = match rooms - share.whole - level.whole {
            0 => part == 0,
            1 => part == self.parts,
            _ => false,
        };
        is_level && rooms < *bounds.end()
    }
}

/// The last number of the range that holds, where the first one does, and none does behind one that does not.
fn last_that(range: RangeInclusive<i128>, holds: impl Fn(i128) -> bool) -> i128 {
    let (mut low, mut high) = range.into_inner();
    while low < high {
        let middle = high - (high - low) / 2;
        if holds(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}
