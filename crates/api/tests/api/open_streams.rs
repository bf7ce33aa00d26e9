//! Event streams on a real listener: over HTTP/2 and gRPC, until the server stops, and as many as there may be.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use axum::body::Body;
use axum::http::{Request, Response};
use futures_util::future::join_all;
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use maestro_core::scheduler::SchedulerName;
use maestro_core::stream::{Happened, StreamEvent};
use maestro_engine::Parts;
use maestro_proto::rpc::Method;
use maestro_proto::v1::allocations_service::CreateAllocations;
use maestro_proto::v1::events::Watch;
use maestro_proto::v1::{self, CreateAllocationsRequest, WatchEventsRequest};
use maestro_testkit::eventually;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tonic::client::Grpc;
use tonic::transport::Channel;
use tonic::{Code, IntoRequest, Status, Streaming};
use tonic_prost::ProstCodec;

use crate::grpc::{Server, call, limits, within_patience};
use crate::stream::{Reader, append, event};
use crate::support::{World, recipe};

/// What the server takes of one connection.
const STREAMS_PER_CONNECTION: usize = 256;
/// Four connections full.
const STREAMS_MAX: usize = 4 * STREAMS_PER_CONNECTION;
/// What a client takes of a stream before it reads it.
const WINDOW_BYTES: u32 = 64 * 1024;
/// By route, the requests that are worked on, and the streams that are open.
const IN_FLIGHT: &str = "http_requests_inflight{";

/// A connection that begins with HTTP/2, as between services.
struct Connection {
    sender: SendRequest<Empty<Bytes>>,
    serving: JoinHandle<()>,
}

impl Connection {
    /// No stream takes from the windows of the others.
    async fn open(address: SocketAddr) -> Self {
        let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES * STREAMS_PER_CONNECTION as u32)
            .handshake(stream)
            .await
            .unwrap();
        // However it ends.
        let serving = tokio::spawn(async { drop(connection.await) });
        Self { sender, serving }
    }

    async fn get(&self, address: SocketAddr, query: &str) -> Response<Body> {
        let request = Request::get(format!("http://{address}/events{query}")).body(Empty::new()).unwrap();
        let mut sender = self.sender.clone();
        within_patience("a place for a request", sender.ready()).await.unwrap();
        let response = within_patience("an answer", sender.send_request(request)).await.unwrap();
        response.map(Body::new)
    }

    async fn watch(&self, address: SocketAddr, query: &str) -> Reader {
        Reader::of(self.get(address, query).await)
    }
}

async fn watch(channel: &Channel, last_id: &str) -> Result<Streaming<v1::StreamEvent>, Status> {
    let mut client = Grpc::new(channel.clone());
    client.ready().await.map_err(|error| Status::unknown(error.to_string()))?;
    let request = WatchEventsRequest { last_event_id: last_id.into(), ..WatchEventsRequest::default() };
    let codec = ProstCodec::<WatchEventsRequest, v1::StreamEvent>::default();
    let asked = client.server_streaming(request.into_request(), Watch::PATH.parse().unwrap(), codec);
    within_patience("an answer", asked).await.map(tonic::Response::into_inner)
}

/// One that fills the windows of whoever does not read it.
fn large_event(world: &World, number: usize) -> StreamEvent {
    let mut event = event(world, &number.to_string());
    let why = "x".repeat(1 << 20).as_str().into();
    let region = maestro_core::region::Region("eu".into());
    event.what = Happened::RegionReached { region, reachable: false, why };
    event
}

#[tokio::test]
async fn sent_events_over_http_2_end_with_the_server() {
    let Server { world, address, stop, serving } = Server::start(limits()).await;
    let connection = Connection::open(address).await;
    let mut readers = [connection.watch(address, "").await, connection.watch(address, "?types=region").await];
    for reader in &mut readers {
        assert_eq!(reader.next().await["type"], "reset");
    }
    append(&world, vec![event(&world, "one"), event(&world, "two")], false).await;
    for reader in &mut readers {
        assert_eq!(
            [reader.next().await["subject"].take(), reader.next().await["subject"].take()],
            ["one", "two"]
        );
    }
    stop.send(()).unwrap();
    for reader in &mut readers {
        let farewell = within_patience("a farewell", reader.block()).await;
        assert_eq!(farewell.as_deref(), Some(": the server is stopping; call again"));
        assert_eq!(within_patience("the end of the stream", reader.block()).await, None);
    }
    within_patience("the end", serving).await.unwrap();
}

