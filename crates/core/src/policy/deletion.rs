//! Deletion: which rooms go, within the number that each region gives.

use std::collections::BTreeMap;

use super::data::Part;
use crate::hash::{BASIS, fnv1a};
use crate::room::{Region, RoomId, RoomStatus};
use crate::scheduler::Version;
use crate::time::Timestamp;
use crate::words::words;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeletionPolicy {
    pub criteria: Criteria,
}

words! {
    /// Who goes first among rooms that are worth the same to players, in Senlin's order.
    pub enum Criteria {
        OldestFirst = "OLDEST_FIRST",
        /// By version, then by age.
        OldestProfileFirst = "OLDEST_PROFILE_FIRST",
        YoungestFirst = "YOUNGEST_FIRST",
        Random = "RANDOM",
    }
}

/// A room that may go, as far as the policy needs to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub id: RoomId,
    pub region: Region,
    pub version: Version,
    pub created_at: Timestamp,
    pub status: RoomStatus,
}

impl DeletionPolicy {
    pub const PRIORITY: u32 = 400;
    pub const TYPE: &str = "senlin.policy.deletion";

    /// Names the rooms that go. A region that is short of rooms passes its number on: what is missing comes from all
    /// others, by the same order. Count and regions then say what was chosen.
    pub(super) fn choose(self, count: u64, rooms: &[Candidate], seed: u64, part: &mut Part) {
        let mut ordered: Vec<&Candidate> = rooms.iter().collect();
        ordered.sort_by_cached_key(|room| self.rank(room, seed));
        let mut numbers = part.regions.clone().unwrap_or_default();
        let (mut chosen, others): (Vec<_>, Vec<_>) = ordered.into_iter().partition(|room| {
            let left = numbers.get_mut(&room.region).filter(|left| **left > 0);
            left.map(|left| *left -= 1).is_some()
        });
        // Region by region, as the plan is; a stable sort keeps the order within each.
        chosen.sort_by(|one, other| one.region.cmp(&other.region));
        let missing = usize::try_from(count).unwrap_or(usize::MAX).saturating_sub(chosen.len());
        chosen.extend(others.into_iter().take(missing));
        part.count = Some(chosen.len() as u64);
        part.candidates = Some(chosen.iter().map(|room| room.id.clone()).collect());
        if let Some(numbers) = &mut part.regions {
            *numbers = by_region(&chosen);
        }
    }

    /// The smaller, the sooner it goes. Total: ids are unique.
    fn rank(self, room: &Candidate, seed: u64) -> Rank {
        let Candidate { id, region: _, version, created_at, status } = room;
        let nanos = created_at.as_nanosecond();
        let (version, order) = match self.criteria {
            Criteria::OldestFirst => (None, nanos),
            Criteria::YoungestFirst => (None, -nanos),
            Criteria::OldestProfileFirst => (Some(*version), nanos),
            Criteria::Random => (None, drawn(seed, id).into()),
        };
        Rank { worth: worth(*status), version, order, id: id.clone() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    worth: u8,
    version: Option<Version>,
    order: i128,
    id: RoomId,
}

/// What a room is worth to players: what is broken, what serves nobody yet, what stands ready, who they are in.
fn worth(status: RoomStatus) -> u8 {
    match status {
        RoomStatus::Error | RoomStatus::Terminated | RoomStatus::Terminating => 0,
        RoomStatus::Pending | RoomStatus::Unready => 1,
        RoomStatus::Ready => 2,
        RoomStatus::Active | RoomStatus::Allocated | RoomStatus::Occupied => 3,
    }
}

fn by_region(rooms: &[&Candidate]) -> BTreeMap<Region, u64> {
    let mut numbers = BTreeMap::new();
    for room in rooms {
        *numbers.entry(room.region.clone()).or_default() += 1;
    }
    numbers
}

/// A number that depends on the seed and the room alone, so that the same draw chooses the same rooms again.
fn drawn(seed: u64, id: &RoomId) -> u64 {
    let mixed = fnv1a(seed ^ BASIS, id.as_str().bytes());
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
