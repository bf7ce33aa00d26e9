//! The APIs over a whole engine: memory for its stores, a runtime that starts rooms at once, and virtual time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, HeaderValue, Request};
use maestro_api::{AllowedHosts, Context, Limits, Metrics, RoomsOptions, management_router, rooms_router};
use maestro_core::room::Region;
use maestro_core::time::Timestamp;
use maestro_engine::ports::event_sink::NoEventSink;
use maestro_engine::ports::store::{Change, Transaction};
use maestro_engine::ports::{Clock, Ports, Randomness, Runtime, Store};
use maestro_engine::{Engine, Parts, Running, Settings, Tasks, WakeUps};
use maestro_simulation::MemoryStore;
use maestro_store_embedded::MemoryRoomTable;
pub(crate) use maestro_testkit::recipe;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::time::Instant;
use tower::ServiceExt;

use crate::runtime::InstantRuntime;

pub(crate) struct World {
    pub(crate) engine: Arc<Engine>,
    pub(crate) management: Router,
    pub(crate) rooms: Router,
    pub(crate) registry: Registry,
    /// In the registry.
    pub(crate) apis: Metrics,
    /// By region.
    pub(crate) runtimes: BTreeMap<&'static str, Arc<InstantRuntime>>,
    running: Option<Running>,
}

pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

/// The day it is when a test begins; from there on time is tokio's.
pub(crate) struct TestClock(Instant);

impl TestClock {
    pub(crate) fn begin() -> Arc<Self> {
        Arc::new(Self(Instant::now()))
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        let start: Timestamp = "2026-11-15T09:06:47.340425748Z".parse().unwrap();
        start + self.0.elapsed()
    }

    fn since_boot(&self) -> Duration {
        self.0.elapsed()
    }
}

impl World {
    /// With nobody at work: what is asked for stays pending.
    pub(crate) fn standing() -> Self {
        Self::standing_on(Arc::new(MemoryStore::new(TestClock::begin())))
    }

    pub(crate) fn standing_on(store: Arc<dyn Store>) -> Self {
        Self::made_of(store, &[Region::DEFAULT])
    }

