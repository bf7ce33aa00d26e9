//! Queues of events: changes and queries.

use maestro_core::event::EventId;
use maestro_core::room::RoomId;
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::{Millis, Timestamp, after};
use maestro_engine::documents::{message_from_json, message_to_json};
use maestro_engine::ports::store::{
    EventFilter, EventPage, EventPageRequest, EventQueue, IfEnded, LastAddress, NewEvent, OrphanedQueue,
    QueueId, QueuedEvent, Refusal,
};
use rusqlite::types::Value as SqlValue;
use rusqlite::{Connection, OptionalExtension, Params, params_from_iter};

use super::columns::{
    Columns, Condition, execute, execute_counted, from_time, insert, or_unreadable, read_rows, value,
};
use super::failure::Result;
use super::{rooms, schedulers};

pub(super) fn queue(connection: &Connection, new: &NewEvent) -> Result {
    schedulers::require(connection, &new.scheduler)?;
    let is_live = || rooms::is_live(connection, &new.scheduler, &new.room);
    match new.if_ended {
        IfEnded::Skip if !is_live()? => return Ok(()),
        IfEnded::Refuse if !is_live()? => return Err(Refusal::RoomNotFound(new.room.clone()).into()),
        IfEnded::Queue | IfEnded::Skip | IfEnded::Refuse => {}
    }
    let names = (new.scheduler.as_str(), new.forwarder.as_str());
    execute(
        connection,
        "INSERT INTO event_queues (scheduler, forwarder) VALUES (?1, ?2)
         ON CONFLICT (scheduler, forwarder) WHERE address IS NULL DO NOTHING",
        names,
    )?;
    let sql =
        "SELECT id, waiting FROM event_queues WHERE scheduler = ?1 AND forwarder = ?2 AND address IS NULL";
    let (queue, waiting): (i64, u32) =
        connection.prepare_cached(sql)?.query_row(names, |row| Ok((row.get(0)?, row.get(1)?)))?;
    if let Some(max) = new.waiting_max.filter(|max| waiting >= *max) {
        let (scheduler, forwarder) = (new.scheduler.clone(), new.forwarder.clone());
        return Err(Refusal::EventQueueFull { scheduler, forwarder, max }.into());
    }
    append(connection, queue, new.id, new.room.as_str(), &message_to_json(&new.message), new.at)
}

fn append(
    connection: &Connection,
    queue: i64,
    id: EventId,
    room: &str,
    payload: &str,
    at: Timestamp,
) -> Result {
    let sql = "SELECT NOT EXISTS (SELECT 1 FROM outbox WHERE queue = ?1 AND room = ?2 AND dead_at IS NULL)";
    let is_head: bool = value(connection, sql, (queue, room))?;
    insert(
        connection,
        "INSERT INTO outbox",
        &[
            ("queue", &queue),
            ("id", &id.to_string()),
            ("room", &room),
            ("payload", &payload),
            ("head", &is_head),
            ("next_at", &from_time(at)),
            ("queued_at", &from_time(at)),
        ],
    )?;
    execute(connection, "UPDATE event_queues SET waiting = waiting + 1 WHERE id = ?1", [queue])
}

pub(super) fn delivered(
    connection: &Connection,
    queue: QueueId,
    events: &[EventId],
    at: Timestamp,
) -> Result {
    for id in events {
        let sql = "DELETE FROM outbox WHERE id = ?2 AND queue = ?1 AND dead_at IS NULL RETURNING room, head";
        take_out(connection, queue, sql, (queue.0, id.to_string()), at)?;
    }
    Ok(())
}

pub(super) fn failed(
    connection: &Connection,
    queue: QueueId,
    event: EventId,
    error: &str,
    next_at: Timestamp,
) -> Result {
    let sql = "UPDATE outbox SET attempts = attempts + 1, last_error = ?3, next_at = ?4
         WHERE id = ?2 AND queue = ?1 AND dead_at IS NULL";
    execute(connection, sql, (queue.0, event.to_string(), error, from_time(next_at)))
}

