//! A fleet on paper: plans are carried out at once, new rooms are ready by the next cycle, and players who lose their
//! room enter another one that is ready.

use super::*;
use crate::plan::{OldVersions, ReplacementRules, Scaling};
use crate::scheduler::{MaxSurge, OccupiedRooms};

pub(super) struct Fleet {
    pub(super) rooms: Vec<RoomFact>,
    pub(super) now: i64,
    pub(super) rules: ReplacementRules,
    pub(super) matches_max: u32,
    /// What is under way, as a snapshot says it.
    pub(super) adding: u32,
    pub(super) removing: u32,
    pub(super) rejoining: u32,
    pub(super) panic: bool,
    made: u32,
}

pub(super) const OLD: Version = Version::FIRST;
pub(super) const NEW: Version = Version { major: 2, minor: 0, patch: 0 };

impl Fleet {
    pub(super) fn old(ready: u32, occupied: u32, max_surge: MaxSurge) -> Self {
        let rules = ReplacementRules {
            versions: OldVersions::Replaced,
            max_surge,
            max_unavailable: 0,
            occupied: OccupiedRooms::DeleteLast,
            occupied_may_go: true,
        };
        let mut fleet = Self {
            rooms: Vec::new(),
            now: 0,
            rules,
            matches_max: 1,
            adding: 0,
            removing: 0,
            rejoining: 0,
            panic: false,
            made: 0,
        };
        for index in 0..ready + occupied {
            let status = if index < ready { RoomStatus::Ready } else { RoomStatus::Occupied };
            fleet.make(OLD, true, status);
        }
        fleet
    }

    pub(super) fn make(&mut self, version: Version, old: bool, status: RoomStatus) {
        self.made += 1;
        self.rooms.push(RoomFact {
            id: RoomId::new(&format!("room-{:05}", self.made)),
            region: Region::default_region(),
            status,
            version,
            old,
            draining: false,
            matches: u32::from(status.serves_players()),
            created_at: at(self.now),
            heard_at: Some(at(self.now)),
            known: true,
            was_ready: true,
            held: false,
            leaving: false,
            reachable: true,
            reachable_since: None,
            spared_until: None,
        });
    }

    pub(super) fn plan(&self, scaling: Scaling<'_>) -> Plan {
        plan(&FleetSnapshot {
            adding: self.adding,
            removing: self.removing,
            rejoining: self.rejoining,
            panic: self.panic,
            ..FleetSnapshot::at_rest(at(self.now), scaling, self.matches_max, self.rules, &self.rooms, LIMITS)
        })
    }

    /// Carries the plan out. Rooms that were pending are ready by the next cycle.
    pub(super) fn apply(&mut self, plan: &Plan) {
        self.now += 10;
        let mut homeless = 0;
        let mut gone: Vec<RoomId> = removal_order(&self.rooms, Occupied::Stay);
        gone.truncate(plan.remove as usize);
        if let Some(cycle) = &plan.rollout {
            gone.extend(cycle.replaced.iter().map(|replaced| replaced.room.clone()));
            gone.extend(cycle.surplus.iter().cloned());
        }
        self.rooms.retain(|room| {
            let goes = gone.contains(&room.id);
            homeless += u32::from(goes && room.status.serves_players());
            !goes
        });
        for room in &mut self.rooms {
            room.heard_at = Some(at(self.now));
            if room.status == RoomStatus::Pending {
                room.status = RoomStatus::Ready;
            }
        }
        for _ in 0..plan.add {
            self.make(NEW, false, RoomStatus::Pending);
        }
        self.occupy(homeless);
        // What was just made is ready when one looks the next time.
        for room in self.rooms.iter_mut().filter(|room| room.status == RoomStatus::Pending) {
            room.status = RoomStatus::Ready;
        }
    }

    /// Players enter rooms that are ready, new ones first.
    pub(super) fn occupy(&mut self, matches: u32) {
        let enterable = |room: &&mut RoomFact| room.status == RoomStatus::Ready && !room.leaving;
        let mut ready: Vec<_> = self.rooms.iter_mut().filter(enterable).collect();
        ready.sort_by_key(|room| room.old);
        for room in ready.into_iter().take(matches as usize) {
            room.status = RoomStatus::Occupied;
            room.matches = 1;
        }
    }

    /// Matches end.
    pub(super) fn free(&mut self, matches: u32) {
        let occupied = self.rooms.iter_mut().filter(|room| room.status == RoomStatus::Occupied);
        for room in occupied.take(matches as usize) {
            room.status = RoomStatus::Ready;
            room.matches = 0;
        }
    }

    pub(super) fn count(&self, status: RoomStatus) -> u32 {
        count(self.rooms.iter().filter(|room| room.status == status).count())
    }

    pub(super) fn new_rooms(&self) -> u32 {
        count(self.rooms.iter().filter(|room| !room.old).count())
    }
}
