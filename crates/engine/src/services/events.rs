//! What rooms have to say to matchmakers, and what could not be delivered to them.

use std::time::Duration;

use maestro_core::event::{Addressee, EventId, EventKind, Message, RoomFacts, RpcCode, compose};
use maestro_core::room::{Purpose, RoomId};
use maestro_core::scheduler::{Delivery, Forwarder, SchedulerName};
use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::events::{enabled, facts_of, timeout_of};
use crate::ports::room_table::{Ping, PingError, TableError};
use crate::ports::store::{
    Change, EventFilter, EventPage, EventPageRequest, IfEnded, NewEvent, Refusal, SchedulerRecord,
    StoreError, Transaction,
};
use crate::{Engine, Error, Result, with_sources};

use super::{known_name, scheduler_not_found};

/// How long a room waits for all of its direct forwarders together, whatever their own timeouts say: it is to get an answer
/// before the rooms API gives up the request.
const DIRECT_MAX: Duration = Duration::from_secs(4);
/// Dead letters that one transaction replays.
const REPLAYED_AT_ONCE: u32 = 500;

/// Why an event was not forwarded, as the room is told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NotForwarded {
    pub message: String,
    /// By which it is counted.
    pub code: RpcCode,
}

/// Which dead letters to replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplayOrder {
    Events(Vec<EventId>),
    /// All of one forwarder.
    Forwarder(String),
    All,
}

impl Engine {
    /// Forwards an event to every enabled forwarder: it is written down for those with a queue, then delivered to the others
    /// in their order, up to the first that fails. Without forwarders, all is well.
    pub async fn forward_event(
        &self,
        scheduler: &str,
        room: &str,
        kind: EventKind,
        metadata: Map<String, Value>,
    ) -> Result<(), NotForwarded> {
        let record = self.record_of(scheduler).await?;
        if enabled(&record).next().is_none() {
            return Ok(());
        }
        let outcome = self.forward(&record, &RoomId::new(room), &kind, &metadata).await;
        let code = outcome.as_ref().map_or_else(|error| error.code, |()| RpcCode::Ok);
        self.metrics.event_forwarded(&record, kind.is_of_player(), outcome.is_ok(), code);
        if let Err(error) = &outcome {
            tracing::debug!(scheduler_name = scheduler, room_id = room, %error, "event not forwarded");
        }
        outcome
    }

    /// What a room says by v9's status request: taken in like a ping, and forwarded as a status of its own.
    pub async fn room_status(
        &self,
        ping: Ping<'_>,
        metadata: Map<String, Value>,
    ) -> Result<(), NotForwarded> {
        let (scheduler, room, status) = (ping.scheduler, ping.room, ping.status);
        let kind = EventKind::Status(status);
        match self.take_in_ping(ping).await {
            Ok(_) => {}
            Err(PingError::UnknownRoom | PingError::Table(TableError::Lost(_)))
                if kind.may_be_of_unknown_room() => {}
            Err(error) => return Err(not_forwarded(RpcCode::FailedPrecondition, error.to_string())),
        }
        self.forward_event(scheduler, room, kind, metadata).await
    }

    async fn record_of(&self, scheduler: &str) -> Result<SchedulerRecord, NotForwarded> {
        let missing = || not_forwarded(RpcCode::NotFound, scheduler_not_found(scheduler).to_string());
        let name = known_name(scheduler).map_err(|_| missing())?;
        self.ports.store.scheduler(&name).await.map_err(|error| store_failed(&error))?.ok_or_else(missing)
    }

    async fn forward(
        &self,
        record: &SchedulerRecord,
        room: &RoomId,
        kind: &EventKind,
        metadata: &Map<String, Value>,
    ) -> Result<(), NotForwarded> {
        let Some(facts) = self.room_facts(&record.name, room, kind).await? else { return Ok(()) };
        // All messages first: if an event is wrong, its room is told so before any receiver gets it.
        let mut messages = Vec::new();
        for forwarder in enabled(record) {
            let to = Addressee { scheduler: &record.name, game: &record.recipe.game, forwarder };
            let message = compose(kind, metadata, &facts, to)
                .map_err(|error| not_forwarded(RpcCode::InvalidArgument, error.to_string()))?;
            messages.push((forwarder, message));
        }
        let (queued, direct): (Vec<_>, Vec<_>) =
            messages.into_iter().partition(|(forwarder, _)| forwarder.delivery == Delivery::Queued);
        // A room may end meanwhile.
        let if_ended = if kind.may_be_of_unknown_room() { IfEnded::Queue } else { IfEnded::Refuse };
        self.queue_events(&record.name, room, queued, if_ended).await?;
        self.deliver_in_order(&direct).await
    }

    /// `None`: a room that tries a version is none that players could come to.
    async fn room_facts(
        &self,
        scheduler: &SchedulerName,
        room: &RoomId,
        kind: &EventKind,
    ) -> Result<Option<RoomFacts>, NotForwarded> {
        let row = self.ports.store.room(scheduler, room).await.map_err(|error| store_failed(&error))?;
        match row {
            Some(row) if row.purpose == Purpose::Validation => Ok(None),
            Some(row) if row.ended.is_none() => Ok(Some(facts_of(&row, false))),
            Some(row) if kind.may_be_of_unknown_room() => Ok(Some(facts_of(&row, true))),
            None if kind.may_be_of_unknown_room() => {
                let (id, host, ports) = (room.clone(), String::new(), Vec::new());
                Ok(Some(RoomFacts { id, host, ports, is_gone: true }))
            }
            Some(_) | None => Err(room_not_found(scheduler, room)),
        }
    }

