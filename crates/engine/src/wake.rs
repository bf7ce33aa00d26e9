//! Wake-ups. Nobody polls for what can be announced: a request that enqueues an operation, and a room that ends or changes
//! its status, wake the loop of their scheduler. A wake-up carries no data; whoever is woken looks for itself.
//!
//! Several engines in one process may share one: all of them are woken, including those that no longer own the scheduler.
//! Where several processes share a store, what rings in one is told to the others ([`exchange`]). It may be lost on the way,
//! so every loop also looks again after a while.

mod exchange;
mod outgoing;

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use maestro_core::scheduler::SchedulerName;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::ports::wake_ups::{Named, WakeUpBatch};

pub(crate) use exchange::exchange;
use outgoing::Outgoing;

/// Cheap to clone; all clones are one.
#[derive(Clone, Default)]
pub struct WakeUps(Arc<Inner>);

#[derive(Default)]
struct Inner {
    bells: Mutex<BTreeMap<SchedulerName, Arc<Ring>>>,
    /// Schedulers, or who owns them, changed.
    workforce: Arc<Ring>,
    /// What other processes are still to be told.
    outgoing: Outgoing,
}

/// Rooms of a large fleet change all the time: those who changed within this are looked at together. What is in the queue
/// does not wait.
const ROOMS_TOGETHER: Duration = Duration::from_millis(50);

/// Something that can be rung. Those who wait are woken in the order in which they began to, always: a tokio `watch`
/// wakes them in a random one, and the same seed would not give the same life.
#[derive(Default)]
struct Ring {
    rung: Mutex<Rung>,
    /// One for each [`What`].
    bells: [Notify; 3],
}

/// How often a scheduler's bell was rung, for each [`What`].
type Rung = [u64; 3];

/// What a bell is rung for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Queue,
    Room,
    /// Nobody waits for it by itself: rooms may be others after it, too, and are rung for as well.
    Region,
}

/// One scheduler's, as one loop hears it. Dropped by the last who hears it, it is there no more.
pub(crate) struct Bell {
    listener: Listener,
    scheduler: SchedulerName,
    all: WakeUps,
}

/// A change of schedulers or workers, as one worker hears it.
pub(crate) struct WorkforceBell(Listener);

/// What one of several has heard of a ring.
struct Listener {
    ring: Arc<Ring>,
    heard: Rung,
    /// What the last plan knew of, where plans count by themselves.
    planned: Rung,
}

impl WakeUps {
    /// There is a new scheduler, with something in its queue.
    pub(crate) fn scheduler_created(&self, scheduler: &SchedulerName) {
        self.queue_changed(scheduler);
        self.0.outgoing.add(|batch| batch.workforce = true);
    }

    /// There is something in the queue, or a wait may be over.
    pub(crate) fn queue_changed(&self, scheduler: &SchedulerName) {
        self.0.outgoing.add(|batch| batch.queues.add(scheduler.as_str()));
        if !self.ring(scheduler.as_str(), What::Queue) {
            // Nobody works on it yet here: a new scheduler, or another process does.
            self.0.workforce.ring(What::Queue);
        }
    }

    /// A room changed: the fleet may need something else now, and someone may wait for just that room.
    pub(crate) fn room_changed(&self, scheduler: &str) {
        self.0.outgoing.add(|batch| batch.rooms.add(scheduler));
        self.ring(scheduler, What::Room);
    }

    /// Something changed that concerns the rooms of all schedulers, as a region that is lost or back.
    pub(crate) fn rooms_changed(&self) {
        self.0.outgoing.add(|batch| batch.regions = true);
        self.ring_all(&[What::Region, What::Room]);
    }

    /// There is a new scheduler, or one that nobody owns any more, or another number of workers.
    pub(crate) fn workforce_changed(&self) {
        self.0.outgoing.add(|batch| batch.workforce = true);
        self.0.workforce.ring(What::Queue);
    }

    /// Events were queued for forwarders, which whoever delivers them here was told.
    pub(crate) fn events_queued(&self, scheduler: &SchedulerName) {
        self.0.outgoing.add(|batch| batch.events.add(scheduler.as_str()));
    }

    /// What rang in another process rings here.
    fn ring_for(&self, batch: &WakeUpBatch) {
        // Whoever waits for events has bells of its own.
        let WakeUpBatch { queues, rooms, events: _, workforce, regions } = batch;
        for (named, what) in [(queues, What::Queue), (rooms, What::Room)] {
            match named {
                Named::These(names) => {
                    for name in names {
                        self.ring(name.as_str(), what);
                    }
                }
                Named::All => self.ring_all(&[what]),
            }
        }
        if *workforce {
            self.0.workforce.ring(What::Queue);
        }
        if *regions {
            self.ring_all(&[What::Region, What::Room]);
        }
    }

    fn ring_all(&self, whats: &[What]) {
        let schedulers: Vec<SchedulerName> = self.0.bells.lock().keys().cloned().collect();
        for scheduler in schedulers {
            for what in whats {
                self.ring(scheduler.as_str(), *what);
            }
        }
    }

    pub(crate) fn bell(&self, scheduler: &SchedulerName) -> Bell {
        let ring = self.0.bells.lock().entry(scheduler.clone()).or_default().clone();
        Bell { listener: Listener::to(ring), scheduler: scheduler.clone(), all: self.clone() }
    }

    pub(crate) fn workforce_bell(&self) -> WorkforceBell {
        WorkforceBell(Listener::to(self.0.workforce.clone()))
    }

    /// True: someone here hears it.
    fn ring(&self, scheduler: &str, what: What) -> bool {
        let bells = self.0.bells.lock();
        let Some(bell) = bells.get(scheduler) else { return false };
        bell.ring(what);
        true
    }
}

