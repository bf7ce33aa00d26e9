//! The rooms API: what game rooms and matchmakers call.
//!
//! Old clients look only at `success`. So a request that is itself invalid is answered with 400, and everything that goes
//! wrong after that with 200 and `success: false`.

mod events;
mod failures;
mod ping;

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use axum::routing;
use bytes::Bytes;
use maestro_core::allocation::AllocationRequest;
use maestro_engine::Engine;
use maestro_engine::ports::room_table::{Ping, PingError, TableError};
use maestro_engine::services::Address;
use maestro_proto::v1::rooms_service::{
    AllocateRoom, ForwardPlayerEvent, ForwardRoomEvent, GetRoomAddress, UpdateRoomStatus, UpdateRoomWithPing,
};
use maestro_proto::v1::{
    self, AllocateRoomRequest, AllocateRoomResponse, GetRoomAddressRequest, GetRoomAddressResponse,
    UpdateRoomWithPingRequest, UpdateRoomWithPingResponse,
};
use serde::Serialize;

use self::failures::Failures;
use self::ping::Said;
use crate::allocations;
use crate::answer::{Answer, port};
use crate::edge::{Route, Spans};
use crate::error::{ApiError, Code, json_response};
use crate::grpc::{self, unary};
use crate::http::{get, post, put};
use crate::request::{Api, Call, InPath};
use crate::{Context, Limits, body, stream};

/// `full`: the answer to a ping names the matches that the room is to expect.
const VIEW: &str = "maestro-view";

#[derive(Debug, Clone)]
pub struct RoomsOptions {
    pub limits: Limits,
    /// Mounts `/bench/empty`, which does nothing, for `GET` and `PUT`: what a benchmark compares the ping with.
    pub empty_route: bool,
}

impl Default for RoomsOptions {
    fn default() -> Self {
        Self { limits: Limits::ROOMS, empty_route: false }
    }
}

struct RoomsApi {
    engine: Arc<Engine>,
    failures: Failures,
    body_max_bytes: usize,
}

pub fn rooms_router(context: &Context, options: &RoomsOptions) -> Router {
    let engine = Arc::clone(&context.engine);
    let on_refused = Arc::new(move || engine.pings_refused());
    let edge = context.edge("rooms-api", &options.limits, Spans::WhenDebugging, on_refused);
    let api = Arc::new(RoomsApi {
        engine: Arc::clone(&context.engine),
        failures: Failures::new(context.metrics.clone()),
        body_max_bytes: options.limits.body_max_bytes,
    });
    let methods = grpc::with_standard_services(methods(), &context.engine);
    edge.router(routes(options.empty_route), methods, api)
}

impl Api for RoomsApi {
    fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    fn body_max_bytes(&self) -> usize {
        self.body_max_bytes
    }
}

fn routes(empty_route: bool) -> Vec<Route<Arc<RoomsApi>>> {
    let mut routes = vec![
        ("/scheduler/{scheduler_name}/rooms/{room_name}/ping", routing::put(update)),
        // Superseded by the ping.
        ("/scheduler/{scheduler_name}/rooms/{room_name}/status", put(events::status)),
        ("/scheduler/{scheduler_name}/rooms/{room_name}/roomevent", post(events::room_event)),
        ("/scheduler/{scheduler_name}/rooms/{room_name}/playerevent", post(events::player_event)),
        ("/scheduler/{scheduler_name}/rooms/{room_name}/address", get(address)),
        ("/scheduler/{scheduler_name}/rooms/allocate", post(allocate)),
    ];
    routes.extend(allocations::routes());
    routes.extend(stream::routes());
    if empty_route {
        routes.push(("/bench/empty", routing::get(empty).put(empty)));
    }
    routes
}

/// The same over gRPC.
fn methods() -> Vec<grpc::Route<Arc<RoomsApi>>> {
    let mut methods = vec![
        unary(UpdateRoomWithPing, ping),
        unary(UpdateRoomStatus, events::status),
        unary(ForwardRoomEvent, events::room_event),
        unary(ForwardPlayerEvent, events::player_event),
        unary(GetRoomAddress, address),
        unary(AllocateRoom, allocate),
    ];
    methods.extend(allocations::methods());
    methods.extend(stream::methods());
    methods
}

#[cfg(test)]
pub(crate) fn paths() -> Vec<&'static str> {
    routes(false).into_iter().map(|(path, _)| path).collect()
}

