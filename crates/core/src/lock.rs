//! Named locks of a scheduler. The queue orders operations; locks protect what outlasts or bypasses one of them: a rollout,
//! removals in progress, and rooms that the rooms API asks for in a panic.
//!
//! This module decides what a lock is and who may take it; stores keep the rows and ask [`may_take`]. Two of the kinds
//! that people see have no rows, because the queue and the transactions protect what they name.

use std::fmt;

use crate::operation::{DefinitionKind, Operation, OperationId, Token};
use crate::scheduler::{SchedulerName, Version};
use crate::time::Timestamp;
use crate::words::words;

words! {
    /// In the order in which they are taken; never the other way round.
    pub enum LockKind {
        /// The recipe, its versions, and which of them is active.
        Config = "config",
        /// The fleet size. Always free: a transaction that changes it is refused if the scheduler changed meanwhile.
        Scale = "scale",
        /// Whether there is to be a fleet at all. Not stored: see [`Lock::of_termination`].
        Termination = "termination",
        /// Rooms on their way out.
        Downscaling = "downscaling",
        /// A burst of rooms that was added in a panic.
        Panic = "panic",
    }
}

/// Who holds a lock, or waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holder {
    Operation {
        kind: DefinitionKind,
        id: OperationId,
    },
    /// The rollout to this version, from its switch until the last old room is gone.
    Rollout(Version),
    /// A wish of the health controller that has no operation yet. It waits, and never holds.
    HealthController,
}

/// A lock that someone holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lock {
    pub kind: LockKind,
    pub holder: Holder,
    pub reason: String,
    pub token: Token,
    pub acquired_at: Timestamp,
    /// `None`: it ends with its holder and not by time.
    pub expires_at: Option<Timestamp>,
}

/// A place in the order in which a lock is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiter {
    pub kind: LockKind,
    pub holder: Holder,
    pub since: Timestamp,
    /// From then on the place does not count any more.
    pub until: Timestamp,
}

/// All locks of one scheduler at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Locks {
    /// Those that someone holds, in the order of [`LockKind::ALL`]; one whose time is over stays until it is taken.
    pub held: Vec<Lock>,
    /// First come, first served.
    pub waiters: Vec<Waiter>,
}

/// Who wants a lock.
#[derive(Debug, Clone, Copy)]
pub struct Taker {
    pub holder: Holder,
    /// Whose lock, or whose place, is handed over to it.
    pub instead_of: Option<Holder>,
}

/// Why a lock cannot be taken now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    Held(Lock),
    /// It is free, and someone else was there before.
    Promised(Waiter),
}

/// The one rule for taking a lock, whatever store keeps it. `held` and `waiters` are those of one kind.
pub fn may_take(
    held: Option<&Lock>,
    waiters: &[Waiter],
    taker: Taker,
    now: Timestamp,
) -> Result<(), Obstacle> {
    let is_taker = |holder: &Holder| *holder == taker.holder || Some(*holder) == taker.instead_of;
    if let Some(lock) = held {
        if is_taker(&lock.holder) {
            return Ok(());
        }
        if !lock.is_over(now) {
            return Err(Obstacle::Held(lock.clone()));
        }
    }
    match waiters.iter().find(|waiter| waiter.until > now) {
        Some(first) if !is_taker(&first.holder) => Err(Obstacle::Promised(first.clone())),
        Some(_) | None => Ok(()),
    }
}

impl LockKind {
    /// Those that people see in a list; the panic lock is none of them.
    pub const LISTED: [Self; 4] = [Self::Config, Self::Scale, Self::Termination, Self::Downscaling];

    /// The name that clients of the lock list know it by.
    pub fn key(self, scheduler: &SchedulerName) -> String {
        match self {
            Self::Panic => format!("maestro:panic:lock:{scheduler}"),
            kind => format!("maestro-lock-key-{scheduler}-{}", kind.as_str()),
        }
    }
}

impl Lock {
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }

    /// Who decides about the fleet as a whole: a health cycle or a deletion in progress, until it rolls back. A deletion
    /// waits for all others to end, so a cycle that is still in progress comes first.
    pub fn of_termination(unfinished: &[Operation]) -> Option<Self> {
        let at_work = |kind| {
            let mut goes_on = unfinished.iter().filter(|operation| operation.rollback.is_none());
            goes_on.find_map(|one| {
                one.lease.as_ref().filter(|_| one.definition.kind() == kind).map(|lease| (one, lease))
            })
        };
        let (operation, lease) =
            at_work(DefinitionKind::HealthController).or_else(|| at_work(DefinitionKind::DeleteScheduler))?;
        // The first event after `Created` is that it starts.
        let started = operation.history.get(1).map(|event| event.at);
        Some(Self {
            kind: LockKind::Termination,
            holder: operation.holder(),
            reason: operation.reason.clone(),
            token: lease.token,
            acquired_at: started.unwrap_or(operation.created_at),
            expires_at: Some(lease.expires_at),
        })
    }
}

