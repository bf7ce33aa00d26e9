//! gRPC on a real listener, with a client that is not ours.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use futures_util::{FutureExt, StreamExt, stream};
use maestro_api::{ConnectionLimits, Listening, serve};
use maestro_proto::rpc::Method;
use maestro_proto::v1::rooms_service::UpdateRoomWithPing;
use maestro_proto::v1::schedulers_service::{CreateScheduler, ListSchedulers};
use maestro_proto::v1::{CreateSchedulerRequest, ListSchedulersRequest, UpdateRoomWithPingRequest};
use prost::Message;
use prost_reflect::DescriptorPool;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, IntoRequest, Request, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tonic_prost::ProstCodec;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{ServerReflectionRequest, ServerReflectionResponse};

use crate::support::{World, recipe};

/// Only ever waited out by a test that fails.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Server {
    pub(crate) world: World,
    pub(crate) address: SocketAddr,
    pub(crate) stop: oneshot::Sender<()>,
    pub(crate) serving: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start(limits: ConnectionLimits) -> Self {
        let world = World::standing();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let shutdown = async { drop(stopped.await) };
        let metrics = world.apis.listener("management-api");
        let listening = Listening { limits, metrics, ..Listening::new(listener, world.management.clone()) };
        let serving = tokio::spawn(serve(listening, shutdown, PATIENCE));
        Self { world, address, stop, serving }
    }

    pub(crate) async fn channel(&self) -> Channel {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address)).unwrap();
        within_patience("a connection", endpoint.connect()).await.unwrap()
    }

    pub(crate) async fn end(self) {
        // A client that is gone does not matter.
        let _ = self.stop.send(());
        within_patience("the end", self.serving).await.unwrap();
    }
}

/// With the limit of the management API.
pub(crate) fn limits() -> ConnectionLimits {
    ConnectionLimits { body_max_bytes: 1024 * 1024, ..ConnectionLimits::default() }
}

pub(crate) async fn within_patience<T>(what: &str, work: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(PATIENCE, work).await;
    done.unwrap_or_else(|_| panic!("in vain: {what}"))
}

pub(crate) async fn call<M>(
    channel: &Channel,
    _: M,
    request: impl IntoRequest<M::Request>,
) -> Result<M::Response, Status>
where
    M: Method<Request: Message + 'static, Response: Message + Default + 'static>,
{
    let mut client = Grpc::new(channel.clone());
    client.ready().await.map_err(|error| Status::unknown(error.to_string()))?;
    let codec = ProstCodec::<M::Request, M::Response>::default();
    let called = client.unary(request.into_request(), M::PATH.parse().unwrap(), codec);
    within_patience(M::PATH, called).await.map(tonic::Response::into_inner)
}

fn a_recipe(name: &str) -> CreateSchedulerRequest {
    maestro_proto::json::decode(recipe(name, 1).to_string().as_bytes()).unwrap().message
}

