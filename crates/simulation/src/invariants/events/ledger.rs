//! What is remembered of events, from what was written and what receivers took.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use maestro_core::event::{EventId, Message};
use maestro_core::invariant::{Invariant, InvariantViolation};
use maestro_core::room::{PingStatus, RoomId};
use maestro_core::scheduler::{Delivery, Forwarder, SchedulerName};
use maestro_core::time::Timestamp;
use maestro_engine::ports::store::{IfEnded, NewEvent};

use super::{KnownEvent, KnownEvents, Line, MARK};

impl KnownEvents {
    pub(super) fn queue(&mut self, new: &NewEvent) -> Option<InvariantViolation> {
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

    pub(super) fn delivered(&self, events: &[EventId]) -> Vec<InvariantViolation> {
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

    pub(super) fn dead(&mut self, events: &[EventId], error: &str) -> Option<InvariantViolation> {
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
    pub(super) fn replayed(&mut self, events: &[EventId], at: Timestamp) {
        for id in events {
            let Some(event) = self.events.get_mut(id).filter(|event| event.is_dead) else { continue };
            self.last_number += 1;
            (event.is_dead, event.is_given_up) = (false, false);
            (event.number, event.queued_at) = (self.last_number, at);
        }
    }

    /// `left`: the forwarders whose events are still delivered.
    pub(super) fn scheduler_deleted(
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

    pub(super) fn has_forwarders(
        &mut self,
        scheduler: &SchedulerName,
        forwarders: Vec<Forwarder>,
        now: Duration,
    ) {
        let known = self.forwarders.entry(scheduler.clone()).or_default();
        if known.last().is_none_or(|(_, last)| *last != forwarders) {
            known.push((now, forwarders));
        }
    }

    /// What is wrong with the answer, if anything is. It was given by one of the recipes that were there meanwhile.
    pub(super) fn accepted(&self, scheduler: &SchedulerName, mark: &str, since: Duration) -> Option<String> {
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

    pub(super) fn taken(
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
    pub(super) fn room_ended(&mut self, scheduler: &SchedulerName, room: &RoomId) -> Vec<InvariantViolation> {
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

pub(super) fn violation(invariant: Invariant, what: impl Into<String>) -> InvariantViolation {
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
