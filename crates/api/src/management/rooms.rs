//! Rooms as people see and change them. None of it is in v10.

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use maestro_engine::services::{ListedRoom, RoomSilence};
use maestro_proto::v1::{
    self, AddRoomsRequest, AddRoomsResponse, GetRoomLogsRequest, GetRoomLogsResponse, GetRoomRequest,
    GetRoomResponse, ListRoomsRequest, ListRoomsResponse, RemoveRoomsRequest, RemoveRoomsResponse, Room,
    RoomEnd,
};
use serde_json::{Map, Value};

use super::{Answered, ApiError, Call, Management};
use crate::answer::{Answer, port};

const LOG_LINES_DEFAULT: u32 = 100;
/// An answer is made in memory.
const LOG_LINES_MAX: u32 = 10_000;

pub(super) async fn add(api: Management, call: Call<AddRoomsRequest>) -> Answered<AddRoomsResponse> {
    let user = call.user()?;
    let AddRoomsRequest { scheduler_name: scheduler, amount: given, force } = call.message;
    let id = api.engine.add_rooms(&scheduler, amount(given)?, force, &user).await?;
    Ok(AddRoomsResponse { operation_id: id.to_string() })
}

pub(super) async fn remove(api: Management, call: Call<RemoveRoomsRequest>) -> Answered<RemoveRoomsResponse> {
    let user = call.user()?;
    let RemoveRoomsRequest { scheduler_name: scheduler, amount: given, force, rooms } = call.message;
    let id = match (rooms.as_slice(), given) {
        ([], given) => api.engine.remove_rooms(&scheduler, amount(given)?, force, &user).await?,
        (rooms, None) => api.engine.remove_named_rooms(&scheduler, rooms, force, &user).await?,
        (_, Some(_)) => {
            return Err(ApiError::invalid(
                "rooms: either name the rooms to remove or give an amount, not both",
            ));
        }
    };
    Ok(RemoveRoomsResponse { operation_id: id.to_string() })
}

pub(super) async fn list(api: Management, call: Call<ListRoomsRequest>) -> Answered<ListRoomsResponse> {
    let ListRoomsRequest { scheduler_name: scheduler, ended } = call.message;
    let mut rooms = api.engine.rooms(&scheduler).await?;
    if ended {
        rooms.extend(api.engine.ended_rooms(&scheduler).await?);
    }
    Ok(ListRoomsResponse { rooms: rooms.into_iter().map(listed).collect() })
}

pub(super) async fn get(api: Management, call: Call<GetRoomRequest>) -> Answered<GetRoomResponse> {
    let GetRoomRequest { scheduler_name: scheduler, room_id: id } = call.message;
    Ok(GetRoomResponse { room: Some(room(api.engine.room(&scheduler, &id).await?)) })
}

/// HTTP has the room alone.
pub(super) fn alone(response: GetRoomResponse) -> Response {
    Answer(response.room).into_response()
}

pub(super) async fn logs(api: Management, call: Call<GetRoomLogsRequest>) -> Answered<GetRoomLogsResponse> {
    let GetRoomLogsRequest { scheduler_name: scheduler, room_id: id, tail } = call.message;
    let tail = tail.unwrap_or(LOG_LINES_DEFAULT);
    if tail > LOG_LINES_MAX {
        let message = format!("query parameter tail: {tail} is above the limit of {LOG_LINES_MAX} lines");
        return Err(ApiError::invalid(message));
    }
    let text = api.engine.room_logs(&scheduler, &id, tail as usize).await?;
    Ok(GetRoomLogsResponse { text })
}

/// HTTP has the text as it is.
pub(super) fn text(response: GetRoomLogsResponse) -> Response {
    const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
    ([(header::CONTENT_TYPE, TEXT)], response.text).into_response()
}

/// One room if no number is given. Zero and too many are the engine's to refuse.
fn amount(given: Option<i32>) -> Result<u32, ApiError> {
    let amount = given.unwrap_or(1);
    u32::try_from(amount)
        .map_err(|_| ApiError::invalid(format!("amount must be at least 1, and is {amount}")))
}

/// A list of all rooms does not carry what each of them says about itself.
fn listed(listed: ListedRoom) -> Room {
    room(ListedRoom { metadata: None, ..listed })
}

fn room(room: ListedRoom) -> Room {
    // It was an object when the room sent it.
    let metadata = room.metadata.and_then(|text| serde_json::from_str::<Map<String, Value>>(&text).ok());
    Room {
        id: room.id.to_string(),
        status: room.status.as_str().to_owned(),
        version: room.version.to_string(),
        region: room.region.to_string(),
        host: room.host,
        ports: room.ports.into_iter().map(port).collect(),
        pids: room.pids,
        created_at: Some(room.created_at.into()),
        last_ping_at: room.last_ping_at.map(Into::into),
        validation: room.validation,
        ended: room.ended.map(|ended| RoomEnd { at: Some(ended.at.into()), how: ended.how }),
        metadata: metadata.map(Into::into),
        silent: room.silent.map(|RoomSilence { since, until }| v1::RoomSilence {
            since: Some(since.into()),
            until: Some(until.into()),
        }),
    }
}
