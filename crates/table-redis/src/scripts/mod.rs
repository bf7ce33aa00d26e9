//! The scripts that change what is in Redis, each atomic.
//!
//! What is decided elsewhere is not decided again in them: statuses, the changes between them and all limits come from
//! the core, as constants that stand before each script.

use std::fmt::Write;

use maestro_core::allocation::{CANDIDATES_MAX, PROVISIONAL_FOR};
use maestro_core::room::{Fill, InstanceStatus, PingStatus, Purpose, RoomStatus, composition, transitions};
use maestro_core::stream::{EVENTS_MAX, KEPT_BYTES_MAX, KEPT_FOR};
use maestro_core::time::Timestamp;

use crate::record::{ClaimState, NEVER, Stage};

/// A script that touches so many rooms holds up everybody else for some milliseconds; those that walk over more go in parts.
pub(crate) const TOUCHED_MAX: usize = 1000;

/// What is not in the ring of events, because that cannot be reached. More are dropped, and readers are told.
const TOLD_MAX: usize = 10_000;

/// Callers who look for a room at the same time mostly choose different ones of so many.
const SPREAD: usize = 64;

/// Much longer than a call takes: a hold that is on its way is not forgotten.
const NOTED_MIN_SECONDS: u64 = 60;

/// After that, nobody carries anything of a removed scheduler any more.
const GONE_FOR_SECONDS: u64 = 60 * 60;

/// Behind the history in the mark of a scheduler: what is done to it, so that its rooms do not count.
pub(crate) const CLEARING: &str = ":clearing";
pub(crate) const REMOVING: &str = ":removing";
const REBUILDING: &str = ":rebuilding";

/// What comes of a ping.
pub(crate) const PING_UNKNOWN_ROOM: u8 = 0;
pub(crate) const PING_REFUSED: u8 = 1;
pub(crate) const PING_TAKEN: u8 = 2;

pub(crate) const WISH_RANKED: u8 = 0;
pub(crate) const WISH_LISTED: u8 = 1;

pub(crate) const HOLD_DONE: u8 = 0;
pub(crate) const HOLD_STALE: u8 = 1;

/// From where events are read.
pub(crate) const RING_NOW: u8 = 0;
pub(crate) const RING_OLDEST: u8 = 1;
pub(crate) const RING_AFTER: u8 = 2;

/// Why events cannot be read from there.
pub(crate) const RING_GOES_ON: u8 = 0;
pub(crate) const RING_BEGINS: u8 = 1;
pub(crate) const RING_OTHER: u8 = 2;
pub(crate) const RING_GONE: u8 = 3;

/// A script, known to Redis by its hash once it has run.
pub(crate) struct Script {
    pub(crate) source: String,
    pub(crate) hash: String,
}

pub(crate) struct Scripts {
    pub(crate) ping: Script,
    pub(crate) change: Script,
    pub(crate) insert: Script,
    pub(crate) claim: Script,
    pub(crate) claimed: Script,
    pub(crate) hold: Script,
    pub(crate) candidates: Script,
    pub(crate) remove: Script,
    pub(crate) clear: Script,
    pub(crate) matches_max: Script,
    pub(crate) rooms: Script,
    pub(crate) read: Script,
    pub(crate) write: Script,
    pub(crate) due: Script,
    pub(crate) held: Script,
    pub(crate) mark: Script,
    pub(crate) told: Script,
    pub(crate) hint: Script,
    pub(crate) ring_append: Script,
    pub(crate) ring_read: Script,
}

impl Scripts {
    pub(crate) fn new() -> Self {
        let base = constants() + include_str!("base.lua");
        let script = |parts: &[&str]| {
            let source = [base.as_str()].into_iter().chain(parts.iter().copied()).collect::<String>();
            let hash = redis::Script::new(&source).get_hash().to_owned();
            Script { source, hash }
        };
        let (room, groups, ring) =
            (include_str!("room.lua"), include_str!("groups.lua"), include_str!("ring.lua"));
        Self {
            ping: script(&[room, include_str!("ping.lua")]),
            change: script(&[room, include_str!("change.lua")]),
            insert: script(&[room, include_str!("insert.lua")]),
            claim: script(&[room, include_str!("claim.lua")]),
            claimed: script(&[room, include_str!("claimed.lua")]),
            hold: script(&[room, groups, include_str!("hold.lua")]),
            candidates: script(&[room, groups, include_str!("candidates.lua")]),
            remove: script(&[room, include_str!("remove.lua")]),
            clear: script(&[room, include_str!("clear.lua")]),
            matches_max: script(&[room, include_str!("matches_max.lua")]),
            rooms: script(&[include_str!("rooms.lua")]),
            read: script(&[include_str!("read.lua")]),
            write: script(&[include_str!("write.lua")]),
            due: script(&[room, include_str!("due.lua")]),
            held: script(&[room, include_str!("held.lua")]),
            mark: script(&[include_str!("mark.lua")]),
            told: script(&[include_str!("told.lua")]),
            hint: script(&[include_str!("hint.lua")]),
            ring_append: script(&[ring, include_str!("ring_append.lua")]),
            ring_read: script(&[ring, include_str!("ring_read.lua")]),
        }
    }
}

