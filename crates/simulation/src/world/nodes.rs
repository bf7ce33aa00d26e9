//! The engines of a world: they start, stop, die, freeze and thaw.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use maestro_core::room::Region;
use maestro_engine::ports::{Ports, Randomness, RegionElsewhere, Runtime};
use maestro_engine::{Engine, Error, Parts, Running, Tasks, WakeUps};
use tokio::time::timeout;

use crate::clock::Skew;
use crate::coverage::RareEvent;
use crate::faults::Surroundings;
use crate::host::Host;
use crate::life::Life;
use crate::receivers::SimulatedSink;
use crate::runtime::SimulatedRuntime;
use crate::seed::fork;
use crate::store::{CrashPoint, SimulatedStore};
use crate::story::seconds;
use crate::table::SimulatedTable;

use super::World;

/// What a node is known by: the how manieth of its world it is.
pub type NodeNumber = u64;

/// An engine and all that ends with it.
pub(super) struct Node {
    pub(super) number: NodeNumber,
    pub(super) engine: Arc<Engine>,
    /// `None`: it died before it had begun.
    running: Option<Running>,
    pub(super) tasks: Tasks,
    pub(super) life: Life,
    parts: Parts,
}

/// How a node is started.
#[derive(Debug, Clone, Copy)]
pub struct NodePlan {
    pub parts: Parts,
    /// How wrong its clock is.
    pub skew: Skew,
    pub crash: Option<CrashPoint>,
}

impl NodePlan {
    /// A worker and watcher that knows the time.
    pub const PLAIN: Self = Self { parts: Parts::ALL, skew: Skew::NONE, crash: None };
}

/// Nothing of a clock that is right.
fn told(skew: Skew) -> String {
    match skew.millis {
        0 => String::new(),
        millis => {
            let where_to = if millis < 0 { "behind" } else { "ahead" };
            format!(", its clock {} s {where_to}", seconds(millis.unsigned_abs()))
        }
    }
}

impl World {
    // A world with one engine at a time.

    /// Starts an engine on the ports of this world. There is none at work yet.
    pub async fn start_engine(&mut self) {
        self.start_engine_until(None).await;
    }

    /// The same, and it dies at its given write. [`Self::crashed`] waits for that.
    pub async fn start_engine_until(&mut self, crash: Option<CrashPoint>) {
        assert!(self.nodes.is_empty(), "an engine is at work already");
        // Its room table is its own: nothing of it is durable, and it begins with an empty one.
        self.table.lose();
        if let Err(error) = self.start_node(NodePlan { crash, ..NodePlan::PLAIN }).await {
            self.fail(&format!("the engine did not start: {error}"));
        }
    }

    /// Kills the engine where it stands: all its tasks are dropped, what it was about to do does not happen.
    pub async fn crash_engine(&mut self) {
        for number in self.nodes() {
            self.crash_node(number).await;
        }
    }

    /// Waits until the engine has died at its crash point. False: it outlived `bound`, and is still at work.
    pub async fn crashed(&mut self, bound: Duration) -> bool {
        let Some(node) = self.nodes.first() else {
            return true;
        };
        if timeout(bound, node.life.over()).await.is_err() {
            return false;
        }
        self.crash_engine().await;
        true
    }

    /// Stops the engine cleanly.
    pub async fn stop_engine(&mut self) {
        for number in self.nodes() {
            self.stop_node(number).await;
        }
    }

    // Worlds with several.

