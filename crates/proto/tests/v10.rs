//! The package `api.v1` is v10's: its services, messages and numbers, and nothing else but fields from 100 up. So is
//! `eventforwarder`, with which receivers of events are called.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;

use maestro_proto::FILE_DESCRIPTOR_SET;
use prost_reflect::{DescriptorPool, Kind, MessageDescriptor};

const PACKAGE: &str = "api.v1";
const FIRST_OWN_FIELD: u32 = 100;

const SERVICES: &str = "
    SchedulersService: ListSchedulers GetSchedulersInfo GetScheduler CreateScheduler NewSchedulerVersion PatchScheduler \
        SwitchActiveVersion DeleteScheduler GetSchedulerVersions
    OperationsService: ListOperations GetOperation CancelOperation
    RoomsService: UpdateRoomWithPing ForwardRoomEvent ForwardPlayerEvent UpdateRoomStatus GetRoomAddress AllocateRoom
";

/// Optional ones have a question mark, those that are not texts a type.
const MESSAGES: &str = "
    Scheduler: name=1 game=2 state=3 port_range=4:PortRange created_at=5:Timestamp max_surge=6 rooms_replicas=7:int32 \
        spec=8:Spec autoscaling=9?:Autoscaling forwarders=10:[Forwarder] annotations=11:map labels=12:map \
        match_allocation=13?:MatchAllocation
    SchedulerWithoutSpec: name=1 game=2 state=3 version=4 port_range=5:PortRange created_at=6:Timestamp max_surge=7 \
        rooms_replicas=8:int32 match_allocation=9?:MatchAllocation
    Spec: version=1 termination_grace_period=2:Duration containers=3:[Container] toleration=4 affinity=5 \
        restart_policy=6?
    OptionalSpec: termination_grace_period=2?:Duration containers=3:[OptionalContainer] toleration=4? affinity=5?
    Container: name=1 image=2 image_pull_policy=3 command=4:[string] environment=5:[ContainerEnvironment] \
        requests=6:ContainerResources limits=7:ContainerResources ports=8:[ContainerPort]
    OptionalContainer: name=1? image=2? image_pull_policy=3? command=4:[string] environment=5:[ContainerEnvironment] \
        requests=6?:ContainerResources limits=7?:ContainerResources ports=8:[ContainerPort]
    ContainerEnvironment: name=1 value=2? value_from=3?:ContainerEnvironmentValueFrom
    ContainerEnvironmentValueFrom: field_ref=1?:ContainerEnvironmentValueFromFieldRef \
        secret_key_ref=2?:ContainerEnvironmentValueFromSecretKeyRef
    ContainerEnvironmentValueFromFieldRef: field_path=1
    ContainerEnvironmentValueFromSecretKeyRef: name=1 key=2
    ContainerResources: memory=1 cpu=2
    ContainerPort: name=1 protocol=2 port=3:int32 host_port=4:int32 host_port_range=5?:PortRange
    PortRange: start=1:int32 end=2:int32
    MatchAllocation: max_matches=1:int32
    Autoscaling: enabled=1:bool min=2:int32 max=3:int32 policy=4:AutoscalingPolicy cooldown=5:int32
    OptionalAutoscaling: enabled=1?:bool min=2?:int32 max=3?:int32 policy=4?:AutoscalingPolicy cooldown=5?:int32
    AutoscalingPolicy: type=1 parameters=2:PolicyParameters
    PolicyParameters: room_occupancy=1?:RoomOccupancy fixed_buffer=2?:FixedBuffer
    RoomOccupancy: ready_target=1:float down_threshold=2?:float
    FixedBuffer: amount=1?:int32
    Forwarder: name=1 enable=2:bool type=3 address=4 options=5?:ForwarderOptions
    ForwarderOptions: timeout=1:int64 metadata=2:Struct
    AutoscalingInfo: enabled=1:bool min=2:int32 max=3:int32 cooldown=5:int32
    SchedulerInfo: name=1 game=2 state=3 rooms_replicas=4:int32 rooms_ready=5:int32 rooms_occupied=6:int32 \
        rooms_pending=7:int32 rooms_terminating=8:int32 autoscaling=9:AutoscalingInfo \
        match_allocation=10?:MatchAllocation
    SchedulerVersion: version=1 is_active=2:bool created_at=3:Timestamp
    CreateSchedulerRequest: name=1 game=2 spec=3:Spec port_range=4:PortRange max_surge=5 rooms_replicas=6:int32 \
        autoscaling=7?:Autoscaling forwarders=8:[Forwarder] annotations=9:map labels=10:map \
        match_allocation=11?:MatchAllocation
    CreateSchedulerResponse: scheduler=1:Scheduler
    NewSchedulerVersionRequest: name=1 game=2 spec=3:Spec port_range=4:PortRange max_surge=5 rooms_replicas=6:int32 \
        autoscaling=7?:Autoscaling forwarders=8:[Forwarder] annotations=9:map labels=10:map \
        match_allocation=11?:MatchAllocation
    NewSchedulerVersionResponse: operation_id=1
    PatchSchedulerRequest: name=1 spec=2?:OptionalSpec port_range=3?:PortRange max_surge=4? rooms_replicas=5?:int32 \
        autoscaling=6?:OptionalAutoscaling forwarders=7:[Forwarder] annotations=8:map labels=9:map \
        match_allocation=10?:MatchAllocation
    PatchSchedulerResponse: operation_id=1
    GetSchedulerRequest: scheduler_name=1 version=2
    GetSchedulerResponse: scheduler=1:Scheduler
    SwitchActiveVersionRequest: scheduler_name=1 version=2
    SwitchActiveVersionResponse: operation_id=1
    ListSchedulersRequest: name=1 game=2 version=3
    ListSchedulersResponse: schedulers=1:[SchedulerWithoutSpec]
    GetSchedulersInfoRequest: game=1
    GetSchedulersInfoResponse: schedulers=1:[SchedulerInfo]
    DeleteSchedulerRequest: scheduler_name=1
    DeleteSchedulerResponse: operation_id=1
    GetSchedulerVersionsRequest: scheduler_name=1
    GetSchedulerVersionsResponse: versions=1:[SchedulerVersion]
    ListOperationsRequest: scheduler_name=1 order_by=2 stage=3 page=4?:uint32 per_page=5?:uint32
    ListOperationsResponse: page=1?:uint32 page_size=2?:uint32 total=3?:uint32 operations=4:[ListOperationItem]
    ListOperationItem: id=1 status=2 definition_name=3 lease=4?:Lease scheduler_name=5 created_at=6:Timestamp
    Operation: id=1 status=2 definition_name=3 lease=4?:Lease scheduler_name=5 created_at=6:Timestamp input=7:Struct \
        execution_history=8:[OperationEvent]
    Lease: ttl=1
    OperationEvent: created_at=1:Timestamp event=2
    GetOperationRequest: scheduler_name=1 operation_id=2
    GetOperationResponse: operation=1:Operation
    CancelOperationRequest: scheduler_name=1 operation_id=2
    CancelOperationResponse:
    UpdateRoomWithPingRequest: scheduler_name=1 room_name=2 metadata=3:Struct status=4 timestamp=5:int64 \
        running_matches=6:int64
    UpdateRoomWithPingResponse: success=1:bool
    ForwardRoomEventRequest: scheduler_name=1 room_name=2 metadata=3:Struct event=4 timestamp=6:int64
    ForwardRoomEventResponse: success=1:bool message=2
    ForwardPlayerEventRequest: scheduler_name=1 room_name=2 metadata=3:Struct event=4 timestamp=6:int64
    ForwardPlayerEventResponse: success=1:bool message=2
    UpdateRoomStatusRequest: scheduler_name=1 room_name=2 metadata=3:Struct status=4 timestamp=6:int64 \
        running_matches=7:int64
    UpdateRoomStatusResponse: success=1:bool
    GetRoomAddressRequest: scheduler_name=1 room_name=2
    GetRoomAddressResponse: ports=1:[Port] host=2 ipv6_label=3
    Port: name=1 protocol=2 port=3:int32
    AllocateRoomRequest: scheduler_name=1
    AllocateRoomResponse: room_id=1 success=2:bool message=3 ports=4:[Port] host=5
