//! A fleet on paper: plans are carried out at once, rooms become ready in their time, players come and go.

use std::collections::VecDeque;

use maestro_core::plan::{Occupied, Plan, RoomFact, removal_order};
use maestro_core::room::{Fill, InstanceStatus, PingStatus, Region, RoomId, RoomStatus, Sides};
use maestro_core::scheduler::Version;
use maestro_core::time::{Millis, Timestamp, after};

use crate::scenario::Scenario;

/// The first cycle. Any time would do.
pub(crate) const BEGIN: Timestamp = Timestamp::UNIX_EPOCH;

pub(crate) fn at(time: Millis) -> Timestamp {
    after(BEGIN, time)
}

pub(crate) struct Fleet<'a> {
    scenario: &'a Scenario,
    /// By id, which is the order in which they were made.
    rooms: Vec<RoomFact>,
    /// When rooms will be ready, the earliest first. Those that never will are not here.
    starting: VecDeque<(Timestamp, RoomId)>,
    /// The longest first.
    matches: VecDeque<Match>,
    made: u32,
}

struct Match {
    room: RoomId,
    /// In milliseconds; those that ran at the start began before it.
    began: i64,
}

/// How a new room fares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    BecomesReady,
    NeverReady,
}

/// What carrying out a plan came to.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Carried {
    pub(crate) stopped: u32,
    /// Matches whose room went: their players go on elsewhere.
    pub(crate) matches_moved: u32,
}

impl<'a> Fleet<'a> {
    pub(crate) fn begin(scenario: &'a Scenario) -> Self {
        let mut fleet = Self {
            scenario,
            rooms: Vec::new(),
            starting: VecDeque::new(),
            matches: VecDeque::new(),
            made: 0,
        };
        let start = scenario.start;
        for _ in 0..start.ready + start.occupied {
            fleet.push(start.version, BEGIN, RoomStatus::Ready);
        }
        let matches = start.occupied.saturating_mul(fleet.matches_max());
        fleet.begin_matches(matches, |index| began_before(scenario.match_length, index, matches));
        fleet
    }

    pub(crate) fn rooms(&self) -> &[RoomFact] {
        &self.rooms
    }

    pub(crate) fn len(&self) -> u32 {
        count(self.rooms.len())
    }

    /// How many rooms were ever made, which is the number of the next one too.
    pub(crate) fn made(&self) -> u32 {
        self.made
    }

    pub(crate) fn mark_old(&mut self, is_old: impl Fn(Version) -> bool) {
        for room in &mut self.rooms {
            room.old = is_old(room.version);
        }
    }

    /// Time has passed: rooms have become ready, and all but those that start have pinged.
    pub(crate) fn observe(&mut self, now: Timestamp) {
        while let Some((_, id)) = self.starting.pop_front_if(|(ready_at, _)| *ready_at <= now) {
            if let Some(room) = self.find(&id) {
                room.status = RoomStatus::Ready;
                room.was_ready = true;
            }
        }
        for room in &mut self.rooms {
            if room.status != RoomStatus::Pending {
                room.heard_at = Some(now);
            }
        }
    }

    /// Ends and begins matches until as many are played as the players want, or no room has a place left; how many
    /// matches found none.
    pub(crate) fn serve(&mut self, wanted: u32, time: Millis) -> u32 {
        let time = i64::try_from(time.0).unwrap_or(i64::MAX);
        if let Some(Millis(length)) = self.scenario.match_length {
            let length = i64::try_from(length).unwrap_or(i64::MAX);
            while let Some(over) = self.matches.pop_front_if(|playing| time - playing.began >= length) {
                self.end_match(&over.room);
            }
        }
        while self.matches.len() > wanted as usize {
            if let Some(over) = self.matches.pop_front() {
                self.end_match(&over.room);
            }
        }
        let missing = wanted.saturating_sub(count(self.matches.len()));
        self.begin_matches(missing, |_| time)
    }

    /// Takes the plan's rooms away.
    pub(crate) fn remove(&mut self, plan: &Plan) -> Carried {
        let expired = plan.expired.iter().map(|gone| gone.room.clone()).collect();
        let mut carried = self.take_away(expired);
        let mut gone = Vec::new();
        if plan.remove > 0 {
            gone = removal_order(&self.rooms, Occupied::Stay);
            gone.truncate(plan.remove as usize);
        }
        if let Some(cycle) = &plan.rollout {
            gone.extend(cycle.replaced.iter().map(|replaced| replaced.room.clone()));
            gone.extend(cycle.surplus.iter().cloned());
        }
        let more = self.take_away(gone);
        carried.stopped += more.stopped;
        carried.matches_moved += more.matches_moved;
        carried
    }

