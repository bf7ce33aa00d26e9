//! What the suites are made of: two schedulers, a few operations and rooms, and the two questions that nearly
//! every case asks: was it done, or was it refused and nothing of it done?

mod allocations;
mod changes;
mod events;
mod locks;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use maestro_core::lock::Locks;
use maestro_core::operation::{
    Activity, Definition, HistoryEvent, Lease, Operation, OperationId, Origin, RemovalReason, Stage, Token,
    Wait,
};
use maestro_core::policy::Policies;
use maestro_core::room::{EndCause, HostPort, Purpose, Region, RoomId};
use maestro_core::scheduler::{
    Autoscaling, Container, ContainerPort, Delivery, EnvironmentValue, EnvironmentVariable, FixedBuffer,
    Forwarder, ImagePullPolicy, MatchAllocation, MaxSurge, OtherParameters, PanicScale, PortRange, Protocol,
    Recipe, Resources, RestartPolicy, ScalingPolicy, SchedulerName, SizeBaseline, Spec, Version,
    VersionStatus,
};
use maestro_core::time::{Millis, Timestamp, after};
use serde_json::json;

use crate::ports::Store;
use crate::ports::runtime::Handle;
use crate::ports::store::{
    AllocationRecord, Change, Ended, EventFilter, EventPageRequest, EventQueue, NewOperation, NewRoomRecord,
    NewScheduler, NoAction, OperationFilter, OperationPage, PageRequest, QueuedEvent, Refusal, Renewal,
    RolloutRecord, RolloutState, RoomRecord, Routine, SchedulerRecord, StopIntent, StoreError, Transaction,
    VersionRecord,
};

pub use allocations::*;
pub use changes::*;
pub use events::*;
pub use locks::*;

/// How long ownerships, leases and locks last that are not to run out: no case takes so long, on whatever machine.
pub const TTL: Millis = Millis::from_seconds(600);

/// What is given for no time has run out when somebody looks.
pub const NO_TIME: Millis = Millis(0);

pub fn renewal(worker: &str) -> Renewal<'_> {
    Renewal { worker, ownership_ttl: TTL, operation_ttl: TTL, lock_ttl: TTL }
}

/// Between which of the store's times something was asked and answered.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    from: Timestamp,
    to: Timestamp,
}

/// Asks the store, and says when.
pub async fn in_window<T>(store: &dyn Store, question: impl Future<Output = T>) -> (T, Window) {
    let from = store.now().await.unwrap();
    let answer = question.await;
    (answer, Window { from, to: store.now().await.unwrap() })
}

impl Window {
    /// Whether that is this long after the store decided.
    #[track_caller]
    pub fn check(self, at: Timestamp, ttl: Millis) {
        let (from, to) = (after(self.from, ttl), after(self.to, ttl));
        assert!(from <= at && at <= to, "{at} is not between {from} and {to}");
    }
}

/// The fleet size that both schedulers begin with.
pub const FLEET_SIZE: u32 = 10;

pub fn name(text: &str) -> SchedulerName {
    SchedulerName::parse(text).unwrap()
}

/// The scheduler that things happen to.
pub fn arena() -> SchedulerName {
    name("arena")
}

/// The scheduler that nothing may happen to.
pub fn bystander() -> SchedulerName {
    name("bystander")
}

/// A moment, in seconds after the one when everything begins.
pub fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

pub fn operation_id(number: u128) -> OperationId {
    OperationId::from_u128(number)
}

pub fn room_id(number: u32) -> RoomId {
    RoomId::new(&format!("arena-{number:05}"))
}

pub fn token(number: u64) -> Token {
    Token(number)
}

/// A recipe that uses all of its fields, so that one that gets lost is missed.
pub fn recipe(scheduler: &SchedulerName) -> Recipe {
    Recipe {
        name: scheduler.clone(),
        game: "tennis".into(),
        spec: Spec {
            termination_grace_period: Duration::from_secs(5),
            containers: vec![container()],
            toleration: "game-rooms".into(),
            affinity: "game-rooms".into(),
            restart_policy: RestartPolicy::Never,
            region: None,
        },
        port_range: Some(PortRange { start: 40000, end: 50000 }),
        max_surge: MaxSurge::Percent(25),
        rooms_replicas: FLEET_SIZE,
        autoscaling: Some(Autoscaling {
            enabled: false,
            min: 1,
            max: Some(100),
            cooldown_seconds: 30,
            policy: ScalingPolicy::FixedBuffer(FixedBuffer { amount: 5 }),
            other_parameters: OtherParameters::default(),
            panic: Some(PanicScale { enabled: true, delta: 7, ..PanicScale::default() }),
        }),
        forwarders: vec![Forwarder {
            name: "matchmaker".into(),
            enabled: true,
            address: "matchmaker:8080".into(),
            timeout_ms: 500,
            delivery: Delivery::Queued,
            metadata: serde_json::Map::from_iter([("roomType".into(), json!("red"))]),
        }],
        annotations: BTreeMap::from([("imageregistry".into(), "example.org/".into())]),
        labels: BTreeMap::from([("team".into(), "rackets".into())]),
        match_allocation: MatchAllocation { max_matches: 3 },
        rollout_rules: None,
        policies: Policies::default(),
    }
}

