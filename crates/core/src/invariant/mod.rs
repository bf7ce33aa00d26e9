//! What must hold, by name. The simulated world runs the checks that can be judged at any moment after every write, and
//! the others when it has come to rest. In production each name is a label of `maestro_invariant_violations_total`.
//!
//! A check is a function over a few numbers that says what is wrong, if anything is. It decides nothing, and it shares no
//! formula with the code that it checks.

mod checks;

use std::fmt;

use crate::words::words;

pub use checks::{
    Removal, fleet_size_told, legal_transition, occupied_stay, one_executing, only_fleet, ports_once,
    ready_first, ready_kept, renewed_stays, rooms_made, surge_kept, token_grew,
};

words! {
    pub enum Invariant {
        /// No two operations of a scheduler execute, and nobody but its owner works on it.
        OneExecutor = "one-executor",
        /// Operations go from one status to another only as their state machine says.
        LegalTransitions = "legal-transitions",
        /// An operation takes effect once: no more rooms than asked for, and the fleet size is what people's operations
        /// made of it.
        EffectOnce = "effect-once",
        /// Our own additions never take a fleet above desired + surge, those of a panic aside.
        SurgeBound = "surge-bound",
        /// Our own removals never take the ready rooms under their target.
        ReadyTarget = "ready-target",
        /// No occupied room goes while a ready one could go in its place.
        ReadyBeforeOccupied = "ready-before-occupied",
        /// Autoscaling never removes an occupied room.
        OccupiedStays = "occupied-stays",
        /// A validation room is not part of the fleet.
        ValidationNotCounted = "validation-not-counted",
        /// No host port is given twice on a host.
        PortOnce = "port-once",
        /// Our own additions take no region above the cap that the placement policy gives it.
        CapsKept = "caps-kept",
        /// A later owner has a greater token.
        TokensGrow = "tokens-grow",
        /// Nothing is taken from a worker that renews it, whatever the clock of any host shows.
        RenewedStays = "renewed-stays",
        /// Whatever was accepted is carried out or ends with a reason, also after a crash.
        AcceptedWorkSurvives = "accepted-work-survives",
        /// No slot of a room is handed to two matchmakers at the same time.
        HeldOnce = "held-once",
        /// Autoscaling and drains never take a room that a matchmaker was given.
        HeldStays = "held-stays",
        /// What a matchmaker was told is in the store.
        AnswersKept = "answers-kept",
        /// Of the requests that wait for the same rooms, the first to come is the first to get one.
        FirstCome = "first-come",
        /// A hold always ends.
        HoldsEnd = "holds-end",
        /// Nobody acts on what a room table has of old: a room that last said that players are in it is not taken for an
        /// idle one.
        OldIsLost = "old-is-lost",
        /// What is seen of one instance of a room ends no other.
        OwnEnd = "own-end",
        /// Queued events of one room reach a receiver in the order in which they were accepted, and that the room is gone
        /// comes last.
        EventsInOrder = "events-in-order",
        /// Every event that was accepted reaches its receiver, or is a dead letter with a reason.
        AcceptedEventsArrive = "accepted-events-arrive",
        /// When nothing goes wrong any more, a fleet becomes what it should be, and stays so.
        Converges = "converges",
        /// Then no operation is left in progress.
        NothingInProgress = "nothing-in-progress",
        /// Then no lock is left that nobody will release.
        NoLockLeft = "no-lock-left",
        /// Then no room runs that the registry does not want.
        NoUnwantedRoom = "no-unwanted-room",
    }
}

/// An invariant that does not hold, and the numbers that show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvariantViolation {
    pub invariant: Invariant,
    pub what: String,
}

impl InvariantViolation {
    pub fn new(invariant: Invariant, what: impl Into<String>) -> Self {
        Self { invariant, what: what.into() }
    }
}

impl fmt::Display for InvariantViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant, self.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_are_all_different() {
        for (index, invariant) in Invariant::ALL.into_iter().enumerate() {
            assert_eq!(Invariant::parse(invariant.as_str()), Some(invariant));
            assert!(!Invariant::ALL[..index].contains(&invariant));
        }
        assert_eq!(Invariant::parse("everything"), None);
    }
}
