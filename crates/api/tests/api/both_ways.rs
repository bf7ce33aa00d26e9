//! The same requests over HTTP and over gRPC: two worlds that are alike are asked the same, and must answer the same.

use axum::body::{Body, to_bytes};
use axum::http::{Request, Version};
use http_body_util::BodyExt;
use maestro_core::room::Region;
use maestro_proto::json::decode;
use maestro_proto::rpc::Method;
use maestro_proto::v1::allocations_service::{
    CreateAllocations, GetAllocation, ListAllocations, ReturnAllocation,
};
use maestro_proto::v1::events_service::{ListEvents, ReplayEvents};
use maestro_proto::v1::explanations_service::{ExplainOperation, ListStuckOperations};
use maestro_proto::v1::fleet_service::{
    AddRooms, CreateRoom, GetAutoscalingDecisions, GetRoom, GetRoomLogs, ListRooms, RemoveRooms, Resize,
};
use maestro_proto::v1::imports_service::ImportScheduler;
use maestro_proto::v1::locks_service::{ListLocks, ReleaseLock};
use maestro_proto::v1::operations_service::{CancelOperation, GetOperation, ListOperations};
use maestro_proto::v1::regions_service::{
    ConfirmRegionLost, CordonRegion, DrainRegion, ListRegions, UncordonRegion,
};
use maestro_proto::v1::rollouts_service::{CancelRollout, GetRollout, PauseRollout, ResumeRollout};
use maestro_proto::v1::rooms_service::{
    AllocateRoom, ForwardPlayerEvent, ForwardRoomEvent, GetRoomAddress, UpdateRoomStatus, UpdateRoomWithPing,
};
use maestro_proto::v1::schedulers_service::{
    CreateScheduler, DeleteScheduler, GetScheduler, GetSchedulerVersions, GetSchedulersInfo, ListSchedulers,
    NewSchedulerVersion, PatchScheduler, SwitchActiveVersion,
};
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, MethodDescriptor};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tonic::Status;
use tower::ServiceExt;

use crate::support::{World, recipe};

/// Two worlds that began alike, one for each way.
struct Worlds {
    http: World,
    grpc: World,
    pool: DescriptorPool,
}

/// What came of a request, in JSON's words.
#[derive(Debug, PartialEq)]
enum Came {
    Answer(Value),
    Error { code: i64, message: String },
}

impl Worlds {
    fn of(http: World, grpc: World) -> Self {
        let pool = DescriptorPool::decode(maestro_proto::FILE_DESCRIPTOR_SET).unwrap();
        Self { http, grpc, pool }
    }

    /// Sends a request, which has the JSON of its message, both ways. The answers must be equal.
    async fn ask<M>(&self, _: M, request: &Value) -> Came
    where
        M: Method<
                Request: Message + Serialize + DeserializeOwned + Default,
                Response: Message + Default + Serialize,
            >,
    {
        let message = decode::<M::Request>(request.to_string().as_bytes()).unwrap().message;
        let by_http = self.by_http(M::PATH, request).await;
        let by_grpc = by_grpc::<M>(&self.grpc, &message).await;
        assert_eq!(by_grpc, by_http, "{} {request}", M::PATH);
        by_grpc
    }

    async fn ok<M>(&self, method: M, request: &Value) -> Value
    where
        M: Method<
                Request: Message + Serialize + DeserializeOwned + Default,
                Response: Message + Default + Serialize,
            >,
    {
        match self.ask(method, request).await {
            Came::Answer(answer) => answer,
            error @ Came::Error { .. } => panic!("{} {request}: {error:?}", M::PATH),
        }
    }

    async fn refused<M>(&self, method: M, request: &Value, code: i64)
    where
        M: Method<
                Request: Message + Serialize + DeserializeOwned + Default,
                Response: Message + Default + Serialize,
            >,
    {
        match self.ask(method, request).await {
            Came::Error { code: actual, message } => assert_eq!(actual, code, "{request}: {message}"),
            Came::Answer(answer) => panic!("{} {request}: {answer}", M::PATH),
        }
    }