fn container() -> Container {
    let variable = |name: &str, value| EnvironmentVariable { name: name.into(), value };
    Container {
        name: "game".into(),
        image: "example/game:1".into(),
        image_pull_policy: ImagePullPolicy::IfNotPresent,
        command: vec!["/game".into(), "--serve".into()],
        environment: vec![
            variable("MODE", EnvironmentValue::Text("ranked".into())),
            variable("ROOM", EnvironmentValue::Field { path: "metadata.name".into() }),
            variable("KEY", EnvironmentValue::Secret { name: "keys".into(), key: "game".into() }),
        ],
        requests: Resources { memory: "64Mi".into(), cpu: "100m".into() },
        limits: Resources { memory: "128Mi".into(), cpu: "1".into() },
        ports: vec![ContainerPort {
            name: "game".into(),
            protocol: Protocol::Udp,
            port: 7777,
            host_port: 0,
            host_port_range: None,
        }],
    }
}

pub fn new_scheduler(scheduler: &SchedulerName) -> NewScheduler {
    NewScheduler {
        recipe: Arc::new(recipe(scheduler)),
        version: Version::FIRST,
        version_status: VersionStatus::Deployed,
        at: at(0),
    }
}

pub fn version(major: u32, minor: u32) -> Version {
    Version { major, minor, patch: 0 }
}

/// The recipe of the arena with another image.
pub fn recipe_with_image(image: &str) -> Recipe {
    let mut changed = recipe(&arena());
    changed.spec.containers[0].image = image.into();
    changed
}

/// A rollout of v2.0.0 over v1.0.0.
pub fn rollout(state: RolloutState) -> RolloutRecord {
    RolloutRecord {
        state,
        to: version(2, 0),
        from: Version::FIRST,
        since: at(6),
        fleet_size: SizeBaseline { before: 7, after: 9 },
        occupied_at: None,
        note: "looked at by ann@laptop".into(),
    }
}

/// An operation of the arena, pending, asked for by a person.
pub fn new_operation(number: u128) -> NewOperation {
    NewOperation {
        id: operation_id(number),
        scheduler: arena(),
        definition: Definition::AddRooms { amount: 1 },
        origin: Origin::Person("ann@laptop".into()),
        priority: false,
        reason: "asked for by ann@laptop".into(),
        progress: json!({ "made": 0 }),
        fleet_delta: 0,
        only_version_operation: false,
        created_at: at(0),
    }
}

/// A cycle of the arena that found nothing to do.
pub fn no_action(number: u128, seconds: i64) -> NoAction {
    NoAction {
        id: operation_id(number),
        scheduler: arena(),
        routine: Routine::HealthController,
        reason: "scheduled".into(),
        data: json!({ "decision": { "total": 3 } }),
        events: vec!["3 rooms".into(), "Operation finished".into()],
        at: at(seconds),
    }
}

/// A room of the arena on `port`, made by operation 1.
pub fn new_room(number: u32, port: u16) -> NewRoomRecord {
    NewRoomRecord {
        id: room_id(number),
        scheduler: arena(),
        version: Version::FIRST,
        region: Region::default_region(),
        regions_beside: Vec::new(),
        purpose: Purpose::Fleet,
        ports: vec![HostPort {
            name: "game".into(),
            protocol: Protocol::Udp,
            container_port: 7777,
            host_port: port,
        }],
        operation: operation_id(1),
        token: token(1),
        created_at: at(0),
    }
}

pub fn handle(pid: u32) -> Handle {
    Handle { host: "203.0.113.7".into(), pids: vec![pid], detail: json!({ "startedAtTicks": 4711 }) }
}

pub fn stop_intent(operation: u128) -> StopIntent {
    StopIntent {
        operation: operation_id(operation),
        cause: (operation != 1).then_some(RemovalReason::ScaleDown),
        matches: u32::try_from(operation).unwrap_or(u32::MAX),
        reason: format!("scale down by operation {operation}"),
        at: at(5),
    }
}

pub fn ended(seconds: i64) -> Ended {
    Ended {
        at: at(seconds),
        how: "container game exited with code 3".into(),
        cause: EndCause::Failed,
        was_ready: true,
    }
}

