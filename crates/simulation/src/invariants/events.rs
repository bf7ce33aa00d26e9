//! What must be true of events that rooms send: what was accepted arrives, and in order.

mod ledger;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use maestro_core::event::{DeliveryVerdict, EventId, Message, RpcCode, verdict};
use maestro_core::invariant::Invariant;
use maestro_core::room::{Purpose, RoomId};
use maestro_core::scheduler::{Forwarder, SchedulerName};
use maestro_core::time::{Millis, Timestamp, age};
use maestro_engine::ports::store::{
    Change, EventFilter, EventPageRequest, IfEnded, NewEvent, SchedulerRecord, Store, StoreError, Transaction,
};

use super::Inspector;

use ledger::violation;

/// Clocks of engines differ by less, both ways.
const CLOCKS_DIFFER: Millis = Millis::from_seconds(10);
/// In the metadata of everything that rooms of a run say: what it is known by.
pub(crate) const MARK: &str = "said";

#[derive(Default)]
pub(super) struct KnownEvents {
    /// Also of schedulers that are gone.
    events: BTreeMap<EventId, KnownEvent>,
    lines: BTreeMap<Line, Vec<EventId>>,
    /// By mark: the forwarders that something was queued for.
    queued: BTreeMap<String, BTreeSet<String>>,
    /// By mark: the addresses where something was taken that never was in a queue.
    taken_directly: BTreeMap<String, BTreeSet<String>>,
    /// Since when a scheduler has had these forwarders.
    forwarders: BTreeMap<SchedulerName, Vec<(Duration, Vec<Forwarder>)>>,
    /// Which engine told an address that a room is gone, and when.
    told_gone: BTreeMap<(String, String), (Arc<str>, Duration)>,
    ended: BTreeSet<RoomId>,
    generations: BTreeMap<SchedulerName, Generation>,
    last_number: u64,
}

/// What is queued for a forwarder of one room. A scheduler that is made again has queues of its own.
type Line = (SchedulerName, Generation, String, RoomId);
/// How often a scheduler of that name was deleted before.
type Generation = u32;

struct KnownEvent {
    line: Line,
    message: Message,
    /// The order in which events were queued.
    number: u64,
    queued_at: Timestamp,
    /// That the room is gone, written with its end.
    is_end: bool,
    was_taken: bool,
    /// It was tried, and is not to be tried again, which may not be written yet.
    is_given_up: bool,
    is_dead: bool,
    /// Its scheduler was deleted, and nobody was left to deliver it to.
    is_dropped: bool,
}

impl KnownEvent {
    fn is_done(&self) -> bool {
        self.was_taken || self.is_dead || self.is_dropped
    }
}

impl Inspector {
    /// After every commit.
    pub(super) async fn judge_events(
        &self,
        scheduler: &SchedulerName,
        transaction: &Transaction,
        store: &dyn Store,
    ) {
        let mut found = Vec::new();
        for change in &transaction.changes {
            match change {
                Change::QueueEvent(new) if is_queued(new, store).await => {
                    found.extend(self.state.lock().events.queue(new));
                }
                Change::EventsDelivered { events, .. } => {
                    found.extend(self.state.lock().events.delivered(events));
                }
                Change::EventsDead { events, error, .. } => {
                    found.extend(self.state.lock().events.dead(events, error));
                }
                Change::ReplayEvents { events, at, .. } => {
                    self.state.lock().events.replayed(events, *at);
                }
                Change::DeleteScheduler { .. } => {
                    let left = left_to(transaction);
                    found.extend(self.state.lock().events.scheduler_deleted(scheduler, &left));
                }
                _ => {}
            }
        }
        self.learn_forwarders(scheduler, transaction, store).await;
        for change in &transaction.changes {
            if let Change::EndRoom { scheduler, room, .. } = change
                && let Ok(Some(row)) = store.room(scheduler, room).await
                && row.purpose == Purpose::Fleet
            {
                found.extend(self.state.lock().events.room_ended(scheduler, room));
            }
        }
        self.note_all(found);
    }

