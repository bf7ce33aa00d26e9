//! What must be true of events that rooms send: what was accepted arrives, and in order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use maestro_core::event::{DeliveryVerdict, EventId, Message, RpcCode, verdict};
use maestro_core::invariant::{Invariant, InvariantViolation};
use maestro_core::room::{PingStatus, Purpose, RoomId};
use maestro_core::scheduler::{Delivery, Forwarder, SchedulerName};
use maestro_core::time::{Millis, Timestamp, age};
use maestro_engine::ports::store::{
    Change, EventFilter, EventPageRequest, IfEnded, NewEvent, SchedulerRecord, Store, StoreError, Transaction,
};

use super::Inspector;

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

impl KnownEvents {
    fn queue(&mut self, new: &NewEvent) -> Option<InvariantViolation> {
        let NewEvent { id, scheduler, forwarder, room, message, if_ended, at, .. } = new;
        let line = self.line(scheduler, forwarder, room);
        let is_end = *if_ended == IfEnded::Skip;
        let has_ended = self.in_line(&line).any(|event| event.is_end);
        if let Some(mark) = mark(message) {
            self.queued.entry(mark.to_owned()).or_default().insert(forwarder.clone());
        }
        self.last_number += 1;
        let event = KnownEvent {
            line: line.clone(),
            message: message.clone(),
            number: self.last_number,
            queued_at: *at,
            is_end,
            was_taken: false,
            is_given_up: false,
            is_dead: false,
            is_dropped: false,
        };
        self.events.insert(*id, event);
        self.lines.entry(line).or_default().push(*id);
        // Rooms may say that they end when nobody knows them any more.
        let is_late = has_ended && (is_end || !is_of_an_end(message));
        is_late.then(|| {
            let what = format!(
                "event {} of room {room} was queued for {forwarder} after that it is gone",
                message.what()
            );
            violation(Invariant::EventsInOrder, what)
        })
    }

    fn line(&self, scheduler: &SchedulerName, forwarder: &str, room: &RoomId) -> Line {
        let generation = self.generations.get(scheduler).copied().unwrap_or_default();
        (scheduler.clone(), generation, forwarder.to_owned(), room.clone())
    }

    fn in_line(&self, line: &Line) -> impl Iterator<Item = &KnownEvent> {
        self.lines.get(line).into_iter().flatten().filter_map(|id| self.events.get(id))
    }

    fn delivered(&self, events: &[EventId]) -> Vec<InvariantViolation> {
        let is_unheard =
            |id: &&EventId| self.events.get(id).is_some_and(|event| !event.was_taken && !event.is_dead);
        let unheard = events.iter().filter(is_unheard);
        unheard
            .map(|id| {
                let what = format!("event {id} counts as delivered, and no receiver has taken it");
                violation(Invariant::AcceptedEventsArrive, what)
            })
            .collect()
    }

    fn dead(&mut self, events: &[EventId], error: &str) -> Option<InvariantViolation> {
        for id in events {
            if let Some(event) = self.events.get_mut(id) {
                event.is_dead = true;
            }
        }
        error.is_empty().then(|| {
            let what = format!("events {events:?} are dead, and nobody knows why");
            violation(Invariant::AcceptedEventsArrive, what)
        })
    }

    /// Those that are dead go to the end of their lines.
    fn replayed(&mut self, events: &[EventId], at: Timestamp) {
        for id in events {
            let Some(event) = self.events.get_mut(id).filter(|event| event.is_dead) else { continue };
            self.last_number += 1;
            (event.is_dead, event.is_given_up) = (false, false);
            (event.number, event.queued_at) = (self.last_number, at);
        }
    }

    /// `left`: the forwarders whose events are still delivered.
    fn scheduler_deleted(
        &mut self,
        scheduler: &SchedulerName,
        left: &BTreeSet<&str>,
    ) -> Vec<InvariantViolation> {
        let last = self.forwarders.get(scheduler).and_then(|known| known.last());
        let is_enabled = |name: &str| {
            last.is_some_and(|(_, known)| known.iter().any(|one| one.enabled && one.name == *name))
        };
        let mut found = Vec::new();
        let generation = self.generations.entry(scheduler.clone()).or_default();
        for (id, event) in &mut self.events {
            let (of, of_generation, forwarder, room) = &event.line;
            if of != scheduler
                || of_generation != generation
                || event.is_done()
                || left.contains(forwarder.as_str())
            {
                continue;
            }
            if is_enabled(forwarder) {
                let what =
                    format!("event {id} of room {room} for {forwarder} was deleted with its scheduler");
                found.push(violation(Invariant::AcceptedEventsArrive, what));
            }
            event.is_dropped = true;
        }
        *generation += 1;
        found
    }

    fn has_forwarders(&mut self, scheduler: &SchedulerName, forwarders: Vec<Forwarder>, now: Duration) {
        let known = self.forwarders.entry(scheduler.clone()).or_default();
        if known.last().is_none_or(|(_, last)| *last != forwarders) {
            known.push((now, forwarders));
        }
    }