pub fn lease(token: Token, expires_at: Timestamp) -> Lease {
    Lease { owner: "worker-1".into(), token, expires_at }
}

pub fn event(seconds: i64, text: &str) -> HistoryEvent {
    HistoryEvent { at: at(seconds), event: text.into() }
}

pub fn parked(what: &str) -> Activity {
    Activity::Parked(Wait { what: what.into(), until: at(60), unanswered: false })
}

/// Makes the arena and the bystander.
pub async fn open(store: &dyn Store) {
    let schedulers = [arena(), bystander()].map(|name| Change::CreateScheduler(new_scheduler(&name)));
    accept(store, schedulers.into()).await;
}

pub async fn accept(store: &dyn Store, changes: Vec<Change>) {
    let transaction = Transaction::new("contract", &arena(), changes.clone());
    if let Err(error) = store.commit(transaction).await {
        panic!("{error}, but the store should have done {changes:?}");
    }
}

/// The changes are refused in these words, and nothing of them was done: neither what came before the one that
/// was refused, nor anything else that can be read.
pub async fn refuse(store: &dyn Store, changes: Vec<Change>, expected: Refusal) {
    refuse_transaction(store, Transaction::new("contract", &arena(), changes), expected).await;
}

pub async fn refuse_transaction(store: &dyn Store, mut transaction: Transaction, expected: Refusal) {
    transaction.changes.insert(0, adjust_fleet(&bystander(), 1));
    let before = everything(store).await;
    match store.commit(transaction.clone()).await {
        Ok(()) => panic!("the store should have refused {transaction:?}: {expected}"),
        Err(StoreError::Refused(refusal)) => assert_eq!(refusal, expected, "of {transaction:?}"),
        Err(error) => panic!("{error:?} instead of {expected:?}"),
    }
    assert_eq!(everything(store).await, before, "after a refusal of {transaction:?}");
}

/// All that can be read of the arena and the bystander.
#[derive(Debug, PartialEq)]
pub struct Everything {
    schedulers: Vec<SchedulerRecord>,
    versions: Vec<VersionRecord>,
    unfinished: Vec<Operation>,
    operations: Vec<OperationPage>,
    live_rooms: Vec<RoomRecord>,
    ended_rooms: Vec<RoomRecord>,
    allocations: Vec<AllocationRecord>,
    locks: Vec<Locks>,
    event_queues: Vec<EventQueue>,
    events: Vec<QueuedEvent>,
}

pub async fn everything(store: &dyn Store) -> Everything {
    let mut found = Everything {
        schedulers: store.schedulers().await.unwrap(),
        versions: Vec::new(),
        unfinished: Vec::new(),
        operations: Vec::new(),
        live_rooms: store.all_live_rooms().await.unwrap(),
        ended_rooms: Vec::new(),
        allocations: Vec::new(),
        locks: Vec::new(),
        event_queues: Vec::new(),
        events: Vec::new(),
    };
    for name in [arena(), bystander()] {
        found.versions.extend(store.versions(&name).await.unwrap().0);
        found.unfinished.extend(store.unfinished(&name).await.unwrap());
        for stage in [Stage::Pending, Stage::Active, Stage::Final] {
            let page = store.operations(&name, stage, all_operations()).await.unwrap();
            found.operations.push(page);
        }
        found.ended_rooms.extend(store.ended_rooms(&name, 1000).await.unwrap());
        found.allocations.extend(store.allocations(&name, all_allocations()).await.unwrap().allocations);
        found.locks.push(store.locks(&name).await.unwrap());
        found.event_queues.extend(store.event_queues(&name).await.unwrap());
        let page = EventPageRequest { page: 1, page_size: 1000 };
        found.events.extend(store.events(&name, &EventFilter::default(), page).await.unwrap().events);
    }
    found
}

pub fn all_operations() -> PageRequest {
    PageRequest {
        page: 1,
        page_size: 1000,
        newest_first: false,
        no_action: true,
        only: OperationFilter::default(),
    }
}

pub async fn scheduler(store: &dyn Store, name: &SchedulerName) -> SchedulerRecord {
    store.scheduler(name).await.unwrap().expect("the scheduler is there")
}

/// An operation of the arena.
pub async fn operation(store: &dyn Store, number: u128) -> Operation {
    let found = store.operation(&arena(), operation_id(number)).await.unwrap();
    found.expect("the operation is there")
}

/// A room of the arena.
pub async fn room(store: &dyn Store, number: u32) -> RoomRecord {
    let found = store.room(&arena(), &room_id(number)).await.unwrap();
    found.expect("the room is there")
}
