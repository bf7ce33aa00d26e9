//! For each invariant a history that is fine, and one that is not and is named.

mod fleets;
mod regions;
mod work;

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Inspector;
use crate::clock::VirtualClock;
use crate::host::{Phase, RoomOnHost};
use crate::memory::MemoryStore;
use crate::trace::Trace;
use maestro_core::invariant::Invariant;
use maestro_core::lock::{Holder, LockKind, Taker};
use maestro_core::operation::{
    Activity, Definition, DefinitionKind, OperationStatus, Origin, RemovalReason, RoomsToRemove, Token,
};
use maestro_core::room::{InstanceStatus, PingStatus, Purpose, Region, RoomId, RoomStatus};
use maestro_core::scheduler::{Recipe, Version};
use maestro_core::time::Millis;
use maestro_engine::ports::Clock;
use maestro_engine::ports::contract::ManualClock;
use maestro_engine::ports::contract::fixtures::{self, TTL, arena, at, operation_id, room_id};
use maestro_engine::ports::room_table::{Claim, RoomView};
use maestro_engine::ports::store::{
    Change, Guard, NewLock, NewOperation, NewRoomRecord, NewScheduler, OperationStore, OperationUpdate,
    QueueId, Store, Transaction,
};
use serde_json::json;

const NODE: &str = "one";
/// The fleet size of the arena, which is not autoscaled.
const SIZE: u32 = fixtures::FLEET_SIZE;

/// The arena, which tells nobody of its rooms, in a store of its own, owned by [`NODE`], and whoever watches it.
struct Scene {
    inspector: Inspector,
    store: MemoryStore,
    /// The store's.
    clock: Arc<ManualClock>,
    token: Token,
}

fn check(history: impl AsyncFnOnce(&Scene), expected: &[Invariant]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let scene = Scene::new().await;
        history(&scene).await;
        let violations = scene.inspector.violations();
        let named: BTreeSet<&str> =
            violations.iter().filter_map(|text| Some(text.split_once(':')?.0)).collect();
        let expected: BTreeSet<&str> = expected.iter().map(|invariant| invariant.as_str()).collect();
        assert_eq!(named, expected, "{violations:#?}");
    });
}

impl Scene {
    async fn new() -> Self {
        let clock = Arc::new(ManualClock::begin());
        let store = MemoryStore::new(clock.clone());
        let inspector = Inspector::new(Trace::begin(VirtualClock::begin()));
        let mut scene = Self { inspector, store, clock, token: Token(0) };
        let recipe = Recipe { forwarders: Vec::new(), ..fixtures::recipe(&arena()) };
        let new = NewScheduler { recipe: recipe.into(), ..fixtures::new_scheduler(&arena()) };
        scene.request(vec![Change::CreateScheduler(new)]).await;
        scene.token = scene.own(NODE).await;
        scene
    }

    async fn own(&self, node: &str) -> Token {
        let before = self.store.workers().await.unwrap().ownerships;
        let token = self.store.own(&arena(), node, TTL).await.unwrap().unwrap();
        self.inspector.owned(node, &arena(), token, before.first(), self.clock.now());
        token
    }

    /// What anyone may write.
    async fn request(&self, changes: Vec<Change>) {
        self.written("api", Transaction::of_no_scheduler("request", changes)).await;
    }

    /// What the owner writes.
    async fn work(&self, changes: Vec<Change>) {
        let guard = Guard { scheduler: arena(), token: self.token, operation: None, locks: Vec::new() };
        self.written(NODE, Transaction::guarded("step", guard, changes)).await;
    }

    async fn written(&self, node: &str, transaction: Transaction) {
        self.store.commit(transaction.clone()).await.unwrap();
        self.told(node, &transaction).await;
    }

    /// The inspector hears of a write, whatever the store made of it.
    async fn told(&self, node: &str, transaction: &Transaction) {
        let workforce = self.store.workers().await.unwrap();
        let owner = workforce.ownerships.first();
        self.inspector.committed(node, transaction, owner, &self.store).await;
    }

    /// Fleet rooms that stand as the table shows them, made by operation 1.
    async fn fleet(&self, statuses: &[RoomStatus]) {
        let add = Definition::AddRooms { amount: u32::try_from(statuses.len()).unwrap() };
        self.request(vec![Change::Enqueue(operation(1, add, Origin::Controller))]).await;
        self.work(vec![fixtures::start(1)]).await;
        self.work((1..).zip(statuses).map(|(number, _)| Change::IntendRoom(room(number))).collect()).await;
        self.work(vec![fixtures::end(1, OperationStatus::Finished)]).await;
        self.read(&(1..).zip(statuses).map(|(number, status)| view(number, *status)).collect::<Vec<_>>());
    }