async fn update(State(api): State<Arc<RoomsApi>>, request: Request) -> Result<Response, ApiError> {
    let (mut parts, body) = request.into_parts();
    let tells_all = parts.headers.get(VIEW).is_some_and(|view| view == "full");
    let body = body::read(body, api.body_max_bytes).await?;
    let said = Said::decode(&body)?;
    let decoded;
    let (scheduler, room) = match names(parts.uri.path()) {
        Some(names) => names,
        None => {
            decoded = decoded_names(&mut parts).await?;
            (decoded.0.as_str(), decoded.1.as_str())
        }
    };
    let delivered = api.deliver(said.ping(scheduler, room)).await;
    match delivered && tells_all {
        true => api.told(scheduler, room).await,
        false => Ok(success(delivered)),
    }
}

impl RoomsApi {
    /// The answer to a room that understands more than v10's.
    async fn told(&self, scheduler: &str, room: &str) -> Result<Response, ApiError> {
        #[derive(Serialize)]
        struct Told {
            success: bool,
            allocations: Vec<v1::ExpectedMatch>,
        }
        let expected = self.engine.expected_matches(scheduler, room).await?;
        let allocations = expected.iter().map(allocations::expected).collect();
        Ok(Answer(Told { success: true, allocations }).into_response())
    }

    async fn delivered(&self, message: UpdateRoomWithPingRequest) -> Result<bool, ApiError> {
        let metadata = message.metadata.as_ref().and_then(|metadata| serde_json::to_string(metadata).ok());
        let said = Said::of(&message, metadata.as_deref())?;
        Ok(self.deliver(said.ping(&message.scheduler_name, &message.room_name)).await)
    }

    async fn deliver(&self, ping: Ping<'_>) -> bool {
        let Ping { scheduler, room, .. } = ping;
        let Err(error) = self.engine.ping(ping).await else {
            return true;
        };
        match &error {
            PingError::UnknownRoom | PingError::Refused { .. } | PingError::Table(TableError::Lost(_)) => {
                tracing::debug!(scheduler_name = scheduler, room_id = room, %error, "ping refused");
            }
            PingError::Table(TableError::Unavailable(_)) => {
                tracing::error!(scheduler_name = scheduler, room_id = room, %error, "ping failed");
            }
        }
        self.failures.count(&self.engine, scheduler).await;
        false
    }
}

fn success(success: bool) -> Response {
    const TRUE: Bytes = Bytes::from_static(br#"{"success":true}"#);
    const FALSE: Bytes = Bytes::from_static(br#"{"success":false}"#);
    json_response(if success { TRUE } else { FALSE })
}

/// Scheduler and room in `/scheduler/{}/rooms/{}/…`, borrowed; `None` if they must be decoded first.
fn names(path: &str) -> Option<(&str, &str)> {
    if path.contains('%') {
        return None;
    }
    let mut segments = path.split('/').skip(2);
    let scheduler = segments.next()?;
    let room = segments.nth(1)?;
    Some((scheduler, room))
}

async fn decoded_names(parts: &mut Parts) -> Result<(String, String), ApiError> {
    InPath::from_request_parts(parts, &()).await.map(|InPath(names)| names)
}

/// A ping as a message; HTTP's is read in place, by [`update`].
async fn ping(
    api: Arc<RoomsApi>,
    call: Call<UpdateRoomWithPingRequest>,
) -> Result<UpdateRoomWithPingResponse, ApiError> {
    let success = api.delivered(call.message).await?;
    Ok(UpdateRoomWithPingResponse { success })
}

async fn address(
    api: Arc<RoomsApi>,
    call: Call<GetRoomAddressRequest>,
) -> Result<GetRoomAddressResponse, ApiError> {
    let GetRoomAddressRequest { scheduler_name: scheduler, room_name: room } = call.message;
    let Address { host, ports } = api.engine.room_address(&scheduler, &room).await?;
    Ok(GetRoomAddressResponse {
        ports: ports.into_iter().map(port).collect(),
        host,
        // v10 has the field and never fills it.
        ipv6_label: String::new(),
    })
}

/// v10's: one room, any, at once.
async fn allocate(
    api: Arc<RoomsApi>,
    call: Call<AllocateRoomRequest>,
) -> Result<AllocateRoomResponse, ApiError> {
    let allocated = api.engine.allocate(&call.message.scheduler_name, AllocationRequest::default()).await;
    let allocated = allocated.map_err(|error| ApiError::from(error).without_detail())?;
    let Some(room) = allocated.into_iter().next() else {
        return Err(ApiError::new(Code::Internal, "an allocation without a room"));
    };
    Ok(AllocateRoomResponse {
        room_id: room.room.to_string(),
        success: true,
        message: String::new(),
        ports: room.ports.iter().cloned().map(port).collect(),
        host: room.host.to_string(),
    })
}

async fn empty() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_from_the_path_as_it_is() {
        assert_eq!(names("/scheduler/arena/rooms/arena-1/ping"), Some(("arena", "arena-1")));
        assert_eq!(names("/scheduler/arena/rooms/arena%2d1/ping"), None);
    }
}