pub(super) fn dead(
    connection: &Connection,
    queue: QueueId,
    events: &[EventId],
    error: &str,
    dead_max: u32,
    at: Timestamp,
) -> Result {
    for id in events {
        // Answers how the row is after the change, so it stays a head until the next one is.
        let sql = "UPDATE outbox SET dead_at = ?3, last_error = ?4
             WHERE id = ?2 AND queue = ?1 AND dead_at IS NULL RETURNING room, head";
        let parameters = (queue.0, id.to_string(), from_time(at), error);
        if take_out(connection, queue, sql, parameters, at)? {
            execute(connection, "UPDATE outbox SET head = 0 WHERE id = ?1", [id.to_string()])?;
            execute(connection, "UPDATE event_queues SET dead = dead + 1 WHERE id = ?1", [queue.0])?;
        }
    }
    let sql = "SELECT max(dead - ?2, 0) FROM event_queues WHERE id = ?1";
    let surplus: Option<u32> =
        connection.prepare_cached(sql)?.query_row((queue.0, dead_max), |row| row.get(0)).optional()?;
    match surplus {
        None | Some(0) => Ok(()),
        Some(surplus) => {
            let sql = "DELETE FROM outbox WHERE sequence IN
                 (SELECT sequence FROM outbox WHERE queue = ?1 AND dead_at IS NOT NULL ORDER BY sequence LIMIT ?2)";
            let dropped = execute_counted(connection, sql, (queue.0, surplus))?;
            tracing::warn!(dropped, "oldest dead letters dropped: more are not kept of one forwarder");
            let sql = "UPDATE event_queues SET dead = dead - ?2 WHERE id = ?1";
            execute(connection, sql, (queue.0, i64::try_from(dropped).unwrap_or(i64::MAX)))
        }
    }
}

/// `sql` takes one event out of the queue, and returns its room and whether it was the head of that room. True: there was
/// such an event.
fn take_out(
    connection: &Connection,
    queue: QueueId,
    sql: &str,
    parameters: impl Params,
    at: Timestamp,
) -> Result<bool> {
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, bool>(1)?));
    let left = connection.prepare_cached(sql)?.query_row(parameters, read).optional()?;
    let Some((room, was_head)) = left else { return Ok(false) };
    execute(connection, "UPDATE event_queues SET waiting = waiting - 1 WHERE id = ?1", [queue.0])?;
    if was_head {
        let sql = "UPDATE outbox SET head = 1, next_at = ?3 WHERE sequence =
             (SELECT min(sequence) FROM outbox WHERE queue = ?1 AND room = ?2 AND dead_at IS NULL)";
        execute(connection, sql, (queue.0, room, from_time(at)))?;
    }
    Ok(true)
}

/// Under a new number: behind all that wait.
pub(super) fn replay(
    connection: &Connection,
    scheduler: &SchedulerName,
    events: &[EventId],
    at: Timestamp,
) -> Result {
    for id in events {
        let sql = "DELETE FROM outbox WHERE id = ?2 AND dead_at IS NOT NULL AND queue IN
                 (SELECT id FROM event_queues WHERE scheduler = ?1 AND address IS NULL)
             RETURNING queue, room, payload";
        let read = |row: &rusqlite::Row<'_>| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?))
        };
        let parameters = (scheduler.as_str(), id.to_string());
        let found = connection.prepare_cached(sql)?.query_row(parameters, read).optional()?;
        if let Some((queue, room, payload)) = found {
            execute(connection, "UPDATE event_queues SET dead = dead - 1 WHERE id = ?1", [queue])?;
            append(connection, queue, *id, &room, &payload, at)?;
        }
    }
    Ok(())
}

pub(super) fn forget_dead(connection: &Connection, scheduler: &SchedulerName, before: Timestamp) -> Result {
    let sql = "SELECT id FROM event_queues WHERE scheduler = ?1 AND address IS NULL AND dead > 0";
    let queues: Vec<i64> = read_rows(connection, sql, [scheduler.as_str()], |columns| columns.get("id"))?;
    for queue in queues {
        let sql = "DELETE FROM outbox WHERE queue = ?1 AND dead_at IS NOT NULL AND dead_at < ?2";
        let dropped = execute_counted(connection, sql, (queue, from_time(before)))?;
        let sql = "UPDATE event_queues SET dead = dead - ?2 WHERE id = ?1";
        execute(connection, sql, (queue, i64::try_from(dropped).unwrap_or(i64::MAX)))?;
    }
    let sql =
        "DELETE FROM event_queues WHERE scheduler = ?1 AND address IS NULL AND waiting = 0 AND dead = 0";
    execute(connection, sql, [scheduler.as_str()])
}