    /// What is wrong with the answer, if anything is. It was given by one of the recipes that were there meanwhile.
    fn accepted(&self, scheduler: &SchedulerName, mark: &str, since: Duration) -> Option<String> {
        let nowhere = BTreeSet::new();
        let queued = self.queued.get(mark).unwrap_or(&nowhere);
        let taken = self.taken_directly.get(mark).unwrap_or(&nowhere);
        let fits = |forwarders: &[Forwarder]| {
            let enabled = || forwarders.iter().filter(|forwarder| forwarder.enabled);
            let is_queued = |forwarder: &&Forwarder| forwarder.delivery == Delivery::Queued;
            let wanted: BTreeSet<_> = enabled().filter(is_queued).map(|one| one.name.clone()).collect();
            wanted == *queued
                && enabled().filter(|one| !is_queued(one)).all(|direct| taken.contains(&direct.address))
        };
        let known = self.forwarders.get(scheduler).map(Vec::as_slice).unwrap_or_default();
        let ends = known.iter().skip(1).map(|(at, _)| *at).chain([Duration::MAX]);
        let mut was_meanwhile = known.iter().zip(ends).filter(|(_, end)| *end >= since);
        let is_explained = was_meanwhile.any(|((_, forwarders), _)| fits(forwarders));
        (!is_explained).then(|| {
            format!(
                "what a room of {scheduler} said ({mark}) was accepted, and was queued for {queued:?} and delivered to \
                 {taken:?} only"
            )
        })
    }

    fn taken(
        &mut self,
        node: &Arc<str>,
        address: &str,
        id: EventId,
        message: &Message,
        now: Duration,
    ) -> Vec<InvariantViolation> {
        let told = (address.to_owned(), message.room().id.clone());
        let Some(event) = self.events.get(&id) else {
            if let Some(mark) = mark(message) {
                self.taken_directly.entry(mark.to_owned()).or_default().insert(address.to_owned());
            }
            let is_late = matches!(message, Message::Resync { .. })
                && self.told_gone.get(&told).is_some_and(|(by, at)| by == node && *at < now);
            let what =
                || format!("{address} heard of {node} that room {} is gone, and then its ping", told.1);
            return is_late.then(|| violation(Invariant::EventsInOrder, what())).into_iter().collect();
        };
        let mut found = Vec::new();
        let (.., forwarder, room) = &event.line;
        if event.message != *message {
            let what = format!("event {id} of room {room} arrived at {forwarder} as another one");
            found.push(violation(Invariant::AcceptedEventsArrive, what));
        }
        let is_before =
            |other: &&KnownEvent| other.number < event.number && !other.is_done() && !other.is_given_up;
        if !event.was_taken
            && let Some(before) = self.in_line(&event.line).find(is_before)
        {
            let what = format!(
                "event {} of room {room} arrived at {forwarder} before {}, which was accepted first",
                message.what(),
                before.message.what()
            );
            found.push(violation(Invariant::EventsInOrder, what));
        }
        if event.is_end {
            self.told_gone.insert(told, (node.clone(), now));
        }
        if let Some(event) = self.events.get_mut(&id) {
            event.was_taken = true;
        }
        found
    }

    /// Every forwarder that was there and enabled all the time hears of it.
    fn room_ended(&mut self, scheduler: &SchedulerName, room: &RoomId) -> Vec<InvariantViolation> {
        if !self.ended.insert(room.clone()) {
            return Vec::new();
        }
        let known = self.forwarders.get(scheduler).map(Vec::as_slice).unwrap_or_default();
        let has = |forwarders: &[Forwarder], name: &str| {
            forwarders.iter().any(|forwarder| forwarder.enabled && forwarder.name == *name)
        };
        let names = known.iter().flat_map(|(_, forwarders)| forwarders).map(|forwarder| &forwarder.name);
        let names: BTreeSet<&String> =
            names.filter(|name| known.iter().all(|(_, forwarders)| has(forwarders, name))).collect();
        let is_told =
            |name: &String| self.in_line(&self.line(scheduler, name, room)).any(|event| event.is_end);
        let untold = names.into_iter().filter(|name| !is_told(name));
        untold
            .map(|name| {
                let what = format!("room {room} has ended, and nothing was queued for {name}");
                violation(Invariant::AcceptedEventsArrive, what)
            })
            .collect()
    }
}

fn violation(invariant: Invariant, what: impl Into<String>) -> InvariantViolation {
    InvariantViolation::new(invariant, what)
}

/// What tells one thing that a room said from all others.
fn mark(message: &Message) -> Option<&str> {
    let metadata = match message {
        Message::PlayerEvent { metadata, .. } => metadata,
        Message::Resync { room, .. } | Message::Status { room, .. } | Message::RoomEvent { room, .. } => {
            &room.metadata
        }
    };
    metadata.get(MARK).map(String::as_str)
}

fn is_of_an_end(message: &Message) -> bool {
    [PingStatus::Terminating, PingStatus::Terminated].iter().any(|end| end.as_str() == message.what())
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