    async fn learn_forwarders(
        &self,
        scheduler: &SchedulerName,
        transaction: &Transaction,
        store: &dyn Store,
    ) {
        let is_about_record = |change: &Change| {
            matches!(
                change,
                Change::CreateScheduler(_) | Change::UpdateScheduler(_) | Change::DeleteScheduler { .. }
            )
        };
        if !transaction.changes.iter().any(is_about_record) {
            return;
        }
        let Ok(record) = store.scheduler(scheduler).await else { return };
        let now = self.trace.elapsed();
        let of = |record: SchedulerRecord| record.recipe.forwarders.clone();
        self.state.lock().events.has_forwarders(scheduler, record.map(of).unwrap_or_default(), now);
    }

    /// A room was told that what it said at `since` is forwarded.
    pub(crate) async fn event_accepted(
        &self,
        scheduler: &SchedulerName,
        room: &RoomId,
        mark: &str,
        since: Duration,
        store: &dyn Store,
    ) {
        // Nobody hears of rooms that try a version.
        if let Ok(Some(row)) = store.room(scheduler, room).await
            && row.purpose == Purpose::Validation
        {
            return;
        }
        let lost = self.state.lock().events.accepted(scheduler, mark, since);
        self.note_all(lost.map(|what| violation(Invariant::AcceptedEventsArrive, what)));
    }

    /// A receiver has it.
    pub(crate) fn event_taken(&self, node: &Arc<str>, address: &str, id: EventId, message: &Message) {
        let now = self.trace.elapsed();
        let found = self.state.lock().events.taken(node, address, id, message, now);
        self.note_all(found);
    }

    /// An attempt failed, as far as the engine knows.
    pub(crate) fn event_not_taken(&self, id: EventId, code: RpcCode) {
        let (now, kept) = (self.trace.now(), self.events_kept);
        if let Some(event) = self.state.lock().events.events.get_mut(&id) {
            let waited = Millis(age(now, event.queued_at).0.saturating_add(CLOCKS_DIFFER.0));
            event.is_given_up |= verdict(code, waited, kept) == DeliveryVerdict::Dead;
        }
    }

    /// At rest: what was accepted and has not arrived is a dead letter, or waits for a forwarder that is disabled.
    pub(super) async fn judge_arrivals(&self, store: &dyn Store) -> Result<(), StoreError> {
        // What deleted schedulers left behind is on its way, and the store does not list it.
        if store.has_orphaned_queues().await? {
            return Ok(());
        }
        let missing: Vec<(EventId, Line)> = {
            let state = self.state.lock();
            let left = state.events.events.iter().filter(|(_, event)| !event.is_done());
            left.map(|(id, event)| (*id, event.line.clone())).collect()
        };
        for (id, (scheduler, _, forwarder, room)) in missing {
            if !is_there(&scheduler, id, store).await? {
                let what = format!("event {id} of room {room} for {forwarder} was accepted, and is gone");
                self.note_all([violation(Invariant::AcceptedEventsArrive, what)]);
            }
        }
        Ok(())
    }
}

/// It was asked for. What is only for rooms that have not ended may have been passed over.
async fn is_queued(new: &NewEvent, store: &dyn Store) -> bool {
    match new.if_ended {
        IfEnded::Queue | IfEnded::Refuse => true,
        IfEnded::Skip => is_there(&new.scheduler, new.id, store).await.unwrap_or(false),
    }
}

/// In a queue, or among its dead letters.
async fn is_there(scheduler: &SchedulerName, id: EventId, store: &dyn Store) -> Result<bool, StoreError> {
    let only = EventFilter { id: Some(id), ..EventFilter::default() };
    Ok(store.events(scheduler, &only, EventPageRequest { page: 1, page_size: 1 }).await?.total > 0)
}

fn left_to(transaction: &Transaction) -> BTreeSet<&str> {
    let addresses = transaction.changes.iter().filter_map(|change| match change {
        Change::OrphanEvents { addresses, .. } => Some(addresses),
        _ => None,
    });
    addresses.flatten().map(|(forwarder, _)| forwarder.as_str()).collect()
}
