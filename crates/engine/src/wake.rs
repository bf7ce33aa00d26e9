//! Who is woken by what. Nobody polls for what can be said: a request that enqueues, a room that ends or changes
//! its status, wakes the loop of its scheduler. Wake-ups carry nothing; who is woken looks for itself.
//!
//! Several engines may share one: all that listen hear it, also those that own nothing by now. A wake-up may be lost
//! between processes, so everybody looks again by themselves after a while.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use maestro_core::scheduler::SchedulerName;
use tokio::sync::Notify;

/// Cheap to clone; all clones are one.
#[derive(Clone, Default)]
pub struct WakeUps(Arc<Inner>);

#[derive(Default)]
struct Inner {
    bells: Mutex<BTreeMap<SchedulerName, Arc<Ring>>>,
    /// Schedulers, or who owns them, changed.
    workforce: Arc<Ring>,
}

/// Something that can be rung. Those who wait are woken in the order in which they began to, always: a tokio `watch`
/// wakes them in a random one, and the same seed would not give the same life.
#[derive(Default)]
struct Ring {
    rung: Mutex<Rung>,
    notify: Notify,
}

/// How often a scheduler's bell was rung, and how often because of a room.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Rung {
    times: u64,
    for_rooms: u64,
}

/// One scheduler's, as one loop hears it.
pub(crate) struct Bell(Listener);

/// A change of schedulers or workers, as one worker hears it.
pub(crate) struct WorkforceBell(Listener);

/// What one of several has heard of a ring.
struct Listener {
    ring: Arc<Ring>,
    heard: Rung,
    rooms_heard: u64,
}

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
        self.0.workforce.ring(0);
    }

    pub(crate) fn bell(&self, scheduler: &SchedulerName) -> Bell {
        let mut bells = self.bells();
        // Those that nobody hears any more, of schedulers that are gone.
        bells.retain(|_, ring| Arc::strong_count(ring) > 1);
        Bell(Listener::to(bells.entry(scheduler.clone()).or_default().clone()))
    }

    pub(crate) fn workforce_bell(&self) -> WorkforceBell {
        WorkforceBell(Listener::to(self.0.workforce.clone()))
    }

    /// True: someone hears it.
    fn ring(&self, scheduler: &str, for_rooms: u64) -> bool {
        let mut bells = self.bells();
        let Some(bell) = bells.get(scheduler) else { return false };
        // Nobody but this list holds it.
        if Arc::strong_count(bell) == 1 {
            bells.remove(scheduler);
            return false;
        }
        bell.ring(for_rooms);
        true
    }

    fn bells(&self) -> std::sync::MutexGuard<'_, BTreeMap<SchedulerName, Arc<Ring>>> {
        self.0.bells.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ring {
    fn ring(&self, for_rooms: u64) {
        {
            let mut rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
            rung.times += 1;
            rung.for_rooms += for_rooms;
        }
        self.notify.notify_waiters();
    }

    fn rung(&self) -> Rung {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener {
    /// Hears what is rung from now on.
    fn to(ring: Arc<Ring>) -> Self {
        let heard = ring.rung();
        Self { ring, heard, rooms_heard: heard.for_rooms }
    }

    /// Returns when it was rung since the last call that returned.
    async fn rung(&mut self) {
        loop {
            let mut notified = pin!(self.ring.notify.notified());
            // From here on it is not missed, so what was before can be looked at.
            notified.as_mut().enable();
            let rung = self.ring.rung();
            if rung.times != self.heard.times {
                self.heard = rung;
                return;
            }
            notified.await;
        }
    }
}

impl Bell {
    /// Returns when it was rung since the last call.
    pub(crate) async fn rung(&mut self) {
        self.0.rung().await;
    }

    /// Whether a room changed since the last call.
    pub(crate) fn take_plan_may_differ(&mut self) -> bool {
        let for_rooms = self.0.ring.rung().for_rooms;
        std::mem::replace(&mut self.0.rooms_heard, for_rooms) != for_rooms
    }
}

impl WorkforceBell {
    pub(crate) async fn rung(&mut self) {
        self.0.rung().await;
    }
}
