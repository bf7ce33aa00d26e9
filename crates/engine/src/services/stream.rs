//! Watching what happens.
//!
//! A reader has no buffer here: it takes events out of the ring at its own pace, a batch at a time. One that is too slow
//! finds that what it wants next is gone, and is told so.

use std::sync::Arc;
use std::time::Duration;

use maestro_core::stream::{EventFilter, Read, ReadFrom, ResetCause, StreamEvent, StreamId};
use maestro_core::time::Timestamp;

use crate::{Engine, Error, Result};

/// Read at once: what a reader holds in memory.
const BATCH: usize = 256;

/// Rooms of a large fleet change all the time: what happens within this is read together.
const TOGETHER: Duration = Duration::from_millis(10);

/// What a request for everything that is kept writes instead of an id.
const OLDEST: &str = "oldest";

/// What a reader is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    Event(StreamId, Arc<StreamEvent>),
    /// Events are missing. What is in the lists from now on has in it what happened up to `seen`.
    Reset {
        seen: StreamId,
        at: Timestamp,
        cause: ResetCause,
    },
}

pub struct EventReader {
    engine: Arc<Engine>,
    filter: EventFilter,
    from: ReadFrom,
}

impl Engine {
    /// `scheduler`: empty for all. `last_id`: of the last event that was read; empty to begin now, `oldest` to begin with
    /// what is kept.
    pub async fn watch_events(
        self: &Arc<Self>,
        scheduler: &str,
        types: &str,
        last_id: &str,
    ) -> Result<EventReader> {
        let types = EventFilter::parse_types(types)
            .map_err(|reason| Error::Invalid(format!("query parameter types: {reason}")))?;
        let from = match last_id {
            "" => ReadFrom::Now,
            OLDEST => ReadFrom::Oldest,
            id => ReadFrom::After(StreamId::parse(id).ok_or_else(|| no_id(id))?),
        };
        let scheduler = match scheduler {
            "" => None,
            name => Some(self.scheduler_name(name).await?),
        };
        Ok(EventReader { engine: self.clone(), filter: EventFilter { scheduler, types }, from })
    }
}

fn no_id(text: &str) -> Error {
    Error::Invalid(format!(
        "Last-Event-ID: {text:?} is not the id of an event; write one that you were sent, {OLDEST}, or nothing"
    ))
}

impl EventReader {
    /// What has happened since the last call, as far as it is wanted; empty: nothing has. It may be given up.
    pub async fn read(&mut self) -> Result<Vec<Told>> {
        loop {
            match self.engine.ports.table.read_events(self.from, BATCH).await? {
                Read::Reset { seen, at, cause } => {
                    self.from = ReadFrom::After(seen);
                    let at = at.unwrap_or_else(|| self.engine.now());
                    return Ok(vec![Told::Reset { seen, at, cause }]);
                }
                Read::Events { events, next } => {
                    self.from = ReadFrom::After(next);
                    let is_all = events.is_empty();
                    let wanted = events.into_iter().filter(|(_, event)| self.filter.accepts(event));
                    let wanted: Vec<_> = wanted.map(|(id, event)| Told::Event(id, event)).collect();
                    if is_all || !wanted.is_empty() {
                        return Ok(wanted);
                    }
                    // There may be many that it does not want.
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    /// Returns when there may be something to read. It may be given up.
    pub async fn wait(&self) -> Result<()> {
        if let Some(next) = self.seen() {
            self.engine.ports.table.wait_for_events(next).await?;
            tokio::time::sleep(TOGETHER).await;
        }
        Ok(())
    }

    /// Up to where it has read, also what it did not want. `None`: it has not begun.
    pub fn seen(&self) -> Option<StreamId> {
        match self.from {
            ReadFrom::After(id) => Some(id),
            ReadFrom::Now | ReadFrom::Oldest => None,
        }
    }
}
