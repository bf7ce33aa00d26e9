//! Queues of events: queries, and who delivers what a deleted scheduler left behind.

use maestro_core::event::EventId;
use maestro_core::room::RoomId;
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::{Millis, Timestamp};
use maestro_engine::documents::message_from_json;
use maestro_engine::ports::store::{
    EventFilter, EventPage, EventPageRequest, EventQueue, LastAddress, OrphanedQueue, QueueId, QueuedEvent,
};
use uuid::Uuid;

use crate::columns::{Columns, or_unreadable, read_readable, read_rows};
use crate::failure::Result;
use crate::query::Query;
use crate::session::{Answer, Session, Statement};
use crate::time::now_sql;
use crate::value::values;
use crate::writes::{Pace, Write};

macro_rules! next_at {
    () => {
        "(SELECT min(next_at) FROM outbox WHERE queue = event_queues.id AND head) AS next_at"
    };
}

pub(crate) async fn queues(session: &Session, scheduler: &SchedulerName) -> Result<Vec<EventQueue>> {
    let sql = concat!(
        "SELECT id, forwarder, waiting, dead, ",
        next_at!(),
        ", (SELECT queued_at FROM outbox WHERE queue = event_queues.id AND dead_at IS NULL
            ORDER BY sequence LIMIT 1) AS oldest_at
         FROM event_queues WHERE scheduler = $1 AND address IS NULL AND (waiting > 0 OR dead > 0)
         ORDER BY forwarder"
    );
    let rows = session.rows(sql, values![scheduler]).await?;
    read_rows(&rows, |columns| {
        Ok(EventQueue {
            id: QueueId(columns.get("id")?),
            forwarder: columns.get("forwarder")?,
            waiting: columns.number("waiting")?,
            dead: columns.number("dead")?,
            oldest_at: columns.optional_time("oldest_at")?,
            next_at: columns.optional_time("next_at")?,
        })
    })
}

macro_rules! columns {
    () => {
        "SELECT outbox.id, outbox.room, outbox.payload, outbox.attempts, outbox.next_at, outbox.last_error,
            outbox.queued_at, outbox.dead_at, event_queues.forwarder
         FROM outbox JOIN event_queues ON event_queues.id = outbox.queue "
    };
}

pub(crate) async fn due(
    session: &Session,
    queue: QueueId,
    now: Timestamp,
    rooms_max: usize,
    events_max: usize,
) -> Result<Vec<QueuedEvent>> {
    let sql = "WITH due AS (
            SELECT room, next_at AS due_at, sequence AS first FROM outbox
            WHERE queue = $1 AND head AND next_at <= $2 ORDER BY next_at, sequence LIMIT $3)
        SELECT event.*, forwarder FROM due
        JOIN event_queues ON event_queues.id = $1
        CROSS JOIN LATERAL (
            SELECT id, room, payload, attempts, next_at, last_error, queued_at, dead_at, sequence FROM outbox
            WHERE queue = $1 AND room = due.room AND dead_at IS NULL ORDER BY sequence LIMIT $4) AS event
        ORDER BY due.due_at, due.first, event.sequence";
    let rows = session.rows(sql, values![queue, now, rooms_max, events_max]).await?;
    let mut events = Vec::with_capacity(rows.len());
    let mut held_up: Option<String> = None;
    for columns in rows.iter().map(Columns) {
        let room: String = columns.get("room")?;
        // Whatever follows in the same room would overtake it.
        if held_up.as_ref() == Some(&room) {
            continue;
        }
        match or_unreadable(event(&columns))? {
            Ok(event) => events.push(event),
            Err(why) => {
                tracing::warn!(%why, "an event cannot be read, and its room's events wait behind it");
                held_up = Some(room);
            }
        }
    }
    Ok(events)
}

pub(crate) async fn page(
    session: &Session,
    scheduler: &SchedulerName,
    only: &EventFilter,
    page: EventPageRequest,
) -> Result<EventPage> {
    let mut count = Query::new("SELECT count(*) FROM outbox WHERE ");
    push_condition(&mut count, scheduler, only);
    let mut shown = Query::new(concat!(columns!(), "WHERE "));
    push_condition(&mut shown, scheduler, only);
    let skipped = i64::from(page.page.saturating_sub(1)).saturating_mul(page.page_size.into());
    shown.push(" ORDER BY outbox.sequence LIMIT ").bind(page.page_size).push(" OFFSET ").bind(skipped);
    let total: i64 = session.ask_one(&count.into()).await?.value()?.unwrap_or_default();
    let rows = session.ask_one(&shown.into()).await?.rows;
    let events = read_readable("event", &rows, event)?;
    Ok(EventPage { total: u32::try_from(total).unwrap_or(u32::MAX), events })
}