#[tokio::test]
async fn a_watch_over_grpc_ends_with_the_server() {
    let Server { world, address, stop, serving } = Server::start(limits()).await;
    let endpoint = Channel::from_shared(format!("http://{address}")).unwrap();
    let channel = within_patience("a connection", endpoint.connect()).await.unwrap();
    let mut watched = watch(&channel, "oldest").await.unwrap();
    append(&world, vec![event(&world, "one")], false).await;
    let one = within_patience("an event", watched.message()).await.unwrap().unwrap();
    assert_eq!((one.r#type.as_str(), one.subject.as_str()), ("region", "one"));
    stop.send(()).unwrap();
    let ended = within_patience("the end of the stream", watched.message()).await.unwrap_err();
    assert_eq!((ended.code(), ended.message()), (Code::Unavailable, "the server is stopping; call again"));
    within_patience("the end", serving).await.unwrap();
    let refused = watch(&channel, "").await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable, "{refused}");
}

/// Streams of both kinds whose windows are full, each on a connection of its own.
async fn never_read(
    world: &World,
    address: SocketAddr,
) -> (Connection, Response<Body>, Channel, Streaming<v1::StreamEvent>) {
    let connection = Connection::open(address).await;
    let sent_events = connection.get(address, "").await;
    let channel = Channel::from_shared(format!("http://{address}")).unwrap();
    let channel = within_patience("a connection", channel.connect()).await.unwrap();
    let watched = watch(&channel, "").await.unwrap();
    let mut reader = Connection::open(address).await.watch(address, "").await;
    assert_eq!(reader.next().await["type"], "reset");
    for number in 0..4 {
        // Somebody else has read more than the windows hold.
        append(world, vec![large_event(world, number)], false).await;
        assert_eq!(reader.next().await["type"], "region");
    }
    (connection, sent_events, channel, watched)
}

/// Who takes nothing of a stream does not take its end either.
#[tokio::test]
async fn the_end_does_not_wait_for_those_who_do_not_read() {
    let Server { world, address, stop, serving } = Server::start(limits()).await;
    let never_read = never_read(&world, address).await;
    stop.send(()).unwrap();
    within_patience("the end", serving).await.unwrap();
    drop(never_read);
}

#[tokio::test]
async fn the_end_waits_for_a_call_beside_a_stream_that_nobody_reads() {
    let Server { mut world, address, stop, serving } = Server::start(limits()).await;
    let (connection, sent_events, channel, watched) = never_read(&world, address).await;
    // Nobody is there yet who could answer it.
    let request =
        CreateAllocationsRequest { scheduler_name: "nowhere".into(), ..CreateAllocationsRequest::default() };
    let calling = tokio::spawn(async move { call(&channel, CreateAllocations, request).await });
    let is_there = |line: &String| line.contains("CreateAllocations") && line.ends_with(" 1");
    eventually("the call", async || world.api_metrics(IN_FLIGHT).iter().any(is_there)).await;
    stop.send(()).unwrap();
    within_patience("the end of the other connection", connection.serving).await.unwrap();
    world.start(Parts::ALL).await;
    let refused = within_patience("an answer", calling).await.unwrap().unwrap_err();
    assert_eq!((refused.code(), refused.message()), (Code::NotFound, "scheduler nowhere not found"));
    within_patience("the end", serving).await.unwrap();
    drop((sent_events, watched));
}

async fn open_all(address: SocketAddr, query: &str) -> Vec<(Connection, Vec<Reader>)> {
    let mut open = Vec::new();
    for _ in 0..STREAMS_MAX / STREAMS_PER_CONNECTION {
        let connection = Connection::open(address).await;
        let readers = (0..STREAMS_PER_CONNECTION).map(|_| connection.watch(address, query));
        let readers = join_all(readers).await;
        open.push((connection, readers));
    }
    open
}

async fn is_refused(server: &Server) {
    let connection = Connection::open(server.address).await;
    let refused = connection.get(server.address, "").await;
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["retry-after"].to_str().unwrap()),
        (503, &"10")
    );
    let said: Value =
        serde_json::from_slice(&refused.into_body().collect().await.unwrap().to_bytes()).unwrap();
    let message = format!("{STREAMS_MAX} streams are open, and there are no more; try again later");
    assert_eq!(said, json!({"code": 14, "message": message, "details": []}));
    let refused = watch(&server.channel().await, "").await.unwrap_err();
    assert_eq!((refused.code(), refused.message()), (Code::Unavailable, message.as_str()));
}