    /// In one transaction: for all of them or for none.
    async fn queue_events(
        &self,
        scheduler: &SchedulerName,
        room: &RoomId,
        messages: Vec<(&Forwarder, Message)>,
        if_ended: IfEnded,
    ) -> Result<(), NotForwarded> {
        if messages.is_empty() {
            return Ok(());
        }
        let at = self.now();
        let event = |(forwarder, message): (&Forwarder, Message)| {
            Change::QueueEvent(Box::new(NewEvent {
                id: self.ports.random.event_id(at),
                scheduler: scheduler.clone(),
                forwarder: forwarder.name.clone(),
                room: room.clone(),
                message,
                waiting_max: Some(self.settings.events_queue_max),
                if_ended,
                at,
            }))
        };
        let changes = messages.into_iter().map(event).collect();
        let written = self.commit(Transaction::new("queue event", scheduler, changes)).await;
        written.map_err(|error| match error {
            StoreError::Refused(Refusal::RoomNotFound(room)) => room_not_found(scheduler, &room),
            StoreError::Refused(Refusal::SchedulerNotFound(scheduler)) => {
                not_forwarded(RpcCode::NotFound, scheduler_not_found(scheduler.as_str()).to_string())
            }
            StoreError::Refused(refusal) => not_forwarded(RpcCode::ResourceExhausted, refusal.to_string()),
            error @ (StoreError::Unreadable(_)
            | StoreError::Unavailable { .. }
            | StoreError::Unknown { .. }) => store_failed(&error),
        })?;
        self.event_queued(scheduler);
        Ok(())
    }

    async fn deliver_in_order(&self, messages: &[(&Forwarder, Message)]) -> Result<(), NotForwarded> {
        let deadline = Instant::now() + DIRECT_MAX;
        for (forwarder, message) in messages {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = timeout_of(forwarder.timeout_ms).min(left);
            let id = self.ports.random.event_id(self.now());
            let attempt = self.attempt(&forwarder.address, timeout, id, message).await;
            attempt.map_err(|error| {
                let (name, code) = (&forwarder.name, error.code);
                let text =
                    format!("failed to forward event room at {name:?} with code {code}: {}", error.message);
                not_forwarded(code, text)
            })?;
        }
        Ok(())
    }

    /// Queued events of a scheduler, in the order in which they were queued.
    pub async fn queued_events(
        &self,
        scheduler: &str,
        only: &EventFilter,
        page: EventPageRequest,
    ) -> Result<EventPage> {
        let record = self.scheduler(scheduler).await?;
        Ok(self.ports.store.events(&record.name, only, page).await?)
    }

    /// Puts dead letters back into their queues, out of order, and says how many. A letter whose forwarder is not there any
    /// more dies again.
    pub async fn replay_events(&self, scheduler: &str, order: ReplayOrder, user: &str) -> Result<u32> {
        let name = self.scheduler(scheduler).await?.name;
        let dead = EventFilter { dead: Some(true), ..EventFilter::default() };
        let replayed = match order {
            ReplayOrder::Events(ids) => {
                for id in &ids {
                    let only = EventFilter { id: Some(*id), ..dead.clone() };
                    let first = EventPageRequest { page: 1, page_size: 1 };
                    if self.ports.store.events(&name, &only, first).await?.total == 0 {
                        return Err(Error::NotFound(format!(
                            "dead letter {id} not found in scheduler {scheduler}"
                        )));
                    }
                }
                self.replay(&name, ids).await?
            }
            ReplayOrder::Forwarder(forwarder) => {
                self.replay_all(&name, &EventFilter { forwarder: Some(forwarder), ..dead }).await?
            }
            ReplayOrder::All => self.replay_all(&name, &dead).await?,
        };
        tracing::info!(scheduler_name = scheduler, user, replayed, "dead letters replayed");
        self.event_queued(&name);
        Ok(replayed)
    }

    /// Those that are dead when it begins: one that dies again meanwhile is not replayed forever.
    async fn replay_all(&self, scheduler: &SchedulerName, only: &EventFilter) -> Result<u32> {
        let first = EventPageRequest { page: 1, page_size: REPLAYED_AT_ONCE };
        let EventPage { total, .. } = self.ports.store.events(scheduler, only, first).await?;
        let mut replayed = 0;
        while replayed < total {
            let page = self.ports.store.events(scheduler, only, first).await?;
            let left = (total - replayed) as usize;
            let ids: Vec<_> = page.events.iter().take(left).map(|event| event.id).collect();
            if ids.is_empty() {
                break;
            }
            replayed += self.replay(scheduler, ids).await?;
        }
        Ok(replayed)
    }

    async fn replay(&self, scheduler: &SchedulerName, events: Vec<EventId>) -> Result<u32> {
        let replayed = u32::try_from(events.len()).unwrap_or(u32::MAX);
        let change = Change::ReplayEvents { scheduler: scheduler.clone(), events, at: self.now() };
        self.commit(Transaction::new("replay events", scheduler, vec![change])).await?;
        Ok(replayed)
    }
}

fn not_forwarded(code: RpcCode, message: String) -> NotForwarded {
    NotForwarded { message, code }
}

fn room_not_found(scheduler: &SchedulerName, room: &RoomId) -> NotForwarded {
    let text =
        format!("failed to get room {room} from storage: room {room} not found in scheduler {scheduler}");
    not_forwarded(RpcCode::NotFound, text)
}

fn store_failed(error: &StoreError) -> NotForwarded {
    not_forwarded(RpcCode::Unavailable, with_sources(error))
}
