//! The statuses of a room and of its two sides. How one follows from the others is in [`super::machine`].

use std::marker::PhantomData;

use crate::words::{Word, words};

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

    /// It may have a place for another match.
    pub fn has_slots(self) -> bool {
        match self {
            Self::Ready | Self::Active | Self::Allocated => true,
            Self::Pending
            | Self::Unready
            | Self::Occupied
            | Self::Terminating
            | Self::Terminated
            | Self::Error => false,
        }
    }

    /// Ready, or more than that: nothing has to happen to it.
    pub fn is_up(self) -> bool {
        self == Self::Ready || self.serves_players()
    }
}

impl PingStatus {
    /// What a room may say of itself.
    pub const SAID: [Self; 4] = [Self::Ready, Self::Occupied, Self::Terminating, Self::Terminated];

    pub fn parse_said(text: &str) -> Option<Self> {
        Self::parse(text).filter(|status| Self::SAID.contains(status))
    }
}

/// How many rooms there are by one of their statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts<T, const VALUES: usize> {
    counts: [u32; VALUES],
    of: PhantomData<T>,
}

pub type StatusCounts = Counts<RoomStatus, { RoomStatus::ALL.len() }>;
pub type InstanceCounts = Counts<InstanceStatus, { InstanceStatus::ALL.len() }>;

impl<T: Word, const VALUES: usize> Counts<T, VALUES> {
    pub fn of(&self, status: T) -> u32 {
        self.counts[status.index()]
    }

    pub fn add(&mut self, status: T) {
        self.add_many(status, 1);
    }

    pub fn add_many(&mut self, status: T, rooms: u32) {
        self.counts[status.index()] += rooms;
    }

    pub fn remove(&mut self, status: T) {
        let count = &mut self.counts[status.index()];
        debug_assert!(*count > 0, "more rooms left a status than came");
        *count = count.saturating_sub(1);
    }

    pub fn is_empty(&self) -> bool {
        self.counts.iter().all(|count| *count == 0)
    }

    pub fn iter(&self) -> impl Iterator<Item = (T, u32)> + '_ {
        T::WORDS.iter().map(|(status, _)| (*status, self.of(*status)))
    }
}

impl StatusCounts {
    /// Rooms of the fleet, there or on their way to be.
    pub fn total(&self) -> u32 {
        self.sum(RoomStatus::counts)
    }

    /// Rooms that players are in or on their way to.
    pub fn occupied(&self) -> u32 {
        self.sum(RoomStatus::serves_players)
    }

    fn sum(&self, which: fn(RoomStatus) -> bool) -> u32 {
        self.iter().filter(|(status, _)| which(*status)).map(|(_, rooms)| rooms).fold(0, u32::saturating_add)
    }
}

impl<T, const VALUES: usize> Default for Counts<T, VALUES> {
    fn default() -> Self {
        Self { counts: [0; VALUES], of: PhantomData }
    }
}

impl<T, const VALUES: usize> std::ops::AddAssign<&Self> for Counts<T, VALUES> {
    fn add_assign(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
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
