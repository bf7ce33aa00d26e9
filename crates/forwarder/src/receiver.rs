//! A receiver of events, for tests: it remembers what it gets, and behaves as it is told.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Code, Request, Response, Status};

use crate::EVENT_ID_HEADER;
use crate::messages::grpc_forwarder_server::{GrpcForwarder, GrpcForwarderServer};
use crate::messages::player_event::PlayerEventType;
use crate::messages::room_status::RoomStatusType;
use crate::messages::{PlayerEvent, Response as Reply, Room, RoomEvent, RoomInfo, RoomStatus};

/// What it does with every call. It has what it was sent, whatever it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    /// Replies with this code.
    Reply(i32),
    Fail(Code),
    /// Replies after this long.
    Slow(Duration),
    /// Never answers.
    Silent,
}

/// A call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    pub method: &'static str,
    pub event_id: String,
    /// Whether it was answered with a reply.
    pub taken: bool,
    pub game: String,
    pub room_id: String,
    pub host: String,
    pub port: i32,
    pub room_type: String,
    /// The status, the type of the event, or what the player did.
    pub what: String,
    pub player_id: String,
    /// Of the room or, in a player event, of the event.
    pub metadata: BTreeMap<String, String>,
}

/// Serves until it is dropped: then it is gone like a process that was killed.
pub struct Receiver {
    address: SocketAddr,
    shared: Arc<Shared>,
    runtime: Option<Runtime>,
}

struct Shared {
    received: Mutex<Vec<Received>>,
    behaviour: Mutex<Behaviour>,
}

impl Receiver {
    /// At a free port of this machine.
    pub fn start() -> io::Result<Self> {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0)))
    }

    /// Where another one was before, say.
    pub fn start_at(address: SocketAddr) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let shared =
            Arc::new(Shared { received: Mutex::default(), behaviour: Mutex::new(Behaviour::Reply(200)) });
        let service = GrpcForwarderServer::new(Service(shared.clone()));
        // Tests are async or not: so nothing here may block.
        let entered = runtime.enter();
        let incoming = TcpIncoming::from(TcpListener::from_std(listener)?);
        runtime.spawn(Server::builder().add_service(service).serve_with_incoming(incoming));
        drop(entered);
        Ok(Self { address, shared, runtime: Some(runtime) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn behave(&self, behaviour: Behaviour) {
        *self.shared.behaviour.lock() = behaviour;
    }

    /// All calls so far, in the order in which they came.
    pub fn received(&self) -> Vec<Received> {
        self.shared.received.lock().clone()
    }

    /// Without resyncs, which come with every ping.
    pub fn events(&self) -> Vec<Received> {
        let mut received = self.received();
        received.retain(|call| call.method != "SendRoomResync");
        received
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

struct Service(Arc<Shared>);

/// The room of a call, what happened, and to which player, with the metadata of that event.
type Read = (Room, String, Option<(String, BTreeMap<String, String>)>);

impl Service {
    async fn take<T>(
        &self,
        request: Request<T>,
        method: &'static str,
        read: impl FnOnce(T) -> Read,
    ) -> Result<Response<Reply>, Status> {
        let header = request.metadata().get(EVENT_ID_HEADER).and_then(|id| id.to_str().ok());
        let event_id = header.unwrap_or_default().to_owned();
        let behaviour = *self.0.behaviour.lock();
        let (room, what, player) = read(request.into_inner());
        let (player_id, metadata) = player.unwrap_or_else(|| (String::new(), room.metadata.clone()));
        let taken = matches!(behaviour, Behaviour::Reply(_) | Behaviour::Slow(_));
        let Room { game, room_id, host, port, room_type, .. } = room;
        self.0.received.lock().push(Received {
            method,
            event_id,
            taken,
            game,
            room_id,
            host,
            port,
            room_type,
            what,
            player_id,
            metadata,
        });
        match behaviour {
            Behaviour::Reply(code) => Ok(reply(code)),
            Behaviour::Fail(code) => Err(Status::new(code, "told to")),
            Behaviour::Slow(delay) => {
                tokio::time::sleep(delay).await;
                Ok(reply(200))
            }
            Behaviour::Silent => std::future::pending().await,
        }
    }
}

fn reply(code: i32) -> Response<Reply> {
    Response::new(Reply { code, message: "as told".to_owned() })
}

type Answer = Result<Response<Reply>, Status>;

#[tonic::async_trait]
impl GrpcForwarder for Service {
    async fn send_room_resync(&self, request: Request<RoomStatus>) -> Answer {
        self.take(request, "SendRoomResync", read_status).await
    }

    async fn send_room_status(&self, request: Request<RoomStatus>) -> Answer {
        self.take(request, "SendRoomStatus", read_status).await
    }

    async fn send_room_event(&self, request: Request<RoomEvent>) -> Answer {
        self.take(request, "SendRoomEvent", |event| (event.room.unwrap_or_default(), event.event_type, None))
            .await
    }

    async fn send_player_event(&self, request: Request<PlayerEvent>) -> Answer {
        let read = |event: PlayerEvent| {
            let what =
                PlayerEventType::try_from(event.event_type).map_or("unknown", |what| what.as_str_name());
            let player = Some((event.player_id, event.metadata));
            (event.room.unwrap_or_default(), what.to_owned(), player)
        };
        self.take(request, "SendPlayerEvent", read).await
    }

    async fn send_room_info(&self, _: Request<RoomInfo>) -> Answer {
        Err(Status::unimplemented("never called"))
    }

    async fn send_room_ping(&self, _: Request<Room>) -> Answer {
        Err(Status::unimplemented("never called"))
    }
}

fn read_status(status: RoomStatus) -> Read {
    let what = RoomStatusType::try_from(status.status_type).map_or("unknown", |what| what.as_str_name());
    (status.room.unwrap_or_default(), what.to_owned(), None)
}
