//! Queued events and dead letters. None of it is in v10.

use maestro_core::event::{EventId, Message as Forwarded};
use maestro_core::room::RoomId;
use maestro_engine::ports::store::{self, EventFilter, EventPageRequest};
use maestro_engine::services::ReplayOrder;
use maestro_proto::v1::{
    ListEventsRequest, ListEventsResponse, QueuedEvent, ReplayEventsRequest, ReplayEventsResponse,
};

use crate::page::{Page, asked_page};

use super::{Answered, ApiError, Call, Management};

/// Ids that one request names.
const IDS_MAX: usize = 1000;

pub(super) async fn list(api: Management, call: Call<ListEventsRequest>) -> Answered<ListEventsResponse> {
    let ListEventsRequest { scheduler_name: scheduler, dead, forwarder, room_id, page, page_size, per_page } =
        call.message;
    let given = |text: String| Some(text).filter(|text| !text.is_empty());
    let only = EventFilter {
        dead,
        forwarder: given(forwarder),
        room: given(room_id).map(|room| RoomId::new(&room)),
        id: None,
    };
    let Page { number: page, size: page_size } = asked_page(page, per_page, page_size)?;
    let found = api.engine.queued_events(&scheduler, &only, EventPageRequest { page, page_size }).await?;
    let events = found.events.into_iter().map(shown).collect();
    Ok(ListEventsResponse { page, page_size, total: found.total, events })
}

pub(super) async fn replay(
    api: Management,
    call: Call<ReplayEventsRequest>,
) -> Answered<ReplayEventsResponse> {
    let user = call.user()?;
    let ReplayEventsRequest { scheduler_name: scheduler, ids, forwarder, all } = call.message;
    let order = order(&ids, forwarder, all)?;
    Ok(ReplayEventsResponse { replayed: api.engine.replay_events(&scheduler, order, &user).await? })
}

fn order(ids: &[String], forwarder: String, all: bool) -> Result<ReplayOrder, ApiError> {
    if ids.len() > IDS_MAX {
        let message = format!("ids: {} are above the limit of {IDS_MAX}", ids.len());
        return Err(ApiError::invalid(message));
    }
    match (ids, forwarder.as_str(), all) {
        ([_, ..], "", false) => {
            ids.iter().map(|id| parse(id)).collect::<Result<_, _>>().map(ReplayOrder::Events)
        }
        ([], _, false) if !forwarder.is_empty() => Ok(ReplayOrder::Forwarder(forwarder)),
        ([], "", true) => Ok(ReplayOrder::All),
        _ => Err(ApiError::invalid("write exactly one of ids, forwarder, and all: true")),
    }
}

fn parse(id: &str) -> Result<EventId, ApiError> {
    EventId::parse(id).ok_or_else(|| ApiError::invalid(format!("ids: {id:?} is not the id of an event")))
}

fn shown(event: store::QueuedEvent) -> QueuedEvent {
    let store::QueuedEvent {
        id,
        forwarder,
        room,
        message,
        attempts,
        next_at,
        last_error,
        queued_at,
        dead_at,
    } = event;
    let (player_id, metadata) = match &message {
        Forwarded::PlayerEvent { player_id, metadata, .. } => (player_id.clone(), metadata.clone()),
        Forwarded::Resync { room, .. }
        | Forwarded::Status { room, .. }
        | Forwarded::RoomEvent { room, .. } => (String::new(), room.metadata.clone()),
    };
    QueuedEvent {
        id: id.to_string(),
        forwarder,
        room_id: room.to_string(),
        method: message.method().to_owned(),
        event: message.what().to_owned(),
        player_id,
        metadata,
        queued_at: Some(queued_at.into()),
        attempts,
        error: last_error,
        dead: dead_at.is_some(),
        dead_at: dead_at.map(Into::into),
        next_at: dead_at.is_none().then(|| next_at.into()),
    }
}