/// The tables of the core, a character for each entry, in the order of the words.
struct Tables {
    /// By instance, ping, fill, and whether the room is held: the place of the status among all statuses.
    composed: String,
    /// By the status before and after: whether a room can change that way.
    may_become: String,
}

fn tables() -> Tables {
    const HELD: usize = 2;
    let sides = InstanceStatus::ALL.len() * PingStatus::ALL.len() * Fill::ALL.len() * HELD;
    let mut composed = vec!['?'; sides];
    for (sides, status) in composition() {
        let by_ping = sides.instance as usize * PingStatus::ALL.len() + sides.ping as usize;
        let place = (by_ping * Fill::ALL.len() + sides.fill as usize) * HELD + usize::from(sides.held);
        composed[place] = char::from(b'0' + status as u8);
    }
    let statuses = RoomStatus::ALL.len();
    let mut may_become = vec!['0'; statuses * statuses];
    let staying = RoomStatus::ALL.into_iter().map(|status| (status, status));
    for (from, to) in transitions().chain(staying) {
        may_become[from as usize * statuses + to as usize] = '1';
    }
    Tables { composed: composed.into_iter().collect(), may_become: may_become.into_iter().collect() }
}

/// A flag for each status.
pub(crate) fn flags(is_set: impl Fn(RoomStatus) -> bool) -> String {
    RoomStatus::ALL.into_iter().map(|status| if is_set(status) { '1' } else { '0' }).collect()
}

/// Local variables of Lua.
fn constants() -> String {
    let mut lua = String::new();
    let Tables { composed, may_become } = tables();
    let texts = [
        ("COMPOSED", composed.as_str()),
        ("MAY_BECOME", &may_become),
        ("IS_UP", &flags(RoomStatus::is_up)),
        ("HAS_SLOTS", &flags(RoomStatus::has_slots)),
        ("CLEARING", CLEARING),
        ("REBUILDING", REBUILDING),
    ];
    for (name, text) in texts {
        let _ = writeln!(lua, "local {name} = '{text}'");
    }
    let numbers: &[(&str, i64)] = &[
        ("STATUSES", RoomStatus::ALL.len() as i64),
        ("PING_STATUSES", PingStatus::ALL.len() as i64),
        ("FILLS", Fill::ALL.len() as i64),
        ("FILL_SINGLE", Fill::Single as i64),
        ("FILL_EMPTY", Fill::Empty as i64),
        ("FILL_PARTLY", Fill::Partly as i64),
        ("FILL_FULL", Fill::Full as i64),
        ("INSTANCE_TERMINATING", InstanceStatus::Terminating as i64),
        ("INSTANCE_ERROR", InstanceStatus::Error as i64),
        ("PING_OCCUPIED", PingStatus::Occupied as i64),
        ("PING_TERMINATING", PingStatus::Terminating as i64),
        ("FLEET", Purpose::Fleet as i64),
        ("UNCLAIMED", ClaimState::Unclaimed as i64),
        ("CLAIMED", ClaimState::Claimed as i64),
        ("CLAIMED_AND_FAILED", ClaimState::ClaimedAndFailed as i64),
        ("STAGE_PROVISIONAL", Stage::Provisional as i64),
        ("STAGE_FIRM", Stage::Firm as i64),
        ("STAGE_BEGUN", Stage::Begun as i64),
        ("STAGE_EXPIRED", Stage::Expired as i64),
        ("PROVISIONAL_FOR", PROVISIONAL_FOR.0 as i64),
        ("ALWAYS_DUE", Timestamp::MIN.as_millisecond()),
        ("NEVER", NEVER),
        ("PING_UNKNOWN_ROOM", PING_UNKNOWN_ROOM.into()),
        ("PING_REFUSED", PING_REFUSED.into()),
        ("PING_TAKEN", PING_TAKEN.into()),
        ("WISH_RANKED", WISH_RANKED.into()),
        ("HOLD_DONE", HOLD_DONE.into()),
        ("HOLD_STALE", HOLD_STALE.into()),
        ("RING_NOW", RING_NOW.into()),
        ("RING_OLDEST", RING_OLDEST.into()),
        ("RING_GOES_ON", RING_GOES_ON.into()),
        ("RING_BEGINS", RING_BEGINS.into()),
        ("RING_OTHER", RING_OTHER.into()),
        ("RING_GONE", RING_GONE.into()),
        ("TOUCHED_MAX", TOUCHED_MAX as i64),
        ("TOLD_MAX", TOLD_MAX as i64),
        ("SPREAD", SPREAD as i64),
        ("CANDIDATES_MAX", CANDIDATES_MAX as i64),
        ("NOTED_MIN", NOTED_MIN_SECONDS as i64),
        ("GONE_FOR", GONE_FOR_SECONDS as i64),
        ("EVENTS_MAX", EVENTS_MAX as i64),
        ("KEPT_BYTES_MAX", KEPT_BYTES_MAX as i64),
        ("KEPT_FOR", KEPT_FOR.0 as i64),
    ];
    for (name, number) in numbers {
        let _ = writeln!(lua, "local {name} = {number}");
    }
    lua
}
