//! Queues of events.

use std::collections::BTreeMap;

use maestro_core::event::{EventId, Message};
use maestro_core::room::RoomId;
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::{Millis, Timestamp, after};
use maestro_engine::ports::store::{
    EventFilter, EventPage, EventPageRequest, EventQueue, IfEnded, LastAddress, NewEvent, OrphanedQueue,
    QueueId, QueuedEvent, Refusal,
};

use super::state::State;

#[derive(Debug, Clone)]
pub(super) struct Queue {
    scheduler: SchedulerName,
    forwarder: String,
    /// Of a deleted scheduler's: where it goes, and who takes it there until when.
    orphaned: Option<(LastAddress, Option<(String, Timestamp)>)>,
}

#[derive(Debug, Clone)]
pub(super) struct Queued {
    queue: QueueId,
    id: EventId,
    room: RoomId,
    message: Message,
    attempts: u32,
    next_at: Timestamp,
    last_error: String,
    queued_at: Timestamp,
    dead_at: Option<Timestamp>,
}

impl State {
    pub(super) fn queue_event(&mut self, new: NewEvent) -> Result<(), Refusal> {
        self.existing(&new.scheduler)?;
        let is_live = self.live_rooms.contains(&(new.scheduler.clone(), new.room.clone()));
        match new.if_ended {
            IfEnded::Skip if !is_live => return Ok(()),
            IfEnded::Refuse if !is_live => return Err(Refusal::RoomNotFound(new.room)),
            IfEnded::Queue | IfEnded::Skip | IfEnded::Refuse => {}
        }
        let queue = match self.live_queue(&new.scheduler, &new.forwarder) {
            Some(queue) => queue,
            None => self.make_queue(&new.scheduler, &new.forwarder),
        };
        let waiting = self.waiting_in(queue).count();
        if let Some(max) = new.waiting_max.filter(|max| waiting >= *max as usize) {
            let NewEvent { scheduler, forwarder, .. } = new;
            return Err(Refusal::EventQueueFull { scheduler, forwarder, max });
        }
        let NewEvent { id, room, message, at, .. } = new;
        self.append_event(queue, id, room, message, at);
        Ok(())
    }

    fn append_event(&mut self, queue: QueueId, id: EventId, room: RoomId, message: Message, at: Timestamp) {
        let last_error = String::new();
        let (attempts, next_at, queued_at, dead_at) = (0, at, at, None);
        let queued = Queued { queue, id, room, message, attempts, next_at, last_error, queued_at, dead_at };
        let number = self.next_sequence();
        self.outbox.put(number, queued);
    }

    pub(super) fn events_delivered(&mut self, queue: QueueId, events: &[EventId], at: Timestamp) {
        for id in events {
            if let Some(number) = self.waiting_number(queue, *id)
                && let Some(gone) = self.outbox.remove(&number)
            {
                self.next_in_line(&gone, number, at);
            }
        }
    }

    pub(super) fn event_failed(&mut self, queue: QueueId, event: EventId, error: String, next_at: Timestamp) {
        if let Some(number) = self.waiting_number(queue, event) {
            self.outbox.change(&number, |event| {
                event.attempts += 1;
                event.last_error = error;
                event.next_at = next_at;
            });
        }
    }

    pub(super) fn events_dead(
        &mut self,
        queue: QueueId,
        events: &[EventId],
        error: &str,
        dead_max: u32,
        at: Timestamp,
    ) {
        for id in events {
            let Some(number) = self.waiting_number(queue, *id) else { continue };
            let died = self.outbox.change(&number, |event| {
                event.dead_at = Some(at);
                event.last_error = error.to_owned();
                event.clone()
            });
            if let Some(died) = died {
                self.next_in_line(&died, number, at);
            }
        }
        let dead = self.outbox.iter().filter(|(_, event)| event.queue == queue && event.dead_at.is_some());
        let dead: Vec<u64> = dead.map(|(number, _)| *number).collect();
        let surplus = dead.len().saturating_sub(dead_max as usize);
        for number in dead.into_iter().take(surplus) {
            self.outbox.remove(&number);
        }
    }

    /// What follows a head that is gone is due.
    fn next_in_line(&mut self, gone: &Queued, number: u64, at: Timestamp) {
        let line: Vec<u64> = self
            .waiting_in(gone.queue)
            .filter(|(_, event)| event.room == gone.room)
            .map(|(number, _)| *number)
            .collect();
        if let Some(first) = line.first().filter(|first| **first > number) {
            self.outbox.change(first, |event| event.next_at = at);
        }
    }

