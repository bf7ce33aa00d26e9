//! What a room's status is and what it may become, as tables. Every room table decides by them: one in memory calls
//! [`RoomState`], one that lets a script elsewhere change its rooms hands [`composition`] and [`transitions`] to that
//! script.

use RoomStatus::{Active, Allocated, Error, Occupied, Pending, Ready, Terminated, Terminating, Unready};

use super::status::{InstanceStatus, PingStatus, RoomStatus};

/// What the game says (a row each) and what the instance is (a column each), both in the order of their `ALL`.
const COMPOSED: [[RoomStatus; 5]; 5] = [
    // unknown    pending      ready        terminating  error
    [Pending, Pending, Unready, Terminating, Error],  // unknown
    [Pending, Pending, Ready, Terminating, Error],    // ready
    [Pending, Pending, Occupied, Terminating, Error], // occupied
    [Terminating, Terminating, Terminating, Terminating, Error], // terminating
    [Terminated, Terminated, Terminated, Terminated, Error], // terminated
];

/// What each status may become, itself aside. Staying the same is no change and always possible.
///
/// Only an instance that has not come up makes a room pending, and only a silent room waits again for it. A room that
/// may become ready may become allocated, which is a ready room with a hold: after a table was lost, the first ping of a
/// held room takes it there from any status.
const MAY_BECOME: [(RoomStatus, &[RoomStatus]); 9] = [
    (Pending, &[Unready, Ready, Active, Occupied, Allocated, Terminating, Terminated, Error]),
    (Unready, &[Pending, Ready, Active, Occupied, Allocated, Terminating, Terminated, Error]),
    (Ready, &[Unready, Active, Occupied, Allocated, Terminating, Terminated, Error]),
    (Active, &[Unready, Ready, Occupied, Allocated, Terminating, Terminated, Error]),
    (Occupied, &[Unready, Ready, Active, Allocated, Terminating, Terminated, Error]),
    (Allocated, &[Unready, Ready, Active, Occupied, Terminating, Terminated, Error]),
    (Terminating, &[Unready, Ready, Active, Occupied, Allocated, Terminated, Error]),
    (Terminated, &[]),
    (Error, &[Unready, Ready, Active, Occupied, Allocated, Terminating, Terminated]),
];

impl RoomStatus {
    /// May a room change from this status to `to`?
    pub fn may_become(self, to: Self) -> bool {
        self == to || MAY_BECOME[self as usize].1.contains(&to)
    }
}

/// How full a room is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// It holds one match: the word of its ping decides.
    Single,
    /// It holds several, and none runs.
    Empty,
    Partly,
    Full,
}

impl Fill {
    pub const ALL: [Self; 4] = [Self::Single, Self::Empty, Self::Partly, Self::Full];

    pub fn of(matches: u32, matches_max: u32) -> Self {
        match matches {
            _ if matches_max <= 1 => Self::Single,
            0 => Self::Empty,
            _ if matches >= matches_max => Self::Full,
            _ => Self::Partly,
        }
    }
}

/// All that a room's status is composed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sides {
    pub instance: InstanceStatus,
    pub ping: PingStatus,
    pub fill: Fill,
    /// Handed to a matchmaker, and the hold has not run out.
    pub held: bool,
}

impl Sides {
    pub fn status(self) -> RoomStatus {
        let by_word = COMPOSED[self.ping as usize][self.instance as usize];
        let by_matches = match (by_word, self.fill) {
            // With several matches in a room their number decides, not the word.
            (Ready | Occupied, Fill::Empty) => Ready,
            (Ready | Occupied, Fill::Partly) => Active,
            (Ready | Occupied, Fill::Full) => Occupied,
            (status, _) => status,
        };
        if by_matches == Ready && self.held { Allocated } else { by_matches }
    }
}

/// The whole table: a status for everything that can be seen of a room.
pub fn composition() -> impl Iterator<Item = (Sides, RoomStatus)> {
    let sides = InstanceStatus::ALL.into_iter().flat_map(|instance| {
        PingStatus::ALL.into_iter().flat_map(move |ping| {
            Fill::ALL
                .into_iter()
                .flat_map(move |fill| [false, true].map(move |held| Sides { instance, ping, fill, held }))
        })
    });
    sides.map(|sides| (sides, sides.status()))
}

/// All changes that are possible, from and to.
pub fn transitions() -> impl Iterator<Item = (RoomStatus, RoomStatus)> {
    MAY_BECOME.into_iter().flat_map(|(from, all)| all.iter().map(move |to| (from, *to)))
}

/// A change of status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusChange {
    pub before: RoomStatus,
    pub after: RoomStatus,
}

