//! Panic scale with several rooms APIs: whoever hears it, it is one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use maestro_core::lock::{Holder, LockKind};
use maestro_core::operation::{Definition, Operation, OperationStatus, Origin, RemovalReason, RoomsToRemove};
use maestro_core::room::{PingStatus, Region, RoomId};
use maestro_core::scheduler::{Autoscaling, Recipe};
use maestro_engine::ports::contract::fixtures;
use maestro_engine::ports::event_sink::NoEventSink;
use maestro_engine::ports::room_table::Ping;
use maestro_engine::ports::store::{Change, NewOperation, Transaction};
use maestro_engine::ports::{Ports, Randomness, Runtime, Store};
use maestro_engine::{Engine, Parts, Running, Tasks, WakeUps};
use maestro_simulation::{
    GamePing, Habits, Host, Inspector, Life, MemoryStore, RoomsApi, SimulatedRuntime, SimulatedStore, Span,
    Trace, VirtualClock,
};
use maestro_store_embedded::MemoryRoomTable;

use super::common::*;
use super::panic::{by, is_panic_lock_free, no_cycles, panicking, panics_in, said};

const NODES: usize = 8;

/// Engines on one store and one room table: eight that only answer, one that listens to the runtime, and a worker that
/// comes and goes.
struct Nodes {
    ports: Ports,
    host: Arc<Host>,
    trace: Trace,
    answering: Arc<Balancer>,
    engines: u64,
    /// Who is let go stops.
    running: Vec<Running>,
}

/// Hands pings out in turn.
#[derive(Default)]
struct Balancer {
    engines: OnceLock<Vec<Arc<Engine>>>,
    next: AtomicUsize,
}

impl Balancer {
    fn engine(&self) -> &Engine {
        let engines = self.engines.get().unwrap();
        &engines[self.next.fetch_add(1, Ordering::Relaxed) % engines.len()]
    }

    async fn ping(&self, room: &RoomId, status: PingStatus, matches: u32) {
        let (scheduler, room) = (ARENA, room.as_str());
        let _ = self.engine().ping(Ping { matches, ..Ping::of(scheduler, room, status) }).await;
    }
}

#[async_trait]
impl RoomsApi for Balancer {
    async fn ping(&self, ping: GamePing) {
        self.ping(&ping.room, ping.status, ping.matches).await;
    }
}

impl Nodes {
    async fn up() -> Self {
        let clock = VirtualClock::begin();
        let answering = Arc::new(Balancer::default());
        let trace = Trace::begin(clock.clone());
        let region = Region::default_region();
        let tasks = Tasks::default();
        let host = Host::open(region.clone(), 1, &tasks, answering.clone(), trace.clone());
        let runtime: Arc<dyn Runtime> = SimulatedRuntime::connect(host.clone(), Life::new());
        let ports = Ports {
            store: MemoryStore::on_clock(Arc::new(clock.clone())),
            table: Arc::new(MemoryRoomTable::new()),
            runtimes: Arc::new(BTreeMap::from([(region, runtime)])),
            events: Arc::new(NoEventSink),
            clock: Arc::new(clock),
            random: Arc::new(Randomness::from_seed(1)),
            wake: WakeUps::default(),
            regions_elsewhere: Arc::default(),
            wake_up_channel: None,
        };
        let mut nodes = Self { ports, host, trace, answering, engines: 0, running: Vec::new() };
        let (_, watching) = nodes.start(Parts::RUNTIME_WATCHER).await;
        nodes.running.push(watching);
        let mut engines = Vec::new();
        for _ in 0..NODES {
            let (engine, running) = nodes.start(Parts::ROOMS_API).await;
            engines.push(engine);
            nodes.running.push(running);
        }
        assert!(nodes.answering.engines.set(engines).is_ok());
        nodes
    }

    async fn start(&mut self, parts: Parts) -> (Arc<Engine>, Running) {
        self.engines += 1;
        let random = Arc::new(Randomness::from_seed(self.engines));
        // Its answers take their time, so that engines decide side by side.
        let store = self.ports.store.clone();
        let name = format!("engine-{}", self.engines);
        let inspector = Inspector::new(self.trace.clone());
        let store = SimulatedStore::watched(store, &name, inspector, self.trace.clone(), self.engines);
        let ports = Ports { random, store: Arc::new(store), ..self.ports.clone() };
        let engine = Engine::new(ports, no_cycles(), name, Tasks::default());
        let running = engine.start(parts).await.unwrap();
        (engine, running)
    }

    /// A fleet of so many ready rooms, made by a worker that then goes.
    async fn make_fleet(&mut self, autoscaling: Autoscaling) -> Vec<RoomId> {
        let (worker, running) = self.start(Parts::WORKER).await;
        let rooms = autoscaling.min as usize;
        let recipe = Recipe { autoscaling: Some(autoscaling), ..recipe(0) };
        worker.create_scheduler(recipe, "ann").await.unwrap();
        until(async || {
            let listed = worker.rooms(ARENA).await.unwrap();
            listed.len() == rooms && listed.iter().all(|room| room.last_ping_at.is_some())
        })
        .await;
        running.stop_working().await;
        // The others hear of it within a sync interval.
        tokio::time::sleep(no_cycles().sync_interval).await;
        self.host.rooms().into_iter().map(|room| room.id).collect()
    }