#[tokio::test]
async fn http_1_and_grpc_on_one_port_at_once() {
    let server = Server::start(limits()).await;
    let channel = server.channel().await;
    let mut http1 = TcpStream::connect(server.address).await.unwrap();
    for number in 0..3 {
        call(&channel, CreateScheduler, a_recipe(&format!("arena-{number}"))).await.unwrap();
        http1.write_all(b"GET /schedulers HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        let mut text = String::new();
        let mut buffer = [0; 4096];
        while !text.contains(&format!("arena-{number}")) {
            let read = within_patience("an answer", http1.read(&mut buffer)).await.unwrap();
            assert!(read > 0, "closed after {text}");
            text += std::str::from_utf8(&buffer[..read]).unwrap();
        }
        assert!(text.starts_with("HTTP/1.1 200 OK"), "{text}");
        let listed = call(&channel, ListSchedulers, ListSchedulersRequest::default()).await.unwrap();
        assert_eq!(listed.schedulers.len(), number + 1);
    }
    // Many calls of one connection at a time.
    let calls = (0..300).map(|_| call(&channel, ListSchedulers, ListSchedulersRequest::default()));
    let answers = futures_util::future::join_all(calls).await;
    assert!(answers.iter().all(|answer| answer.as_ref().is_ok_and(|answer| answer.schedulers.len() == 3)));
    drop((channel, http1));
    server.end().await;
}

#[tokio::test]
async fn unknown_methods_and_services_of_other_ports() {
    let server = Server::start(limits()).await;
    let channel = server.channel().await;
    let ping = UpdateRoomWithPingRequest::default();
    let refused = call(&channel, UpdateRoomWithPing, ping).await.unwrap_err();
    assert_eq!(
        (refused.code(), refused.message()),
        (Code::Unimplemented, "method \"/api.v1.RoomsService/UpdateRoomWithPing\" is not served here")
    );
    let metrics = server.world.api_metrics("http_request_duration_seconds_count");
    let counted = r#"http_request_duration_seconds_count{service="management-api",handler="unmatched",method="POST",code="404"} 1"#;
    assert_eq!(metrics, [counted]);
}

#[tokio::test]
async fn calls_are_counted_like_requests() {
    let server = Server::start(limits()).await;
    let channel = server.channel().await;
    call(&channel, ListSchedulers, ListSchedulersRequest::default()).await.unwrap();
    call(&channel, CreateScheduler, CreateSchedulerRequest::default()).await.unwrap_err();
    let mut metrics = server.world.api_metrics("http_request_duration_seconds_count");
    metrics.sort_unstable();
    let line = |method: &str, code: u16| {
        format!(
            r#"http_request_duration_seconds_count{{service="management-api",handler="/api.v1.SchedulersService/{method}",method="POST",code="{code}"}} 1"#
        )
    };
    assert_eq!(metrics, [line("CreateScheduler", 400), line("ListSchedulers", 200)]);
}

#[tokio::test]
async fn messages_that_are_too_long() {
    let server = Server::start(limits()).await;
    let channel = server.channel().await;
    let of_size = |bytes: usize| {
        let mut request = a_recipe("arena");
        request.spec.as_mut().unwrap().affinity = "x".repeat(bytes - request.encoded_len() - 5);
        assert!(request.encoded_len().abs_diff(bytes) < 5);
        request
    };
    for bytes in [1024 * 1024 + 10, 10 * 1024 * 1024] {
        let refused = call(&channel, CreateScheduler, of_size(bytes)).await.unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
        assert!(refused.message().starts_with("body: longer than the limit of"), "{refused}");
    }
    // As long as HTTP allows, and the same connection goes on.
    let came = call(&channel, CreateScheduler, of_size(1024 * 1024 - 10)).await;
    assert!(!matches!(came.as_ref().map_err(Status::code), Err(Code::ResourceExhausted)), "{came:?}");
    call(&channel, ListSchedulers, ListSchedulersRequest::default()).await.unwrap();
}

#[tokio::test]
async fn health() {
    let server = Server::start(limits()).await;
    let mut client = HealthClient::new(server.channel().await);
    let check = |service: &str| HealthCheckRequest { service: service.to_owned() };
    let status = |answer: HealthCheckResponse| answer.status();
    for service in ["", "api.v1.SchedulersService", "maestro.api.v1.FleetService"] {
        assert_eq!(
            status(client.check(check(service)).await.unwrap().into_inner()),
            ServingStatus::Serving,
            "{service}"
        );
    }
    let unknown = client.check(check("api.v1.RoomsService")).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound, "{unknown}");
    let mut watched = client.watch(check("")).await.unwrap().into_inner();
    let first = within_patience("a status", watched.message()).await.unwrap().unwrap();
    assert_eq!(status(first), ServingStatus::Serving);
    let mut unknown = client.watch(check("song")).await.unwrap().into_inner();
    let first = within_patience("a status", unknown.message()).await.unwrap().unwrap();
    assert_eq!(status(first), ServingStatus::ServiceUnknown);
    for (change, expected) in [(Some("panicked"), ServingStatus::NotServing), (None, ServingStatus::Serving)]
    {
        let health = server.world.engine.health();
        change.map_or_else(|| health.clear("store"), |why| health.not_ready("store", why));
        let next = within_patience("a change", watched.message()).await.unwrap().unwrap();
        assert_eq!(status(next), expected);
        assert_eq!(status(client.check(check("")).await.unwrap().into_inner()), expected);
    }
}