    /// With several places for rooms.
    pub(crate) fn with_regions(regions: &[&'static str]) -> Self {
        Self::made_of(Arc::new(MemoryStore::new(TestClock::begin())), regions)
    }

    fn made_of(store: Arc<dyn Store>, regions: &[&'static str]) -> Self {
        let open = |name: &&'static str| (*name, Arc::new(InstantRuntime::new(Region((*name).into()))));
        let runtimes: BTreeMap<_, _> = regions.iter().map(open).collect();
        let by_region = |(name, runtime): (&&str, &Arc<InstantRuntime>)| {
            (Region((*name).into()), Arc::clone(runtime) as Arc<dyn Runtime>)
        };
        let clock = TestClock::begin();
        let random = Arc::new(Randomness::from_seed(8));
        let ports = Ports {
            store,
            table: Arc::new(MemoryRoomTable::on_clock(clock.clone(), random)),
            runtimes: Arc::new(runtimes.iter().map(by_region).collect()),
            events: Arc::new(NoEventSink),
            clock,
            random: Arc::new(Randomness::from_seed(7)),
            wake: WakeUps::default(),
            regions_elsewhere: Arc::default(),
            wake_up_channel: None,
        };
        let mut registry = Registry::default();
        let context = Context {
            engine: Engine::new(ports, Settings::default(), "test".into(), Tasks::default()),
            metrics: Metrics::register(&mut registry),
            new_request_id: Arc::new(|| 1),
            allowed_hosts: AllowedHosts::default(),
        };
        Self {
            management: management_router(&context, &Limits::MANAGEMENT),
            rooms: rooms_router(&context, &RoomsOptions::default()),
            engine: context.engine,
            apis: context.metrics,
            registry,
            runtimes,
            running: None,
        }
    }

    pub(crate) async fn running() -> Self {
        Self::running_with_regions(&[Region::DEFAULT]).await
    }

    pub(crate) async fn running_with_regions(regions: &[&'static str]) -> Self {
        let mut world = Self::with_regions(regions);
        world.start(Parts::ALL).await;
        world
    }

    pub(crate) async fn start(&mut self, parts: Parts) {
        self.running = Some(self.engine.start(parts).await.unwrap());
    }

    pub(crate) async fn stop_working(&mut self) {
        self.running.take().unwrap().stop_working().await;
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.engine.ports().clock.now()
    }

    /// Writes straight to the store what no request can ask for.
    pub(crate) async fn write(&self, changes: Vec<Change>) {
        self.engine.ports().store.commit(Transaction::of_no_scheduler("test", changes)).await.unwrap();
    }

    /// The id of the operation that this request enqueues.
    pub(crate) async fn enqueue(&self, path: &str, body: &Value) -> String {
        self.post(path, body).await.ok()["operationId"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn send(&self, api: &str, mut request: Request<Body>) -> Reply {
        request.headers_mut().entry("host").or_insert(HeaderValue::from_static("localhost"));
        let router = match api {
            "management" => &self.management,
            "rooms" => &self.rooms,
            other => panic!("there is no {other} API"),
        };
        let response = router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        Reply {
            status: parts.status.as_u16(),
            headers: parts.headers,
            text: String::from_utf8(bytes.into()).unwrap(),
        }
    }

    pub(crate) async fn ask(&self, method: &str, path: &str, body: impl Into<Body>) -> Reply {
        let of_rooms = path.starts_with("/scheduler/") && path.contains("/rooms/");
        let api = if of_rooms { "rooms" } else { "management" };
        let request = Request::builder().method(method).uri(path).body(body.into());
        self.send(api, request.unwrap()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, Body::empty()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        self.ask("POST", path, body.to_string()).await
    }

    pub(crate) async fn room_ids(&self, scheduler: &str) -> Vec<String> {
        let rooms = self.get(&format!("/schedulers/{scheduler}/rooms")).await.json();
        let ids = rooms["rooms"].as_array().unwrap().iter();
        ids.map(|room| room["id"].as_str().unwrap().to_owned()).collect()
    }

    /// Lines of the APIs' metrics that begin so.
    pub(crate) fn api_metrics(&self, prefix: &str) -> Vec<String> {
        let mut text = String::new();
        encode(&mut text, &self.registry).unwrap();
        text.lines().filter(|line| line.starts_with(prefix)).map(str::to_owned).collect()
    }

    /// Lines of the engine's metrics that begin so.
    pub(crate) fn metrics(&self, prefix: &str) -> Vec<String> {
        let mut registry = Registry::default();
        self.engine.metrics().register(&mut registry);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        text.lines().filter(|line| line.starts_with(prefix)).map(str::to_owned).collect()
    }

    /// Until no operation of the scheduler is unfinished; all its rooms ping meanwhile.
    pub(crate) async fn settle(&self, scheduler: &str) {
        for _ in 0..1000 {
            for room in self.room_ids(scheduler).await {
                let path = format!("/scheduler/{scheduler}/rooms/{room}/ping");
                self.ask("PUT", &path, r#"{"status":"ready"}"#).await;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
            let mut unfinished = 0;
            for stage in ["pending", "active"] {
                let path = format!("/schedulers/{scheduler}/operations?stage={stage}");
                unfinished += self.get(&path).await.json()["total"].as_u64().unwrap();
            }
            let all_ready = self.get(&format!("/schedulers/{scheduler}/rooms")).await.json()["rooms"]
                .as_array()
                .unwrap()
                .iter()
                .all(|room| room["status"] == "ready");
            if unfinished == 0 && all_ready {
                return;
            }
        }
        panic!("{scheduler} does not settle");
    }
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    #[track_caller]
    pub(crate) fn check(&self, status: u16, body: &Value) {
        assert_eq!((self.status, self.json()), (status, body.clone()), "{}", self.text);
    }

    #[track_caller]
    pub(crate) fn ok(self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text);
        self.json()
    }

    #[track_caller]
    pub(crate) fn refused(&self, status: u16, code: u8, message: &str) {
        self.check(status, &json!({"code": code, "message": message, "details": []}));
        assert_eq!(self.headers["content-type"], "application/json");
    }
}
