//! Wake-ups between processes. Nobody needs them to be right: a loop that is not woken looks by itself after a while. They
//! make the difference between a while and at once.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use maestro_core::scheduler::SchedulerName;

/// Schedulers that one batch names; with more of them, everybody looks. Beyond that, looking costs less than telling.
pub const NAMED_MAX: usize = 500;

/// A process sends no more often than this: what happens meanwhile is told together.
pub const SEND_INTERVAL: Duration = Duration::from_millis(50);

/// Carries wake-ups from each process to all others.
///
/// Any of them may be lost, late, or come twice, and several may come as one. What a process sent may come back to it.
#[async_trait]
pub trait WakeUpChannel: Send + Sync {
    /// Sends to all others that are there. Waits for none of them.
    async fn send(&self, wake_ups: &WakeUpBatch) -> Result<(), WakeUpError>;

    /// What came since the last call that returned; waits until something does. May be given up. After a time in which
    /// nothing could be received, it returns [`WakeUpBatch::everything`].
    async fn receive(&self) -> Result<WakeUpBatch, WakeUpError>;
}

/// The wake-ups did not get on their way, or nothing can be received now.
#[derive(Debug, thiserror::Error)]
#[error("wake-ups of other processes do not pass: {0}")]
pub struct WakeUpError(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// What happened that others may wait for. It carries no data; whoever is woken looks for itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WakeUpBatch {
    /// Something was enqueued, or a wait may be over.
    pub queues: Named,
    /// Rooms changed.
    pub rooms: Named,
    /// Events were queued for forwarders.
    pub events: Named,
    /// There is a new scheduler, one that nobody owns any more, or another number of workers.
    pub workforce: bool,
    /// Something changed that concerns the rooms of all schedulers, as a region that is lost or back.
    pub regions: bool,
}

/// Schedulers by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// At most [`NAMED_MAX`].
    These(BTreeSet<SchedulerName>),
    /// Too many to name, or not known.
    All,
}

impl Default for Named {
    fn default() -> Self {
        Self::These(BTreeSet::new())
    }
}

impl Named {
    pub fn is_empty(&self) -> bool {
        match self {
            Self::These(names) => names.is_empty(),
            Self::All => false,
        }
    }

    pub fn names(&self, scheduler: &SchedulerName) -> bool {
        match self {
            Self::These(names) => names.contains(scheduler),
            Self::All => true,
        }
    }

    /// What is no name of a scheduler names nobody. Called with every ping that changes something: a name that is there
    /// already costs no allocation.
    pub fn add(&mut self, scheduler: &str) {
        let Self::These(names) = self else { return };
        if names.contains(scheduler) {
            return;
        }
        let Ok(name) = SchedulerName::parse(scheduler) else { return };
        match names.len() < NAMED_MAX {
            true => drop(names.insert(name)),
            false => *self = Self::All,
        }
    }

    fn add_all(&mut self, others: Self) {
        match others {
            Self::These(names) => names.iter().for_each(|name| self.add(name.as_str())),
            Self::All => *self = Self::All,
        }
    }
}

impl WakeUpBatch {
    /// Everybody looks at everything.
    pub fn everything() -> Self {
        let all = || Named::All;
        Self { queues: all(), rooms: all(), events: all(), workforce: true, regions: true }
    }

    pub fn is_empty(&self) -> bool {
        let Self { queues, rooms, events, workforce, regions } = self;
        [queues, rooms, events].into_iter().all(Named::is_empty) && !workforce && !regions
    }

    /// Both as one.
    pub fn merge(&mut self, other: Self) {
        let Self { queues, rooms, events, workforce, regions } = other;
        self.queues.add_all(queues);
        self.rooms.add_all(rooms);
        self.events.add_all(events);
        self.workforce |= workforce;
        self.regions |= regions;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(number: usize) -> SchedulerName {
        SchedulerName::parse(&format!("fleet-{number}")).unwrap()
    }

    #[test]
    fn too_many_to_name_are_all() {
        let mut names = Named::default();
        assert!(names.is_empty());
        for number in 0..NAMED_MAX {
            names.add(named(number).as_str());
            names.add(named(number).as_str());
        }
        assert!(matches!(&names, Named::These(names) if names.len() == NAMED_MAX));
        assert!(names.names(&named(0)) && !names.names(&named(NAMED_MAX)));
        names.add("No Name");
        assert!(matches!(&names, Named::These(_)));
        names.add(named(NAMED_MAX).as_str());
        assert_eq!(names, Named::All);
        assert!(names.names(&named(NAMED_MAX + 1)));
    }

    #[test]
    fn two_batches_are_one_that_says_both() {
        let queue_of = |number| {
            let mut batch = WakeUpBatch::default();
            batch.queues.add(named(number).as_str());
            batch
        };
        let mut batch = queue_of(1);
        batch.merge(WakeUpBatch { workforce: true, ..queue_of(2) });
        batch.merge(WakeUpBatch::default());
        assert!(batch.queues.names(&named(1)) && batch.queues.names(&named(2)));
        assert!(batch.workforce && !batch.regions && batch.rooms.is_empty());
        batch.merge(WakeUpBatch::everything());
        assert_eq!(batch, WakeUpBatch::everything());
        assert!(WakeUpBatch::default().is_empty() && !batch.is_empty());
    }
}