    /// A room that is made now.
    pub(crate) fn start_room(&mut self, version: Version, now: Timestamp, fate: Fate) {
        let id = self.push(version, now, RoomStatus::Pending);
        match fate {
            Fate::BecomesReady => self.starting.push_back((after(now, self.scenario.room_start), id)),
            Fate::NeverReady => {}
        }
    }

    fn push(&mut self, version: Version, now: Timestamp, status: RoomStatus) -> RoomId {
        self.made += 1;
        // As many digits as the largest number has: ids must sort as they were made.
        let id = RoomId::new(&format!("room-{:010}", self.made));
        self.rooms.push(RoomFact {
            id: id.clone(),
            region: Region::default_region(),
            status,
            version,
            old: false,
            draining: false,
            matches: 0,
            created_at: now,
            heard_at: (status != RoomStatus::Pending).then_some(now),
            known: true,
            was_ready: status != RoomStatus::Pending,
            held: false,
            leaving: false,
            reachable: true,
            reachable_since: None,
            spared_until: None,
        });
        id
    }

    fn take_away(&mut self, mut gone: Vec<RoomId>) -> Carried {
        if gone.is_empty() {
            return Carried::default();
        }
        gone.sort_unstable();
        let is_gone = |id: &RoomId| gone.binary_search(id).is_ok();
        let before = (self.rooms.len(), self.matches.len());
        let mut served_players = false;
        self.rooms.retain(|room| {
            let goes = is_gone(&room.id);
            served_players |= goes && room.matches > 0;
            !goes
        });
        if served_players {
            self.matches.retain(|playing| !is_gone(&playing.room));
        }
        Carried {
            stopped: count(before.0 - self.rooms.len()),
            matches_moved: count(before.1 - self.matches.len()),
        }
    }

    /// Rooms that have matches already are filled first, old ones last; how many matches found no place.
    fn begin_matches(&mut self, mut missing: u32, began: impl Fn(u32) -> i64) -> u32 {
        let matches_max = self.matches_max();
        let mut begun = 0;
        for old in [false, true] {
            for status in [RoomStatus::Active, RoomStatus::Ready] {
                let rooms = self.rooms.iter_mut();
                for room in rooms.filter(|room| room.old == old && room.status == status) {
                    let more = missing.min(matches_max.saturating_sub(room.matches));
                    if more == 0 {
                        break;
                    }
                    for _ in 0..more {
                        let (room, began) = (room.id.clone(), began(begun));
                        self.matches.push_back(Match { room, began });
                        begun += 1;
                    }
                    set_matches(room, room.matches + more, matches_max);
                    missing -= more;
                }
            }
        }
        missing
    }

    fn end_match(&mut self, id: &RoomId) {
        let matches_max = self.matches_max();
        if let Some(room) = self.find(id) {
            set_matches(room, room.matches.saturating_sub(1), matches_max);
        }
    }

    fn find(&mut self, id: &RoomId) -> Option<&mut RoomFact> {
        let index = self.rooms.binary_search_by(|room| room.id.cmp(id)).ok()?;
        self.rooms.get_mut(index)
    }

    fn matches_max(&self) -> u32 {
        self.scenario.recipe.match_allocation.max_matches
    }
}

/// Matches that run at the start began at different times, so that they do not all end at once.
fn began_before(length: Option<Millis>, index: u32, matches: u32) -> i64 {
    let Some(Millis(length)) = length else {
        return 0;
    };
    let ago = u128::from(length) * u128::from(matches - index) / u128::from(matches.max(1));
    i64::try_from(ago).map_or(i64::MIN, |ago| -ago)
}

fn set_matches(room: &mut RoomFact, matches: u32, matches_max: u32) {
    room.matches = matches;
    let ping = match matches {
        0 => PingStatus::Ready,
        _ => PingStatus::Occupied,
    };
    let sides =
        Sides { instance: InstanceStatus::Ready, ping, fill: Fill::of(matches, matches_max), held: false };
    room.status = sides.status();
}

pub(crate) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
