//! A world in one thread and one seed: the real engine on simulated ports.
//!
//! Stores and host live as long as the world; engines come and go. To be run on tokio's current-thread scheduler with
//! its clock paused (`#[tokio::test(start_paused = true)]`): time then passes only when everybody waits.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use maestro_core::room::Region;
use maestro_core::time::Timestamp;
use maestro_engine::ports::{Clock, Ports, Randomness, Runtime, Store};
use maestro_engine::services::RoomPing;
use maestro_engine::{Engine, Error, Parts, Running, Settings, Tasks, WakeUps};
use maestro_store_embedded::MemoryRoomTable;
use tokio::time::{Instant, sleep};

use crate::clock::VirtualClock;
use crate::host::{GamePing, Host, RoomsApi};
use crate::invariants::Inspector;
use crate::life::Life;
use crate::memory::MemoryStore;
use crate::runtime::SimulatedRuntime;
use crate::store::{CrashPoint, SimulatedStore, Watch};
use crate::table::WatchedTable;
use crate::trace::Trace;

/// How often a condition is looked at. Short beside everything that a fleet does, long enough that hours are cheap.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How much of the trace a failure shows.
const TRACE_SHOWN: usize = 60;

pub struct World {
    seed: u64,
    settings: Settings,
    clock: VirtualClock,
    trace: Trace,
    inspector: Inspector,
    store: Arc<dyn Store>,
    host: Arc<Host>,
    rooms_api: Arc<Switchboard>,
    /// The host's; an engine has its own, which die with it.
    tasks: Tasks,
    wake: WakeUps,
    engine: Option<AtWork>,
    engines_started: u64,
}

/// An engine and all that ends with it.
struct AtWork {
    engine: Arc<Engine>,
    /// `None`: it died before it had begun.
    running: Option<Running>,
    tasks: Tasks,
    life: Life,
}

/// Connects rooms with the engine that is up, if any.
#[derive(Default)]
struct Switchboard(Mutex<Option<(Arc<Engine>, Life)>>);

impl World {
    pub fn new(seed: u64) -> Self {
        Self::with_settings(seed, Settings::default())
    }

    pub fn with_settings(seed: u64, settings: Settings) -> Self {
        let clock = VirtualClock::begin();
        let trace = Trace::begin(clock);
        let tasks = Tasks::default();
        let rooms_api = Arc::new(Switchboard::default());
        let host = Host::open(
            Region::default_region(),
            fork(seed, "host", 0),
            &tasks,
            rooms_api.clone(),
            trace.clone(),
        );
        Self {
            seed,
            settings,
            clock,
            inspector: Inspector::new(trace.clone()),
            trace,
            store: Arc::new(MemoryStore::new()),
            host,
            rooms_api,
            tasks,
            wake: WakeUps::default(),
            engine: None,
            engines_started: 0,
        }
    }

    // Engines.

    /// Starts an engine on the ports of this world. There is none at work yet.
    pub async fn start_engine(&mut self) {
        self.start_engine_until(None).await;
    }

    /// The same, and it dies at its given write. [`Self::crashed`] waits for that.
    pub async fn start_engine_until(&mut self, crash: Option<CrashPoint>) {
        assert!(self.engine.is_none(), "an engine is at work already");
        self.engines_started += 1;
        let number = self.engines_started;
        let (life, tasks) = (Life::new(), Tasks::default());
        let ports = self.ports(&life, crash, number);
        let engine = Engine::new(ports, self.settings.clone(), format!("engine-{number}"), tasks.clone());
        self.trace.note(format_args!("engine {number} starts"));
        *self.rooms_api.lock() = Some((engine.clone(), life.clone()));
        let starting = engine.clone();
        let running = tokio::select! {
            biased;
            () = life.over() => None,
            started = starting.start(Parts::ALL) => match started {
                Ok(running) => Some(running),
                Err(error) => self.fail(&format!("the engine did not start: {error}")),
            },
        };
        self.engine = Some(AtWork { engine, running, tasks, life });
    }

    fn ports(&self, life: &Life, crash: Option<CrashPoint>, number: u64) -> Ports {
        let watch = Watch { inspector: self.inspector.clone(), node: format!("engine-{number}") };
        let store = SimulatedStore::new(
            self.store.clone(),
            life.clone(),
            self.trace.clone(),
            watch.clone(),
            crash,
            fork(self.seed, "store", number),
        );
        let runtime: Arc<dyn Runtime> = SimulatedRuntime::connect(self.host.clone(), life.clone());
        Ports {
            store: Arc::new(store),
            // Nothing of it is durable: an engine begins with an empty one.
            table: Arc::new(WatchedTable::new(MemoryRoomTable::new(), watch, self.store.clone())),
            runtimes: Arc::new(BTreeMap::from([(self.host.region().clone(), runtime)])),
            clock: Arc::new(self.clock),
            random: Arc::new(Randomness::from_seed(fork(self.seed, "engine", number))),
            wake: self.wake.clone(),
        }
    }

