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
        match self.status() {
            Ready | Active | Allocated if known => {
                self.matches_max().saturating_sub(matches.saturating_add(holds))
            }
            _ => 0,
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
mod tests {
    use super::*;

    fn sides(ping: PingStatus, instance: InstanceStatus) -> Sides {
        Sides { instance, ping, fill: Fill::Single, held: false }
    }

    #[test]
    fn the_whole_table() {
        let mut text = String::new();
        for ping in PingStatus::ALL {
            for instance in InstanceStatus::ALL {
                let of = |fill, held| Sides { fill, held, ..sides(ping, instance) }.status().as_str();
                let by_fill = Fill::ALL.map(|fill| match (of(fill, false), of(fill, true)) {
                    (free, held) if free == held => free.to_owned(),
                    (free, held) => format!("{free}/{held}"),
                });
                let mut by_fill = by_fill.to_vec();
                by_fill.dedup();
                text += &format!("{} {}: {}\n", ping.as_str(), instance.as_str(), by_fill.join(" "));
            }
        }
        expect_test::expect![[r#"
            unknown unknown: pending
            unknown pending: pending
            unknown ready: unready
            unknown terminating: terminating
            unknown error: error
            ready unknown: pending
            ready pending: pending
            ready ready: ready/allocated active occupied
            ready terminating: terminating
            ready error: error
            occupied unknown: pending
            occupied pending: pending
            occupied ready: occupied ready/allocated active occupied
            occupied terminating: terminating
            occupied error: error
            terminating unknown: terminating
            terminating pending: terminating
            terminating ready: terminating
            terminating terminating: terminating
            terminating error: error
            terminated unknown: terminated
            terminated pending: terminated
            terminated ready: terminated
            terminated terminating: terminated
            terminated error: error
        "#]]
        .assert_eq(&text);
    }

    /// What is handed to a script says all there is, and each thing once.
    #[test]
    fn the_tables_as_data_are_whole() {
        let rows: Vec<_> = composition().collect();
        assert_eq!(rows.len(), InstanceStatus::ALL.len() * PingStatus::ALL.len() * Fill::ALL.len() * 2);
        for (number, (sides, status)) in rows.iter().enumerate() {
            assert!(rows[..number].iter().all(|(other, _)| other != sides), "{sides:?} twice");
            assert_eq!(sides.status(), *status, "{sides:?}");
        }
        let listed: Vec<_> = transitions().collect();
        for from in RoomStatus::ALL {
            assert_eq!(MAY_BECOME[from as usize].0, from, "rows are in the order of the statuses");
            for to in RoomStatus::ALL {
                let times = listed.iter().filter(|change| **change == (from, to)).count();
                assert_eq!(times, usize::from(from != to && from.may_become(to)), "{from} to {to}");
            }
        }
    }

    #[test]
    fn a_room_becomes_allocated_from_wherever_it_becomes_ready() {
        for from in RoomStatus::ALL.into_iter().filter(|from| ![Ready, Allocated].contains(from)) {
            assert_eq!(from.may_become(Allocated), from.may_become(Ready), "{from}");
        }
    }

    #[test]
    fn all_transitions() {
        let mut table = String::new();
        for from in RoomStatus::ALL {
            let to: Vec<_> =
                transitions().filter(|(one, _)| *one == from).map(|(_, to)| to.as_str()).collect();
            table += &format!("{from}: {}\n", to.join(" "));
        }
        expect_test::expect![[r#"
            pending: unready ready active occupied allocated terminating terminated error
            unready: pending ready active occupied allocated terminating terminated error
            ready: unready active occupied allocated terminating terminated error
            active: unready ready occupied allocated terminating terminated error
            occupied: unready ready active allocated terminating terminated error
            allocated: unready ready active occupied terminating terminated error
            terminating: unready ready active occupied allocated terminated error
            terminated: 
            error: unready ready active occupied allocated terminating terminated
        "#]]
        .assert_eq(&table);
    }

    #[test]
    fn several_matches_in_a_room() {
        for (word, matches, expected) in [
            (PingStatus::Ready, 0, Ready),
            (PingStatus::Occupied, 0, Ready),
            (PingStatus::Ready, 1, Active),
            (PingStatus::Occupied, 2, Active),
            (PingStatus::Occupied, 3, Occupied),
            (PingStatus::Ready, 9, Occupied),
        ] {
            let sides = Sides { fill: Fill::of(matches, 3), ..sides(word, InstanceStatus::Ready) };
            assert_eq!(sides.status(), expected, "{word:?} with {matches} of 3");
        }
    }

    #[test]
    fn a_claimed_room_is_on_its_way_out_until_it_is_given_back() {
        let mut room = RoomState::new(InstanceStatus::Ready, 1, true);
        room.ping(PingStatus::Ready, 0).unwrap();
        assert!(!room.claim(&[Occupied], true), "it is ready");
        assert!(room.claim(&[Ready], true));
        assert!(!room.claim(&RoomStatus::ALL, false), "one claim at a time");
        assert_eq!(room.status(), Terminating);
        for (observed, status) in [(InstanceStatus::Error, Error), (InstanceStatus::Pending, Terminating)] {
            assert_eq!(room.observe(observed).after, status, "{observed:?}");
        }
        room.observe(InstanceStatus::Ready);
        room.unclaim();
        assert_eq!(room.status(), Ready);
    }

    #[test]
    fn a_held_room_stays_allocated_until_a_match_begins() {
        let mut room = RoomState::new(InstanceStatus::Ready, 1, true);
        room.set_holds(1);
        let steps = [
            (PingStatus::Ready, Allocated),
            (PingStatus::Occupied, Occupied),
            (PingStatus::Terminating, Terminating),
        ];
        for (word, expected) in steps {
            assert_eq!(room.ping(word, 0).map(|change| change.after), Ok(expected), "{word:?}");
        }
        room.ping(PingStatus::Ready, 0).unwrap();
        room.set_holds(0);
        assert_eq!(room.status(), Ready);
    }

    #[test]
    fn free_slots() {
        for (matches_max, word, matches, holds, expected) in [
            (1, PingStatus::Ready, 0, 0, 1),
            (1, PingStatus::Ready, 0, 1, 0),
            (1, PingStatus::Occupied, 1, 0, 0),
            (1, PingStatus::Terminating, 0, 0, 0),
            (4, PingStatus::Ready, 0, 0, 4),
            (4, PingStatus::Ready, 1, 2, 1),
            (4, PingStatus::Ready, 3, 2, 0),
            (4, PingStatus::Ready, 4, 0, 0),
        ] {
            let mut room = RoomState::new(InstanceStatus::Ready, matches_max, false);
            assert_eq!(room.free_slots(), 0, "nobody has heard of it");
            room.set_holds(holds);
            room.ping(word, matches).unwrap();
            assert_eq!(room.free_slots(), expected, "{word:?} with {matches} and {holds} of {matches_max}");
            room.claim(&RoomStatus::ALL, false);
            assert_eq!(room.free_slots(), 0, "it is on its way out");
        }
    }

    #[test]
    fn a_room_that_was_there_before_the_table_is_unknown_until_it_pings() {
        let mut room = RoomState::new(InstanceStatus::Ready, 1, false);
        assert!(!room.claim(&RoomStatus::ALL, true));
        room.ping(PingStatus::Occupied, 0).unwrap();
        assert!(room.is_known() && room.was_ready());
        assert!(room.claim(&RoomStatus::ALL, true));
    }

    #[test]
    fn what_is_not_possible_is_not_taken_up() {
        let mut room = RoomState::new(InstanceStatus::Ready, 1, false);
        room.ping(PingStatus::Terminated, 0).unwrap();
        let before = room;
        let refused = StatusChange { before: Terminated, after: Ready };
        assert_eq!(room.ping(PingStatus::Ready, 3), Err(refused));
        assert_eq!(room.observe(InstanceStatus::Error).after, Terminated);
        assert_eq!(room, before);
    }
}
