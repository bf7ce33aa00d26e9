//! Who is woken by what. Nobody polls for what can be said: a request that enqueues, a room that ends or changes
//! its status, wakes the loop of its scheduler. Wake-ups carry nothing; who is woken looks for itself.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use maestro_core::scheduler::SchedulerName;
use tokio::sync::Notify;

#[derive(Default)]
pub(crate) struct WakeUps {
    bells: Mutex<BTreeMap<SchedulerName, Arc<Bell>>>,
    manager: Notify,
}

/// One scheduler's.
#[derive(Default)]
pub(crate) struct Bell {
    notify: Notify,
    plan_may_differ: AtomicBool,
}

impl WakeUps {
    /// There is something in the queue, or a wait may be over.
    pub(crate) fn queue_changed(&self, scheduler: &SchedulerName) {
        match self.existing(scheduler.as_str()) {
            Some(bell) => bell.notify.notify_one(),
            // Nobody works on it yet: a new scheduler.
            None => self.manager.notify_one(),
        }
    }

    /// A room changed: the fleet may need something else now, and someone may wait for just that room.
    pub(crate) fn room_changed(&self, scheduler: &str) {
        if let Some(bell) = self.existing(scheduler) {
            bell.plan_may_differ.store(true, Ordering::Release);
            bell.notify.notify_one();
        }
    }

    pub(crate) fn bell(&self, scheduler: &SchedulerName) -> Arc<Bell> {
        self.lock().entry(scheduler.clone()).or_default().clone()
    }

    pub(crate) fn forget(&self, scheduler: &SchedulerName) {
        self.lock().remove(scheduler);
    }

    pub(crate) async fn new_scheduler(&self) {
        self.manager.notified().await;
    }

    fn existing(&self, scheduler: &str) -> Option<Arc<Bell>> {
        self.lock().get(scheduler).cloned()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<SchedulerName, Arc<Bell>>> {
        self.bells.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bell {
    pub(crate) async fn rung(&self) {
        self.notify.notified().await;
    }

    /// Whether a room changed since the last call.
    pub(crate) fn take_plan_may_differ(&self) -> bool {
        self.plan_may_differ.swap(false, Ordering::AcqRel)
    }
}