impl Locks {
    pub fn held(&self, kind: LockKind) -> Option<&Lock> {
        self.held.iter().find(|lock| lock.kind == kind)
    }

    pub fn held_by(&self, kind: LockKind, holder: Holder) -> Option<&Lock> {
        self.held(kind).filter(|lock| lock.holder == holder)
    }

    /// With the lock that is not stored.
    pub fn with_termination(mut self, unfinished: &[Operation]) -> Self {
        self.held.extend(Lock::of_termination(unfinished));
        self.held.sort_by_key(|lock| lock.kind);
        self
    }

    pub fn held_by_rollout(&self, kind: LockKind) -> bool {
        self.held(kind).is_some_and(|lock| lock.holder.is_rollout())
    }

    pub fn waits(&self, kind: LockKind, holder: Holder) -> Option<&Waiter> {
        self.waiters.iter().find(|waiter| waiter.kind == kind && waiter.holder == holder)
    }

    /// What stands between an operation and the lock that it waits for; `None`: nothing, or it waits for none.
    pub fn obstacle_of(&self, operation: OperationId, now: Timestamp) -> Option<Obstacle> {
        let place = self.waiters.iter().find(|waiter| waiter.holder.operation() == Some(operation))?;
        self.may_take(place.kind, Taker::of(place.holder), now).err()
    }

    /// The places of one lock that still count, first come first served.
    pub fn waiters_of(&self, kind: LockKind, now: Timestamp) -> impl Iterator<Item = &Waiter> {
        self.waiters.iter().filter(move |waiter| waiter.kind == kind && waiter.until > now)
    }

    /// As if this one waited for nothing.
    pub fn without(mut self, holder: Holder) -> Self {
        self.waiters.retain(|waiter| waiter.holder != holder);
        self
    }

    /// Whether the lock could be taken at this moment.
    pub fn may_take(&self, kind: LockKind, taker: Taker, now: Timestamp) -> Result<(), Obstacle> {
        let waiters: Vec<Waiter> =
            self.waiters.iter().filter(|waiter| waiter.kind == kind).cloned().collect();
        may_take(self.held(kind), &waiters, taker, now)
    }
}

impl Taker {
    /// A deletion takes the place that a health cycle may have left: no cycle comes any more to claim it.
    pub fn of(holder: Holder) -> Self {
        let instead_of = match holder {
            Holder::Operation { kind: DefinitionKind::DeleteScheduler, .. } => Some(Holder::HealthController),
            Holder::Operation { .. } | Holder::Rollout(_) | Holder::HealthController => None,
        };
        Self { holder, instead_of }
    }
}

impl Holder {
    pub fn operation(self) -> Option<OperationId> {
        match self {
            Self::Operation { id, .. } => Some(id),
            Self::Rollout(_) | Self::HealthController => None,
        }
    }

    pub fn is_rollout(self) -> bool {
        match self {
            Self::Rollout(_) => true,
            Self::Operation { .. } | Self::HealthController => false,
        }
    }

    /// An operation of a kind that is not known here, which another version of Maestro left, is a holder all the same.
    pub fn parse(text: &str) -> Option<Self> {
        if text == HEALTH_CONTROLLER {
            return Some(Self::HealthController);
        }
        match text.split_once(' ')? {
            ("rollout", version) => Version::parse(version).ok().map(Self::Rollout),
            (name, id) => {
                let kind = DefinitionKind::parse(name).unwrap_or(DefinitionKind::Unknown);
                OperationId::parse(id).map(|id| Self::Operation { kind, id })
            }
        }
    }
}