    /// As the schema says that HTTP has it.
    async fn by_http(&self, path: &str, request: &Value) -> Came {
        let (service, method) = path[1..].split_once('/').unwrap();
        let service = self.pool.get_service_by_name(service).unwrap();
        let method = service.methods().find(|other| other.name() == method).unwrap();
        let rule = http_rule(&method);
        let text = |name: &str| rule.get_field_by_name(name).unwrap().as_str().unwrap_or_default().to_owned();
        let verb =
            ["get", "put", "post", "delete", "patch"].into_iter().find(|verb| rule.has_field_by_name(verb));
        let (verb, mut path) = (verb.unwrap(), text(verb.unwrap()));
        let mut query = Vec::new();
        for field in method.input().fields() {
            let value = &request[field.json_name()];
            let parameter = format!("{{{}}}", field.name());
            match value {
                Value::String(text) if path.contains(&parameter) => path = path.replace(&parameter, text),
                Value::String(text) => {
                    query.push(format!("{}={}", field.json_name(), text.replace(' ', "%20")));
                }
                Value::Number(_) | Value::Bool(true) => query.push(format!("{}={value}", field.json_name())),
                _ => {}
            }
        }
        let body = match text("body").as_str() {
            "*" => request.to_string(),
            _ => {
                path = format!("{path}?{}", query.join("&"));
                String::new()
            }
        };
        let reply = self.http.ask(&verb.to_uppercase(), &path, body).await;
        let answer = || serde_json::from_str::<Value>(&reply.text);
        match (reply.status, text("response_body").as_str()) {
            (200, "") if reply.headers["content-type"] == "text/plain; charset=utf-8" => {
                Came::Answer(json!({ "text": reply.text }))
            }
            (200, "") => Came::Answer(answer().unwrap()),
            (200, field) => Came::Answer(json!({ field: answer().unwrap() })),
            (204, _) => Came::Answer(json!({})),
            _ => {
                let error = reply.json();
                Came::Error {
                    code: error["code"].as_i64().unwrap(),
                    message: error["message"].as_str().unwrap().to_owned(),
                }
            }
        }
    }

    async fn settle(&self, scheduler: &str) {
        tokio::join!(self.http.settle(scheduler), self.grpc.settle(scheduler));
    }
}

async fn by_grpc<M>(world: &World, message: &M::Request) -> Came
where
    M: Method<Request: Message, Response: Message + Default + Serialize>,
{
    let mut frame = vec![0];
    frame.extend(u32::try_from(message.encoded_len()).unwrap().to_be_bytes());
    message.encode(&mut frame).unwrap();
    let router = if M::PATH.contains("RoomsService") { &world.rooms } else { &world.management };
    let request = Request::post(M::PATH).version(Version::HTTP_2).header("host", "localhost");
    let request = request.header("content-type", "application/grpc").body(Body::from(frame)).unwrap();
    let response = router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/grpc");
    if let Some(status) = Status::from_header_map(response.headers()) {
        return Came::Error { code: status.code() as i64, message: status.message().to_owned() };
    }
    let collected = response.into_body().collect().await.unwrap();
    assert_eq!(collected.trailers().unwrap()["grpc-status"], "0");
    let bytes = collected.to_bytes();
    let answer = M::Response::decode(&bytes[5..]).unwrap();
    Came::Answer(serde_json::to_value(answer).unwrap())
}