pub(super) fn orphan(
    connection: &Connection,
    scheduler: &SchedulerName,
    addresses: &[(String, LastAddress)],
) -> Result {
    for (forwarder, LastAddress { address, timeout_ms }) in addresses {
        let sql = "UPDATE event_queues SET address = ?3, timeout_ms = ?4
             WHERE scheduler = ?1 AND forwarder = ?2 AND address IS NULL AND waiting > 0 RETURNING id";
        let timeout_ms = i64::try_from(*timeout_ms).unwrap_or(i64::MAX);
        let parameters = (scheduler.as_str(), forwarder, address, timeout_ms);
        let left =
            connection.prepare_cached(sql)?.query_row(parameters, |row| row.get::<_, i64>(0)).optional()?;
        if let Some(queue) = left {
            execute(connection, "DELETE FROM outbox WHERE queue = ?1 AND dead_at IS NOT NULL", [queue])?;
            execute(connection, "UPDATE event_queues SET dead = 0 WHERE id = ?1", [queue])?;
        }
    }
    Ok(())
}

/// What a scheduler that is deleted does not leave behind.
pub(super) fn forget_scheduler(connection: &Connection, scheduler: &SchedulerName) -> Result {
    for statement in [
        "DELETE FROM outbox WHERE queue IN (SELECT id FROM event_queues WHERE scheduler = ?1 AND address IS NULL)",
        "DELETE FROM event_queues WHERE scheduler = ?1 AND address IS NULL",
    ] {
        execute(connection, statement, [scheduler.as_str()])?;
    }
    Ok(())
}

const NEXT_AT: &str = "(SELECT min(next_at) FROM outbox WHERE queue = event_queues.id AND head = 1)";

pub(super) fn queues(connection: &Connection, scheduler: &SchedulerName) -> Result<Vec<EventQueue>> {
    let sql = format!(
        "SELECT id, forwarder, waiting, dead, {NEXT_AT} AS next_at,
                (SELECT queued_at FROM outbox WHERE queue = event_queues.id AND dead_at IS NULL
                 ORDER BY sequence LIMIT 1) AS oldest_at
         FROM event_queues WHERE scheduler = ?1 AND address IS NULL AND (waiting > 0 OR dead > 0)
         ORDER BY forwarder"
    );
    read_rows(connection, &sql, [scheduler.as_str()], |columns| {
        Ok(EventQueue {
            id: QueueId(columns.get("id")?),
            forwarder: columns.get("forwarder")?,
            waiting: columns.get("waiting")?,
            dead: columns.get("dead")?,
            oldest_at: columns.optional_time("oldest_at")?,
            next_at: columns.optional_time("next_at")?,
        })
    })
}

const SELECT: &str =
    "SELECT outbox.id, outbox.room, outbox.payload, outbox.attempts, outbox.next_at, outbox.last_error,
        outbox.queued_at, outbox.dead_at, event_queues.forwarder
     FROM outbox JOIN event_queues ON event_queues.id = outbox.queue";

pub(super) fn due(
    connection: &Connection,
    queue: QueueId,
    now: Timestamp,
    rooms_max: usize,
    events_max: usize,
) -> Result<Vec<QueuedEvent>> {
    let sql = "SELECT room FROM outbox WHERE queue = ?1 AND head = 1 AND next_at <= ?2 ORDER BY next_at, sequence LIMIT ?3";
    let limit = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let parameters = (queue.0, from_time(now), limit(rooms_max));
    let rooms: Vec<String> = read_rows(connection, sql, parameters, |columns| columns.get("room"))?;
    let sql = format!(
        "{SELECT} WHERE outbox.queue = ?1 AND outbox.room = ?2 AND outbox.dead_at IS NULL
         ORDER BY outbox.sequence LIMIT ?3"
    );
    let mut events = Vec::new();
    for room in rooms {
        let read = |columns: &Columns<'_, '_>| or_unreadable(event(columns));
        for event in read_rows(connection, &sql, (queue.0, room, limit(events_max)), read)? {
            match event {
                Ok(event) => events.push(event),
                Err(why) => {
                    // Whatever follows in the same room would overtake it.
                    tracing::warn!(%why, "an event cannot be read, and its room's events wait behind it");
                    break;
                }
            }
        }
    }
    Ok(events)
}

