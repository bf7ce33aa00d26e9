//! The ring of events, one for all schedulers, in keys of its own.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use maestro_core::stream::{Read, ReadFrom, ResetCause, RingId, StreamEvent, StreamId};
use maestro_core::time::Timestamp;
use serde::Deserialize;

use crate::event_record::{parse_event, write_event};
use crate::failure::Failure;
use crate::record::optional_time;
use crate::scripts::{RING_AFTER, RING_BEGINS, RING_GOES_ON, RING_NOW, RING_OLDEST, RING_OTHER};
use crate::table::Table;

/// Read at once, whoever wants more.
const READ_MAX: usize = 1000;

/// Appended at once.
const APPENDED_MAX: usize = 500;

/// The keys that the ring is in.
const KEYS: &str = "events";

/// Where changes of status were counted.
pub(crate) struct Source<'a> {
    pub(crate) scheduler: &'a str,
    pub(crate) epoch: &'a str,
    /// How many came before the first of them.
    pub(crate) before: u64,
}

#[derive(Deserialize)]
struct Answer {
    ring: String,
    number: u64,
    cause: u8,
    at: i64,
    events: Vec<String>,
}

impl Table {
    pub(crate) async fn append_events(
        &self,
        events: Vec<StreamEvent>,
        after_loss: bool,
        source: Option<Source<'_>>,
    ) -> Result<(), Failure> {
        let records = events.iter().map(write_event).collect::<Result<Vec<_>, _>>()?;
        let all: Vec<_> = events
            .iter()
            .zip(&records)
            .map(|(event, record)| (event.bytes(), event.at.as_millisecond(), record))
            .collect();
        // Once even if there are no events: a loss begins another ring.
        let parts = all.chunks(APPENDED_MAX).chain(all.is_empty().then_some(&[][..]));
        for (place, part) in parts.enumerate() {
            let is_after_loss = u8::from(after_loss && place == 0);
            let before = (place * APPENDED_MAX) as u64;
            let asked = match &source {
                Some(Source { scheduler, epoch, before: first }) => {
                    rmp_serde::to_vec(&(new_ring(), is_after_loss, part, (scheduler, epoch, first + before)))
                }
                None => rmp_serde::to_vec(&(new_ring(), is_after_loss, part, [0_u8; 0])),
            };
            let asked = asked.map_err(|error| Failure::Unavailable(error.to_string()))?;
            self.run_shared_packed::<u8>(&self.scripts.ring_append, KEYS, &asked).await?;
        }
        Ok(())
    }

    pub(crate) async fn read_ring(
        &self,
        from: ReadFrom,
        events_max: usize,
    ) -> Result<Read<Arc<StreamEvent>>, Failure> {
        let (from, ring, number) = match from {
            ReadFrom::Now => (RING_NOW, String::new(), 0),
            ReadFrom::Oldest => (RING_OLDEST, String::new(), 0),
            ReadFrom::After(id) => (RING_AFTER, ring_of(id), id.number),
        };
        let asked = (new_ring(), from, ring, number, events_max.min(READ_MAX));
        let answer: Answer = self.run_shared(&self.scripts.ring_read, KEYS, &asked).await?;
        let next = stream_id(&answer.ring, answer.number)?;
        let cause = match answer.cause {
            RING_GOES_ON => return Ok(Read::Events { events: numbered(answer, next)?, next }),
            RING_BEGINS => ResetCause::Begins,
            RING_OTHER => ResetCause::OtherRing,
            _ => ResetCause::Gone,
        };
        Ok(Read::Reset { seen: next, at: optional_time(answer.at), cause })
    }

    /// The last event.
    pub(crate) async fn last_event(&self) -> Result<Option<StreamId>, Failure> {
        let meta = format!("{}meta", self.shared_keys(KEYS));
        let found: (Option<String>, Option<u64>) =
            self.server.query(redis::cmd("HMGET").arg(meta).arg("ring").arg("last")).await?;
        let (ring, last) = found;
        ring.map(|ring| stream_id(&ring, last.unwrap_or(0))).transpose()
    }

    pub(crate) fn ring_key(&self) -> String {
        format!("{}ring", self.shared_keys(KEYS))
    }

    /// Nothing will be carried of a removed scheduler any more.
    pub(crate) async fn forget_source(&self, scheduler: &str) -> Result<(), Failure> {
        let carried = format!("{}carried", self.shared_keys(KEYS));
        self.server.query(redis::cmd("HDEL").arg(carried).arg(scheduler)).await
    }
}

/// The last of them has the number of `next`.
fn numbered(answer: Answer, next: StreamId) -> Result<Vec<(StreamId, Arc<StreamEvent>)>, Failure> {
    let first = next.number - answer.events.len() as u64;
    let mut events = Vec::with_capacity(answer.events.len());
    for (number, record) in (first + 1..).zip(answer.events) {
        match parse_event(&record) {
            Ok(event) => events.push((StreamId { number, ..next }, Arc::new(event))),
            // Of a newer Maestro. Whoever reads it there is told.
            Err(failure) => tracing::warn!(error = %failure, "an event is left out"),
        }
    }
    Ok(events)
}

/// For a ring that begins, if one has to.
fn new_ring() -> String {
    let drawn = RandomState::new().hash_one(0);
    ring_of(StreamId { ring: RingId::new(Timestamp::now(), drawn), number: 0 })
}

/// Which ring it is, as ids are written.
fn ring_of(id: StreamId) -> String {
    let mut text = id.to_string();
    text.truncate(text.find('-').unwrap_or(text.len()));
    text
}

fn stream_id(ring: &str, number: u64) -> Result<StreamId, Failure> {
    StreamId::parse(&format!("{ring}-{number}"))
        .ok_or_else(|| Failure::unreadable("the ring of events", ring))
}
