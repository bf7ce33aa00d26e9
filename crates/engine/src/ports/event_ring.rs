//! The ring of events that people and tools watch. It is a part of the room table: what happens to rooms is in it at the
//! moment when it happens, and with the table it may be lost.

use std::sync::Arc;

use async_trait::async_trait;
use maestro_core::stream::{Read, ReadFrom, StreamEvent, StreamId};

use super::room_table::TableError;

/// How it is bounded, and what becomes of readers that cannot go on, is in [`maestro_core::stream::Ring`].
#[async_trait]
pub trait EventRing: Send + Sync {
    /// Adds events at the end, in this order. Changes of a room's status are in it without this: the table adds them with
    /// the change. `after_loss`: events that belong before these are missing, and a new ring begins, which every reader is
    /// told.
    async fn append(&self, events: Vec<StreamEvent>, after_loss: bool) -> Result<(), TableError>;

    /// At most `events_max`. It does not wait for any.
    async fn read_events(
        &self,
        from: ReadFrom,
        events_max: usize,
    ) -> Result<Read<Arc<StreamEvent>>, TableError>;

    /// Returns when there is something else to be read than when `next` was where to go on: later events, or that there is
    /// another ring. It may return early, and may be given up.
    async fn wait_for_events(&self, next: StreamId) -> Result<(), TableError>;
}
