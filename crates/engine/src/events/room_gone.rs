//! The event that a room is gone: the last one that receivers get of it.

use std::collections::BTreeSet;

use maestro_core::event::{Addressee, EventKind, compose};
use maestro_core::room::Purpose;
use serde_json::Map;

use crate::Engine;
use crate::ports::store::{Change, IfEnded, NewEvent, RoomRecord, SchedulerRecord};

use super::{enabled, facts_of};

/// An event for each enabled forwarder, to be written in the transaction of the room's end, before it: so it is queued
/// exactly once. It is queued however many events wait.
pub(crate) fn room_gone_events(engine: &Engine, record: &SchedulerRecord, row: &RoomRecord) -> Vec<Change> {
    if row.purpose == Purpose::Validation {
        return Vec::new();
    }
    let room = facts_of(row, true);
    let mut names = BTreeSet::new();
    // A queue is known by its name; v10 takes the same name twice.
    let forwarders = enabled(record).filter(|forwarder| names.insert(&forwarder.name));
    let event = |forwarder| {
        let to = Addressee { scheduler: &record.name, game: &record.recipe.game, forwarder };
        // Only a player event can be wrong once the room is gone.
        let message = compose(&EventKind::Gone, &Map::new(), &room, to).ok()?;
        let at = engine.now();
        Some(Change::QueueEvent(Box::new(NewEvent {
            id: engine.ports.random.event_id(at),
            scheduler: record.name.clone(),
            forwarder: forwarder.name.clone(),
            room: row.id.clone(),
            message,
            waiting_max: None,
            if_ended: IfEnded::Skip,
            at,
        })))
    };
    forwarders.filter_map(event).collect()
}
