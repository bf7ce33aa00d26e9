//! One cycle of a rolling update: how many new rooms to surge, which old rooms to take away.
//!
//! Surge first, delete what stands ready above what must stand ready: the ready rooms never fall under the target by
//! our own act, and the fleet never grows above desired + surge by our own act.

use std::cmp::Ordering;

use crate::guards;
use crate::invariant::Invariant;
use crate::room::{RoomId, RoomStatus};
use crate::scheduler::{MaxSurge, OccupiedRooms};

use super::counted::{Counted, is_idle, is_old, is_ready, is_replaced, serves_players, stays};
use super::spread::{Spread, first_by_regions};
use super::{FleetSnapshot, RoomFact, count};

/// How rooms of an older major version, or of a drained region, are replaced; the active version's rules apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplacementRules {
    pub versions: OldVersions,
    pub max_surge: MaxSurge,
    /// How many ready rooms may be missing meanwhile.
    pub max_unavailable: u32,
    pub occupied: OccupiedRooms,
    /// Whether rooms with players may go in this cycle, if they may go at all; see [`crate::rollout::OccupiedPace`].
    pub occupied_may_go: bool,
}

/// What becomes of rooms of old versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OldVersions {
    Replaced,
    /// The rollout is paused. The rooms that its surge has added do not count as surplus: removing a surplus would go on
    /// replacing old rooms.
    Kept,
    /// The rollout has halted, or has failed and waits for the switch back: they count like any other.
    Counted,
}

/// An old room that goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    pub room: RoomId,
    /// Players are in it: it was chosen all the same. One that was chosen because it served nobody must not be
    /// taken when players have entered it meanwhile.
    pub serves_players: bool,
}

/// What one cycle does, with the numbers that the reference scenarios show.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RolloutCycle {
    pub desired: u32,
    pub desired_ready: u32,
    pub surge_max: u32,
    pub surge: u32,
    /// What the formula allows to take away of ready and occupied old rooms.
    pub budget: u32,
    pub replaced: Vec<Replaced>,
    /// Old rooms with players that would go if it were their turn.
    pub occupied_held: u32,
    /// New ready rooms above desired + surge, which the rest of the budget may take away.
    pub surplus: Vec<RoomId>,
}

/// `wanted` is what autoscaling or the fleet size asks for.
pub(super) fn cycle(snapshot: &FleetSnapshot<'_>, counted: &Counted, wanted: u32) -> RolloutCycle {
    let rules = &snapshot.replacement;
    // A fleet with more players than `max` surges before it removes anyone.
    let desired = wanted.max(counted.occupied);
    // Players of a room that is leaving will want one that is ready: theirs does not stand in for it.
    let desired_ready = desired - counted.serving;
    let surge_max = surge_max(rules, desired);
    let mut spread = Spread::of(snapshot, desired);
    // A removal that was asked for before the rollout takes no new rooms: they must not be made once more for it. Those
    // that stand in for rooms of other regions are made there once more.
    let standing_in = spread.as_ref().map_or(0, Spread::standing_in);
    let new_rooms = counted.total.saturating_add(snapshot.removing).saturating_sub(counted.old + standing_in);
    let above_desired = match guards::stands(Invariant::SurgeBound) {
        true => i64::from(counted.total) - i64::from(desired),
        false => 0,
    };
    let surge = [
        i64::from(surge_max),
        i64::from(surge_max) - above_desired,
        i64::from(desired) - i64::from(new_rooms),
    ];
    let surge = surge.into_iter().min().unwrap_or(0).clamp(0, i64::from(surge_max));
    // Where they belong first; but what the fleet is short of is made at once, wherever there is place.
    let short = i64::from(desired) - i64::from(counted.total);
    let surge = match spread.as_ref().and_then(Spread::at_home) {
        Some(at_home) => {
            let at_home = at_home.saturating_sub(snapshot.adding.into());
            surge.min(i64::try_from(at_home).unwrap_or(i64::MAX).max(short))
        }
        None => surge,
    };
    let above_ready = match guards::stands(Invariant::ReadyTarget) {
        true => i64::from(counted.ready) - i64::from(desired_ready) + i64::from(rules.max_unavailable),
        false => i64::from(counted.ready),
    };
    let budget = above_ready.clamp(0, i64::from(counted.old));
    let mut cycle = RolloutCycle {
        desired,
        desired_ready,
        surge_max,
        surge: u32::try_from(surge).unwrap_or(0),
        budget: u32::try_from(budget).unwrap_or(0),
        replaced: Vec::new(),
        occupied_held: 0,
        surplus: Vec::new(),
    };
    choose(snapshot, counted, above_ready, spread.as_mut(), &mut cycle);
    cycle
}

fn surge_max(rules: &ReplacementRules, desired: u32) -> u32 {
    u32::try_from(rules.max_surge.rooms(desired.into())).unwrap_or(u32::MAX)
}

/// How many rooms above `desired` stay because their rollout is paused.
pub(super) fn kept(snapshot: &FleetSnapshot<'_>, desired: u32) -> u32 {
    let rules = &snapshot.replacement;
    let is_under_way = || snapshot.rooms.iter().any(|room| room.old && stays(snapshot, room));
    match rules.versions {
        OldVersions::Kept if is_under_way() => surge_max(rules, desired),
        OldVersions::Kept | OldVersions::Replaced | OldVersions::Counted => 0,
    }
}