fn push_condition(query: &mut Query<'static>, scheduler: &SchedulerName, only: &EventFilter) {
    let EventFilter { dead, forwarder, room, id } = only;
    query.push("outbox.queue IN (SELECT id FROM event_queues WHERE address IS NULL AND scheduler = ");
    query.bind(scheduler.to_string());
    query.and("forwarder = ", forwarder.clone());
    query.push(match dead {
        Some(true) => ") AND outbox.dead_at IS NOT NULL",
        Some(false) => ") AND outbox.dead_at IS NULL",
        None => ")",
    });
    query.and("outbox.room = ", room.as_ref().map(ToString::to_string));
    query.and("outbox.id = ", *id);
}

fn event(columns: &Columns<'_>) -> Result<QueuedEvent> {
    let payload: &str = columns.get("payload")?;
    Ok(QueuedEvent {
        id: EventId::from_u128(columns.get::<Uuid>("id")?.as_u128()),
        forwarder: columns.get("forwarder")?,
        room: columns.parsed("room", |room| Some(RoomId::new(room)))?,
        message: message_from_json(payload)?,
        attempts: columns.number("attempts")?,
        next_at: columns.time("next_at")?,
        last_error: columns.get("last_error")?,
        queued_at: columns.time("queued_at")?,
        dead_at: columns.optional_time("dead_at")?,
    })
}

pub(crate) async fn has_orphaned(session: &Session) -> Result<bool> {
    session.value("SELECT EXISTS (SELECT 1 FROM event_queues WHERE address IS NOT NULL)", values![]).await
}

/// Takes the queues of deleted schedulers that are free, and removes those that have become empty.
pub(crate) struct OwnOrphaned {
    pub(crate) owner: String,
    pub(crate) ttl: Millis,
}

impl Write for OwnOrphaned {
    type Answer = Vec<OrphanedQueue>;

    fn begin(&self, _: Pace) -> Vec<Statement<'_>> {
        let mut statements: Vec<_> = [
            "SELECT id FROM event_queues WHERE address IS NOT NULL ORDER BY id FOR UPDATE",
            "DELETE FROM outbox WHERE queue IN (SELECT id FROM event_queues WHERE address IS NOT NULL AND waiting = 0)",
            "DELETE FROM event_queues WHERE address IS NOT NULL AND waiting = 0",
        ]
        .map(|sql| Statement::new(sql, values![]))
        .into();
        let own = concat!(
            "UPDATE event_queues SET owner = $1, owned_until = $2 + ",
            now_sql!(),
            " WHERE address IS NOT NULL AND (owner IS NULL OR owner = $1 OR owned_until <= ",
            now_sql!(),
            ")"
        );
        let owned = concat!(
            "SELECT id, scheduler, forwarder, address, timeout_ms, ",
            next_at!(),
            " FROM event_queues WHERE address IS NOT NULL AND owner = $1 ORDER BY id"
        );
        statements.push(Statement::new(own, values![&self.owner, self.ttl]));
        statements.push(Statement::new(owned, values![&self.owner]));
        statements
    }

    async fn carry_out(&self, _: &Session, begun: &[Answer], _: Pace) -> Result<Self::Answer> {
        let owned = begun.last().map_or(&[] as &[_], |answer| &answer.rows);
        read_readable("queue of events", owned, |columns| {
            let timeout_ms: i64 = columns.get("timeout_ms")?;
            Ok(OrphanedQueue {
                id: QueueId(columns.get("id")?),
                scheduler: columns.scheduler("scheduler")?,
                forwarder: columns.get("forwarder")?,
                last: LastAddress {
                    address: columns.get("address")?,
                    timeout_ms: u64::try_from(timeout_ms).unwrap_or(0),
                },
                next_at: columns.optional_time("next_at")?,
            })
        })
    }
}
