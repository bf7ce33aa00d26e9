//! What a fleet needs: from a snapshot to a plan. Pure; the health controller carries it out.

mod backoff;
mod expiry;
mod removal;

use std::fmt;

use crate::operation::OperationId;
use crate::room::{EndCause, RoomId, RoomStatus};
use crate::scheduler::Version;
use crate::time::{Millis, Timestamp};

pub use expiry::{Expired, Expiry, expiry};
pub use removal::{Occupied, removal_order};

/// What the health controller saw.
#[derive(Debug, Clone)]
pub struct FleetSnapshot<'a> {
    pub now: Timestamp,
    /// How many rooms to hold.
    pub fleet_size: u32,
    /// The rooms of the fleet that have not ended; validation rooms are not among them.
    pub rooms: &'a [RoomFact],
    /// Rooms of unfinished adds that have no row yet: they count as pending.
    pub adding: u32,
    /// Rooms of unfinished removals by amount that are not chosen yet: they count as gone.
    pub removing: u32,
    /// What ended or failed, latest first.
    pub ended: &'a [EndedFact],
    pub limits: Limits,
}

/// A room, as far as plans need to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomFact {
    pub id: RoomId,
    pub status: RoomStatus,
    pub version: Version,
    pub created_at: Timestamp,
    /// Its last ping; of a room that is unknown, the time since when one listens for it.
    pub heard_at: Option<Timestamp>,
    /// False: it was there before a restart and has not been heard of since. Unknown is not zero.
    pub known: bool,
    pub was_ready: bool,
    /// An unfinished removal has it: it counts as gone.
    pub leaving: bool,
}

/// A room that ended, or an operation that could not make any, as far as plans need to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedFact {
    /// 1, or as many as the operation was to make.
    pub rooms: u32,
    pub operation: OperationId,
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
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// Rooms there and on their way, without those that expired or leave.
    pub total: u32,
    pub desired: u32,
    pub expired: Vec<Expired>,
    pub add: u32,
    pub remove: u32,
    /// What is needed and not done now, and why.
    pub held: Vec<Held>,
    /// When a plan may look different although nothing happened: a timeout or a back-off ends.
    pub look_again_at: Option<Timestamp>,
}

/// Why something that is needed is not done now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Held {
    /// Rooms fail to start: `rooms` of those needed wait.
    BackingOff {
        rooms: u32,
        failures: u32,
        until: Timestamp,
    },
    /// Rooms have not been heard of since a restart: nothing is scaled down meanwhile.
    Unknown { rooms: u32 },
    /// More would go, but players are in them.
    Serving { rooms: u32 },
    /// More are needed than one operation may do: the next cycle asks for the rest.
    Capped { rooms: u32 },
}

impl Plan {
    pub fn is_empty(&self) -> bool {
        self.expired.is_empty() && self.add == 0 && self.remove == 0
    }
}

pub fn plan(snapshot: &FleetSnapshot<'_>) -> Plan {
    let expired = expiry::expired(snapshot);
    let staying = |room: &&RoomFact| {
        let is_well = || expiry(room, snapshot.now, &snapshot.limits).is_none();
        !room.leaving && room.status.counts() && is_well()
    };
    let fleet: Vec<&RoomFact> = snapshot.rooms.iter().filter(staying).collect();
    let total = count(fleet.len())
        .saturating_add(snapshot.adding)
        .saturating_sub(snapshot.removing);
    let desired = snapshot.fleet_size;
    let mut plan = Plan {
        total,
        desired,
        expired,
        ..Plan::default()
    };
    plan.look_again_at = expiry::next_expiry(snapshot);
    if total < desired {
        plan_growth(snapshot, desired - total, &mut plan);
    } else if total > desired {
        plan_shrinking(snapshot, &fleet, total - desired, &mut plan);
    }
    plan
}

fn plan_growth(snapshot: &FleetSnapshot<'_>, needed: u32, plan: &mut Plan) {
    let mut add = needed;
    if let Some(backoff) = backoff::backoff(snapshot) {
        let rooms = backoff.rooms.min(add);
        add -= rooms;
        plan.held.push(Held::BackingOff {
            rooms,
            failures: backoff.failures,
            until: backoff.until,
        });
        plan.look_again_at = earliest(plan.look_again_at, backoff.until);
    }
    if add > snapshot.limits.add_max {
        plan.held.push(Held::Capped {
            rooms: add - snapshot.limits.add_max,
        });
        add = snapshot.limits.add_max;
    }
    plan.add = add;
}

fn plan_shrinking(snapshot: &FleetSnapshot<'_>, fleet: &[&RoomFact], surplus: u32, plan: &mut Plan) {
    let unknown = count(fleet.iter().filter(|room| !room.known).count());
    if unknown > 0 {
        plan.held.push(Held::Unknown { rooms: unknown });
        return;
    }
    let removable = count(fleet.iter().filter(|room| !room.status.serves_players()).count());
    let mut remove = surplus.min(removable);
    if remove < surplus {
        plan.held.push(Held::Serving {
            rooms: surplus - remove,
        });
    }
    if remove > snapshot.limits.remove_max {
        plan.held.push(Held::Capped {
            rooms: remove - snapshot.limits.remove_max,
        });
        remove = snapshot.limits.remove_max;
    }
    plan.remove = remove;
}

fn count(rooms: usize) -> u32 {
    u32::try_from(rooms).unwrap_or(u32::MAX)
}

fn earliest(one: Option<Timestamp>, other: Timestamp) -> Option<Timestamp> {
    Some(one.map_or(other, |one| one.min(other)))
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BackingOff {
                rooms,
                failures,
                until,
            } => write!(
                f,
                "{rooms} more wanted, but the last {failures} attempts gave rooms that ended at once; next try at {until:.3}"
            ),
            Self::Unknown { rooms } => {
                write!(
                    f,
                    "nothing is scaled down: {rooms} rooms have not been heard of since the restart"
                )
            }
            Self::Serving { rooms } => {
                write!(
                    f,
                    "{rooms} more should go, but players are in them; waiting for their matches to end"
                )
            }
            Self::Capped { rooms } => write!(f, "{rooms} more are left for the next cycle"),
        }
    }
}

#[cfg(test)]
mod tests;