    fn store(&self) -> &dyn Store {
        &*self.ports.store
    }
}

async fn until(condition: impl AsyncFn() -> bool) {
    for _ in 0..10_000 {
        if condition().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("it does not come to that");
}

#[test]
fn ten_thousand_pings_to_eight_nodes_make_one_panic() {
    run(async {
        let mut nodes = Nodes::up().await;
        nodes.make_fleet(Autoscaling { min: 100, ..panicking(by(10)) }).await;
        for event in 1..=3 {
            // All rooms are full, those that came with the last event too.
            let rooms: Vec<RoomId> = nodes.host.rooms().into_iter().map(|room| room.id).collect();
            for round in 0..100 {
                for number in 0..100 {
                    let room = &rooms[(round * 100 + number) % rooms.len()];
                    nodes.answering.ping(room, PingStatus::Occupied, 1).await;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            let panics = panics_in(nodes.store()).await;
            assert_eq!(panics.len(), event);
            let Operation { id, definition, .. } = &panics[event - 1];
            let holder = Holder::Operation { kind: definition.kind(), id: *id };
            let locks = nodes.store().locks(&arena()).await.unwrap();
            assert!(locks.held_by(LockKind::Panic, holder).is_some());
            // A worker makes its rooms, which is what ends it.
            let (_, running) = nodes.start(Parts::WORKER).await;
            until(async || is_panic_lock_free(nodes.store()).await).await;
            running.stop_working().await;
            let made = nodes.store().rooms_made_by(&arena(), *id).await.unwrap();
            assert_eq!(made.len(), 10);
        }
        let panics = panics_in(nodes.store()).await;
        assert!(panics.iter().all(|panic| panic.status == OperationStatus::Finished));
    });
}

/// With nobody at work its lock runs out; it is still the one answer to this event.
#[test]
fn one_that_nobody_carries_out_is_not_asked_for_again() {
    run(async {
        let mut nodes = Nodes::up().await;
        let rooms = nodes.make_fleet(panicking(by(1))).await;
        for _ in 0..100 {
            for room in &rooms {
                nodes.answering.ping(room, PingStatus::Occupied, 1).await;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        assert_eq!(panics_in(nodes.store()).await.len(), 1);
    });
}

#[test]
fn none_if_others_were_faster_up_to_max() {
    run(async {
        let mut nodes = Nodes::up().await;
        let rooms = nodes.make_fleet(Autoscaling { max: Some(12), ..panicking(by(5)) }).await;
        for room in &rooms {
            nodes.host.begin_match(room);
        }
        until(async || panics_in(nodes.store()).await.len() == 1).await;
        nodes.answering.engine().add_rooms(ARENA, 2, true, "ann").await.unwrap();
        let (_, _running) = nodes.start(Parts::WORKER).await;
        until(async || is_panic_lock_free(nodes.store()).await).await;
        let panic = panics_in(nodes.store()).await.remove(0);
        let text = "no rooms are added: there are 12 of at most 12 rooms, counting those being started";
        assert!(said(&panic, text), "{:#?}", panic.history);
        assert_eq!(panic.status, OperationStatus::Finished);
    });
}

/// A removal that was decided before the panic looks again when it is carried out.
#[test]
fn a_removal_that_was_decided_before_takes_nothing() {
    run(async {
        let mut nodes = Nodes::up().await;
        let rooms = nodes.make_fleet(panicking(by(2))).await;
        let removal = NewOperation {
            definition: Definition::RemoveRooms {
                rooms: RoomsToRemove::Amount(2),
                reason: RemovalReason::ScaleDown,
            },
            origin: Origin::Controller,
            ..fixtures::new_operation(900)
        };
        for room in &rooms {
            nodes.answering.ping(room, PingStatus::Occupied, 1).await;
        }
        until(async || panics_in(nodes.store()).await.len() == 1).await;
        // The players are gone again: with the two of the panic there are two rooms too many.
        for room in &rooms {
            nodes.answering.ping(room, PingStatus::Ready, 0).await;
        }
        let enqueue = Transaction::of_no_scheduler("test", vec![Change::Enqueue(removal)]);
        nodes.store().commit(enqueue).await.unwrap();
        let up_after = Span::exactly(Duration::from_secs(20));
        nodes.host.set_habits(Habits { up_after, ..Habits::default() });
        let (_, _running) = nodes.start(Parts::WORKER).await;
        until(async || fixtures::operation(nodes.store(), 900).await.status.is_final()).await;
        let removal = fixtures::operation(nodes.store(), 900).await;
        assert!(!is_panic_lock_free(nodes.store()).await);
        assert!(said(&removal, "no room had to go any more"), "{:#?}", removal.history);
    });
}
