//! Queues of events: changes. Each is made under the lock of its queues, which the transaction takes at its beginning: so the
//! events of a queue have one order, and what is counted is right.

use maestro_core::event::EventId;
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::Timestamp;
use maestro_engine::documents::message_to_json;
use maestro_engine::ports::store::{IfEnded, LastAddress, NewEvent, QueueId, Refusal};
use uuid::Uuid;

use crate::failure::Result;
use crate::schedulers;
use crate::session::{Session, Statement};
use crate::value::values;

/// The queues of these forwarders, made if there are none, so that they can be locked.
pub(crate) fn make_queues(queues: &[(&SchedulerName, &str)]) -> Statement<'static> {
    let schedulers: Vec<String> = queues.iter().map(|(scheduler, _)| scheduler.to_string()).collect();
    let forwarders: Vec<String> = queues.iter().map(|(_, forwarder)| (*forwarder).to_owned()).collect();
    let sql = "INSERT INTO event_queues (scheduler, forwarder)
         SELECT DISTINCT scheduler COLLATE \"C\", forwarder COLLATE \"C\" FROM unnest($1, $2) AS new (scheduler, forwarder)
         ORDER BY 1, 2 ON CONFLICT (scheduler, forwarder) WHERE address IS NULL DO NOTHING";
    Statement::new(sql, values![schedulers, forwarders])
}

/// Locks the queues of these ids, and all of these schedulers.
pub(crate) fn lock_queues(ids: Vec<i64>, schedulers: Vec<&str>) -> Statement<'_> {
    let sql = "SELECT id FROM event_queues
         WHERE id = ANY ($1) OR (scheduler = ANY ($2) AND address IS NULL) ORDER BY id FOR NO KEY UPDATE";
    Statement::new(sql, values![ids, schedulers])
}

pub(crate) fn queue(new: &NewEvent) -> Statement<'_> {
    let NewEvent { id, scheduler, forwarder, room, message, waiting_max, if_ended, at } = new;
    let (needs_live, is_skipped) = match if_ended {
        IfEnded::Queue => (false, false),
        IfEnded::Skip => (true, true),
        IfEnded::Refuse => (true, false),
    };
    let sql = "WITH scheduler AS (SELECT 1 FROM schedulers WHERE name = $1),
        live AS (SELECT 1 FROM rooms WHERE id = $3 AND scheduler = $1 AND ended_at IS NULL),
        wanted AS (SELECT 1 FROM scheduler WHERE NOT $4 OR EXISTS (SELECT 1 FROM live)),
        queue AS (
            UPDATE event_queues SET waiting = waiting + 1
            WHERE scheduler = $1 AND forwarder = $2 AND address IS NULL AND ($5::BIGINT IS NULL OR waiting < $5)
              AND EXISTS (SELECT 1 FROM wanted)
            RETURNING id),
        event AS (
            INSERT INTO outbox (queue, id, room, payload, head, next_at, queued_at)
            SELECT queue.id, $6, $3, $7,
                NOT EXISTS (SELECT 1 FROM outbox WHERE queue = queue.id AND room = $3 AND dead_at IS NULL), $8, $8
            FROM queue RETURNING 1)
        SELECT EXISTS (SELECT 1 FROM event)
            OR ($9 AND EXISTS (SELECT 1 FROM scheduler) AND NOT EXISTS (SELECT 1 FROM live)) AS done,
            EXISTS (SELECT 1 FROM wanted) AS wanted";
    Statement::new(
        sql,
        values![
            scheduler,
            forwarder,
            room,
            needs_live,
            *waiting_max,
            *id,
            message_to_json(message),
            *at,
            is_skipped,
        ],
    )
}

/// `wanted`: neither its room nor its scheduler was in the way.
pub(crate) async fn why_not_queued(session: &Session, new: &NewEvent, wanted: bool) -> Result<Refusal> {
    schedulers::require(session, &new.scheduler).await?;
    if !wanted {
        return Ok(Refusal::RoomNotFound(new.room.clone()));
    }
    let (scheduler, forwarder) = (new.scheduler.clone(), new.forwarder.clone());
    Ok(Refusal::EventQueueFull { scheduler, forwarder, max: new.waiting_max.unwrap_or_default() })
}

/// What follows a head that is gone becomes the head. `$gone` has the sequence and the room of what left the queue `$1`, and
/// whether it was a head.
macro_rules! next_heads {
    ($at:literal) => {
        concat!(
            "next AS (
                SELECT DISTINCT ON (o.room) o.sequence FROM outbox AS o
                WHERE o.queue = $1 AND o.dead_at IS NULL AND o.room IN (SELECT room FROM gone WHERE was_head)
                  AND o.sequence NOT IN (SELECT sequence FROM gone)
                ORDER BY o.room, o.sequence),
            followed AS (
                UPDATE outbox SET head = TRUE, next_at = ",
            $at,
            " WHERE sequence IN (SELECT sequence FROM next))"
        )
    };
}

pub(crate) fn delivered(queue: QueueId, events: &[EventId], at: Timestamp) -> Statement<'static> {
    let sql = concat!(
        "WITH gone AS (
            DELETE FROM outbox WHERE id = ANY ($2) AND queue = $1 AND dead_at IS NULL
            RETURNING sequence, room, head AS was_head),
        counted AS (
            UPDATE event_queues SET waiting = waiting - (SELECT count(*) FROM gone)
            WHERE id = $1 AND EXISTS (SELECT 1 FROM gone)), ",
        next_heads!("$3"),
        " SELECT TRUE AS done"
    );
    Statement::new(sql, values![queue, ids(events), at])
}