const HEALTH_CONTROLLER: &str = "the health controller";

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operation { kind, id } => write!(f, "{kind} {id}"),
            Self::Rollout(version) => write!(f, "rollout {version}"),
            Self::HealthController => f.write_str(HEALTH_CONTROLLER),
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held(lock) => {
                write!(f, "{} held by {} since {:.3}", lock.kind, lock.holder, lock.acquired_at)
            }
            Self::Promised(first) => write!(f, "{} promised to {}", first.kind, first.holder),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn holder(number: u8) -> Holder {
        let id = OperationId::new(at(0), [number; 10]);
        Holder::Operation { kind: DefinitionKind::RemoveRooms, id }
    }

    fn lock(holder: Holder, expires_at: Option<i64>) -> Lock {
        Lock {
            kind: LockKind::Downscaling,
            holder,
            reason: "-3".into(),
            token: Token(7),
            acquired_at: at(0),
            expires_at: expires_at.map(at),
        }
    }

    fn waiter(holder: Holder, until: i64) -> Waiter {
        Waiter { kind: LockKind::Downscaling, holder, since: at(0), until: at(until) }
    }

    #[test]
    fn who_may_take_a_lock() {
        let (one, other, third) = (holder(1), holder(2), holder(3));
        let held = |by, until| Some(lock(by, until));
        let handed = Taker { holder: other, instead_of: Some(one) };
        let cases = [
            ("free", None, vec![], Taker::of(one), true),
            ("its own", held(one, Some(30)), vec![], Taker::of(one), true),
            (
                "its own, though others wait",
                held(one, Some(30)),
                vec![waiter(other, 99)],
                Taker::of(one),
                true,
            ),
            ("another's", held(one, Some(30)), vec![], Taker::of(other), false),
            ("another's whose time is over", held(one, Some(10)), vec![], Taker::of(other), true),
            ("another's without an end", held(one, None), vec![], Taker::of(other), false),
            ("handed over", held(one, None), vec![waiter(third, 99)], handed, true),
            (
                "free, and first in the order",
                None,
                vec![waiter(one, 99), waiter(other, 99)],
                Taker::of(one),
                true,
            ),
            (
                "free, and not the first",
                None,
                vec![waiter(one, 99), waiter(other, 99)],
                Taker::of(other),
                false,
            ),
            ("free, and nobody's turn but others wait", None, vec![waiter(one, 99)], Taker::of(third), false),
            ("the first one's place is too old", None, vec![waiter(one, 10)], Taker::of(third), true),
            ("the place was handed over", None, vec![waiter(one, 99)], handed, true),
        ];
        for (case, held, waiters, taker, may) in cases {
            assert_eq!(may_take(held.as_ref(), &waiters, taker, at(10)).is_ok(), may, "{case}");
        }
    }

    #[test]
    fn who_has_the_termination_lock() {
        use crate::operation::testing::{lease, operation};
        use crate::operation::{Definition, HistoryEvent, OperationStatus, Rollback, RollbackEnd};

        let one = |number, definition, status| Operation { definition, ..operation(number, status, 1000) };
        let cycle = |number, status| one(number, Definition::HealthController, status);
        let deletion = |number, status| one(number, Definition::DeleteScheduler, status);
        let rolls_back = |operation| Operation {
            rollback: Some(Rollback { then: RollbackEnd::Error, why: "released".into() }),
            ..operation
        };
        let (pending, in_progress) = (OperationStatus::Pending, OperationStatus::InProgress);
        for (case, unfinished, expected) in [
            ("nobody", vec![], None),
            ("who has not begun", vec![cycle(1, pending), deletion(2, pending)], None),
            ("another operation", vec![operation(1, in_progress, 1000)], None),
            ("a cycle", vec![operation(1, in_progress, 1000), cycle(2, in_progress)], Some(2)),
            ("a deletion", vec![cycle(1, pending), deletion(2, in_progress)], Some(2)),
            ("a cycle before a deletion", vec![deletion(1, in_progress), cycle(2, in_progress)], Some(2)),
            ("who rolls back", vec![rolls_back(cycle(1, in_progress))], None),
        ] {
            let lock = Lock::of_termination(&unfinished);
            let holder = lock.and_then(|lock| lock.holder.operation());
            assert_eq!(holder, expected.map(OperationId::from_u128), "{case}");
        }
        let mut deletion = Operation { reason: "asked for by ann".into(), ..deletion(1, in_progress) };
        deletion.history.push(HistoryEvent { at: at(1003), event: "Starting operation".into() });
        let expected = Lock {
            kind: LockKind::Termination,
            holder: deletion.holder(),
            reason: "asked for by ann".into(),
            token: lease("worker-1", 1005).token,
            acquired_at: at(1003),
            expires_at: Some(at(1005)),
        };
        let config = Lock { kind: LockKind::Config, ..expected.clone() };
        let downscaling = Lock { kind: LockKind::Downscaling, ..expected.clone() };
        let stored = Locks { held: vec![config.clone(), downscaling.clone()], waiters: Vec::new() };
        assert_eq!(stored.with_termination(&[deletion]).held, [config, expected, downscaling]);
    }

    #[test]
    fn words_are_read_back() {
        for holder in [holder(9), Holder::Rollout(Version::FIRST), Holder::HealthController] {
            assert_eq!(Holder::parse(&holder.to_string()), Some(holder));
        }
        assert_eq!(Holder::parse("nobody at all"), None);
        let id = OperationId::new(at(0), [9; 10]);
        let unknown = Holder::Operation { kind: DefinitionKind::Unknown, id };
        assert_eq!(Holder::parse(&format!("paint_rooms {id}")), Some(unknown));
        for kind in LockKind::ALL {
            assert_eq!(LockKind::parse(kind.as_str()), Some(kind));
        }
    }

    #[test]
    fn keys_never_meet() {
        let name = |text| SchedulerName::parse(text).unwrap();
        assert_eq!(LockKind::Config.key(&name("x")), "maestro-lock-key-x-config");
        assert_eq!(LockKind::Panic.key(&name("x")), "maestro:panic:lock:x");
        // v9's scale lock had no suffix, so that of one scheduler could be the config lock of another.
        assert_ne!(LockKind::Scale.key(&name("x-config")), LockKind::Config.key(&name("x")));
    }
}
