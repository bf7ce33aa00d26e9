//! What a fleet needs: from a snapshot to a plan. Pure; the health controller carries it out.
//!
//! Every cycle decides how many rooms are wanted (autoscaling, or the fleet size), and then either holds that number
//! or, while rooms of an older major version exist, replaces them step by step.

mod backoff;
mod counted;
mod expiry;
mod held_back;
mod places;
mod removal;
mod replacement;
mod settled;
mod silence;
mod spread;

use crate::autoscaling::{self, Decision, ShrinkHold};
use crate::operation::OperationId;
use crate::policy::Candidate;
use crate::room::{EndCause, Region, RoomId, RoomStatus};
use crate::scheduler::{Autoscaling, Recipe, Version};
use crate::time::{Millis, Timestamp};

use counted::stays;

pub use backoff::{Backoff, backoff, wait_after};
pub use counted::{Counted, is_counted, is_replaced, is_unknown, matches_in};
pub use expiry::{Expired, Expiry, expiry, heard_at};
pub use held_back::HeldBack;
pub use places::{Place, PlaceCapacity, Places, removal_by_plan};
pub use removal::{Occupied, removable, removal_order};
pub use replacement::{OldVersions, Replaced, ReplacementRules, RolloutCycle};
pub use settled::{FleetCounters, is_settled};
pub use silence::{ListenedRoom, MassSilence, SilentRooms, mass_silence, silent_after};

/// What the health controller saw.
#[derive(Debug, Clone)]
pub struct FleetSnapshot<'a> {
    pub now: Timestamp,
    pub scaling: Scaling<'a>,
    /// How many matches a room holds.
    pub matches_max: u32,
    pub replacement: ReplacementRules,
    /// `None`: there is place for any number of rooms.
    pub places: Option<&'a Places>,
    /// The rooms of the fleet that have not ended; validation rooms are not among them.
    pub rooms: &'a [RoomFact],
    /// Rooms of unfinished adds that have no row yet: they count as pending.
    pub adding: u32,
    /// Rooms of unfinished removals by amount that are not chosen yet: they count as gone.
    pub removing: u32,
    /// Matches whose room went in a rollout a moment ago: their players need a place before the fleet shrinks.
    pub rejoining: u32,
    /// Matches that matchmakers wait for a room for, and that a new room would fit.
    pub waiting: u32,
    /// A panic is on its way: the fleet does not shrink until its rooms are there.
    pub panic: bool,
    /// What ended or failed, latest first.
    pub ended: &'a [EndedFact],
    pub limits: Limits,
}

impl<'a> FleetSnapshot<'a> {
    /// A fleet of which nothing but its rooms is known: no operation is unfinished, nobody waits for a room, nothing has
    /// failed, and there is place for any number of rooms.
    pub fn at_rest(
        now: Timestamp,
        scaling: Scaling<'a>,
        matches_max: u32,
        replacement: ReplacementRules,
        rooms: &'a [RoomFact],
        limits: Limits,
    ) -> Self {
        Self {
            now,
            scaling,
            matches_max,
            replacement,
            places: None,
            rooms,
            adding: 0,
            removing: 0,
            rejoining: 0,
            waiting: 0,
            panic: false,
            ended: &[],
            limits,
        }
    }
}

/// Who says how many rooms are wanted.
#[derive(Debug, Clone, Copy)]
pub enum Scaling<'a> {
    FleetSize(u32),
    Auto { autoscaling: &'a Autoscaling, last_shrunk_at: Option<Timestamp> },
}

impl<'a> Scaling<'a> {
    /// What a recipe asks for, where no fleet size was set by hand.
    pub fn of(recipe: &'a Recipe, last_shrunk_at: Option<Timestamp>) -> Self {
        match recipe.autoscaling.as_ref().filter(|autoscaling| autoscaling.enabled) {
            Some(autoscaling) => Self::Auto { autoscaling, last_shrunk_at },
            None => Self::FleetSize(recipe.rooms_replicas),
        }
    }
}