pub(crate) fn failed(queue: QueueId, event: EventId, error: &str, next_at: Timestamp) -> Statement<'_> {
    let sql = "WITH failed AS (
            UPDATE outbox SET attempts = attempts + 1, last_error = $3, next_at = $4
            WHERE id = $2 AND queue = $1 AND dead_at IS NULL)
        SELECT TRUE AS done";
    Statement::new(sql, values![queue, event, error, next_at])
}

pub(crate) async fn dead(
    session: &Session,
    queue: QueueId,
    events: &[EventId],
    error: &str,
    dead_max: u32,
    at: Timestamp,
) -> Result {
    let sql = concat!(
        "WITH old AS (
            SELECT sequence, head FROM outbox WHERE id = ANY ($2) AND queue = $1 AND dead_at IS NULL),
        gone AS (
            UPDATE outbox AS o SET dead_at = $3, last_error = $4, head = FALSE FROM old
            WHERE o.sequence = old.sequence RETURNING o.sequence, o.room, old.head AS was_head),
        counted AS (
            UPDATE event_queues
            SET waiting = waiting - (SELECT count(*) FROM gone), dead = dead + (SELECT count(*) FROM gone)
            WHERE id = $1 AND EXISTS (SELECT 1 FROM gone)), ",
        next_heads!("$3"),
        " SELECT TRUE AS done"
    );
    session.ask(sql, values![queue, ids(events), at, error]).await?;
    let sql = "WITH dropped AS (
            DELETE FROM outbox WHERE sequence IN (
                SELECT sequence FROM outbox WHERE queue = $1 AND dead_at IS NOT NULL ORDER BY sequence
                LIMIT greatest((SELECT dead FROM event_queues WHERE id = $1) - $2, 0))
            RETURNING 1),
        counted AS (
            UPDATE event_queues SET dead = dead - (SELECT count(*) FROM dropped)
            WHERE id = $1 AND EXISTS (SELECT 1 FROM dropped))
        SELECT count(*) FROM dropped";
    let dropped: i64 = session.value(sql, values![queue, dead_max]).await?;
    if dropped > 0 {
        tracing::warn!(dropped, "oldest dead letters dropped: more are not kept of one forwarder");
    }
    Ok(())
}

/// Under new numbers: behind all that wait.
pub(crate) async fn replay(
    session: &Session,
    scheduler: &SchedulerName,
    events: &[EventId],
    at: Timestamp,
) -> Result {
    let sql = "WITH replayed AS (
            UPDATE outbox AS o
            SET sequence = nextval('outbox_sequence'), dead_at = NULL, attempts = 0, last_error = '', next_at = $3,
                queued_at = $3, head = NOT EXISTS (
                    SELECT 1 FROM outbox AS w WHERE w.queue = o.queue AND w.room = o.room AND w.dead_at IS NULL)
            WHERE o.id = $2 AND o.dead_at IS NOT NULL
              AND o.queue IN (SELECT id FROM event_queues WHERE scheduler = $1 AND address IS NULL)
            RETURNING o.queue)
        UPDATE event_queues SET dead = dead - 1, waiting = waiting + 1 WHERE id IN (SELECT queue FROM replayed)";
    let replayed = events.iter().map(|id| Statement::new(sql, values![scheduler, *id, at]));
    session.ask_all(&replayed.collect::<Vec<_>>()).await.map(drop)
}

pub(crate) async fn forget_dead(session: &Session, scheduler: &SchedulerName, before: Timestamp) -> Result {
    let sql =
        "WITH queues AS (SELECT id FROM event_queues WHERE scheduler = $1 AND address IS NULL AND dead > 0),
        dropped AS (
            DELETE FROM outbox WHERE queue IN (SELECT id FROM queues) AND dead_at IS NOT NULL AND dead_at < $2
            RETURNING queue)
        UPDATE event_queues SET dead = dead - (SELECT count(*) FROM dropped WHERE queue = event_queues.id)
        WHERE id IN (SELECT queue FROM dropped)";
    session.ask(sql, values![scheduler, before]).await?;
    let sql =
        "DELETE FROM event_queues WHERE scheduler = $1 AND address IS NULL AND waiting = 0 AND dead = 0";
    session.ask(sql, values![scheduler]).await.map(drop)
}

pub(crate) async fn orphan(
    session: &Session,
    scheduler: &SchedulerName,
    addresses: &[(String, LastAddress)],
) -> Result {
    for (forwarder, LastAddress { address, timeout_ms }) in addresses {
        let sql = "WITH left_behind AS (
                UPDATE event_queues SET address = $3, timeout_ms = $4, dead = 0
                WHERE scheduler = $1 AND forwarder = $2 AND address IS NULL AND waiting > 0 RETURNING id)
            DELETE FROM outbox WHERE queue IN (SELECT id FROM left_behind) AND dead_at IS NOT NULL";
        let timeout_ms = i64::try_from(*timeout_ms).unwrap_or(i64::MAX);
        session.ask(sql, values![scheduler, forwarder, address, timeout_ms]).await?;
    }
    Ok(())
}

fn ids(events: &[EventId]) -> Vec<Uuid> {
    events.iter().map(|id| Uuid::from_bytes(*id.as_bytes())).collect()
}