    /// Kills the engine where it stands: all its tasks are dropped, what it was about to do does not happen.
    pub async fn crash_engine(&mut self) {
        if let Some(dead) = self.engine.take() {
            dead.life.end();
            self.bury(dead).await;
        }
    }

    /// Waits until the engine has died at its crash point. False: it outlived `bound`, and is still at work.
    pub async fn crashed(&mut self, bound: Duration) -> bool {
        let Some(at_work) = &self.engine else {
            return true;
        };
        if tokio::time::timeout(bound, at_work.life.over()).await.is_err() {
            return false;
        }
        self.crash_engine().await;
        true
    }

    async fn bury(&mut self, dead: AtWork) {
        self.trace.note("engine is dead");
        *self.rooms_api.lock() = None;
        dead.tasks.abort_all();
        self.check_panics(&dead.tasks);
        // Aborted tasks are dropped when they are scheduled next, and with them what they hold of the host.
        drop(dead);
        tokio::task::yield_now().await;
    }

    /// Stops the engine cleanly.
    pub async fn stop_engine(&mut self) {
        if let Some(AtWork { running: Some(running), tasks, .. }) = self.engine.take() {
            running.stop_working().await.stop().await;
            *self.rooms_api.lock() = None;
            self.check_panics(&tasks);
            tasks.abort_all();
            self.trace.note("engine has stopped");
        }
    }

    // What a test works with.

    pub fn engine(&self) -> &Engine {
        match &self.engine {
            Some(at_work) => &at_work.engine,
            None => self.fail("no engine is at work"),
        }
    }

    /// What a person asks of the engine; `None`: it died before it answered, and nobody knows what became of it.
    pub async fn ask<T>(&self, request: impl Future<Output = Result<T, Error>>) -> Option<Result<T, Error>> {
        let life = self.engine.as_ref().map(|at_work| at_work.life.clone())?;
        tokio::select! {
            biased;
            () = life.over() => None,
            answer = request => Some(answer),
        }
    }

    /// The durable side itself, as it is when no engine is at work.
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    pub fn host(&self) -> &Host {
        &self.host
    }

    pub fn inspector(&self) -> &Inspector {
        &self.inspector
    }

    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The time of day in this world.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Virtual time since the world began.
    pub fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }

    // Time.

    pub async fn advance(&self, duration: Duration) {
        sleep(duration).await;
        self.check();
    }

    /// Lets time pass until the condition holds; how long that took. Panics with the end of the trace when it does not
    /// within `bound` of virtual time.
    pub async fn run_until(
        &self,
        what: &str,
        bound: Duration,
        condition: impl AsyncFn(&Self) -> bool,
    ) -> Duration {
        let began = Instant::now();
        while !condition(self).await {
            if began.elapsed() >= bound {
                self.fail(&format!("not within {bound:?}: {what}"));
            }
            sleep(LOOK_EVERY).await;
        }
        self.check();
        began.elapsed()
    }

    /// What must hold at any moment.
    pub fn check(&self) {
        let mut violations = self.inspector.violations();
        violations.extend(self.host.violations());
        if let Some(first) = violations.first() {
            self.fail(first);
        }
        self.check_panics(&self.tasks);
        if let Some(at_work) = &self.engine {
            self.check_panics(&at_work.tasks);
        }
    }

    fn check_panics(&self, tasks: &Tasks) {
        let panicked = tasks.panicked();
        if !panicked.is_empty() {
            self.fail(&format!("panicked: {}", panicked.join(", ")));
        }
    }

    /// Ends a test that went wrong, with the seed that shows it again and what happened last.
    pub fn fail(&self, why: &str) -> ! {
        panic!("seed {}: {why}\n\nthe last that happened:\n{}", self.seed, self.trace.tail(TRACE_SHOWN));
    }
}

impl Switchboard {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<(Arc<Engine>, Life)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl RoomsApi for Switchboard {
    async fn ping(&self, ping: GamePing) {
        let Some((engine, life)) = self.lock().clone() else {
            return;
        };
        let ping = engine.ping(RoomPing {
            scheduler: ping.scheduler.as_str(),
            room: ping.room.as_str(),
            status: ping.status,
            matches: ping.matches,
            metadata: None,
        });
        // A room does not wait for an engine that died. A refused ping is answered, and rooms go on pinging.
        tokio::select! {
            biased;
            () = life.over() => {}
            _ = ping => {}
        }
    }
}

/// A seed of its own for each part, so that one draw more in one place does not shift all others.
fn fork(seed: u64, part: &str, number: u64) -> u64 {
    let mut random = fastrand::Rng::with_seed(seed);
    for byte in part.bytes() {
        random = fastrand::Rng::with_seed(random.u64(..) ^ u64::from(byte));
    }
    fastrand::Rng::with_seed(random.u64(..) ^ number).u64(..)
}
