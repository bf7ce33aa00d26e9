//! Who is woken by what. Nobody polls for what can be said: a request that enqueues, a room that ends or changes
//! its status, wakes the loop of its scheduler. Wake-ups carry nothing; who is woken looks for itself.
//!
//! Several engines may share one: all that listen hear it, also those that own nothing by now. A wake-up may be lost
//! between processes, so everybody looks again by themselves after a while.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use maestro_core::scheduler::SchedulerName;
use tokio::sync::watch;

/// Cheap to clone; all clones are one.
#[derive(Clone, Default)]
pub struct WakeUps(Arc<Inner>);

#[derive(Default)]
struct Inner {
    bells: Mutex<BTreeMap<SchedulerName, watch::Sender<Rung>>>,
    /// How often the schedulers, or who owns them, changed.
    workforce: watch::Sender<u64>,
}

/// How often a scheduler's bell was rung, and how often because of a room.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Rung {
    times: u64,
    for_rooms: u64,
}

/// One scheduler's, as one loop hears it.
pub(crate) struct Bell {
    heard: watch::Receiver<Rung>,
    rooms_heard: u64,
}

/// A change of schedulers or workers, as one worker hears it.
pub(crate) struct WorkforceBell(watch::Receiver<u64>);

impl WakeUps {
    /// There is something in the queue, or a wait may be over.
    pub(crate) fn queue_changed(&self, scheduler: &SchedulerName) {
        if !self.ring(scheduler.as_str(), 0) {
            // Nobody works on it yet: a new scheduler.
            self.workforce_changed();
        }
    }

    /// A room changed: the fleet may need something else now, and someone may wait for just that room.
    pub(crate) fn room_changed(&self, scheduler: &str) {
        self.ring(scheduler, 1);
    }

    /// Something changed that concerns the rooms of all schedulers, as a region that is lost or back.
    pub(crate) fn rooms_changed(&self) {
        let schedulers: Vec<SchedulerName> = self.bells().keys().cloned().collect();
        for scheduler in schedulers {
            self.room_changed(scheduler.as_str());
        }
    }

    /// There is a new scheduler, or one that nobody owns any more, or another number of workers.
    pub(crate) fn workforce_changed(&self) {
        self.0.workforce.send_modify(|times| *times += 1);
    }

    pub(crate) fn bell(&self, scheduler: &SchedulerName) -> Bell {
        let heard = self.bells().entry(scheduler.clone()).or_default().subscribe();
        let rooms_heard = heard.borrow().for_rooms;
        Bell { heard, rooms_heard }
    }

    pub(crate) fn workforce_bell(&self) -> WorkforceBell {
        WorkforceBell(self.0.workforce.subscribe())
    }

    /// True: someone hears it.
    fn ring(&self, scheduler: &str, for_rooms: u64) -> bool {
        let mut bells = self.bells();
        let Some(bell) = bells.get(scheduler) else { return false };
        if bell.receiver_count() == 0 {
            bells.remove(scheduler);
            return false;
        }
        bell.send_modify(|rung| {
            rung.times += 1;
            rung.for_rooms += for_rooms;
        });
        true
    }

    fn bells(&self) -> std::sync::MutexGuard<'_, BTreeMap<SchedulerName, watch::Sender<Rung>>> {
        self.0.bells.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bell {
    /// Returns when it was rung since the last call.
    pub(crate) async fn rung(&mut self) {
        if self.heard.changed().await.is_err() {
            // Who could ring is gone.
            std::future::pending::<()>().await;
        }
    }

    /// Whether a room changed since the last call.
    pub(crate) fn take_plan_may_differ(&mut self) -> bool {
        let for_rooms = self.heard.borrow().for_rooms;
        std::mem::replace(&mut self.rooms_heard, for_rooms) != for_rooms
    }
}

impl WorkforceBell {
    pub(crate) async fn rung(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