";

/// What v10 calls receivers of events with, and what they answer.
const RECEIVERS: &str = "eventforwarder";
const RECEIVERS_SERVICES: &str = "
    GRPCForwarder: SendRoomResync(RoomStatus) SendRoomStatus(RoomStatus) SendRoomEvent(RoomEvent) \
        SendPlayerEvent(PlayerEvent) SendRoomInfo(RoomInfo) SendRoomPing(Room)
";
const RECEIVERS_MESSAGES: &str = "
    Room: game=1 roomId=2 host=4 port=5:int32 metadata=6:map roomType=7
    RoomStatus: room=1:Room statusType=2:ready=0,occupied=1,terminating=2,terminated=3
    RoomEvent: room=1:Room eventType=2 metadata=3:map
    PlayerEvent: playerId=1 room=2:Room eventType=3:PLAYER_JOINED=0,PLAYER_LEFT=1 metadata=4:map
    Response: code=1:int32 message=2
";

/// Names, and what they have.
fn table(text: &str) -> BTreeMap<String, String> {
    let line = |line: &str| {
        let (name, rest) = line.trim().split_once(':').unwrap();
        (name.to_owned(), rest.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    text.lines().filter(|line| !line.trim().is_empty()).map(line).collect()
}

fn pool() -> DescriptorPool {
    DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap()
}

fn fields(message: &MessageDescriptor) -> String {
    let mut fields: Vec<_> = message.fields().filter(|field| field.number() < FIRST_OWN_FIELD).collect();
    fields.sort_by_key(prost_reflect::FieldDescriptor::number);
    let written = |field: &prost_reflect::FieldDescriptor| {
        let kind = match field.kind() {
            _ if field.is_map() => ":map".to_owned(),
            Kind::Message(message) if field.is_list() => format!(":[{}]", message.name()),
            Kind::Message(message) => format!(":{}", message.name()),
            kind if field.is_list() => format!(":[{kind:?}]"),
            Kind::String => String::new(),
            Kind::Enum(values) => {
                let value = |value: prost_reflect::EnumValueDescriptor| {
                    format!("{}={}", value.name(), value.number())
                };
                format!(":{}", values.values().map(value).collect::<Vec<_>>().join(","))
            }
            kind => format!(":{kind:?}"),
        };
        let optional = if field.field_descriptor_proto().proto3_optional() { "?" } else { "" };
        format!("{}={}{optional}{kind}", field.name(), field.number())
    };
    fields.iter().map(written).collect::<Vec<_>>().join(" ")
}

#[test]
fn services_and_methods() {
    let pool = pool();
    let services = pool.services().filter(|service| service.package_name() == PACKAGE).map(|service| {
        let methods: Vec<_> = service.methods().map(|method| method.name().to_owned()).collect();
        (service.name().to_owned(), methods.join(" "))
    });
    assert_eq!(services.collect::<BTreeMap<_, _>>(), table(SERVICES));
}

#[test]
fn messages_and_numbers() {
    let of_package =
        |message: &MessageDescriptor| message.package_name() == PACKAGE && !message.is_map_entry();
    let messages: BTreeMap<_, _> =
        pool().all_messages().filter(of_package).map(|one| (one.name().to_owned(), fields(&one))).collect();
    let expected = table(MESSAGES);
    for (name, fields) in &expected {
        assert_eq!(messages.get(name), Some(fields), "{name}");
    }
    let ours: Vec<_> = messages.keys().filter(|name| !expected.contains_key(*name)).collect();
    assert!(ours.is_empty(), "belong into maestro.api.v1: {ours:?}");
}

#[test]
fn what_receivers_of_events_understand() {
    let files = protox::compile(["eventforwarder/forwarder.proto"], ["../../proto"]).unwrap();
    let pool = DescriptorPool::from_file_descriptor_set(files).unwrap();
    let services = pool.services().map(|service| {
        assert_eq!(service.package_name(), RECEIVERS);
        let method = |method: prost_reflect::MethodDescriptor| {
            assert_eq!(method.output().name(), "Response");
            format!("{}({})", method.name(), method.input().name())
        };
        (service.name().to_owned(), service.methods().map(method).collect::<Vec<_>>().join(" "))
    });
    assert_eq!(services.collect::<BTreeMap<_, _>>(), table(RECEIVERS_SERVICES));
    for (name, expected) in table(RECEIVERS_MESSAGES) {
        let message = pool.get_message_by_name(&format!("{RECEIVERS}.{name}")).unwrap();
        assert_eq!(fields(&message), expected, "{name}");
    }
}