    /// Starts one more engine. An error means that it gave up and is gone; `Ok` does not mean that it is still alive.
    pub async fn start_node(&mut self, plan: NodePlan) -> Result<NodeNumber, Error> {
        self.engines_started += 1;
        let number = self.engines_started;
        let (life, tasks) = (Life::new(), Tasks::default());
        let name = format!("engine-{number}");
        let around = self.surroundings(&name, number, plan.skew, &life);
        let ports = self.ports(around, plan, number);
        let engine = Engine::new(ports, self.settings.clone(), name.clone(), tasks.clone());
        self.trace.note(format_args!("{name} starts{}", told(plan.skew)));
        if plan.skew.is_beyond(self.settings.ownership_ttl) {
            self.coverage.saw(RareEvent::WrongClock);
        }
        self.rooms_api.connect(number, engine.clone(), life.clone(), tasks.clone());
        let starting = engine.clone();
        let started = tokio::select! {
            biased;
            () = life.over() => Ok(None),
            started = starting.start(plan.parts) => started.map(Some),
        };
        let (running, error) = match started {
            Ok(running) => (running, None),
            Err(error) => (None, Some(error)),
        };
        self.nodes.push(Node { number, engine, running, tasks, life, parts: plan.parts });
        match error {
            None => Ok(number),
            Some(error) => {
                self.trace.note(format_args!("{name} does not start: {error}"));
                self.crash_node(number).await;
                Err(error)
            }
        }
    }

    fn surroundings(&self, name: &str, number: NodeNumber, skew: Skew, life: &Life) -> Surroundings {
        Surroundings {
            node: name.into(),
            seed: fork(self.seed, "node", number),
            life: life.clone(),
            clock: Arc::new(self.clock.clone().skewed(skew)),
            active_faults: self.active_faults.clone(),
            trace: self.trace.clone(),
            coverage: self.coverage.clone(),
            inspector: self.inspector.clone(),
        }
    }

    fn ports(&self, around: Surroundings, plan: NodePlan, number: NodeNumber) -> Ports {
        let connect = |host: &Arc<Host>| {
            let runtime: Arc<dyn Runtime> = SimulatedRuntime::connect_from(host.clone(), around.clone());
            (host.region().clone(), runtime)
        };
        let (mut runtimes, mut regions_elsewhere) = (BTreeMap::new(), BTreeMap::new());
        match plan.parts.needs_runtimes() {
            true => runtimes.extend(self.hosts.iter().map(connect)),
            false => regions_elsewhere.extend(self.hosts.iter().map(|host| elsewhere(host))),
        }
        let channel = self.wake_ups.connect(number, around.life.clone());
        let clock = around.clock.clone();
        let table = SimulatedTable::new(self.table.clone(), around.clone(), self.store.clone());
        let events = SimulatedSink::new(self.receivers.clone(), around.clone());
        Ports {
            store: Arc::new(SimulatedStore::new(self.store.clone(), around, plan.crash)),
            table: Arc::new(table),
            runtimes: Arc::new(runtimes),
            regions_elsewhere: Arc::new(regions_elsewhere),
            events: Arc::new(events),
            clock,
            random: Arc::new(Randomness::from_seed(fork(self.seed, "engine", number))),
            wake: WakeUps::default(),
            wake_up_channel: Some(Arc::new(channel)),
        }
    }

    /// Those that are there, dead ones that nobody has buried yet included.
    pub fn nodes(&self) -> Vec<NodeNumber> {
        self.nodes.iter().map(|node| node.number).collect()
    }

    /// Those that answer.
    pub fn nodes_well(&self) -> Vec<NodeNumber> {
        self.nodes.iter().filter(|node| node.life.is_well()).map(|node| node.number).collect()
    }

    /// Those that work on schedulers, whether they answer or not.
    pub fn workers(&self) -> Vec<NodeNumber> {
        let workers = self.nodes.iter().filter(|node| !node.life.is_over() && node.parts == Parts::ALL);
        workers.map(|node| node.number).collect()
    }