async fn all_are_given_back(server: &Server) {
    let is_over = |line: &String| line.ends_with(" 0");
    let all_over = async || server.world.api_metrics(IN_FLIGHT).iter().all(is_over);
    eventually("all streams to be given back", all_over).await;
}

/// Each has all events, in their order, or is told that some are missing.
#[tokio::test]
async fn as_many_as_there_may_be() {
    const BURSTS: usize = 3;
    const EVENTS: usize = 10;
    let server = Server::start(limits()).await;
    server.world.post("/schedulers", &recipe("arena", 1)).await.ok();
    let mut open = open_all(server.address, "?scheduler=arena&types=region").await;
    for reader in open.iter_mut().flat_map(|(_, readers)| readers) {
        assert_eq!(reader.next().await["type"], "reset");
    }
    is_refused(&server).await;
    for burst in 0..BURSTS {
        let numbers = burst * EVENTS..(burst + 1) * EVENTS;
        for number in numbers.clone() {
            let mut event = event(&server.world, &number.to_string());
            event.scheduler = Some(SchedulerName::parse("arena").unwrap());
            append(&server.world, vec![event], false).await;
        }
        let reading = open.iter_mut().flat_map(|(_, readers)| readers).map(async |reader| {
            for number in numbers.clone() {
                assert_eq!(reader.next().await["subject"], number.to_string());
            }
        });
        join_all(reading).await;
    }
    // Some end one stream, others hang up.
    let (connection, readers) = open.pop().unwrap();
    drop(readers);
    open.truncate(0);
    all_are_given_back(&server).await;
    let again = open_all(server.address, "").await;
    is_refused(&server).await;
    drop((again, connection));
    all_are_given_back(&server).await;
    server.end().await;
}

/// Beside others that keep up, some that begin to read when most of it is gone.
#[tokio::test]
async fn who_reads_too_late_is_told_and_loses_nothing_else() {
    const EVENTS: usize = 40;
    let server = Server::start(limits()).await;
    let (world, address) = (&server.world, server.address);
    let (quick, slow) = (Connection::open(address).await, Connection::open(address).await);
    let mut late = join_all((0..3).map(|_| slow.watch(address, "?types=region"))).await;
    let mut reader = quick.watch(address, "?types=region").await;
    for reader in late.iter_mut().chain([&mut reader]) {
        assert_eq!(reader.next().await["type"], "reset");
    }
    for number in 0..EVENTS {
        append(world, vec![large_event(world, number)], false).await;
        assert_eq!(reader.next().await["type"], "region", "who keeps up misses nothing");
    }
    append(world, vec![event(world, "last")], false).await;
    assert_eq!(reader.next().await["subject"], "last");
    for reader in &mut late {
        let mut numbers = Vec::new();
        let mut resets = BTreeSet::new();
        loop {
            let event = reader.next().await;
            let number = event["id"].as_str().unwrap().rsplit_once('-').unwrap().1.parse::<u64>().unwrap();
            if event["type"] == "reset" {
                resets.insert(number);
            } else {
                let before = numbers.last().copied().unwrap_or(0);
                assert!(number == before + 1 || resets.contains(&(number - 1)), "{number} after {before}");
            }
            numbers.push(number);
            if number > EVENTS as u64 {
                break;
            }
        }
        assert_eq!(resets.len(), 1, "{numbers:?}");
    }
    server.end().await;
}