/// A room, as far as plans need to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomFact {
    pub id: RoomId,
    pub region: Region,
    pub status: RoomStatus,
    pub version: Version,
    /// Its version differs from the active one by a major change.
    pub old: bool,
    /// Its region is drained.
    pub draining: bool,
    pub matches: u32,
    /// A matchmaker was given it or a slot of it, and the match has not begun. It counts as a room with players then,
    /// whatever its status: a room that is not up for a moment is still somebody's.
    pub held: bool,
    pub created_at: Timestamp,
    /// Its last ping; of one that says it is terminating, the first that said so; of a room that is unknown, the time
    /// since when one listens for it.
    pub heard_at: Option<Timestamp>,
    /// False: it was there before a restart and has not been heard of since. Unknown is not zero.
    pub known: bool,
    pub was_ready: bool,
    /// An unfinished removal has it: it counts as gone.
    pub leaving: bool,
    /// False: its region cannot be reached. It is not part of the fleet then, its matches are demand all the same, and
    /// nothing is held against it.
    pub reachable: bool,
    /// When its region came back: what it did not say before does not count against it.
    pub reachable_since: Option<Timestamp>,
    /// It fell silent together with most rooms of its region: before this time it is not taken for dead. It is not part
    /// of the fleet then, and its matches are demand all the same.
    pub spared_until: Option<Timestamp>,
}

impl RoomFact {
    /// As a deletion policy sees it.
    pub fn as_candidate(&self) -> Candidate {
        let Self { id, region, version, created_at, status, .. } = self;
        Candidate {
            id: id.clone(),
            region: region.clone(),
            version: *version,
            created_at: *created_at,
            status: *status,
        }
    }
}

/// A room that ended, or an operation that could not make any, as far as plans need to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedFact {
    /// 1, or as many as the operation was to make.
    pub rooms: u32,
    pub operation: OperationId,
    /// Its version differs from the active one by a major change.
    pub old: bool,
    pub created_at: Timestamp,
    pub ended_at: Timestamp,
    pub cause: EndCause,
    pub was_ready: bool,
}

#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub initialization_timeout: Millis,
    pub ping_timeout: Millis,
    pub deletion_timeout: Millis,
    pub add_max: u32,
    pub remove_max: u32,
}

/// What to do, leaving no choices but which rooms a removal by amount takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub seen: Counted,
    pub decision: Decision,
    /// How many of the wanted rooms must stand ready.
    pub desired_ready: u32,
    pub expired: Vec<Expired>,
    pub add: u32,
    /// Rooms above the wanted number.
    pub remove: u32,
    /// While rooms of an older major version, or of a drained region, are to be replaced.
    pub rollout: Option<RolloutCycle>,
    /// What is needed and not done now, and why.
    pub held_back: Vec<HeldBack>,
    /// When a plan may look different although nothing happened: a timeout or a back-off ends.
    pub look_again_at: Option<Timestamp>,
}

impl Plan {
    pub fn is_empty(&self) -> bool {
        self.add == 0 && !self.removes()
    }

    /// Rooms are to be taken out of service.
    pub fn removes(&self) -> bool {
        let replaces = self
            .rollout
            .as_ref()
            .is_some_and(|cycle| !cycle.replaced.is_empty() || !cycle.surplus.is_empty());
        !self.expired.is_empty() || self.remove > 0 || replaces
    }
}

pub fn plan(snapshot: &FleetSnapshot<'_>) -> Plan {
    let seen = Counted::of(snapshot);
    let mut decision = match snapshot.scaling {
        Scaling::FleetSize(size) => autoscaling::hold(size, seen.total),
        Scaling::Auto { autoscaling, .. } => autoscaling::decide(&seen.demand(snapshot), autoscaling),
    };
    let standings =
        snapshot.places.map(|places| places.standings(snapshot.rooms, |room| stays(snapshot, room)));
    let places = snapshot.places.zip(standings.as_ref());
    if let Some(most) = places.and_then(|(places, standings)| places.hold_at_most(standings)) {
        decision.lower_to_places(most);
    }
    let desired = decision.desired;
    let left = places.and_then(|(places, standings)| Some((places, places.left(standings)?)));
    let mut plan = Plan {
        seen,
        decision,
        desired_ready: desired.saturating_sub(seen.serving),
        expired: expiry::expired(snapshot),
        add: 0,
        remove: 0,
        rollout: None,
        held_back: Vec::new(),
        look_again_at: expiry::next_expiry(snapshot),
    };
    cap(&mut plan.expired, snapshot, &mut plan.held_back);
    plan.held_back.extend(SilentRooms::among(snapshot.rooms, snapshot.now).into_iter().map(HeldBack::Silent));
    match seen.total {
        _ if seen.old > 0 => plan_rollout(snapshot, desired, left, &mut plan),
        total if total < desired => plan_growth(snapshot, desired - total, left, &mut plan),
        total if total > desired => {
            let surplus = total - desired;
            let kept = replacement::kept(snapshot, desired).min(surplus);
            if kept > 0 {
                plan.held_back.push(HeldBack::Paused { rooms: kept });
            }
            if surplus > kept {
                plan_shrinking(snapshot, surplus - kept, &mut plan);
            }
        }
        _ => {}
    }
    plan
}

