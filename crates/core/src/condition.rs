//! What is wrong with a fleet, in a word and in a sentence. Pure: what was counted goes in.

use crate::plan::HeldBack;
use crate::rollout::{RolloutRecord, RolloutState};
use crate::room::RoomId;
use crate::text::count_of;

/// What is known of a fleet that may lack rooms.
#[derive(Debug, Clone, Copy, Default)]
pub struct FleetSeen<'a> {
    pub wanted: u32,
    pub ready: u32,
    /// Rooms that players are in or on their way to.
    pub occupied: u32,
    /// Rooms that have not pinged yet.
    pub starting: u32,
    /// Rooms that have not pinged since the server started.
    pub unknown: u32,
    /// The latest room that ended without having been ready, if none has become ready since.
    pub failed: Option<FailedRoom<'a>>,
    /// What the next cycle would not do, and why.
    pub held_back: &'a [HeldBack],
    pub rollout: Option<&'a RolloutRecord>,
    /// A region that has rooms of the fleet and cannot be reached.
    pub unreachable: Option<&'a str>,
}

#[derive(Debug, Clone, Copy)]
pub struct FailedRoom<'a> {
    pub id: &'a RoomId,
    pub how: &'a str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub word: &'static str,
    pub reason: String,
    /// Whose log tells more.
    pub room: Option<RoomId>,
}

impl FleetSeen<'_> {
    /// How many rooms that players can use, or are in, are missing.
    pub fn missing(&self) -> u32 {
        self.wanted.saturating_sub(self.ready.saturating_add(self.occupied))
    }

    /// The most urgent one.
    pub fn problem(&self) -> Option<Problem> {
        let without_room = |(word, reason)| Problem { word, reason, room: None };
        let missing = if self.missing() > 0 { self.why_missing() } else { None };
        missing
            .or_else(|| self.rollout.and_then(rollout_trouble).map(without_room))
            .or_else(|| {
                let region = self.unreachable?;
                Some(without_room(("unreachable", format!("region {region} cannot be reached"))))
            })
            .or_else(|| self.silent().map(without_room))
    }

    /// Rooms that fell silent together are not ready, and may be again.
    fn silent(&self) -> Option<(&'static str, String)> {
        let held = self.held_back.iter().find(|held| matches!(held, HeldBack::Silent(_)))?;
        Some(("silent", held.to_string()))
    }

    fn why_missing(&self) -> Option<Problem> {
        if let Some(FailedRoom { id, how }) = self.failed {
            let reason = format!("rooms end before they are ready; the latest, {id}: {how}");
            return Some(Problem { word: "crashing", reason, room: Some(id.clone()) });
        }
        let no_capacity = self.held_back.iter().find_map(|held| match held {
            HeldBack::NoPlace { why, .. } => Some(("no capacity", why.clone())),
            HeldBack::BackingOff { .. } => Some(("failing", held.to_string())),
            HeldBack::Unknown { .. }
            | HeldBack::Serving { .. }
            | HeldBack::Capped { .. }
            | HeldBack::ScaleDown { .. }
            | HeldBack::OccupiedPace { .. }
            | HeldBack::Panic { .. }
            | HeldBack::Silent(_)
            | HeldBack::Paused { .. } => None,
        });
        let (word, reason) = match (no_capacity.or_else(|| self.silent()), self.unknown, self.starting) {
            (Some(held), ..) => held,
            (None, 1.., _) => {
                ("recovering", format!("not pinged since the server started: {}", rooms(self.unknown)))
            }
            (None, 0, 1..) => ("starting", format!("not pinged yet: {}", rooms(self.starting))),
            (None, 0, 0) => ("adding", format!("{} to be added", rooms(self.missing()))),
        };
        Some(Problem { word, reason, room: None })
    }
}

/// `None`: the rollout simply goes on.
fn rollout_trouble(rollout: &RolloutRecord) -> Option<(&'static str, String)> {
    let note = &rollout.note;
    match rollout.state {
        RolloutState::Rolling => None,
        RolloutState::Paused => Some(("paused", format!("the rollout is {note}"))),
        RolloutState::Halted => Some(("halted", format!("the rollout has halted: {note}"))),
        RolloutState::RollingBack => Some(("rolling back", format!("the rollout goes back: {note}"))),
    }
}

fn rooms(number: u32) -> String {
    count_of(number, "room")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::SilentRooms;
    use crate::room::Region;
    use crate::scheduler::{SizeBaseline, Version};
    use crate::time::Timestamp;

    #[track_caller]
    fn check(seen: FleetSeen<'_>, expected: &str) {
        let problem = seen.problem().map(|problem| format!("{}: {}", problem.word, problem.reason));
        assert_eq!(problem.as_deref().unwrap_or("-"), expected);
    }

    #[test]
    fn what_is_most_urgent() {
        let room = RoomId::new("arena-1");
        let failed = Some(FailedRoom { id: &room, how: "exit code 1" });
        let no_place = [HeldBack::NoPlace { rooms: 2, why: "eu is cordoned".into() }];
        let fleet = FleetSeen { wanted: 12, ready: 8, occupied: 4, ..FleetSeen::default() };
        check(fleet, "-");
        check(FleetSeen { ready: 20, ..fleet }, "-");
        // Some failed, and all that are wanted are there all the same.
        check(FleetSeen { failed, held_back: &no_place, starting: 1, ..fleet }, "-");
        let short = FleetSeen { ready: 6, ..fleet };
        check(short, "adding: 2 rooms to be added");
        check(FleetSeen { starting: 1, ..short }, "starting: not pinged yet: 1 room");
        check(
            FleetSeen { unknown: 2, starting: 1, ..short },
            "recovering: not pinged since the server started: 2 rooms",
        );
        check(FleetSeen { held_back: &no_place, starting: 1, ..short }, "no capacity: eu is cordoned");
        let crashing = "crashing: rooms end before they are ready; the latest, arena-1: exit code 1";
        check(FleetSeen { failed, held_back: &no_place, ..short }, crashing);
        let until = Timestamp::UNIX_EPOCH;
        let silent = [HeldBack::Silent(SilentRooms { region: Region::default_region(), rooms: 2, until })];
        let why = format!("silent: {}", silent[0]);
        check(FleetSeen { held_back: &silent, starting: 1, ..short }, &why);
        check(FleetSeen { held_back: &silent, ..fleet }, &why);
        check(FleetSeen { failed, held_back: &silent, ..short }, crashing);
        let rolling = RolloutRecord {
            state: RolloutState::Rolling,
            to: Version::FIRST,
            from: Version::FIRST,
            since: until,
            fleet_size: SizeBaseline { before: 1, after: 1 },
            occupied_at: None,
            note: String::new(),
        };
        check(FleetSeen { rollout: Some(&rolling), ..fleet }, "-");
        let paused = RolloutRecord { state: RolloutState::Paused, note: "paused by ada".into(), ..rolling };
        let rollout = Some(&paused);
        check(FleetSeen { rollout, ..fleet }, "paused: the rollout is paused by ada");
        check(FleetSeen { rollout, failed, ..short }, crashing);
        check(FleetSeen { unreachable: Some("eu"), ..fleet }, "unreachable: region eu cannot be reached");
    }
}