    /// Has a node do something by itself, as long as it lives.
    pub(crate) fn spawn_on<F: Future<Output = ()> + Send + 'static>(
        &self,
        number: NodeNumber,
        name: String,
        work: impl FnOnce(Arc<Engine>) -> F,
    ) {
        if let Some(node) = self.nodes.iter().find(|node| node.number == number) {
            node.tasks.spawn(name, work(node.engine.clone()));
        }
    }

    /// The engine of a node.
    pub fn engine_of(&self, number: NodeNumber) -> Option<&Arc<Engine>> {
        self.nodes.iter().find(|node| node.number == number).map(|node| &node.engine)
    }

    pub fn life_of(&self, number: NodeNumber) -> Option<&Life> {
        self.nodes.iter().find(|node| node.number == number).map(|node| &node.life)
    }

    /// From now on it stands still, with what it was about to do in its hand.
    pub fn freeze(&self, number: NodeNumber) {
        if let Some(life) = self.life_of(number) {
            self.trace.note(format_args!("engine-{number} is frozen"));
            life.freeze();
        }
    }

    /// The tasks of this kind panic, in all engines.
    pub fn crash_tasks(&self, kind: &'static str) {
        self.trace.note(format_args!("{kind}: crashed"));
        for node in &self.nodes {
            node.tasks.crash(kind);
        }
    }

    /// It goes on, and does not know how much time has passed.
    pub fn thaw(&self, number: NodeNumber) {
        if let Some(life) = self.life_of(number) {
            self.trace.note(format_args!("engine-{number} is thawed"));
            life.thaw();
        }
    }

    pub async fn crash_node(&mut self, number: NodeNumber) {
        let Some(dead) = self.take(number) else { return };
        dead.life.end();
        self.trace.note(format_args!("engine-{number} is dead"));
        dead.tasks.abort_all();
        self.panics.extend(super::panics(&dead.tasks));
        // Aborted tasks are dropped when they are scheduled next, and with them what they hold of the host.
        drop(dead);
        tokio::task::yield_now().await;
    }

    /// Drops what is left of nodes that died by themselves.
    pub async fn bury_the_dead(&mut self) {
        let dead: Vec<_> =
            self.nodes.iter().filter(|node| node.life.is_over()).map(|node| node.number).collect();
        for number in dead {
            self.crash_node(number).await;
        }
    }

    /// Stops a node cleanly. It may die on the way.
    pub async fn stop_node(&mut self, number: NodeNumber) {
        let Some(mut node) = self.take(number) else { return };
        let life = node.life.clone();
        let stopped = match node.running.take() {
            None => false,
            Some(running) => tokio::select! {
                biased;
                () = life.over() => false,
                () = async { running.stop_working().await.stop().await } => true,
            },
        };
        self.panics.extend(super::panics(&node.tasks));
        node.life.end();
        node.tasks.abort_all();
        if stopped {
            self.coverage.saw(RareEvent::CleanStop);
        }
        self.trace.note(format_args!("engine-{number} has {}", if stopped { "stopped" } else { "died" }));
        drop(node);
        tokio::task::yield_now().await;
    }

    /// It gets no more pings and wake-ups.
    fn take(&mut self, number: NodeNumber) -> Option<Node> {
        let index = self.nodes.iter().position(|node| node.number == number)?;
        self.rooms_api.disconnect(number);
        self.wake_ups.disconnect(number);
        Some(self.nodes.remove(index))
    }

    /// The clock of the machine that all nodes are on is set, forward or back.
    pub fn leap_clock(&self, millis: i64) {
        let (by, where_to) = (millis.unsigned_abs(), if millis < 0 { "back" } else { "forward" });
        self.trace.note(format_args!("the clock is set {where_to} by {} ms", by));
        self.coverage.saw(RareEvent::ClockLeap);
        self.clock.leap(millis);
    }

    /// What the room table has now is kept, to come back one day.
    pub fn dump_table(&self) {
        self.trace.note("the room table is dumped");
        self.table.dump();
    }

    /// The room table has again what it had when it was dumped last; if it never was, nothing.
    pub fn bring_back_old_table(&self) {
        if !self.table.come_back() {
            return self.lose_table();
        }
        self.trace.note("the room table is an old one again");
        self.coverage.saw(RareEvent::OldTable);
    }

    /// The room table is lost, and with it all that rooms have said.
    pub fn lose_table(&self) {
        self.trace.note("the room table is lost");
        self.coverage.saw(RareEvent::LostTable);
        self.table.lose();
    }
}

/// As an engine knows it from its configuration.
fn elsewhere(host: &Host) -> (Region, RegionElsewhere) {
    let facts = RegionElsewhere {
        host: Some(host.region().to_string()),
        runs_containers: false,
        capacity_setting: "its own limit",
    };
    (host.region().clone(), facts)
}