fn plan_rollout(snapshot: &FleetSnapshot<'_>, desired: u32, left: Option<PlaceLeft<'_>>, plan: &mut Plan) {
    let mut cycle = replacement::cycle(snapshot, &plan.seen, desired);
    plan.desired_ready = cycle.desired_ready;
    plan_growth(snapshot, cycle.surge, left, plan);
    if plan.seen.unknown > 0 {
        plan.held_back.push(HeldBack::Unknown { rooms: plan.seen.unknown });
    }
    // Old rooms still make place for new ones; what is above both does not go.
    if snapshot.panic && !cycle.surplus.is_empty() {
        plan.held_back.push(HeldBack::Panic { rooms: count(cycle.surplus.len()) });
        cycle.surplus.clear();
    }
    if cycle.occupied_held > 0 {
        plan.held_back.push(HeldBack::OccupiedPace { rooms: cycle.occupied_held });
    }
    cap(&mut cycle.replaced, snapshot, &mut plan.held_back);
    cap(&mut cycle.surplus, snapshot, &mut plan.held_back);
    plan.rollout = Some(cycle);
}

/// No operation removes more rooms than that.
fn cap<T>(rooms: &mut Vec<T>, snapshot: &FleetSnapshot<'_>, held: &mut Vec<HeldBack>) {
    let kept = capped(count(rooms.len()), snapshot.limits.remove_max, held);
    rooms.truncate(kept as usize);
}

/// The next cycle asks for the rest.
fn capped(rooms: u32, most: u32, held: &mut Vec<HeldBack>) -> u32 {
    if rooms > most {
        held.push(HeldBack::Capped { rooms: rooms - most });
    }
    rooms.min(most)
}

/// How many more rooms the regions have capacity for.
type PlaceLeft<'a> = (&'a Places, u64);

fn plan_growth(snapshot: &FleetSnapshot<'_>, needed: u32, left: Option<PlaceLeft<'_>>, plan: &mut Plan) {
    let mut add = needed;
    if let Some((places, left)) = left {
        // Rooms that are still being made will take some of it.
        let left = left.saturating_sub(snapshot.adding.into());
        let fits = u32::try_from(left).unwrap_or(u32::MAX).min(add);
        if fits < add {
            plan.held_back.push(HeldBack::NoPlace { rooms: add - fits, why: places.why_left(left) });
            add = fits;
        }
    }
    if let Some(backoff) = backoff(snapshot, add) {
        add -= backoff.rooms;
        if let Some(until) = backoff.until {
            plan.look_again_at = earliest(plan.look_again_at, until);
        }
        plan.held_back.push(HeldBack::BackingOff(backoff));
    }
    plan.add = capped(add, snapshot.limits.add_max, &mut plan.held_back);
}

/// Unready and pending rooms go first, of the ready ones those above the target; who serves players stays.
fn plan_shrinking(snapshot: &FleetSnapshot<'_>, surplus: u32, plan: &mut Plan) {
    let seen = plan.seen;
    if seen.unknown > 0 {
        plan.held_back.push(HeldBack::Unknown { rooms: seen.unknown });
        return;
    }
    if snapshot.panic {
        plan.held_back.push(HeldBack::Panic { rooms: surplus });
        return;
    }
    if let Scaling::Auto { autoscaling, last_shrunk_at } = snapshot.scaling {
        let demand = seen.demand(snapshot);
        if let Some(hold) = autoscaling::shrink_hold(&demand, autoscaling, last_shrunk_at, snapshot.now) {
            if let ShrinkHold::Cooldown { until } = hold {
                plan.look_again_at = earliest(plan.look_again_at, until);
            }
            plan.held_back.push(HeldBack::ScaleDown { rooms: surplus, hold });
            return;
        }
    }
    let ready_above_target = seen.ready.saturating_sub(plan.desired_ready);
    let remove = surplus.min(seen.idle.saturating_add(ready_above_target));
    // What is still being made can go when it is there.
    let serving = (surplus - remove).saturating_sub(snapshot.adding);
    if serving > 0 {
        plan.held_back.push(HeldBack::Serving { rooms: serving });
    }
    plan.remove = capped(remove, snapshot.limits.remove_max, &mut plan.held_back);
}

fn count(rooms: usize) -> u32 {
    u32::try_from(rooms).unwrap_or(u32::MAX)
}

fn earliest(one: Option<Timestamp>, other: Timestamp) -> Option<Timestamp> {
    Some(one.map_or(other, |one| one.min(other)))
}

#[cfg(test)]
mod tests;
