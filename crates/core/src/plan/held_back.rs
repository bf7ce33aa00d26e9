//! Why a plan does not do what is needed, in words for people.

use std::fmt;

use crate::autoscaling::ShrinkHold;
use crate::text::count_of;

use super::{Backoff, SilentRooms};

/// Why something that is needed is not done now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeldBack {
    /// Rooms fail to start: `rooms` of those needed wait.
    BackingOff(Backoff),
    /// Rooms have not been heard of since a restart: nothing is scaled down meanwhile.
    Unknown {
        rooms: u32,
    },
    /// More would go, but players are in them.
    Serving {
        rooms: u32,
    },
    /// More are needed than one operation may do: the next cycle asks for the rest.
    Capped {
        rooms: u32,
    },
    ScaleDown {
        rooms: u32,
        hold: ShrinkHold,
    },
    /// Nearly all places were taken a moment ago: what looks like too many now may not be.
    Panic {
        rooms: u32,
    },
    /// Players are in them, and it is not their turn yet: rooms with players go at a pace of their own.
    OccupiedPace {
        rooms: u32,
    },
    /// A rollout that is paused has added them: it would have replaced others by them.
    Paused {
        rooms: u32,
    },
    /// They are replaced, and not taken for dead before their time.
    Silent(SilentRooms),
    /// Regions are closed or at their caps.
    NoPlace {
        rooms: u32,
        why: String,
    },
}

impl fmt::Display for HeldBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BackingOff(Backoff { rooms, failures, until }) => {
                write!(
                    f,
                    "{rooms} more wanted, but the last {} gave rooms that ended early; ",
                    count_of(*failures, "attempt")
                )?;
                match until {
                    Some(until) => write!(f, "next try at {until:.3}"),
                    None => f.write_str("waiting for a room to stay ready"),
                }
            }
            Self::Unknown { rooms } => {
                let have = if *rooms == 1 { "has" } else { "have" };
                write!(
                    f,
                    "nothing is scaled down: {} {have} not pinged since the restart",
                    count_of(*rooms, "room")
                )
            }
            Self::Serving { rooms } => {
                write!(f, "{rooms} more should go, but players are in them; waiting for their matches to end")
            }
            Self::Capped { rooms } => write!(f, "{rooms} more left for the next cycle"),
            Self::ScaleDown { rooms, hold } => {
                write!(f, "surplus of {} stays for now: {hold}", count_of(*rooms, "room"))
            }
            Self::Silent(silent) => write!(
                f,
                "{silent} are not considered dead yet: others replace them, and they are removed at {:.0} unless they ping. To remove them now: `maestro region confirm-lost {}`",
                silent.until, silent.region
            ),
            Self::NoPlace { rooms, why } => write!(f, "{rooms} more wanted, but {why}"),
            Self::OccupiedPace { rooms } => write!(
                f,
                "{} with players deferred: removed in scheduled cycles, no faster than rollout.occupiedInterval",
                count_of(*rooms, "old room")
            ),
            Self::Paused { rooms } => {
                write!(f, "surplus of {} stays: its rollout is paused", count_of(*rooms, "room"))
            }
            Self::Panic { rooms } => {
                write!(
                    f,
                    "surplus of {} stays for now: no scale-down during a panic",
                    count_of(*rooms, "room")
                )
            }
        }
    }
}