    fn read(&self, views: &[RoomView]) {
        self.inspector.table_read(NODE, &arena(), views);
    }

    /// A removal, which claims the candidates up to `rooms_max`.
    async fn remove(&self, definition: Definition, origin: Origin, candidates: &[u32], rooms_max: usize) {
        self.remove_at(0, definition, origin, candidates, rooms_max).await;
    }

    async fn remove_at(
        &self,
        seconds: i64,
        definition: Definition,
        origin: Origin,
        candidates: &[u32],
        rooms_max: usize,
    ) {
        self.request(vec![Change::Enqueue(operation(2, definition, origin))]).await;
        let candidates: Vec<RoomId> = candidates.iter().map(|number| room_id(*number)).collect();
        let claim = Claim {
            scheduler: &arena(),
            operation: operation_id(2),
            candidates: &candidates,
            statuses: &RoomStatus::ALL,
            known_only: true,
            rooms_max,
        };
        self.inspector.claimed(NODE, &claim, &candidates[..rooms_max], at(seconds), &self.store).await;
    }

    /// A health cycle that has begun, in a fleet of three, while a room tries a version.
    async fn cycle_beside_a_validation_room(&self) {
        self.fleet(&[RoomStatus::Ready; 3]).await;
        let purpose = Purpose::Validation;
        let validation = NewRoomRecord { purpose, operation: operation_id(4), ..room(9) };
        let cycle = operation(3, Definition::HealthController, Origin::Engine);
        self.work(vec![Change::IntendRoom(validation), Change::Enqueue(cycle)]).await;
        self.work(vec![fixtures::start(3)]).await;
    }

    /// That cycle decides, and says how many rooms it counted.
    async fn count(&self, total: u32) {
        let mut update = OperationUpdate::of(operation_id(3));
        update.data = Some(json!({ "decision": { "total": total } }));
        self.work(vec![Change::UpdateOperation(update)]).await;
    }

    async fn rest(&self, rooms: &[RoomOnHost]) {
        self.inspector.at_rest(&self.store, rooms, Millis::from_seconds(60)).await;
    }
}

fn operation(number: u128, definition: Definition, origin: Origin) -> NewOperation {
    NewOperation { definition, origin, ..fixtures::new_operation(number) }
}

fn person() -> Origin {
    Origin::Person("ann".into())
}

fn room(number: u32) -> NewRoomRecord {
    fixtures::new_room(number, 40000 + u16::try_from(number).unwrap())
}

fn view(number: u32, status: RoomStatus) -> RoomView {
    RoomView {
        id: room_id(number),
        version: Version::FIRST,
        region: Region::default_region(),
        purpose: Purpose::Fleet,
        instance: InstanceStatus::Ready,
        ping: PingStatus::Ready,
        status,
        matches: u32::from(status.serves_players()),
        created_at: at(0),
        last_ping_at: Some(at(0)),
        terminating_since: None,
        known: true,
        listened_since: at(0),
        was_ready: true,
        claimed_by: None,
        metadata: None,
        expected: 0,
    }
}

fn on_host(number: u32) -> RoomOnHost {
    RoomOnHost {
        id: room_id(number),
        region: Region::default_region(),
        scheduler: arena(),
        phase: Phase::Up,
        ports: Vec::new(),
        matches: 0,
        has_pinged: true,
        is_silent: false,
    }
}

fn add(amount: u32) -> Definition {
    Definition::AddRooms { amount }
}

fn remove(amount: u32) -> Definition {
    Definition::RemoveRooms { rooms: RoomsToRemove::Amount(amount), reason: RemovalReason::ScaleDown }
}

fn replace(rooms: &[u32]) -> Definition {
    let ids = rooms.iter().map(|number| room_id(*number)).collect();
    Definition::RemoveRooms { rooms: RoomsToRemove::Ids(ids), reason: RemovalReason::RollingUpdate }
}

fn lock(operation: u128, kind: LockKind) -> Change {
    let holder = Holder::Operation { kind: DefinitionKind::AddRooms, id: operation_id(operation) };
    Change::TakeLock(NewLock {
        scheduler: arena(),
        kind,
        taker: Taker::of(holder),
        reason: "rooms on their way".into(),
        ttl: None,
    })
}
