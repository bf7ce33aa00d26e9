//! What rooms have to say to matchmakers. A request that can be read is answered with 200, whatever becomes of it: whether it
//! was forwarded is in `success`, and why not in `message`.

use std::sync::Arc;

use maestro_core::event::EventKind;
use maestro_core::room::PingStatus;
use maestro_engine::ports::room_table::Ping;
use maestro_engine::services::NotForwarded;
use maestro_proto::v1::{
    ForwardPlayerEventRequest, ForwardPlayerEventResponse, ForwardRoomEventRequest, ForwardRoomEventResponse,
    UpdateRoomStatusRequest, UpdateRoomStatusResponse,
};

use super::RoomsApi;
use super::ping::number_of_matches;
use crate::error::ApiError;
use crate::request::Call;

pub(super) async fn room_event(
    api: Arc<RoomsApi>,
    call: Call<ForwardRoomEventRequest>,
) -> Result<ForwardRoomEventResponse, ApiError> {
    let ForwardRoomEventRequest { scheduler_name, room_name, metadata, event, timestamp: _ } = call.message;
    let (kind, metadata) = (EventKind::Room(event), metadata.unwrap_or_default().into());
    let outcome = api.engine.forward_event(&scheduler_name, &room_name, kind, metadata).await;
    let (success, message) = told(outcome);
    Ok(ForwardRoomEventResponse { success, message })
}

pub(super) async fn player_event(
    api: Arc<RoomsApi>,
    call: Call<ForwardPlayerEventRequest>,
) -> Result<ForwardPlayerEventResponse, ApiError> {
    let ForwardPlayerEventRequest { scheduler_name, room_name, metadata, event, timestamp: _ } = call.message;
    let (kind, metadata) = (EventKind::Player(event), metadata.unwrap_or_default().into());
    let outcome = api.engine.forward_event(&scheduler_name, &room_name, kind, metadata).await;
    let (success, message) = told(outcome);
    Ok(ForwardPlayerEventResponse { success, message })
}

/// v10 forwards it and does nothing else. Here it also says of the room what a ping says. A status that does not exist is
/// no invalid request in v10, and its letters may be of any case.
pub(super) async fn status(
    api: Arc<RoomsApi>,
    call: Call<UpdateRoomStatusRequest>,
) -> Result<UpdateRoomStatusResponse, ApiError> {
    let UpdateRoomStatusRequest { scheduler_name, room_name, metadata, status, running_matches, .. } =
        call.message;
    let matches = number_of_matches(running_matches)?;
    let text = metadata.as_ref().and_then(|metadata| serde_json::to_string(metadata).ok());
    let outcome = match PingStatus::parse_said(&status.to_lowercase()) {
        Some(status) => {
            let (scheduler, room) = (scheduler_name.as_str(), room_name.as_str());
            let ping = Ping { matches, metadata: text.as_deref(), ..Ping::of(scheduler, room, status) };
            let metadata = metadata.unwrap_or_default().into();
            api.engine.room_status(ping, metadata).await.map_err(|error| error.message)
        }
        None => Err(format!(
            "invalid RoomStatusType. Should be {:?}, {:?}, {:?} or {:?}",
            "ready", "occupied", "terminating", "terminated"
        )),
    };
    if let Err(error) = &outcome {
        tracing::debug!(scheduler_name, room_id = room_name, error, "status not forwarded");
        api.failures.count(&api.engine, &scheduler_name).await;
    }
    Ok(UpdateRoomStatusResponse { success: outcome.is_ok() })
}

fn told(outcome: Result<(), NotForwarded>) -> (bool, String) {
    match outcome {
        Ok(()) => (true, String::new()),
        Err(error) => (false, error.message),
    }
}
