//! The index of a fleet, so that a room for a matchmaker is found without a walk over all rooms: which rooms have free
//! slots, and which holds have to be settled when. It is updated when rooms change; a ping that changes nothing does not touch it.
//!
//! Its lock is taken while a shard is locked, never the other way round.

use std::collections::{BTreeMap, BTreeSet};

use maestro_core::allocation::{AllocationRules, ClaimNumber, Hold, HoldStage, WaitingDemand, Wish};
use maestro_core::room::{Region, RoomId};
use maestro_core::scheduler::Version;
use maestro_core::time::{Millis, Timestamp, after};

/// Callers who look at the same time mostly choose different ones of so many rooms.
const SPREAD: usize = 64;

#[derive(Clone, Default)]
pub(super) struct Index {
    pub(super) rules: AllocationRules,
    pub(super) waiting: WaitingDemand,
    groups: BTreeMap<(Version, Region), BySlots>,
    /// Those that are not firm, and those that are: both are in the order in which they are due.
    due: [BTreeSet<Due>; 2],
    /// Where the next search among metadata begins.
    search_from: Option<RoomId>,
}

/// Rooms by their free slots.
type BySlots = BTreeMap<u32, BTreeSet<RoomId>>;

/// A hold, and when it has to be settled, apart from the time that a silent room is given.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Due {
    at: Timestamp,
    pub(super) room: RoomId,
    pub(super) number: ClaimNumber,
    /// A ping may still end it, for as long as a silent room is given.
    is_firm: bool,
}

impl Due {
    pub(super) fn of(room: &RoomId, hold: &Hold) -> Self {
        let is_firm = hold.stage == HoldStage::Firm;
        Self { at: hold.due_at(Millis(0)), room: room.clone(), number: hold.number, is_firm }
    }
}

impl Index {
    /// A room has other free slots than before.
    pub(super) fn set_free(
        &mut self,
        room: &RoomId,
        version: Version,
        region: &Region,
        before: u32,
        after: u32,
    ) {
        if before > 0
            && let Some(group) = self.groups.get_mut(&(version, region.clone()))
            && let Some(rooms) = group.get_mut(&before)
        {
            rooms.remove(room);
            if rooms.is_empty() {
                group.remove(&before);
            }
        }
        if after > 0 {
            let group = self.groups.entry((version, region.clone())).or_default();
            group.entry(after).or_default().insert(room.clone());
        }
        if self.groups.get(&(version, region.clone())).is_some_and(BTreeMap::is_empty) {
            self.groups.remove(&(version, region.clone()));
        }
    }

    pub(super) fn reschedule(&mut self, before: &[Due], now: Vec<Due>) {
        for due in before {
            self.due[usize::from(due.is_firm)].remove(due);
        }
        for due in now {
            self.due[usize::from(due.is_firm)].insert(due);
        }
    }

    /// Holds whose time has come: of both kinds the earliest, at most `holds_max`.
    pub(super) fn due(&self, now: Timestamp, ping_timeout: Millis, holds_max: usize) -> Vec<Due> {
        let [others, firm] = &self.due;
        let others = others.iter().take_while(|due| due.at <= now).take(holds_max);
        let firm = firm.iter().take_while(|due| after(due.at, ping_timeout) <= now).take(holds_max);
        others.chain(firm).cloned().collect()
    }

    pub(super) fn all_due(&self) -> impl Iterator<Item = &Due> {
        self.due.iter().flatten()
    }

    /// Rooms that may fit a wish, the best first, at most `rooms_max`.
    pub(super) fn candidates(&mut self, wish: &Wish, draw: u64, rooms_max: usize) -> Vec<RoomId> {
        let mut ranked: Vec<_> = self
            .groups
            .iter()
            .filter_map(|((version, region), group)| Some((wish.rank(*version, region, &self.rules)?, group)))
            .flat_map(|(rank, group)| group.iter().map(move |(free, rooms)| ((rank, *free), rooms)))
            .collect();
        ranked.sort_by_key(|(rank, _)| *rank);
        let mut chosen = Vec::new();
        for (_, rooms) in ranked {
            let left = rooms_max - chosen.len();
            match (wish.metadata.is_empty(), &self.search_from) {
                (false, Some(from)) => chosen.extend(from_there_on(rooms, from).take(left).cloned()),
                (true, _) | (false, None) => chosen.extend(spread(rooms, draw).take(left).cloned()),
            }
            if chosen.len() == rooms_max {
                break;
            }
        }
        if !wish.metadata.is_empty() {
            // Not always after the last one: of several who look in turns, each would see the same part every time.
            let place = draw.checked_rem(chosen.len() as u64).and_then(|place| usize::try_from(place).ok());
            self.search_from = place.and_then(|place| chosen.get(place)).cloned();
        }
        chosen
    }
}

/// From the far end of the order of removal, first one of the last rooms, then the others.
fn spread(rooms: &BTreeSet<RoomId>, draw: u64) -> impl Iterator<Item = &RoomId> {
    let among = rooms.len().clamp(1, SPREAD);
    let first = usize::try_from(draw % among as u64).unwrap_or(0);
    let others =
        rooms.iter().rev().enumerate().filter(move |(place, _)| *place != first).map(|(_, room)| room);
    rooms.iter().rev().nth(first).into_iter().chain(others)
}

/// From the far end of the order of removal, beginning after this room, all the way round.
fn from_there_on<'a>(rooms: &'a BTreeSet<RoomId>, from: &RoomId) -> impl Iterator<Item = &'a RoomId> {
    let from = from.clone();
    rooms.range(..from.clone()).rev().chain(rooms.range(from..).rev())
}
