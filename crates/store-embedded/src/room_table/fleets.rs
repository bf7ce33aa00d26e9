//! The fleets that the table has, and whether what it has of them counts.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use foldhash::fast::FixedState;
use maestro_core::scheduler::SchedulerName;
use maestro_engine::ports::room_table::{PingError, TableError};
use parking_lot::{Mutex, RwLock};

use super::MemoryRoomTable;
use super::events::Events;
use super::index::Index;

/// A fleet outlives its last room, and goes with the scheduler or with a rebuild.
///
/// The lock may be taken while a shard is locked, never the other way round.
pub(super) type Fleets = RwLock<HashMap<SchedulerName, Arc<Fleet>, FixedState>>;

/// What all parts of a fleet share.
pub(super) struct Fleet {
    pub(super) scheduler: SchedulerName,
    pub(super) index: Mutex<Index>,
    pub(super) events: Arc<Events>,
    /// Without it, what there is of the fleet is lost or old. Read with every ping, so it is no lock.
    mark: AtomicBool,
    rebuild_has_begun: AtomicBool,
}

impl Fleet {
    fn new(scheduler: SchedulerName, events: Arc<Events>) -> Self {
        Self {
            scheduler,
            index: Mutex::default(),
            events,
            mark: AtomicBool::new(false),
            rebuild_has_begun: AtomicBool::new(false),
        }
    }

    pub(super) fn is_marked(&self) -> bool {
        self.mark.load(Ordering::Acquire)
    }

    /// The same fleet of another table.
    pub(super) fn copied(&self, keeps_mark: bool) -> Self {
        Self {
            scheduler: self.scheduler.clone(),
            index: Mutex::new(self.index.lock().clone()),
            events: Arc::clone(&self.events),
            mark: AtomicBool::new(keeps_mark && self.is_marked()),
            rebuild_has_begun: AtomicBool::new(false),
        }
    }
}

impl MemoryRoomTable {
    /// The fleet, if what there is of it counts.
    pub(super) fn known(&self, scheduler: &SchedulerName) -> Result<Arc<Fleet>, TableError> {
        let fleet = self.fleets.read().get(scheduler).filter(|fleet| fleet.is_marked()).cloned();
        fleet.ok_or_else(|| TableError::Lost(scheduler.clone()))
    }

    pub(super) fn is_known(&self, scheduler: &SchedulerName) -> bool {
        self.known(scheduler).is_ok()
    }

    /// Why a room cannot ping that was not found. Names that nobody can have are not parsed on the way of every ping.
    pub(super) fn not_found(&self, scheduler: &str) -> PingError {
        match SchedulerName::parse(scheduler) {
            Ok(name) if !self.is_known(&name) => TableError::Lost(name).into(),
            Ok(_) | Err(_) => PingError::UnknownRoom,
        }
    }

    /// The fleet, made if there is none, whether it counts or not.
    pub(super) fn fleet(&self, scheduler: &SchedulerName) -> Arc<Fleet> {
        if let Some(fleet) = self.fleets.read().get(scheduler) {
            return fleet.clone();
        }
        let new = || Arc::new(Fleet::new(scheduler.clone(), Arc::clone(&self.events)));
        self.fleets.write().entry(scheduler.clone()).or_insert_with(new).clone()
    }

    /// Whether the fleet is lost. Then nothing of it is left.
    pub(super) fn forget_if_lost(&self, scheduler: &SchedulerName) -> bool {
        let lost = {
            let mut fleets = self.fleets.write();
            if fleets.get(scheduler).is_some_and(|fleet| fleet.is_marked()) {
                return false;
            }
            let new = Fleet::new(scheduler.clone(), Arc::clone(&self.events));
            new.rebuild_has_begun.store(true, Ordering::Relaxed);
            fleets.insert(scheduler.clone(), Arc::new(new))
        };
        if let Some(fleet) = lost {
            self.remove_parts(&fleet);
        }
        true
    }

    pub(super) fn set_mark(&self, scheduler: &SchedulerName) -> Result<(), TableError> {
        let fleets = self.fleets.read();
        let begun = fleets.get(scheduler).filter(|fleet| fleet.rebuild_has_begun.load(Ordering::Relaxed));
        let fleet = begun.ok_or_else(|| TableError::Lost(scheduler.clone()))?;
        fleet.mark.store(true, Ordering::Release);
        Ok(())
    }

    pub(super) fn forget_fleet(&self, scheduler: &SchedulerName) {
        let forgotten = self.fleets.write().remove(scheduler);
        if let Some(fleet) = forgotten {
            fleet.mark.store(false, Ordering::Release);
            self.remove_parts(&fleet);
        }
    }

    /// Of this very fleet: one of the same name may have begun meanwhile.
    fn remove_parts(&self, fleet: &Arc<Fleet>) {
        for shard in &self.shards {
            let mut shard = shard.lock();
            if shard.get(&fleet.scheduler).is_some_and(|part| part.is_of(fleet)) {
                shard.remove(&fleet.scheduler);
            }
        }
    }
}