/// What a room table keeps of a room to know its status, and the only ways to change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoomState {
    /// As the runtime saw it last, claimed or not: what the room goes back to when a claim is given up.
    observed: InstanceStatus,
    claim: Claimed,
    ping: PingStatus,
    matches: u32,
    matches_max: u32,
    /// Slots that are handed to matchmakers.
    holds: u32,
    known: bool,
    was_ready: bool,
}

/// Whether an operation has taken the room out of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Claimed {
    No,
    Yes,
    /// And the runtime has seen the instance fail since.
    Failed,
}

impl RoomState {
    /// `known`: false if the room was there before the table, until it pings.
    pub fn new(instance: InstanceStatus, matches_max: u32, known: bool) -> Self {
        Self {
            observed: instance,
            claim: Claimed::No,
            ping: PingStatus::Unknown,
            matches: 0,
            matches_max,
            holds: 0,
            known,
            was_ready: false,
        }
    }

    pub fn status(&self) -> RoomStatus {
        let Self { ping, matches, matches_max, holds, .. } = *self;
        let fill = Fill::of(matches, matches_max);
        Sides { instance: self.instance(), ping, fill, held: holds > 0 }.status()
    }

    /// How many more matches it can be given: none while it is unknown, claimed or not in service.
    pub fn free_slots(&self) -> u32 {
        let Self { matches, holds, known, .. } = *self;
        match known && self.status().has_slots() {
            true => self.matches_max().saturating_sub(matches.saturating_add(holds)),
            false => 0,
        }
    }

    /// What counts as the instance's status: a claimed room is on its way out, whatever its runtime still sees.
    pub fn instance(&self) -> InstanceStatus {
        match self.claim {
            Claimed::No => self.observed,
            Claimed::Yes => InstanceStatus::Terminating,
            Claimed::Failed => InstanceStatus::Error,
        }
    }

    pub fn ping_status(&self) -> PingStatus {
        self.ping
    }

    pub fn matches(&self) -> u32 {
        self.matches
    }

    /// How many matches it holds.
    pub fn matches_max(&self) -> u32 {
        self.matches_max.max(1)
    }

    pub fn is_known(&self) -> bool {
        self.known
    }

    /// It was ready at some time, or players were in it.
    pub fn was_ready(&self) -> bool {
        self.was_ready
    }

    /// Takes up what the game says. `Err`: no room can change that way, and nothing of it is taken up.
    pub fn ping(&mut self, ping: PingStatus, matches: u32) -> Result<StatusChange, StatusChange> {
        let next = Self { ping, matches, known: true, ..*self };
        let change = StatusChange { before: self.status(), after: next.status() };
        if !change.before.may_become(change.after) {
            return Err(change);
        }
        self.set(next);
        Ok(change)
    }

    /// Takes up what the runtime sees, unless no room can change that way: then the instance stays what it was, so that
    /// the status is always the one composed from what is shown. An observation never brings back a claimed room.
    pub fn observe(&mut self, instance: InstanceStatus) -> StatusChange {
        let before = self.status();
        let claim = match (self.claim, instance) {
            (Claimed::No, _) => Claimed::No,
            (Claimed::Yes | Claimed::Failed, InstanceStatus::Error) => Claimed::Failed,
            (Claimed::Yes | Claimed::Failed, _) => Claimed::Yes,
        };
        let next = Self { observed: instance, claim, ..*self };
        if claim != Claimed::No || before.may_become(next.status()) {
            self.set(next);
        }
        StatusChange { before, after: self.status() }
    }

    /// Takes the room out of service, if it is in one of these statuses now and nobody has done so. True: it did.
    pub fn claim(&mut self, statuses: &[RoomStatus], known_only: bool) -> bool {
        let may =
            self.claim == Claimed::No && (self.known || !known_only) && statuses.contains(&self.status());
        if may {
            self.claim = Claimed::Yes;
        }
        may
    }

    /// A matchmaker gets the room or one of its slots, or a hold has ended.
    pub fn set_holds(&mut self, holds: u32) {
        self.set(Self { holds, ..*self });
    }

    /// It takes up the status that its last ping and the last observation give it.
    pub fn unclaim(&mut self) {
        self.set(Self { claim: Claimed::No, ..*self });
    }

    pub fn set_matches_max(&mut self, matches_max: u32) {
        self.set(Self { matches_max, ..*self });
    }

    fn set(&mut self, next: Self) {
        let status = next.status();
        *self = Self { was_ready: next.was_ready || status == Ready || status.serves_players(), ..next };
    }
}

#[cfg(test)]
mod tests;