fn choose(
    snapshot: &FleetSnapshot<'_>,
    counted: &Counted,
    above_ready: i64,
    mut spread: Option<&mut Spread<'_>>,
    cycle: &mut RolloutCycle,
) {
    let old = |chosen: fn(&RoomFact) -> bool| -> Vec<&RoomFact> {
        let rooms = snapshot.rooms.iter();
        rooms
            .filter(|room| is_replaced(room, &snapshot.replacement) && chosen(room) && stays(snapshot, room))
            .collect()
    };
    // Who serves nobody goes outside the budget, but for those that are needed to become ready.
    let idle = old(|room| is_idle(room) && room.known);
    let kept = cycle.desired_ready.saturating_sub(counted.ready) as usize;
    let idle_number = idle.len().saturating_sub(kept);
    let idle = first(idle, idle_number, oldest_first);
    if let Some(spread) = &mut spread {
        idle.iter().for_each(|room| spread.gone(room));
    }
    take(idle, false, cycle);
    // While a room is unknown, nobody knows how many are ready.
    if counted.unknown > 0 {
        return;
    }

    let budget = cycle.budget as usize;
    let ready = first_by_regions(spread.as_deref_mut(), old(is_ready), budget, oldest_first);
    let ready_number = ready.len();
    take(ready, false, cycle);
    let occupied_number = occupied_number(&snapshot.replacement, counted, cycle, ready_number);
    // A drain waits for matches to end, whatever the rules of a rollout are.
    let mut occupied = old(serves_players);
    occupied.retain(|room| is_old(room, &snapshot.replacement));
    let occupied = match snapshot.replacement.occupied_may_go {
        true => first_by_regions(spread.as_deref_mut(), occupied, occupied_number, held_first),
        false => {
            cycle.occupied_held = count(occupied.len().min(occupied_number));
            Vec::new()
        }
    };
    let occupied_number = occupied.len();
    take(occupied, true, cycle);

    let left =
        usize::try_from(above_ready.max(0)).unwrap_or(0).saturating_sub(ready_number + occupied_number);
    let staying = counted.total.saturating_sub(count(cycle.replaced.len()));
    let above = staying.saturating_sub(cycle.desired.saturating_add(cycle.surge_max)) as usize;
    cycle.surplus = surplus(snapshot, left.min(above), spread);
}

/// New ready rooms that the fleet can do without.
fn surplus(snapshot: &FleetSnapshot<'_>, number: usize, spread: Option<&mut Spread<'_>>) -> Vec<RoomId> {
    if number == 0 {
        return Vec::new();
    }
    let is_surplus = |room: &&RoomFact| {
        !is_replaced(room, &snapshot.replacement) && is_ready(room) && stays(snapshot, room)
    };
    let new_ready = snapshot.rooms.iter().filter(is_surplus).collect();
    let by_id = |one: &RoomFact, other: &RoomFact| one.id.cmp(&other.id);
    let chosen = match spread {
        Some(spread) => spread.choose(new_ready, number, by_id),
        None => first(new_ready, number, by_id),
    };
    chosen.into_iter().map(|room| room.id.clone()).collect()
}

fn oldest_first(one: &RoomFact, other: &RoomFact) -> Ordering {
    one.version.cmp(&other.version).then(one.id.cmp(&other.id))
}

/// Nobody plays yet in a room that is only held.
fn held_first(one: &RoomFact, other: &RoomFact) -> Ordering {
    let is_played_in = |room: &RoomFact| matches!(room.status, RoomStatus::Active | RoomStatus::Occupied);
    is_played_in(one).cmp(&is_played_in(other)).then(oldest_first(one, other))
}

/// The first of them, in order. Only those are sorted: a cycle chooses few rooms of a large fleet.
pub(super) fn first(
    mut rooms: Vec<&RoomFact>,
    number: usize,
    order: impl Fn(&RoomFact, &RoomFact) -> Ordering,
) -> Vec<&RoomFact> {
    if number < rooms.len() {
        rooms.select_nth_unstable_by(number, |one, other| order(one, other));
        rooms.truncate(number);
    }
    rooms.sort_unstable_by(|one, other| order(one, other));
    rooms
}

/// How many occupied old rooms go. What the budget leaves, at most a surge at once; and if the fleet is saturated, as
/// many as stand in for them: it must move too.
fn occupied_number(
    rules: &ReplacementRules,
    counted: &Counted,
    cycle: &RolloutCycle,
    ready_chosen: usize,
) -> usize {
    match rules.occupied {
        OccupiedRooms::WaitForMatchEnd => 0,
        OccupiedRooms::DeleteLast => {
            let serving = counted.ready.saturating_add(counted.serving);
            let at_least = cycle.surge_max.min(serving.saturating_sub(cycle.desired)) as usize;
            let by_budget = (cycle.budget as usize).saturating_sub(ready_chosen);
            by_budget.max(at_least.saturating_sub(ready_chosen)).min(cycle.surge_max as usize)
        }
    }
}

fn take(rooms: Vec<&RoomFact>, serves_players: bool, cycle: &mut RolloutCycle) {
    cycle.replaced.extend(rooms.into_iter().map(|room| Replaced { room: room.id.clone(), serves_players }));
}
