//! The status of a room, composed from its instance and its ping, and the changes that are possible.

/// What a room is doing, composed from both of its sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RoomStatus {
    /// Its instance is not up yet.
    Pending,
    /// Its instance is up; the game has not pinged.
    Unready,
    Ready,
    /// Matches run in it, and there is a place for more.
    Active,
    /// It has no place for another match.
    Occupied,
    /// It was handed to a matchmaker, and no match has begun.
    Allocated,
    Terminating,
    Terminated,
    Error,
}

/// What the game says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PingStatus {
    /// Nothing yet.
    Unknown,
    Ready,
    Occupied,
    Terminating,
    Terminated,
}

/// What the runtime says about the instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InstanceStatus {
    Unknown,
    Pending,
    Ready,
    Terminating,
    Error,
}

/// Everything that a room's status is composed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    pub instance: InstanceStatus,
    pub ping: PingStatus,
    pub matches: u32,
    pub matches_max: u32,
    /// Handed to a matchmaker, and the hold has not run out.
    pub held: bool,
}

impl Seen {
    pub fn status(&self) -> RoomStatus {
        let composed = match (self.ping, self.instance) {
            (_, InstanceStatus::Error) => RoomStatus::Error,
            (PingStatus::Terminated, _) => RoomStatus::Terminated,
            (PingStatus::Terminating, _) | (_, InstanceStatus::Terminating) => RoomStatus::Terminating,
            (_, InstanceStatus::Unknown | InstanceStatus::Pending) => RoomStatus::Pending,
            (PingStatus::Unknown, InstanceStatus::Ready) => RoomStatus::Unready,
            (PingStatus::Ready, InstanceStatus::Ready) => self.by_matches(RoomStatus::Ready),
            (PingStatus::Occupied, InstanceStatus::Ready) => self.by_matches(RoomStatus::Occupied),
        };
        match composed {
            RoomStatus::Ready if self.held => RoomStatus::Allocated,
            status => status,
        }
    }

    /// With several matches in a room the number of matches decides, not the word.
    fn by_matches(&self, word: RoomStatus) -> RoomStatus {
        match self.matches {
            _ if self.matches_max <= 1 => word,
            0 => RoomStatus::Ready,
            matches if matches >= self.matches_max => RoomStatus::Occupied,
            _ => RoomStatus::Active,
        }
    }
}

impl RoomStatus {
    pub const ALL: [Self; 9] = [
        Self::Pending,
        Self::Unready,
        Self::Ready,
        Self::Active,
        Self::Occupied,
        Self::Allocated,
        Self::Terminating,
        Self::Terminated,
        Self::Error,
    ];

    /// May a room change from this status to `to`? Staying the same is no change and always possible.
    pub fn may_become(self, to: Self) -> bool {
        match (self, to) {
            (from, to) if from == to => true,
            (Self::Terminated, _) => false,
            // Only an instance that has not come up makes a room pending, and only a silent one makes it wait again.
            (from, Self::Pending) => from == Self::Unready,
            // A matchmaker is given ready rooms only.
            (from, Self::Allocated) => from == Self::Ready,
            (
                Self::Pending
                | Self::Unready
                | Self::Ready
                | Self::Active
                | Self::Occupied
                | Self::Allocated
                | Self::Terminating
                | Self::Error,
                Self::Unready
                | Self::Ready
                | Self::Active
                | Self::Occupied
                | Self::Terminating
                | Self::Terminated
                | Self::Error,
            ) => true,
        }
    }

    /// Players are in it or on their way to it.
    pub fn serves_players(self) -> bool {
        match self {
            Self::Active | Self::Occupied | Self::Allocated => true,
            Self::Pending
            | Self::Unready
            | Self::Ready
            | Self::Terminating
            | Self::Terminated
            | Self::Error => false,
        }
    }

    /// Part of the fleet's `total`: there, or on its way to be.
    pub fn counts(self) -> bool {
        match self {
            Self::Pending | Self::Unready | Self::Ready | Self::Active | Self::Occupied | Self::Allocated => {
                true
            }
            Self::Terminating | Self::Terminated | Self::Error => false,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Unready => "unready",
            Self::Ready => "ready",
            Self::Active => "active",
            Self::Occupied => "occupied",
            Self::Allocated => "allocated",
            Self::Terminating => "terminating",
            Self::Terminated => "terminated",
            Self::Error => "error",
        }
    }
}

impl PingStatus {
    /// What a room may say of itself. `Unknown` is not among it.
    pub const WORDS: [(&'static str, Self); 4] = [
        ("ready", Self::Ready),
        ("occupied", Self::Occupied),
        ("terminating", Self::Terminating),
        ("terminated", Self::Terminated),
    ];

    pub fn parse(text: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(word, _)| *word == text).map(|(_, status)| *status)
    }
}

