//! Rooms that must go because of what they failed to do: become ready, ping, or end. A room in a region that cannot be
//! reached could not have pinged, so that time is not held against it. Nor, for a while, is the silence of rooms that fell
//! silent together (`silence.rs`).

use std::fmt;

use crate::room::{RoomId, RoomStatus};
use crate::time::{Millis, Timestamp, after, age};

use super::counted::is_spared;
use super::{FleetSnapshot, Limits, RoomFact};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expired {
    pub room: RoomId,
    pub why: Expiry,
}

/// `Display` is what people read: which timeout, and how long it has been.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    NeverReady {
        after: Millis,
    },
    Silent {
        since: Millis,
    },
    /// It said that it is terminating, and is still there.
    StillTerminating {
        since: Millis,
    },
    Terminated,
    Error,
}

pub(super) fn expired(snapshot: &FleetSnapshot<'_>) -> Vec<Expired> {
    let leaves = |room: &&RoomFact| !room.leaving;
    snapshot
        .rooms
        .iter()
        .filter(leaves)
        .filter_map(|room| {
            let why = expiry(room, snapshot.now, &snapshot.limits)?;
            Some(Expired { room: room.id.clone(), why })
        })
        .collect()
}

/// Why a room must go now, if it must.
pub fn expiry(room: &RoomFact, now: Timestamp, limits: &Limits) -> Option<Expiry> {
    let (deadline, why) = deadline(room, limits)?;
    (room.reachable && deadline <= now && !is_spared(room, now)).then(|| match why {
        Expiry::NeverReady { .. } => Expiry::NeverReady { after: age(now, room.created_at) },
        Expiry::Silent { .. } => Expiry::Silent { since: age(now, heard_at(room)) },
        Expiry::StillTerminating { .. } => Expiry::StillTerminating { since: age(now, heard_at(room)) },
        Expiry::Terminated | Expiry::Error => why,
    })
}

/// When the first room that is well now would expire if nothing happened, or would not be waited for any more.
pub(super) fn next_expiry(snapshot: &FleetSnapshot<'_>) -> Option<Timestamp> {
    let limits = &snapshot.limits;
    let deadline = |room: &RoomFact| match room.reachable {
        true if is_spared(room, snapshot.now) => room.spared_until,
        true => deadline(room, limits).map(|(deadline, _)| deadline),
        false => (!room.known).then(|| silent_at(room, limits)),
    };
    let deadlines = snapshot.rooms.iter().filter(|room| !room.leaving).filter_map(deadline);
    deadlines.filter(|deadline| *deadline > snapshot.now).min()
}

/// When a room that says nothing has said nothing for too long.
pub(super) fn silent_at(room: &RoomFact, limits: &Limits) -> Timestamp {
    after(heard_at(room), limits.ping_timeout)
}

fn deadline(room: &RoomFact, limits: &Limits) -> Option<(Timestamp, Expiry)> {
    let none = Millis(0);
    match room.status {
        RoomStatus::Error => Some((Timestamp::MIN, Expiry::Error)),
        RoomStatus::Terminated => Some((Timestamp::MIN, Expiry::Terminated)),
        // After a restart everything that has not pinged looks unready; it has the time of a ping to be heard of.
        RoomStatus::Pending | RoomStatus::Unready if room.known => {
            let began = room.created_at.max(room.reachable_since.unwrap_or(Timestamp::MIN));
            Some((after(began, limits.initialization_timeout), Expiry::NeverReady { after: none }))
        }
        RoomStatus::Terminating => {
            let deadline = after(heard_at(room), limits.deletion_timeout);
            Some((deadline, Expiry::StillTerminating { since: none }))
        }
        RoomStatus::Pending
        | RoomStatus::Unready
        | RoomStatus::Ready
        | RoomStatus::Active
        | RoomStatus::Occupied
        | RoomStatus::Allocated => Some((silent_at(room, limits), Expiry::Silent { since: none })),
    }
}

/// When it was last heard, or could have been.
pub fn heard_at(room: &RoomFact) -> Timestamp {
    room.heard_at.unwrap_or(room.created_at).max(room.reachable_since.unwrap_or(Timestamp::MIN))
}

impl fmt::Display for Expiry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeverReady { after } => write!(f, "did not become ready within {after}"),
            Self::Silent { since } => write!(f, "has not pinged for {since}"),
            Self::StillTerminating { since } => write!(f, "has been terminating for {since}"),
            Self::Terminated => f.write_str("said that it is terminated"),
            Self::Error => f.write_str("is in error"),
        }
    }
}
