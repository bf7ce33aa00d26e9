//! Delivering one event: a call of v10's service.

use std::time::Duration;

use async_trait::async_trait;
use maestro_core::event::{Message, MessageRoom, PlayerChange, RpcCode};
use maestro_core::room::PingStatus;
use maestro_engine::ports::event_sink::{Delivery, DeliveryError, EventSink};
use tokio::time::Instant;
use tonic::metadata::MetadataValue;
use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status};

use crate::connections::{ReceiverConnection, ReceiverConnections, Unconnectable};
use crate::messages::grpc_forwarder_client::GrpcForwarderClient;
use crate::messages::player_event::PlayerEventType;
use crate::messages::room_status::RoomStatusType;
use crate::messages::{PlayerEvent, Response as Reply, Room, RoomEvent, RoomStatus};

/// The header by which receivers know an event that they have seen.
pub const EVENT_ID_HEADER: &str = "maestro-event-id";

/// A reply has two small fields, so a longer message is not one.
const REPLY_BYTES_MAX: usize = 64 * 1024;

/// How much of a receiver's error message is kept.
const DETAIL_CHARS_MAX: usize = 300;

/// Delivers events over gRPC, without encryption, as v10 does.
#[derive(Default)]
pub struct GrpcSink {
    connections: ReceiverConnections,
}

#[async_trait]
impl EventSink for GrpcSink {
    async fn deliver(&self, delivery: Delivery<'_>) -> Result<i32, DeliveryError> {
        let deadline = Instant::now() + delivery.timeout;
        let too_late = || DeliveryError {
            code: RpcCode::DeadlineExceeded,
            message: format!("{} did not answer within {:?}", delivery.address, delivery.timeout),
        };
        match tokio::time::timeout_at(deadline, self.try_all(delivery, deadline)).await {
            // Tonic reports its own timeout as a canceled call.
            Ok(Err(error)) if error.code == RpcCode::DeadlineExceeded || is_over(deadline, &error) => {
                Err(too_late())
            }
            Ok(outcome) => outcome,
            Err(_) => Err(too_late()),
        }
    }
}

impl GrpcSink {
    /// An address may resolve to several receivers: if one of them cannot be reached, another one is called.
    async fn try_all(&self, delivery: Delivery<'_>, deadline: Instant) -> Result<i32, DeliveryError> {
        let candidates = self
            .connections
            .to(delivery.address)
            .await
            .map_err(|Unconnectable(message)| DeliveryError { code: RpcCode::Unavailable, message })?;
        let mut last = None;
        for connection in candidates {
            let left = deadline.saturating_duration_since(Instant::now());
            let outcome = {
                let guard = connection.begin_call();
                let outcome = call(&connection, delivery, left).await;
                guard.ended(outcome.as_ref().err().map(Status::code));
                outcome
            };
            match outcome {
                Ok(reply) => return Ok(reply.into_inner().code),
                Err(status) if status.code() == Code::Unavailable => last = Some(status),
                Err(status) => return Err(error_of(delivery.address, &status)),
            }
        }
        Err(last.map_or_else(
            || DeliveryError {
                code: RpcCode::Unavailable,
                message: format!("{} resolves to no address", delivery.address),
            },
            |status| error_of(delivery.address, &status),
        ))
    }
}

fn is_over(deadline: Instant, error: &DeliveryError) -> bool {
    /// Tonic's timer and ours do not go off at the same moment.
    const SLACK: Duration = Duration::from_millis(20);
    error.code == RpcCode::Canceled && deadline <= Instant::now() + SLACK
}

async fn call(
    connection: &ReceiverConnection,
    delivery: Delivery<'_>,
    left: Duration,
) -> Result<Response<Reply>, Status> {
    let mut client = client(connection.channel());
    match delivery.message {
        Message::Resync { room, status } => {
            client.send_room_resync(request(delivery, left, status_of(room, *status))).await
        }
        Message::Status { room, status } => {
            client.send_room_status(request(delivery, left, status_of(room, *status))).await
        }
        Message::RoomEvent { room, event_type } => {
            let event = RoomEvent {
                room: Some(room_of(room)),
                event_type: event_type.clone(),
                ..RoomEvent::default()
            };
            client.send_room_event(request(delivery, left, event)).await
        }
        Message::PlayerEvent { room, player_id, change, metadata } => {
            let event_type = match change {
                PlayerChange::Joined => PlayerEventType::PlayerJoined,
                PlayerChange::Left => PlayerEventType::PlayerLeft,
            };
            let event = PlayerEvent {
                player_id: player_id.clone(),
                room: Some(room_of(room)),
                event_type: event_type.into(),
                metadata: metadata.clone(),
            };
            client.send_player_event(request(delivery, left, event)).await
        }
    }
}

fn client(channel: Channel) -> GrpcForwarderClient<Channel> {
    GrpcForwarderClient::new(channel).max_decoding_message_size(REPLY_BYTES_MAX)
}

fn request<T>(delivery: Delivery<'_>, left: Duration, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(left);
    if let Ok(id) = MetadataValue::try_from(delivery.id.to_string()) {
        request.metadata_mut().insert(EVENT_ID_HEADER, id);
    }
    request
}

fn status_of(room: &MessageRoom, status: PingStatus) -> RoomStatus {
    let status_type = match status {
        // A room that has said nothing has nothing to forward.
        PingStatus::Unknown | PingStatus::Ready => RoomStatusType::Ready,
        PingStatus::Occupied => RoomStatusType::Occupied,
        PingStatus::Terminating => RoomStatusType::Terminating,
        PingStatus::Terminated => RoomStatusType::Terminated,
    };
    RoomStatus { room: Some(room_of(room)), status_type: status_type.into() }
}

fn room_of(room: &MessageRoom) -> Room {
    let MessageRoom { game, id, host, port, metadata, room_type } = room.clone();
    Room { game, room_id: id, host, port: port.into(), metadata, room_type }
}

fn error_of(address: &str, status: &Status) -> DeliveryError {
    let detail: String =
        status.message().chars().filter(|c| !c.is_control()).take(DETAIL_CHARS_MAX).collect();
    let mut message = format!("{address}: {detail}");
    let mut source = std::error::Error::source(status);
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !message.contains(&cause_text) {
            message += &format!(": {cause_text}");
        }
        source = cause.source();
    }
    DeliveryError { code: code_of(status.code()), message }
}

fn code_of(code: Code) -> RpcCode {
    match code {
        // A call that failed with it: the other side speaks another protocol.
        Code::Ok => RpcCode::Internal,
        Code::Cancelled => RpcCode::Canceled,
        Code::Unknown => RpcCode::Unknown,
        Code::InvalidArgument => RpcCode::InvalidArgument,
        Code::DeadlineExceeded => RpcCode::DeadlineExceeded,
        Code::NotFound => RpcCode::NotFound,
        Code::AlreadyExists => RpcCode::AlreadyExists,
        Code::PermissionDenied => RpcCode::PermissionDenied,
        Code::ResourceExhausted => RpcCode::ResourceExhausted,
        Code::FailedPrecondition => RpcCode::FailedPrecondition,
        Code::Aborted => RpcCode::Aborted,
        Code::OutOfRange => RpcCode::OutOfRange,
        Code::Unimplemented => RpcCode::Unimplemented,
        Code::Internal => RpcCode::Internal,
        Code::Unavailable => RpcCode::Unavailable,
        Code::DataLoss => RpcCode::DataLoss,
        Code::Unauthenticated => RpcCode::Unauthenticated,
    }
}