#[tokio::test]
async fn the_schema_is_reflected() {
    let server = Server::start(limits()).await;
    let mut client = ServerReflectionClient::new(server.channel().await);
    let request = |message_request| ServerReflectionRequest {
        host: String::new(),
        message_request: Some(message_request),
    };
    let (requests, sent) = tokio::sync::mpsc::channel::<ServerReflectionRequest>(1);
    let sent = stream::unfold(sent, async |mut sent| Some((sent.recv().await?, sent)));
    let mut answers = client.server_reflection_info(sent).await.unwrap().into_inner();
    let mut ask = async |asked: MessageRequest| {
        requests.send(request(asked)).await.unwrap();
        let answer = within_patience("an answer", answers.message()).await.unwrap();
        let Some(ServerReflectionResponse { message_response: Some(response), .. }) = answer else {
            panic!("no answer")
        };
        response
    };
    // One after the other on one stream, as tools ask.
    let MessageResponse::ListServicesResponse(listed) =
        ask(MessageRequest::ListServices(String::new())).await
    else {
        panic!("no list")
    };
    let mut names: Vec<_> = listed.service.into_iter().map(|service| service.name).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "api.v1.OperationsService",
            "api.v1.SchedulersService",
            "grpc.health.v1.Health",
            "grpc.reflection.v1.ServerReflection",
            "maestro.api.v1.AllocationsService",
            "maestro.api.v1.Events",
            "maestro.api.v1.EventsService",
            "maestro.api.v1.ExplanationsService",
            "maestro.api.v1.FleetService",
            "maestro.api.v1.ImportsService",
            "maestro.api.v1.LocksService",
            "maestro.api.v1.RegionsService",
            "maestro.api.v1.RolloutsService",
        ]
    );
    // Enough to call it: the file of a service and all that it imports.
    let mut wanted = vec![MessageRequest::FileContainingSymbol("api.v1.SchedulersService".to_owned())];
    let mut files = std::collections::BTreeMap::new();
    while let Some(asked) = wanted.pop() {
        let MessageResponse::FileDescriptorResponse(answer) = ask(asked).await else { panic!("no file") };
        for bytes in answer.file_descriptor_proto {
            let file = prost_reflect::prost_types::FileDescriptorProto::decode(bytes.as_slice()).unwrap();
            let missing = file.dependency.iter().filter(|name| !files.contains_key(*name)).cloned();
            wanted.extend(missing.map(MessageRequest::FileByFilename));
            files.insert(file.name().to_owned(), file);
        }
    }
    let mut pool = DescriptorPool::new();
    pool.add_file_descriptor_protos(files.into_values()).unwrap();
    let service = pool.get_service_by_name("api.v1.SchedulersService").unwrap();
    assert_eq!(service.methods().len(), 9);
}

#[tokio::test]
async fn the_end_waits_for_calls_and_not_for_streams() {
    let server = Server::start(limits()).await;
    let channel = server.channel().await;
    let mut client = HealthClient::new(channel.clone());
    let mut watched = client.watch(HealthCheckRequest::default()).await.unwrap().into_inner();
    within_patience("a status", watched.message()).await.unwrap().unwrap();
    server.stop.send(()).unwrap();
    let ended = within_patience("the end of the stream", watched.message()).await.unwrap_err();
    assert_eq!((ended.code(), ended.message()), (Code::Unavailable, "the server is stopping; call again"));
    within_patience("the end", server.serving).await.unwrap();
    let refused = call(&channel, ListSchedulers, ListSchedulersRequest::default()).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable, "{refused}");
}