fn event(columns: &Columns<'_, '_>) -> Result<QueuedEvent> {
    let payload: String = columns.get("payload")?;
    Ok(QueuedEvent {
        id: columns.parsed("id", EventId::parse)?,
        forwarder: columns.get("forwarder")?,
        room: columns.parsed("room", |room| Some(RoomId::new(room)))?,
        message: message_from_json(&payload)?,
        attempts: columns.get("attempts")?,
        next_at: columns.time("next_at")?,
        last_error: columns.get("last_error")?,
        queued_at: columns.time("queued_at")?,
        dead_at: columns.optional_time("dead_at")?,
    })
}

pub(super) fn page(
    connection: &Connection,
    scheduler: &SchedulerName,
    only: &EventFilter,
    page: EventPageRequest,
) -> Result<EventPage> {
    let EventFilter { dead, forwarder, room, id } = only;
    let mut condition = Condition::new(
        "outbox.queue IN (SELECT id FROM event_queues WHERE scheduler = ? AND address IS NULL)",
    );
    condition.values.push(SqlValue::from(scheduler.to_string()));
    match dead {
        Some(true) => condition.sql.push_str(" AND outbox.dead_at IS NOT NULL"),
        Some(false) => condition.sql.push_str(" AND outbox.dead_at IS NULL"),
        None => {}
    }
    let in_queue = "outbox.queue IN (SELECT id FROM event_queues WHERE forwarder = ?)";
    condition.and(in_queue, forwarder.clone());
    condition.and("outbox.room = ?", room.as_ref().map(ToString::to_string));
    condition.and("outbox.id = ?", id.map(|id| id.to_string()));
    let total = condition.count(connection, "outbox")?;
    let sql = format!("{SELECT} WHERE {} ORDER BY outbox.sequence LIMIT ? OFFSET ?", condition.sql);
    let skipped = i64::from(page.page.saturating_sub(1)).saturating_mul(page.page_size.into());
    condition.values.extend([SqlValue::from(i64::from(page.page_size)), SqlValue::from(skipped)]);
    let events = read_rows(connection, &sql, params_from_iter(&condition.values), |columns| {
        or_unreadable(event(columns))
    })?;
    Ok(EventPage { total, events: events.into_iter().flatten().collect() })
}

pub(super) fn has_orphaned(connection: &Connection) -> Result<bool> {
    value(connection, "SELECT EXISTS (SELECT 1 FROM event_queues WHERE address IS NOT NULL)", [])
}

pub(super) fn own_orphaned(
    connection: &Connection,
    owner: &str,
    now: Timestamp,
    ttl: Millis,
) -> Result<Vec<OrphanedQueue>> {
    for statement in [
        "DELETE FROM outbox WHERE queue IN (SELECT id FROM event_queues WHERE address IS NOT NULL AND waiting = 0)",
        "DELETE FROM event_queues WHERE address IS NOT NULL AND waiting = 0",
    ] {
        execute(connection, statement, [])?;
    }
    let sql = "UPDATE event_queues SET owner = ?1, owned_until = ?3
         WHERE address IS NOT NULL AND (owner IS NULL OR owner = ?1 OR owned_until <= ?2)";
    execute(connection, sql, (owner, from_time(now), from_time(after(now, ttl))))?;
    let sql = format!(
        "SELECT id, scheduler, forwarder, address, timeout_ms, {NEXT_AT} AS next_at
         FROM event_queues WHERE address IS NOT NULL AND owner = ?1 ORDER BY id"
    );
    let queues = read_rows(connection, &sql, [owner], |columns| {
        or_unreadable((|| {
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
        })())
    })?;
    Ok(queues.into_iter().flatten().collect())
}
