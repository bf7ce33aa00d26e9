//! What a snapshot adds up to: the numbers that every formula works on.

use crate::autoscaling::Demand;
use crate::room::RoomStatus;
use crate::time::Timestamp;

use super::expiry::{expiry, silent_at};
use super::{FleetSnapshot, Limits, OldVersions, ReplacementRules, RoomFact};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    /// Rooms there or on their way: pending, unready, ready and serving ones, without those that leave.
    pub total: u32,
    pub ready: u32,
    /// Rooms that players are in or on their way to, also those that are leaving: their players need a place.
    pub occupied: u32,
    pub matches: u64,
    /// Occupied rooms that stay. Players of occupied rooms that are leaving still need a place.
    pub serving: u32,
    /// Of `total`, those that are to be replaced.
    pub old: u32,
    /// Of `old`, those that are replaced only because their region is drained.
    pub draining: u32,
    /// Rooms not heard of since a restart. A room in an unreachable region counts only until its ping timeout.
    pub unknown: u32,
    /// Of `total`, those with a row that are neither ready nor serve anybody.
    pub idle: u32,
    /// Beside `total`, those whose region cannot be reached.
    pub unreachable: u32,
    /// Beside `total`, those that fell silent together and are not taken for dead.
    pub silent: u32,
}

impl Counted {
    pub(super) fn of(snapshot: &FleetSnapshot<'_>) -> Self {
        let mut counted = Self::default();
        for room in snapshot.rooms {
            let serves = serves_players(room);
            counted.occupied += u32::from(serves);
            counted.matches += u64::from(matches_in(room, snapshot.matches_max));
            let stays = stays(snapshot, room);
            let unreachable = !room.reachable && !room.leaving && room.status.counts();
            counted.unreachable += u32::from(unreachable);
            counted.silent += u32::from(room.reachable && !room.leaving && is_spared(room, snapshot.now));
            let is_unknown = is_unknown(room, snapshot.now, &snapshot.limits);
            counted.unknown += u32::from((stays || unreachable) && is_unknown);
            if stays {
                counted.total += 1;
                counted.ready += u32::from(is_ready(room));
                counted.serving += u32::from(serves);
                counted.old += u32::from(is_replaced(room, &snapshot.replacement));
                counted.draining += u32::from(room.draining && !is_old(room, &snapshot.replacement));
                counted.idle += u32::from(!serves && !is_ready(room));
            }
        }
        counted.matches += u64::from(snapshot.rejoining);
        // Rooms of unfinished adds count as pending, rooms of unfinished removals as gone. A removal takes idle rooms
        // first, and none that has no row yet: what it takes beyond the idle ones was ready.
        let idle_taken = snapshot.removing.min(counted.idle);
        counted.total = counted.total.saturating_add(snapshot.adding).saturating_sub(snapshot.removing);
        counted.idle -= idle_taken;
        counted.ready = counted.ready.saturating_sub(snapshot.removing - idle_taken);
        counted
    }

    /// Players who lost their room a moment ago will be in one again.
    pub(super) fn demand(&self, snapshot: &FleetSnapshot<'_>) -> Demand {
        let matches_max = snapshot.matches_max;
        let occupied = self.occupied.saturating_add(snapshot.rejoining.div_ceil(matches_max.max(1)));
        Demand { matches: self.matches, occupied, total: self.total, matches_max, waiting: snapshot.waiting }
    }
}

/// Part of the fleet after everything that is under way.
pub fn is_counted(room: &RoomFact, now: Timestamp, limits: &Limits) -> bool {
    !room.leaving
        && room.reachable
        && !is_spared(room, now)
        && room.status.counts()
        && expiry(room, now, limits).is_none()
}

pub(super) fn stays(snapshot: &FleetSnapshot<'_>, room: &RoomFact) -> bool {
    is_counted(room, snapshot.now, &snapshot.limits)
}

/// It fell silent together with others: nobody knows how it is, and it is not taken for dead.
pub(super) fn is_spared(room: &RoomFact, now: Timestamp) -> bool {
    room.spared_until.is_some_and(|until| now < until)
}

/// Of a version that is being replaced.
pub(super) fn is_old(room: &RoomFact, rules: &ReplacementRules) -> bool {
    room.old && rules.versions == OldVersions::Replaced
}

/// Another room takes its place: it is of an old version, or its region is drained.
pub fn is_replaced(room: &RoomFact, rules: &ReplacementRules) -> bool {
    is_old(room, rules) || room.draining
}

/// It stays, and nobody knows what it does. A room that cannot be reached is given the time of a ping to be heard of:
/// it must not hold up the rest of the fleet for as long as its region is away.
pub fn is_unknown(room: &RoomFact, now: Timestamp, limits: &Limits) -> bool {
    !room.known && !room.leaving && !is_spared(room, now) && (room.reachable || now < silent_at(room, limits))
}

pub(super) fn is_ready(room: &RoomFact) -> bool {
    room.status == RoomStatus::Ready && room.known && !room.held
}

/// A room that is leaving is `terminating`, and its matches say that players are still in it.
pub(super) fn serves_players(room: &RoomFact) -> bool {
    room.status.serves_players() || room.held || (room.leaving && room.matches > 0)
}

/// Matches that players of the room are in. With one match a room, a room is a match, whatever number it says.
pub fn matches_in(room: &RoomFact, matches_max: u32) -> u32 {
    match serves_players(room) {
        true if matches_max > 1 => room.matches.max(1),
        true => 1,
        false => 0,
    }
}

/// Rooms that serve nobody and are not ready.
pub(super) fn is_idle(room: &RoomFact) -> bool {
    !is_ready(room) && !serves_players(room)
}