#[tokio::test]
async fn a_caller_may_end_a_stream_and_has_a_deadline() {
    let server = Server::start(limits()).await;
    let mut client = HealthClient::new(server.channel().await);
    let mut request = Request::new(HealthCheckRequest::default());
    // Said to the server only: the client itself would wait.
    request.metadata_mut().insert("grpc-timeout", "300m".parse().unwrap());
    let mut watched = client.watch(request).await.unwrap().into_inner();
    within_patience("a status", watched.message()).await.unwrap().unwrap();
    let ended = within_patience("the end of the stream", watched.message()).await.unwrap_err();
    assert_eq!(ended.code(), Code::DeadlineExceeded, "{ended}");
}

/// A connection takes 256 calls at a time, so calls that were kept would keep out the next one.
#[tokio::test]
async fn streams_that_are_over_are_given_back_whatever_their_caller_still_sends() {
    let server = Server::start(limits()).await;
    let channel = server.channel().await;
    let mut kept = Vec::new();
    for _ in 0..256 {
        let mut client = ServerReflectionClient::new(channel.clone());
        let mut request = Request::new(stream::pending::<ServerReflectionRequest>());
        request.metadata_mut().insert("grpc-timeout", "200m".parse().unwrap());
        kept.push(client.server_reflection_info(request).await.unwrap().into_inner());
    }
    for answers in &mut kept {
        let ended = within_patience("the end of a stream", answers.message()).await.unwrap_err();
        assert_eq!(ended.code(), Code::DeadlineExceeded, "{ended}");
    }
    call(&channel, ListSchedulers, ListSchedulersRequest::default()).await.unwrap();
    let in_flight = server.world.api_metrics("http_requests_inflight");
    assert!(in_flight.iter().all(|line| line.ends_with(" 0")), "{in_flight:?}");
}

#[tokio::test]
async fn slow_senders_of_http_2_are_cut_off_and_others_are_served() {
    let limits = ConnectionLimits { read_timeout: Duration::from_millis(300), ..limits() };
    let server = Server::start(limits).await;
    // Nothing, the beginning of the preface, or no request after it.
    for beginning in ["", "PRI * HT", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(beginning.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        within_patience("the end of a slow sender", stream.read_to_end(&mut rest)).await.unwrap();
    }
    // A message that never comes is given up by itself; other calls of its connection are not.
    let channel = server.channel().await;
    call(&channel, ListSchedulers, ListSchedulersRequest::default()).await.unwrap();
    let mut client = Grpc::new(channel.clone());
    client.ready().await.unwrap();
    let never = Request::new(stream::pending::<ListSchedulersRequest>());
    let codec = ProstCodec::<ListSchedulersRequest, maestro_proto::v1::ListSchedulersResponse>::default();
    let path = ListSchedulers::PATH.parse().unwrap();
    let mut slow = pin!(client.client_streaming(never, path, codec));
    let refused = loop {
        let other = call(&channel, ListSchedulers, ListSchedulersRequest::default());
        tokio::select! {
            refused = &mut slow => break refused,
            answered = other => drop(answered.unwrap()),
        }
    };
    let refused = refused.unwrap_err();
    assert_eq!(
        (refused.code(), refused.message()),
        (Code::DeadlineExceeded, "body: not complete within 300ms")
    );
}

#[tokio::test]
async fn who_is_idle_is_told_to_go_and_who_watches_is_not() {
    let limits = ConnectionLimits { idle_timeout: Duration::from_millis(100), ..limits() };
    let server = Server::start(limits).await;
    let watching = server.channel().await;
    let mut client = HealthClient::new(watching.clone());
    let mut watched = client.watch(HealthCheckRequest::default()).await.unwrap().into_inner();
    within_patience("a status", watched.message()).await.unwrap().unwrap();
    let idle = server.channel().await;
    call(&idle, ListSchedulers, ListSchedulersRequest::default()).await.unwrap();
    // The client notices, and connects again when it calls.
    within_patience("the idle one to go", async {
        let cut = r#"http_connections_cut_total{service="management-api"} 1"#;
        while server.world.api_metrics("http_connections_cut_total") != [cut] {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    call(&idle, ListSchedulers, ListSchedulersRequest::default()).await.unwrap();
    call(&watching, ListSchedulers, ListSchedulersRequest::default()).await.unwrap();
    assert!(watched.next().now_or_never().is_none(), "it goes on");
}
