//! Who has which room, as far as the server has said so.
//!
//! A room is given away in the ledger after the answer has come, and free in it before the server is told: so whoever is
//! in the ledger has the room for certain, and two at once are one too many.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::ensure;
use jiff::Timestamp;
use parking_lot::Mutex;

/// What a matchmaker does with a room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Play,
    GiveBack,
    /// Nothing: it expires.
    Forget,
}

/// An allocation as it was answered.
#[derive(Debug, Clone)]
pub(super) struct Given {
    pub(super) id: String,
    pub(super) room: String,
    pub(super) request_id: Option<String>,
    pub(super) expires_at: Timestamp,
    pub(super) fate: Fate,
}

#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<Entries>);

#[derive(Debug, Default)]
pub(super) struct Entries {
    /// By room.
    held: BTreeMap<String, Held>,
    /// At the last count, and at most.
    taken: usize,
    taken_max: usize,
    /// By allocation.
    pub(super) given: BTreeMap<String, Given>,
    /// Of allocations whose match has begun, when it was over.
    pub(super) played: BTreeMap<String, Option<Timestamp>>,
    /// Given back, and the server has said so.
    pub(super) given_back: BTreeSet<String>,
    /// Rooms whose processes were killed.
    pub(super) killed: BTreeSet<String>,
}

#[derive(Debug)]
struct Held {
    allocation: String,
    expires_at: Timestamp,
    fate: Fate,
    has_begun: bool,
}

impl Held {
    /// Nobody tells when a hold expires; a match that has begun holds on.
    fn may_be_over(&self, now: Timestamp) -> bool {
        !self.has_begun && self.expires_at <= now
    }
}

impl Ledger {
    /// The error is that somebody else has the room.
    pub(super) fn give(&self, given: Given) -> anyhow::Result<()> {
        let mut entries = self.0.lock();
        let now = Timestamp::now();
        if let Some(held) = entries.held.get(&given.room) {
            let is_repeated = held.allocation == given.id;
            ensure!(
                is_repeated || held.may_be_over(now),
                "{given:?} was answered at {now}, and the room is somebody else's: {held:?}"
            );
            if is_repeated {
                return Ok(());
            }
        }
        let held = Held {
            allocation: given.id.clone(),
            expires_at: given.expires_at,
            fate: given.fate,
            has_begun: false,
        };
        entries.held.insert(given.room.clone(), held);
        entries.given.insert(given.id.clone(), given);
        Ok(())
    }

    /// Before the server is told.
    pub(super) fn give_back(&self, given: &Given) {
        self.0.lock().free(&given.room, &given.id);
    }

    pub(super) fn was_given_back(&self, given: &Given) {
        self.0.lock().given_back.insert(given.id.clone());
    }

    /// The players of a room come, if it has told that it knows of them. Which match begins.
    pub(super) fn begin_match(&self, room: &str, expected: &[String]) -> Option<String> {
        let mut entries = self.0.lock();
        let held = entries.held.get_mut(room)?;
        if held.fate != Fate::Play || !expected.contains(&held.allocation) {
            return None;
        }
        held.has_begun = true;
        let allocation = held.allocation.clone();
        entries.played.insert(allocation.clone(), None);
        Some(allocation)
    }

    /// Before the server is told.
    pub(super) fn end_match(&self, room: &str, allocation: &str) {
        let mut entries = self.0.lock();
        entries.free(room, allocation);
        entries.played.insert(allocation.to_owned(), Some(Timestamp::now()));
    }

    /// Counts those of these rooms that somebody has.
    pub(super) fn count<'a>(&self, rooms: impl Iterator<Item = &'a str>) {
        let mut entries = self.0.lock();
        let now = Timestamp::now();
        let held = rooms.filter(|room| entries.held.get(*room).is_some_and(|held| !held.may_be_over(now)));
        entries.taken = held.count();
        entries.taken_max = entries.taken_max.max(entries.taken);
    }

    /// Before it is killed.
    pub(super) fn kill(&self, room: &str) {
        self.0.lock().killed.insert(room.to_owned());
    }

    pub(super) fn is_killed(&self, room: &str) -> bool {
        self.0.lock().killed.contains(room)
    }

    /// Rooms that somebody has: at the last count, and the most that there were.
    pub(super) fn taken(&self) -> (usize, usize) {
        let entries = self.0.lock();
        (entries.taken, entries.taken_max)
    }

    /// For those who look at all of it.
    pub(super) fn look<T>(&self, look: impl FnOnce(&Entries) -> T) -> T {
        look(&self.0.lock())
    }
}

impl Entries {
    fn free(&mut self, room: &str, allocation: &str) {
        if self.held.get(room).is_some_and(|held| held.allocation == allocation) {
            self.held.remove(room);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(id: &str, room: &str, expires_in: i64, fate: Fate) -> Given {
        let expires_at = Timestamp::now() + jiff::SignedDuration::from_secs(expires_in);
        Given { id: id.into(), room: room.into(), request_id: None, expires_at, fate }
    }

    #[test]
    fn a_room_that_somebody_has_is_not_given_again() {
        let ledger = Ledger::default();
        let first = given("a", "room", 60, Fate::GiveBack);
        ledger.give(first.clone()).expect("it is free");
        ledger.give(first.clone()).expect("the same answer again");
        let second = given("b", "room", 60, Fate::GiveBack);
        assert!(ledger.give(second.clone()).is_err());
        ledger.give_back(&first);
        ledger.give(second).expect("it is free again");
        ledger.give(given("c", "other", -1, Fate::Forget)).expect("another room");
        ledger.give(given("d", "other", 60, Fate::Forget)).expect("the hold is over");
    }

    #[test]
    fn a_match_holds_its_room_until_it_is_over() {
        let ledger = Ledger::default();
        ledger.give(given("a", "room", 60, Fate::Play)).expect("it is free");
        assert_eq!(ledger.begin_match("room", &[]), None, "the room does not know yet");
        ledger.0.lock().held.get_mut("room").expect("held").expires_at = Timestamp::MIN;
        assert_eq!(ledger.begin_match("room", &["a".to_owned()]).as_deref(), Some("a"));
        assert!(ledger.give(given("b", "room", 60, Fate::Play)).is_err(), "players are in it");
        ledger.end_match("room", "a");
        ledger.give(given("b", "room", 60, Fate::Play)).expect("it is free again");
    }
}