fn http_rule(method: &MethodDescriptor) -> DynamicMessage {
    let extension = method.parent_pool().get_extension_by_name("google.api.http").unwrap();
    method.options().get_extension(&extension).as_message().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn requests_that_only_enqueue() {
    let worlds = Worlds::of(World::standing(), World::standing());
    worlds.ok(ListSchedulers, &json!({})).await;
    worlds.refused(GetScheduler, &json!({"schedulerName": "nope"}), 5).await;
    worlds.ok(CreateScheduler, &recipe("arena", 3)).await;
    worlds.refused(CreateScheduler, &recipe("arena", 3), 6).await;
    worlds.refused(CreateScheduler, &json!({"name": "Bad!", "maxSurge": "x"}), 3).await;
    worlds.ok(ListSchedulers, &json!({"game": "brawl", "view": "full"})).await;
    worlds.refused(ListSchedulers, &json!({"view": "half"}), 3).await;
    worlds.ok(GetSchedulersInfo, &json!({"game": "brawl"})).await;
    worlds.ok(GetScheduler, &json!({"schedulerName": "arena", "version": "v1.0.0"})).await;
    worlds.ok(GetSchedulerVersions, &json!({"schedulerName": "arena", "view": "full"})).await;

    let mut major = recipe("arena", 3);
    major["spec"]["containers"][0]["image"] = json!("other");
    worlds.ok(NewSchedulerVersion, &major).await;
    worlds.refused(NewSchedulerVersion, &major, 9).await;
    worlds.refused(NewSchedulerVersion, &recipe("nope", 3), 5).await;
    worlds.refused(PatchScheduler, &json!({"name": "arena"}), 6).await;
    worlds.refused(PatchScheduler, &json!({"name": "arena", "maxSurge": "abc"}), 3).await;
    worlds.refused(SwitchActiveVersion, &json!({"schedulerName": "arena"}), 3).await;
    worlds.refused(SwitchActiveVersion, &json!({"schedulerName": "arena", "version": "v7.0.0"}), 5).await;

    let listed = worlds.ok(ListOperations, &json!({"schedulerName": "arena", "stage": "pending"})).await;
    worlds.refused(ListOperations, &json!({"schedulerName": "arena", "stage": "wild"}), 3).await;
    let operation = listed["operations"][0]["id"].as_str().unwrap();
    let named = json!({"schedulerName": "arena", "operationId": operation});
    worlds
        .ok(GetOperation, &json!({"schedulerName": "arena", "operationId": operation, "view": "full"}))
        .await;
    worlds.ok(ExplainOperation, &named).await;
    worlds.ok(ListStuckOperations, &json!({"schedulerName": "arena"})).await;
    worlds.ok(CancelOperation, &named).await;
    worlds.refused(CancelOperation, &named, 10).await;
    let unknown = json!({"schedulerName": "arena", "operationId": "00000000-0000-0000-0000-000000000000"});
    worlds.refused(CancelOperation, &unknown, 5).await;

    worlds.ok(AddRooms, &json!({"schedulerName": "arena", "amount": 2})).await;
    worlds.refused(AddRooms, &json!({"schedulerName": "arena", "amount": -2}), 3).await;
    worlds.ok(RemoveRooms, &json!({"schedulerName": "arena"})).await;
    worlds.refused(RemoveRooms, &json!({"schedulerName": "arena", "amount": 1, "rooms": ["x"]}), 3).await;
    let resize = json!({"schedulerName": "arena", "adjustmentType": "EXACT_CAPACITY", "number": 5});
    worlds.ok(Resize, &resize).await;
    worlds.refused(Resize, &json!({"schedulerName": "arena", "number": true}), 3).await;
    worlds.ok(CreateRoom, &json!({"schedulerName": "arena"})).await;
    worlds.refused(CreateRoom, &json!({"schedulerName": "arena", "region": "mars"}), 3).await;

    worlds.ok(GetRollout, &json!({"schedulerName": "arena"})).await;
    worlds.refused(PauseRollout, &json!({"schedulerName": "arena"}), 10).await;
    worlds.refused(ResumeRollout, &json!({"schedulerName": "arena"}), 10).await;
    worlds.refused(CancelRollout, &json!({"schedulerName": "arena"}), 10).await;
    worlds.ok(ListLocks, &json!({"schedulerName": "arena", "view": "full"})).await;
    worlds.refused(ListLocks, &json!({"schedulerName": "nope"}), 5).await;
    worlds.ok(ReleaseLock, &json!({"schedulerName": "arena", "lockKey": "config", "reason": "a test"})).await;
    worlds.refused(ReleaseLock, &json!({"schedulerName": "arena", "lockKey": "colour"}), 3).await;
    worlds.ok(ListEvents, &json!({"schedulerName": "arena", "dead": true, "forwarder": "mm"})).await;
    worlds.refused(ListEvents, &json!({"schedulerName": "arena", "pageSize": 101}), 3).await;
    worlds.refused(ListEvents, &json!({"schedulerName": "nope"}), 5).await;
    worlds.ok(ReplayEvents, &json!({"schedulerName": "arena", "all": true})).await;
    worlds.refused(ReplayEvents, &json!({"schedulerName": "arena"}), 3).await;
    worlds.refused(ReplayEvents, &json!({"schedulerName": "arena", "ids": ["x"]}), 3).await;
    let unknown = json!({"schedulerName": "arena", "ids": ["00000000-0000-0000-0000-000000000001"]});
    worlds.refused(ReplayEvents, &unknown, 5).await;
    worlds.ok(GetAutoscalingDecisions, &json!({"schedulerName": "arena"})).await;
    worlds.ok(DeleteScheduler, &json!({"schedulerName": "arena"})).await;
    worlds.refused(DeleteScheduler, &json!({"schedulerName": "nope"}), 5).await;
}

#[tokio::test(start_paused = true)]
async fn rooms_and_regions() {
    let regions = [Region::DEFAULT, "eu-west"];
    let http = World::running_with_regions(&regions).await;
    let grpc = World::running_with_regions(&regions).await;
    let worlds = Worlds::of(http, grpc);
    worlds.ok(CreateScheduler, &recipe("arena", 2)).await;
    worlds.settle("arena").await;
    let [by_http, by_grpc] = [worlds.http.room_ids("arena").await, worlds.grpc.room_ids("arena").await];
    assert_eq!(by_http, by_grpc, "the worlds are alike");
    let room = &by_http[0];
    let named = json!({"schedulerName": "arena", "roomName": room});
    let ping = |status: &str, metadata: Value| {
        json!({"schedulerName": "arena", "roomName": room, "status": status, "timestamp": 7, "runningMatches": 1,
            "metadata": metadata})
    };
    let metadata = json!({"map": "lava", "players": [1, {"name": "a"}, null, 2.5]});
    assert_eq!(
        worlds.ok(UpdateRoomWithPing, &ping("occupied", metadata.clone())).await,
        json!({"success": true})
    );
    let shown = worlds.ok(GetRoom, &json!({"schedulerName": "arena", "roomId": room})).await;
    assert_eq!((&shown["room"]["status"], &shown["room"]["metadata"]), (&json!("occupied"), &metadata));
    assert_eq!(worlds.ok(UpdateRoomStatus, &ping("ready", json!({}))).await, json!({"success": true}));
    worlds.refused(UpdateRoomWithPing, &ping("dancing", json!({})), 3).await;
    worlds.refused(UpdateRoomWithPing, &named, 3).await;
    let negative =
        json!({"schedulerName": "arena", "roomName": room, "status": "ready", "runningMatches": -1});
    worlds.refused(UpdateRoomWithPing, &negative, 3).await;
    let ghost = json!({"schedulerName": "arena", "roomName": "ghost", "status": "ready"});
    assert_eq!(worlds.ok(UpdateRoomWithPing, &ghost).await, json!({"success": false}));
    let event =
        json!({"schedulerName": "arena", "roomName": room, "event": "x", "metadata": {"playerId": "p"}});
    let forwarded = json!({"success": true, "message": ""});
    assert_eq!(worlds.ok(ForwardRoomEvent, &event).await, forwarded, "to nobody");
    assert_eq!(worlds.ok(ForwardPlayerEvent, &event).await, forwarded);
    let unknown = json!({"schedulerName": "nope", "roomName": room, "event": "x"});
    let not_forwarded = json!({"success": false, "message": "scheduler nope not found"});
    assert_eq!(worlds.ok(ForwardRoomEvent, &unknown).await, not_forwarded);
    assert_eq!(worlds.ok(UpdateRoomStatus, &ping("dancing", json!({}))).await, json!({"success": false}));
    worlds.ok(GetRoomAddress, &named).await;
    worlds.refused(GetRoomAddress, &json!({"schedulerName": "arena", "roomName": "ghost"}), 5).await;
    worlds.ok(ListRooms, &json!({"schedulerName": "arena", "ended": true})).await;
    worlds.refused(GetRoom, &json!({"schedulerName": "arena", "roomId": "ghost"}), 5).await;
    worlds.ask(GetRoomLogs, &json!({"schedulerName": "arena", "roomId": room, "tail": 5})).await;
    worlds.refused(GetRoomLogs, &json!({"schedulerName": "arena", "roomId": room, "tail": 100_000}), 3).await;

    let region = json!({"regionName": "eu-west", "reason": "a test"});
    worlds.ok(CordonRegion, &region).await;
    worlds.ok(ListRegions, &json!({})).await;
    worlds.ok(UncordonRegion, &region).await;
    worlds.ok(DrainRegion, &region).await;
    worlds.refused(DrainRegion, &json!({"regionName": "mars"}), 5).await;
    worlds.refused(CordonRegion, &json!({"regionName": "eu-west", "reason": "x".repeat(513)}), 3).await;
    worlds.ask(ConfirmRegionLost, &region).await;
}

#[tokio::test(start_paused = true)]
async fn imports() {
    let worlds = Worlds::of(World::running().await, World::running().await);
    let version = |number: &str, status: &str| {
        json!({"version": number, "status": status, "cause": "it was its turn",
        "createdAt": "2026-11-15T09:06:47Z", "recipe": recipe("arena", 2)})
    };
    let versions =
        [version("v2.1.0", "deployed"), version("v2.0.0", "superseded"), version("v1.0.0", "error")];
    let import =
        json!({"schedulerName": "arena", "activeVersion": "v2.0.0", "fleetSize": 3, "versions": versions});
    for (field, value) in [
        ("activeVersion", json!("v7.0.0")),
        ("activeVersion", json!("two")),
        ("versions", json!([])),
        ("versions", json!([version("v2.0.0", "deployed"), version("v2.0.0", "error")])),
        ("versions", json!([version("v2.0.0", "deployed"), version("v3.0.0", "validating")])),
        ("versions", json!([version("v2.0.0", "fine")])),
        ("versions", json!([{"version": "v2.0.0", "status": "deployed", "recipe": {"name": "arena"}}])),
        ("versions", json!([{"version": "v2.0.0", "status": "deployed", "recipe": recipe("lobby", 1)}])),
    ] {
        let mut wrong = import.clone();
        wrong[field] = value;
        worlds.refused(ImportScheduler, &wrong, 3).await;
    }
    worlds.ok(ImportScheduler, &import).await;
    worlds.refused(ImportScheduler, &import, 6).await;
    worlds.settle("arena").await;
    let named = json!({"schedulerName": "arena", "view": "full"});
    let listed = worlds.ok(GetSchedulerVersions, &named).await;
    let shown = |version: &Value| format!("{} {}", version["version"], version["status"]).replace('"', "");
    let shown: Vec<String> = listed["versions"].as_array().unwrap().iter().map(shown).collect();
    assert_eq!(shown, ["v2.1.0 deployed", "v2.0.0 deployed", "v1.0.0 error"]);
    assert_eq!(listed["nextMinor"], "v2.2.0");
    assert_eq!(listed["versions"][2]["cause"], "it was its turn");
    assert_eq!(worlds.http.room_ids("arena").await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn allocations() {
    let worlds = Worlds::of(World::running().await, World::running().await);
    worlds.ok(CreateScheduler, &recipe("arena", 3)).await;
    worlds.settle("arena").await;
    let named = json!({"schedulerName": "arena"});
    let first = worlds.ok(AllocateRoom, &named).await;
    assert_eq!(first["success"], true);
    worlds.refused(AllocateRoom, &json!({"schedulerName": "nope"}), 5).await;
    let request = json!({"schedulerName": "arena", "requestId": "a", "ttlMillis": 60_000, "metadata": {"map": "lava"},
        "wishes": [{"regions": [Region::DEFAULT], "version": "v1.0.0"}, {}]});
    let given = worlds.ok(CreateAllocations, &request).await;
    let again = worlds.ok(CreateAllocations, &request).await;
    assert_eq!(again["allocations"][0]["id"], given["allocations"][0]["id"]);
    let other = json!({"schedulerName": "arena", "requestId": "a", "count": 2});
    worlds.refused(CreateAllocations, &other, 10).await;
    worlds.refused(CreateAllocations, &json!({"schedulerName": "arena", "count": 2}), 8).await;
    worlds.refused(CreateAllocations, &json!({"schedulerName": "nope"}), 5).await;
    for (field, value) in [
        ("count", json!(0)),
        ("count", json!(101)),
        ("waitMillis", json!(30_001)),
        ("ttlMillis", json!(999)),
        ("requestId", json!("x".repeat(129))),
        ("metadata", json!({"text": "x".repeat(4096)})),
        ("wishes", json!([{"version": "two"}])),
    ] {
        let mut wrong = named.clone();
        wrong[field] = value;
        worlds.refused(CreateAllocations, &wrong, 3).await;
    }
    let listed = worlds.ok(ListAllocations, &json!({"schedulerName": "arena", "state": "held"})).await;
    assert_eq!(listed["total"], 2);
    worlds.refused(ListAllocations, &json!({"schedulerName": "arena", "state": "open"}), 3).await;
    worlds.refused(ListAllocations, &json!({"schedulerName": "arena", "perPage": 101}), 3).await;
    let id = &given["allocations"][0]["id"];
    let one = json!({"schedulerName": "arena", "allocationId": id});
    assert_eq!(worlds.ok(GetAllocation, &one).await["allocation"]["metadata"], json!({"map": "lava"}));
    worlds.refused(GetAllocation, &json!({"schedulerName": "arena", "allocationId": "x"}), 5).await;
    worlds.ok(ReturnAllocation, &one).await;
    worlds.ok(ReturnAllocation, &one).await;
    worlds.refused(CreateAllocations, &request, 10).await;
}

/// Every method of the schema that is served is asked above.
#[test]
fn no_method_is_forgotten() {
    let this = include_str!("both_ways.rs");
    let pool = DescriptorPool::decode(maestro_proto::FILE_DESCRIPTOR_SET).unwrap();
    let methods = pool.services().flat_map(|service| service.methods().collect::<Vec<_>>());
    // Answers that last are compared where they are read, in `stream.rs`.
    let forgotten: Vec<_> = methods
        .filter(|method| !method.is_server_streaming())
        .filter(|method| {
            let asked = |way: &str| this.contains(&format!(".{way}({},", method.name()));
            !["ok", "refused", "ask"].into_iter().any(asked)
        })
        .map(|method| method.full_name().to_owned())
        .collect();
    assert!(forgotten.is_empty(), "{forgotten:?}");
}

/// A message of gRPC can say what JSON cannot: it is refused, and nothing breaks.
#[tokio::test(start_paused = true)]
async fn what_only_a_message_can_say() {
    use maestro_proto::protobuf::Duration;
    use maestro_proto::v1::{OptionalSpec, PatchSchedulerRequest};
    let world = World::standing();
    world.post("/schedulers", &recipe("arena", 1)).await.ok();
    let spec = OptionalSpec {
        termination_grace_period: Some(Duration { seconds: 1, nanos: -1 }),
        ..OptionalSpec::default()
    };
    let patch = PatchSchedulerRequest { name: "arena".into(), spec: Some(spec), ..Default::default() };
    let came = by_grpc::<PatchScheduler>(&world, &patch).await;
    assert!(matches!(came, Came::Error { code: 3, .. }), "{came:?}");
    let mut create =
        decode::<maestro_proto::v1::CreateSchedulerRequest>(recipe("b", 1).to_string().as_bytes());
    let create = &mut create.as_mut().unwrap().message;
    create.spec.as_mut().unwrap().termination_grace_period =
        Some(Duration { seconds: i64::MIN, nanos: i32::MIN });
    let came = by_grpc::<CreateScheduler>(&world, create).await;
    assert!(matches!(came, Came::Error { code: 3, .. }), "{came:?}");
}

/// Bytes that are no message, and requests that are no calls.
#[tokio::test(start_paused = true)]
async fn what_is_no_call() {
    let world = World::standing();
    let path = "/api.v1.SchedulersService/GetScheduler";
    let send = async |version: Version, content_type: &str, extra: (&str, &str), body: &'static [u8]| {
        let request = Request::post(path).version(version).header("host", "localhost");
        let request = request.header("content-type", content_type).header(extra.0, extra.1);
        let request = request.body(Body::from(body)).unwrap();
        let response = world.management.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let status = Status::from_header_map(&parts.headers);
        let text = String::from_utf8(to_bytes(body, usize::MAX).await.unwrap().into()).unwrap();
        (
            parts.status.as_u16(),
            status.map(|status| (status.code() as i32, status.message().to_owned())),
            text,
        )
    };
    let grpc = "application/grpc";
    let none = ("x-nothing", "");
    let refused = |code: i32, message: &str| (200, Some((code, message.to_owned())), String::new());
    let two = Version::HTTP_2;
    assert_eq!(send(two, grpc, none, b"").await, refused(3, "message: is missing"));
    let broken = send(two, grpc, none, b"\0\0\0\0\x02\x0a\xff").await;
    assert!(
        broken.1.as_ref().is_some_and(|(code, text)| *code == 3 && text.starts_with("message: ")),
        "{broken:?}"
    );
    assert_eq!(
        send(Version::HTTP_11, grpc, none, b"\0\0\0\0\0").await,
        refused(3, "gRPC is spoken over HTTP/2 only")
    );
    assert_eq!(
        send(two, grpc, ("grpc-encoding", "gzip"), b"\x01\0\0\0\0").await,
        refused(12, "header grpc-encoding: \"gzip\" is not supported; send messages as they are")
    );
    assert_eq!(
        send(two, grpc, ("grpc-timeout", "soon"), b"\0\0\0\0\0").await,
        refused(
            3,
            "header grpc-timeout: \"soon\" is not a time; write up to 8 digits and one of H, M, S, m, u, n"
        )
    );
    assert_eq!(
        send(two, grpc, ("x-maestro-user", " "), b"\0\0\0\0\0").await.1.map(|(code, _)| code),
        Some(5),
        "who only reads need not say who it is"
    );
    let (status, _, text) = send(two, "application/json", none, b"{}").await;
    assert_eq!(
        (status, text.starts_with(r#"{"code":3,"message":"header Content-Type: "#)),
        (415, true),
        "{text}"
    );
}