impl std::fmt::Display for RoomStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How many rooms are in each status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StatusCounts([u32; RoomStatus::ALL.len()]);

impl StatusCounts {
    pub fn of(&self, status: RoomStatus) -> u32 {
        self.0[status as usize]
    }

    pub fn add(&mut self, status: RoomStatus) {
        self.0[status as usize] += 1;
    }

    pub fn remove(&mut self, status: RoomStatus) {
        let count = &mut self.0[status as usize];
        debug_assert!(*count > 0, "more rooms left status {status} than came");
        *count = count.saturating_sub(1);
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|count| *count == 0)
    }

    pub fn iter(&self) -> impl Iterator<Item = (RoomStatus, u32)> + '_ {
        RoomStatus::ALL.into_iter().map(|status| (status, self.of(status)))
    }
}

impl std::ops::AddAssign<&Self> for StatusCounts {
    fn add_assign(&mut self, other: &Self) {
        for (count, more) in self.0.iter_mut().zip(other.0) {
            *count += more;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INSTANCES: [InstanceStatus; 5] = [
        InstanceStatus::Unknown,
        InstanceStatus::Pending,
        InstanceStatus::Ready,
        InstanceStatus::Terminating,
        InstanceStatus::Error,
    ];

    fn seen(ping: PingStatus, instance: InstanceStatus) -> Seen {
        Seen { instance, ping, matches: 0, matches_max: 1, held: false }
    }

    #[test]
    fn the_table_of_ping_and_instance() {
        use RoomStatus::*;
        for (ping, expected) in [
            (PingStatus::Unknown, [Pending, Pending, Unready, Terminating, Error]),
            (PingStatus::Ready, [Pending, Pending, Ready, Terminating, Error]),
            (PingStatus::Occupied, [Pending, Pending, Occupied, Terminating, Error]),
            (PingStatus::Terminating, [Terminating, Terminating, Terminating, Terminating, Error]),
            (PingStatus::Terminated, [Terminated, Terminated, Terminated, Terminated, Error]),
        ] {
            for (instance, expected) in INSTANCES.into_iter().zip(expected) {
                assert_eq!(seen(ping, instance).status(), expected, "{ping:?} x {instance:?}");
            }
        }
    }

    #[test]
    fn several_matches_in_a_room() {
        for (word, matches, expected) in [
            (PingStatus::Ready, 0, RoomStatus::Ready),
            (PingStatus::Occupied, 0, RoomStatus::Ready),
            (PingStatus::Ready, 1, RoomStatus::Active),
            (PingStatus::Occupied, 2, RoomStatus::Active),
            (PingStatus::Occupied, 3, RoomStatus::Occupied),
            (PingStatus::Ready, 9, RoomStatus::Occupied),
        ] {
            let seen = Seen { matches, matches_max: 3, ..seen(word, InstanceStatus::Ready) };
            assert_eq!(seen.status(), expected, "{word:?} with {matches} of 3");
        }
    }

    #[test]
    fn a_held_room_stays_allocated_until_a_match_begins() {
        for (word, expected) in [
            (PingStatus::Ready, RoomStatus::Allocated),
            (PingStatus::Occupied, RoomStatus::Occupied),
            (PingStatus::Terminating, RoomStatus::Terminating),
        ] {
            let seen = Seen { held: true, ..seen(word, InstanceStatus::Ready) };
            assert_eq!(seen.status(), expected);
        }
    }

    #[test]
    fn all_transitions() {
        let mut table = String::new();
        for from in RoomStatus::ALL {
            let to: Vec<_> = RoomStatus::ALL
                .into_iter()
                .filter(|to| *to != from && from.may_become(*to))
                .map(RoomStatus::as_str)
                .collect();
            table += &format!("{from}: {}\n", to.join(" "));
        }
        expect_test::expect![[r#"
            pending: unready ready active occupied terminating terminated error
            unready: pending ready active occupied terminating terminated error
            ready: unready active occupied allocated terminating terminated error
            active: unready ready occupied terminating terminated error
            occupied: unready ready active terminating terminated error
            allocated: unready ready active occupied terminating terminated error
            terminating: unready ready active occupied terminated error
            terminated: 
            error: unready ready active occupied terminating terminated
        "#]]
        .assert_eq(&table);
    }

    #[test]
    fn counts_know_every_status() {
        let mut counts = StatusCounts::default();
        for status in RoomStatus::ALL {
            counts.add(status);
            assert_eq!(counts.of(status), 1);
            counts.remove(status);
        }
        assert!(counts.is_empty());
    }
}
