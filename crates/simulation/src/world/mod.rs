//! A world in one thread and one seed: the real engine on simulated ports.
//!
//! Store and hosts live as long as the world; engines come and go, one at a time or several. To be run on tokio's current-thread scheduler with
//! its clock paused (`#[tokio::test(start_paused = true)]`): time then passes only when everybody waits.

mod nodes;
mod regions;
mod switchboard;
mod wake_ups;

use std::sync::Arc;
use std::time::Duration;

use maestro_core::room::Region;
use maestro_core::time::Timestamp;
use maestro_engine::ports::{Clock, Store};
use maestro_engine::{Engine, Error, Settings, Tasks};
use maestro_store_embedded::MemoryRoomTable;
use tokio::time::{Instant, sleep};

use crate::clock::VirtualClock;
use crate::coverage::{Coverage, RareEvent};
use crate::faults::{ActiveFaults, Faults, Intercept};
use crate::host::Host;
use crate::invariants::Inspector;
use crate::memory::MemoryStore;
use crate::receivers::Receivers;
use crate::seed::fork;
use crate::table::SharedTable;
use crate::trace::Trace;

use nodes::Node;
pub use nodes::{NodeNumber, NodePlan};
use switchboard::Switchboard;
use wake_ups::WakeUpSwitchboard;

/// How often a condition is looked at. Short beside everything that a fleet does, long enough that hours are cheap.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// How much of the trace a failure shows.
const TRACE_SHOWN: usize = 60;

pub struct World {
    seed: u64,
    settings: Settings,
    clock: VirtualClock,
    trace: Trace,
    store: Arc<dyn Store>,
    /// One for each region; never empty.
    hosts: Vec<Arc<Host>>,
    rooms_api: Arc<Switchboard>,
    receivers: Receivers,
    /// The hosts'; an engine has its own, which die with it.
    tasks: Tasks,
    wake_ups: WakeUpSwitchboard,
    /// One for all engines.
    table: SharedTable,
    active_faults: ActiveFaults,
    coverage: Coverage,
    inspector: Inspector,
    nodes: Vec<Node>,
    /// Of engines that are gone.
    panics: Vec<String>,
    engines_started: u64,
}

impl World {
    pub fn new(seed: u64) -> Self {
        Self::with_settings(seed, Settings::default())
    }

    pub fn with_settings(seed: u64, settings: Settings) -> Self {
        Self::on_store(seed, settings, MemoryStore::on_clock)
    }

    /// On any store whose calls take no virtual time, made of its clock.
    pub fn on_store(
        seed: u64,
        settings: Settings,
        store: impl FnOnce(Arc<dyn Clock>) -> Arc<dyn Store>,
    ) -> Self {
        Self::of_regions(seed, settings, store, vec![Region::default_region()])
    }

    /// With a host in each of the regions, of which there is at least one.
    pub fn of_regions(
        seed: u64,
        settings: Settings,
        store: impl FnOnce(Arc<dyn Clock>) -> Arc<dyn Store>,
        regions: Vec<Region>,
    ) -> Self {
        assert!(!regions.is_empty(), "a world has a region");
        let clock = VirtualClock::begin();
        let store = store(Arc::new(clock.clone()));
        let trace = Trace::begin(clock.clone());
        let tasks = Tasks::default();
        let (active_faults, coverage) = (ActiveFaults::none(), Coverage::default());
        let switchboard = Switchboard::new(fork(seed, "pings", 0), active_faults.clone(), coverage.clone());
        let rooms_api = Arc::new(switchboard);
        let open = |(number, region)| {
            Host::open(region, fork(seed, "host", number), &tasks, rooms_api.clone(), trace.clone())
        };
        let hosts: Vec<_> = (0..).zip(regions).map(open).collect();
        let table = SharedTable::new(clock.clone(), fork(seed, "table", 0));
        Self {
            seed,
            clock,
            inspector: Inspector::of_hosts(trace.clone(), hosts.clone(), settings.events_kept),
            receivers: Receivers::new(fork(seed, "receivers", 0)),
            settings,
            trace,
            store,
            hosts,
            rooms_api,
            tasks,
            wake_ups: WakeUpSwitchboard::new(
                fork(seed, "wake-ups", 0),
                active_faults.clone(),
                coverage.clone(),
            ),
            table,
            active_faults,
            coverage,
            nodes: Vec::new(),
            panics: Vec::new(),
            engines_started: 0,
        }
    }

    /// From now on no engine hears what happens in others: each has to look for itself.
    pub fn lose_wake_ups(&self) {
        self.trace.note("engines do not hear each other");
        self.coverage.saw(RareEvent::NoWakeUps);
        self.wake_ups.cut();
    }

    /// What goes wrong at the ports of all engines from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.active_faults.set(faults);
    }

    /// Has certain commits fail from now on; `None`: no more.
    pub fn intercept_commits(&self, intercept: Option<Intercept>) {
        self.active_faults.set_intercept(intercept);
    }

    /// Counts calls of ports from now on.
    pub fn count_calls(&self) {
        self.active_faults.count_calls();
    }

    /// How often this was called for since then, whatever came of it.
    pub fn calls(&self, what: &str) -> usize {
        self.active_faults.calls(what)
    }

    // What a test works with.

    pub fn engine(&self) -> &Engine {
        match self.nodes.first() {
            Some(node) => &node.engine,
            None => self.fail("no engine is at work"),
        }
    }

    /// What a person asks of the engine; `None`: it died before it answered, and nobody knows what became of it.
    pub async fn ask<T>(&self, request: impl Future<Output = Result<T, Error>>) -> Option<Result<T, Error>> {
        let life = self.nodes.first().map(|node| node.life.clone())?;
        tokio::select! {
            biased;
            () = life.over() => None,
            answer = request => Some(answer),
        }
    }

    /// Where events are forwarded to.
    pub fn receivers(&self) -> &Receivers {
        &self.receivers
    }

    /// The durable side itself.
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// The room table itself.
    /// For what goes on whatever becomes of engines.
    pub(crate) fn tasks(&self) -> Tasks {
        self.tasks.clone()
    }

    pub(crate) fn shared_store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    pub(crate) fn shared_hosts(&self) -> Vec<Arc<Host>> {
        self.hosts.clone()
    }

    pub(crate) fn table(&self) -> Arc<MemoryRoomTable> {
        self.table.now()
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub fn inspector(&self) -> &Inspector {
        &self.inspector
    }

    pub fn coverage(&self) -> &Coverage {
        &self.coverage
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
            sleep(CHECK_INTERVAL).await;
        }
        self.check();
        began.elapsed()
    }

    /// What must hold at any moment.
    pub fn check(&self) {
        if let Some(first) = self.violations().first() {
            self.fail(first);
        }
    }

    /// What went wrong so far, in words.
    pub fn violations(&self) -> Vec<String> {
        let mut violations = self.inspector.violations();
        violations.extend(self.hosts().flat_map(Host::violations));
        let tasks = self.nodes.iter().map(|node| &node.tasks).chain([&self.tasks]);
        violations.extend(self.panics.iter().cloned());
        violations.extend(tasks.flat_map(panics));
        violations
    }

    /// Ends a test that went wrong, with the seed that shows it again and what happened last.
    pub fn fail(&self, why: &str) -> ! {
        panic!("seed {}: {why}\n\nthe last that happened:\n{}", self.seed, self.trace.tail(TRACE_SHOWN));
    }
}

fn panics(tasks: &Tasks) -> Vec<String> {
    tasks.panicked().into_iter().map(|task| format!("no-panic: task {task} panicked")).collect()
}