impl Ring {
    fn ring(&self, what: What) {
        self.rung.lock()[what as usize] += 1;
        self.bells[what as usize].notify_waiters();
    }

    fn rung(&self) -> Rung {
        *self.rung.lock()
    }
}

impl Listener {
    /// Hears what is rung from now on.
    fn to(ring: Arc<Ring>) -> Self {
        let heard = ring.rung();
        Self { ring, heard, planned: heard }
    }

    /// Returns when it was rung since the last call that returned: for the queue at once, for rooms when others have had
    /// the time to change, too.
    async fn rung(&mut self) {
        if self.first().await == What::Room {
            tokio::select! {
                biased;
                () = self.rung_for(What::Queue) => {}
                () = tokio::time::sleep(ROOMS_TOGETHER) => {}
            }
        }
        self.heard = self.ring.rung();
    }

    async fn first(&self) -> What {
        tokio::select! {
            biased;
            () = self.rung_for(What::Queue) => What::Queue,
            () = self.rung_for(What::Room) => What::Room,
        }
    }

    async fn rung_for(&self, what: What) {
        loop {
            let mut bell = pin!(self.ring.bells[what as usize].notified());
            // From here on it is not missed, so what was before can be looked at.
            bell.as_mut().enable();
            if self.ring.rung()[what as usize] != self.heard[what as usize] {
                return;
            }
            bell.await;
        }
    }
}

impl Bell {
    /// Returns when it was rung since the last call.
    pub(crate) async fn rung(&mut self) {
        self.listener.rung().await;
    }

    /// Whether a room changed since the last call.
    pub(crate) fn take_plan_may_differ(&mut self) -> bool {
        self.take(What::Room)
    }

    /// Whether something changed since the last call that concerns the rooms of all schedulers.
    pub(crate) fn take_regions_changed(&mut self) -> bool {
        self.take(What::Region)
    }

    fn take(&mut self, what: What) -> bool {
        let rung = self.listener.ring.rung()[what as usize];
        std::mem::replace(&mut self.listener.planned[what as usize], rung) != rung
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        let mut bells = self.all.0.bells.lock();
        // Held by the list and by this one. Who makes another one has the list locked.
        if Arc::strong_count(&self.listener.ring) == 2 {
            bells.remove(&self.scheduler);
        }
    }
}

impl WorkforceBell {
    /// Returns when it was rung since the last call that returned, but not before `soonest`.
    pub(crate) async fn rung(&mut self, soonest: Option<Instant>) {
        self.0.first().await;
        if let Some(soonest) = soonest {
            tokio::time::sleep_until(soonest).await;
        }
        self.0.heard = self.0.ring.rung();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tasks;

    /// How long a loop that waits is not woken.
    async fn waits(bell: &mut Bell) -> Duration {
        let begin = Instant::now();
        bell.rung().await;
        begin.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn rooms_that_change_wake_a_loop_together() {
        let wake = WakeUps::default();
        let arena = SchedulerName::parse("arena").unwrap();
        let mut bell = wake.bell(&arena);
        let ringing = wake.clone();
        Tasks::default().spawn("rings", async move {
            for _ in 0..100 {
                ringing.room_changed("arena");
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        let mut times = 0;
        while tokio::time::timeout(Duration::from_secs(1), bell.rung()).await.is_ok() {
            times += 1;
        }
        assert!((2..=3).contains(&times), "100 rooms in 100 ms woke it {times} times");
        assert!(bell.take_plan_may_differ());
        assert!(!bell.take_plan_may_differ());
    }

    #[tokio::test(start_paused = true)]
    async fn many_changes_of_the_workforce_are_heard_together() {
        let wake = WakeUps::default();
        let mut bell = wake.workforce_bell();
        wake.workforce_changed();
        bell.rung(None).await;
        let ringing = wake.clone();
        Tasks::default().spawn("rings", async move {
            for _ in 0..100 {
                ringing.workforce_changed();
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        let mut times = 0;
        let gap = Duration::from_millis(20);
        while tokio::time::timeout(Duration::from_secs(1), bell.rung(Some(Instant::now() + gap)))
            .await
            .is_ok()
        {
            times += 1;
        }
        assert!((5..=6).contains(&times), "100 changes in 100 ms were looked at {times} times");
    }

    #[test]
    fn a_bell_that_nobody_hears_is_gone() {
        let wake = WakeUps::default();
        let arena = SchedulerName::parse("arena").unwrap();
        let (one, other) = (wake.bell(&arena), wake.bell(&arena));
        drop(one);
        assert!(wake.ring("arena", What::Queue), "the other one hears it");
        drop(other);
        assert!(!wake.ring("arena", What::Queue));
        assert!(wake.0.bells.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn the_queue_waits_for_no_room() {
        let wake = WakeUps::default();
        let arena = SchedulerName::parse("arena").unwrap();
        let mut bell = wake.bell(&arena);
        wake.queue_changed(&arena);
        assert_eq!(waits(&mut bell).await, Duration::ZERO);
        wake.room_changed("arena");
        assert_eq!(waits(&mut bell).await, ROOMS_TOGETHER);
        wake.room_changed("arena");
        wake.queue_changed(&arena);
        assert_eq!(waits(&mut bell).await, Duration::ZERO);
        let ringing = wake.clone();
        Tasks::default().spawn("rings", async move {
            ringing.room_changed("arena");
            tokio::time::sleep(Duration::from_millis(10)).await;
            ringing.queue_changed(&arena);
        });
        assert_eq!(waits(&mut bell).await, Duration::from_millis(10), "rooms are being waited for");
    }
}
