//! The statuses of a room and of its two sides. How one follows from the others is in [`super::machine`].

use crate::words::words;

words! {
    /// What a room is doing, composed from both of its sides.
    pub enum RoomStatus {
        /// Its instance is not up yet.
        Pending = "pending",
        /// Its instance is up; the game has not pinged.
        Unready = "unready",
        Ready = "ready",
        /// Matches run in it, and there is a place for more.
        Active = "active",
        /// It has no place for another match.
        Occupied = "occupied",
        /// It was handed to a matchmaker, and no match has begun.
        Allocated = "allocated",
        Terminating = "terminating",
        Terminated = "terminated",
        Error = "error",
    }

    /// What the game says about itself.
    pub enum PingStatus {
        /// Nothing yet.
        Unknown = "unknown",
        Ready = "ready",
        Occupied = "occupied",
        Terminating = "terminating",
        Terminated = "terminated",
    }

    /// What the runtime says about the instance.
    pub enum InstanceStatus {
        Unknown = "unknown",
        Pending = "pending",
        Ready = "ready",
        Terminating = "terminating",
        Error = "error",
    }
}

impl RoomStatus {
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
}

impl PingStatus {
    /// What a room may say of itself.
    pub const SAID: [Self; 4] = [Self::Ready, Self::Occupied, Self::Terminating, Self::Terminated];

    pub fn parse_said(text: &str) -> Option<Self> {
        Self::parse(text).filter(|status| Self::SAID.contains(status))
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

    #[test]
    fn a_room_says_anything_but_unknown() {
        assert_eq!(
            PingStatus::SAID.map(|status| PingStatus::parse_said(status.as_str())),
            PingStatus::SAID.map(Some)
        );
        assert_eq!(PingStatus::parse_said("unknown"), None);
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