    pub(super) fn replay_events(&mut self, scheduler: &SchedulerName, events: &[EventId], at: Timestamp) {
        for id in events {
            let is_it = |event: &Queued| event.id == *id && event.dead_at.is_some();
            let found = self.outbox.iter().find(|(_, event)| is_it(event) && self.is_of(event, scheduler));
            if let Some(number) = found.map(|(number, _)| *number)
                && let Some(Queued { queue, id, room, message, .. }) = self.outbox.remove(&number)
            {
                self.append_event(queue, id, room, message, at);
            }
        }
    }

    pub(super) fn forget_dead_events(&mut self, scheduler: &SchedulerName, before: Timestamp) {
        let is_old = |event: &Queued| event.dead_at.is_some_and(|died| died < before);
        let old = self.outbox.iter().filter(|(_, event)| is_old(event) && self.is_of(event, scheduler));
        let old: Vec<u64> = old.map(|(number, _)| *number).collect();
        for number in old {
            self.outbox.remove(&number);
        }
    }

    pub(super) fn orphan_events(&mut self, scheduler: &SchedulerName, addresses: Vec<(String, LastAddress)>) {
        for (forwarder, address) in addresses {
            let Some(queue) = self.live_queue(scheduler, &forwarder) else { continue };
            if self.waiting_in(queue).next().is_none() {
                continue;
            }
            self.event_queues.change(&queue, |queue| queue.orphaned = Some((address, None)));
            let dead =
                self.outbox.iter().filter(|(_, event)| event.queue == queue && event.dead_at.is_some());
            let dead: Vec<u64> = dead.map(|(number, _)| *number).collect();
            for number in dead {
                self.outbox.remove(&number);
            }
        }
    }

    pub(super) fn forget_event_queues(&mut self, scheduler: &SchedulerName) {
        let events = self.outbox.iter().filter(|(_, event)| self.is_of(event, scheduler));
        let events: Vec<u64> = events.map(|(number, _)| *number).collect();
        for number in events {
            self.outbox.remove(&number);
        }
        let is_its = |queue: &Queue| queue.scheduler == *scheduler && queue.orphaned.is_none();
        let queues = self.event_queues.iter().filter(|(_, queue)| is_its(queue));
        let queues: Vec<QueueId> = queues.map(|(id, _)| *id).collect();
        for queue in queues {
            self.event_queues.remove(&queue);
        }
    }

    pub(super) fn event_queues(&self, scheduler: &SchedulerName) -> Vec<EventQueue> {
        let is_its = |queue: &Queue| queue.scheduler == *scheduler && queue.orphaned.is_none();
        let shown = |(id, queue): (&QueueId, &Queue)| {
            let all = self.outbox.iter().filter(|(_, event)| event.queue == *id).count();
            let waiting = self.waiting_in(*id).count();
            let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
            EventQueue {
                id: *id,
                forwarder: queue.forwarder.clone(),
                waiting: count(waiting),
                dead: count(all - waiting),
                oldest_at: self.waiting_in(*id).next().map(|(_, event)| event.queued_at),
                next_at: self.next_at(*id),
            }
        };
        let mut queues: Vec<_> =
            self.event_queues.iter().filter(|(_, queue)| is_its(queue)).map(shown).collect();
        queues.retain(|queue| queue.waiting > 0 || queue.dead > 0);
        queues.sort_by(|one, other| one.forwarder.cmp(&other.forwarder));
        queues
    }

    pub(super) fn due_events(
        &self,
        queue: QueueId,
        now: Timestamp,
        rooms_max: usize,
        events_max: usize,
    ) -> Vec<QueuedEvent> {
        let is_due = |(_, (_, head)): &(RoomId, (u64, &Queued))| head.next_at <= now;
        let mut due: Vec<_> = self.heads(queue).into_iter().filter(is_due).collect();
        due.sort_by_key(|(_, (number, head))| (head.next_at, *number));
        let line = |room: &RoomId| {
            let of_room = self.waiting_in(queue).filter(|(_, event)| event.room == *room);
            of_room.take(events_max).map(|(_, event)| self.shown(event)).collect::<Vec<_>>()
        };
        due.into_iter().take(rooms_max).flat_map(|(room, _)| line(&room)).collect()
    }

    pub(super) fn events(
        &self,
        scheduler: &SchedulerName,
        only: &EventFilter,
        page: EventPageRequest,
    ) -> EventPage {
        let EventFilter { dead, forwarder, room, id } = only;
        let fits = |event: &QueuedEvent| {
            dead.is_none_or(|dead| event.dead_at.is_some() == dead)
                && forwarder.as_ref().is_none_or(|forwarder| event.forwarder == *forwarder)
                && room.as_ref().is_none_or(|room| event.room == *room)
                && id.is_none_or(|id| event.id == id)
        };
        let events = self.outbox.iter().filter(|(_, event)| self.is_of(event, scheduler));
        let events: Vec<_> = events.map(|(_, event)| self.shown(event)).filter(fits).collect();
        let total = u32::try_from(events.len()).unwrap_or(u32::MAX);
        let skipped = page.page.saturating_sub(1).saturating_mul(page.page_size) as usize;
        let events = events.into_iter().skip(skipped).take(page.page_size as usize).collect();
        EventPage { total, events }
    }

    pub(super) fn has_orphaned_queues(&self) -> bool {
        self.event_queues.iter().any(|(_, queue)| queue.orphaned.is_some())
    }

    pub(super) fn own_orphaned_queues(
        &mut self,
        owner: &str,
        now: Timestamp,
        ttl: Millis,
    ) -> Vec<OrphanedQueue> {
        let orphaned = self.event_queues.iter().filter(|(_, queue)| queue.orphaned.is_some());
        let orphaned: Vec<QueueId> = orphaned.map(|(id, _)| *id).collect();
        let mut owned = Vec::new();
        for id in orphaned {
            if self.waiting_in(id).next().is_none() {
                self.event_queues.remove(&id);
                continue;
            }
            let next_at = self.next_at(id);
            self.event_queues.change(&id, |queue| {
                let Queue { scheduler, forwarder, orphaned: Some((last, holder)) } = queue else { return };
                let is_free = holder.as_ref().is_none_or(|(holder, until)| holder == owner || *until <= now);
                if is_free {
                    *holder = Some((owner.to_owned(), after(now, ttl)));
                    let (scheduler, forwarder) = (scheduler.clone(), forwarder.clone());
                    owned.push(OrphanedQueue { id, scheduler, forwarder, last: last.clone(), next_at });
                }
            });
        }
        owned
    }

    fn live_queue(&self, scheduler: &SchedulerName, forwarder: &str) -> Option<QueueId> {
        let is_it = |queue: &Queue| {
            queue.scheduler == *scheduler && queue.forwarder == forwarder && queue.orphaned.is_none()
        };
        self.event_queues.iter().find(|(_, queue)| is_it(queue)).map(|(id, _)| *id)
    }

    fn make_queue(&mut self, scheduler: &SchedulerName, forwarder: &str) -> QueueId {
        let number = self.next_sequence();
        let id = QueueId(i64::try_from(number).unwrap_or(i64::MAX));
        let (scheduler, forwarder) = (scheduler.clone(), forwarder.to_owned());
        self.event_queues.put(id, Queue { scheduler, forwarder, orphaned: None });
        id
    }

    fn next_sequence(&mut self) -> u64 {
        self.last_sequence += 1;
        self.last_sequence
    }

    fn waiting_in(&self, queue: QueueId) -> impl Iterator<Item = (&u64, &Queued)> {
        self.outbox.iter().filter(move |(_, event)| event.queue == queue && event.dead_at.is_none())
    }

    fn waiting_number(&self, queue: QueueId, id: EventId) -> Option<u64> {
        self.waiting_in(queue).find(|(_, event)| event.id == id).map(|(number, _)| *number)
    }

    /// The first that waits of each room, with its number.
    fn heads(&self, queue: QueueId) -> BTreeMap<RoomId, (u64, &Queued)> {
        let mut heads = BTreeMap::new();
        for (number, event) in self.waiting_in(queue) {
            heads.entry(event.room.clone()).or_insert((*number, event));
        }
        heads
    }

    fn next_at(&self, queue: QueueId) -> Option<Timestamp> {
        self.heads(queue).into_values().map(|(_, head)| head.next_at).min()
    }

    fn is_of(&self, event: &Queued, scheduler: &SchedulerName) -> bool {
        let queue = self.event_queues.get(&event.queue);
        queue.is_some_and(|queue| queue.scheduler == *scheduler && queue.orphaned.is_none())
    }

    fn shown(&self, event: &Queued) -> QueuedEvent {
        let Queued { queue, id, room, message, attempts, next_at, last_error, queued_at, dead_at } =
            event.clone();
        let forwarder = self.event_queues.get(&queue).map(|queue| queue.forwarder.clone());
        let forwarder = forwarder.unwrap_or_default();
        QueuedEvent { id, forwarder, room, message, attempts, next_at, last_error, queued_at, dead_at }
    }
}
