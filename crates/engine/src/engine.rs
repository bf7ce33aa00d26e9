//! The engine as one thing: ports, settings, and everything that runs on them.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use maestro_core::room::Region;
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::{Millis, Timestamp, age};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::allocations::{Allocations, allocator, settling};
use crate::events::{Events, orphaned, resyncs};
use crate::invariants::Tokens;
use crate::listening::Listening;
use crate::metrics::{self, Metrics};
use crate::no_action::NoActions;
use crate::panic_scaling::{self, Panics};
use crate::ports::{Ports, Runtime};
use crate::regions::{Patient, Regions, observed, watching};
use crate::rooms::comparing::Comparisons;
use crate::rooms::observing::Observer;
use crate::rooms::{leftovers, recovery};
use crate::services::Admission;
use crate::silences::Silences;
use crate::stream::Stream;
use crate::time::{self, StoreTime};
use crate::wake::exchange;
use crate::worker::Manager;
use crate::{Error, Health, Importance, Readiness, Result, Settings, TaskName, Tasks, with_sources};

pub struct Engine {
    pub(crate) ports: Ports,
    pub(crate) settings: Settings,
    pub(crate) tasks: Tasks,
    pub(crate) metrics: Metrics,
    /// Who this engine is in leases and histories.
    pub(crate) owner: String,
    pub(crate) reconciled: Reconciled,
    pub(crate) comparisons: Comparisons,
    pub(crate) no_actions: NoActions,
    pub(crate) admission: Admission,
    pub(crate) allocations: Allocations,
    pub(crate) listening: Listening,
    pub(crate) regions: Regions,
    pub(crate) silences: Silences,
    pub(crate) panics: Panics,
    pub(crate) events: Events,
    pub(crate) stream: Stream,
    pub(crate) tokens: Tokens,
    pub(crate) time: StoreTime,
}

/// How long the last observations may take to be written at a shutdown.
const OBSERVER_PATIENCE: Duration = Duration::from_secs(5);

/// What an engine does beside answering requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// It answers requests: rooms are handed out here.
    pub requests: bool,
    /// It takes in pings: what they say is forwarded from here, and a fleet that is nearly full grows at once.
    pub pings: bool,
    /// It takes schedulers and works on them.
    pub worker: bool,
    /// It listens to the runtimes, and fills the room table from the registry when it starts.
    pub watcher: bool,
    /// It exports the gauges that describe fleets. Of several processes on one store, one is enough.
    pub reporter: bool,
}

impl Parts {
    const NONE: Self = Self { requests: false, pings: false, worker: false, watcher: false, reporter: false };
    pub const ALL: Self = Self { requests: true, pings: true, worker: true, watcher: true, reporter: true };
    pub const MANAGEMENT_API: Self = Self { requests: true, ..Self::NONE };
    pub const ROOMS_API: Self = Self { pings: true, ..Self::MANAGEMENT_API };
    pub const WORKER: Self = Self { worker: true, ..Self::NONE };
    pub const RUNTIME_WATCHER: Self = Self { watcher: true, ..Self::NONE };
    pub const METRICS_REPORTER: Self = Self { reporter: true, ..Self::NONE };

    /// It touches runtimes. Others need none.
    pub fn needs_runtimes(self) -> bool {
        self.worker || self.watcher
    }

    /// It hears what happens to the rooms of this runtime.
    pub(crate) fn observes(self, runtime: &dyn Runtime) -> bool {
        match runtime.is_observed_by_starter() {
            true => self.worker,
            false => self.watcher,
        }
    }
}

/// An engine at work. Dropped, it goes on; [`Running::stop_working`] and [`Observing::stop`] end it cleanly.
pub struct Running {
    stop: watch::Sender<bool>,
    /// `None`: it is no worker.
    manager: Option<JoinHandle<()>>,
    observing: Observing,
}

/// An engine that works no more and still listens to its runtimes.
pub struct Observing {
    stop: watch::Sender<bool>,
    observers: Vec<JoinHandle<()>>,
    /// They have nothing to finish.
    watches: Vec<JoinHandle<()>>,
}

/// When runtime and registry were last compared, by the schedulers that are worked on here.
#[derive(Default)]
pub(crate) struct Reconciled(Mutex<Comparable>);

#[derive(Default)]
struct Comparable {
    schedulers: BTreeMap<SchedulerName, LastCompared>,
    /// How often something happened that makes older comparisons worthless.
    epoch: u64,
}

#[derive(Clone, Copy)]
struct LastCompared {
    at: Option<Timestamp>,
    /// Comparisons that began before say nothing about it.
    since: u64,
}

impl Engine {
    pub fn new(mut ports: Ports, settings: Settings, owner: String, tasks: Tasks) -> Arc<Self> {
        let patient = |(region, runtime): (&Region, &Arc<dyn Runtime>)| {
            let runtime = Patient::new(runtime.clone(), settings.room_start_timeout);
            (region.clone(), Arc::new(runtime) as Arc<dyn Runtime>)
        };
        ports.runtimes = Arc::new(ports.runtimes.iter().map(patient).collect());
        Arc::new(Self {
            time: StoreTime::new(ports.clock.clone()),
            regions: Regions::of(&ports),
            ports,
            settings,
            tasks,
            metrics: Metrics::default(),
            owner,
            reconciled: Reconciled::default(),
            comparisons: Comparisons::default(),
            no_actions: NoActions::default(),
            admission: Admission::default(),
            allocations: Allocations::default(),
            listening: Listening::default(),
            silences: Silences::default(),
            panics: Panics::default(),
            events: Events::default(),
            stream: Stream::default(),
            tokens: Tokens::default(),
        })
    }

    /// Takes up where the stores left off, and begins to work. Rooms can ping as soon as this returns. A region that does
    /// not answer is adopted when it does.
    pub async fn start(self: &Arc<Self>, parts: Parts) -> Result<Running> {
        time::learn(self).await?;
        self.check_regions().await?;
        let (stop_observing, observing_stopped) = watch::channel(false);
        let mut observers = Vec::new();
        if parts.needs_runtimes() {
            observers = self.observe(parts, &observing_stopped);
        }
        if parts.watcher {
            recovery::recover(self).await?;
        }
        watching::begin(self, parts).await;
        observed::read(self).await?;
        let mut watches = self.watch_regions(parts, &observing_stopped);
        watches.push(self.watch("store time watch", &observing_stopped, time::watch));
        watches.extend(self.begin_tasks(parts, &observing_stopped));
        let (stop, stopped) = watch::channel(false);
        let manager = parts.worker.then(|| self.manage(stopped));
        let observing = Observing { stop: stop_observing, observers, watches };
        Ok(Running { stop, manager, observing })
    }

    /// What each part does beside its main work. What several processes do at the same time, each of them may.
    fn begin_tasks(self: &Arc<Self>, parts: Parts, stopped: &watch::Receiver<bool>) -> Vec<JoinHandle<()>> {
        let Parts { requests, pings, worker, watcher, reporter } = parts;
        let mut watches = Vec::new();
        if let Some(channel) = self.ports.wake_up_channel.clone() {
            let exchange = move |engine| exchange(engine, channel.clone());
            watches.push(self.watch("wake-up exchange", stopped, exchange));
        }
        if !self.ports.regions_elsewhere.is_empty() {
            watches.push(self.watch("region reader", stopped, observed::watch));
        }
        watches.push(match reporter {
            true => self.watch("metrics reporter", stopped, move |engine| metrics::report(engine, worker)),
            false => self.watch("metrics of schedulers", stopped, metrics::forget_gone),
        });
        if pings {
            watches.push(self.watch("panic watch", stopped, panic_scaling::watch));
            watches.push(self.watch("resync forwarding", stopped, resyncs::forward));
        }
        if requests {
            watches.push(self.watch("allocator", stopped, allocator::run));
        }
        // Holds end also while nobody answers requests.
        if requests || worker {
            watches.push(self.watch("hold watch", stopped, settling::watch));
        }
        if watcher {
            watches.push(self.watch("leftovers watch", stopped, leftovers::watch));
        }
        if worker {
            watches.push(self.watch("orphaned events watch", stopped, orphaned::watch));
        }
        watches
    }

    /// The loops that it has begun outlive a crash of it: two loops of one scheduler under one token would not be told
    /// apart by the store.
    fn manage(self: &Arc<Self>, stopped: watch::Receiver<bool>) -> JoinHandle<()> {
        let manager = Arc::new(tokio::sync::Mutex::new(Manager::new(self.clone(), stopped.clone())));
        let make = move || {
            let manager = manager.clone();
            async move { manager.lock().await.run().await }
        };
        self.tasks.supervise("worker manager", Importance::Process, stopped, make)
    }

    fn observe(self: &Arc<Self>, parts: Parts, stopped: &watch::Receiver<bool>) -> Vec<JoinHandle<()>> {
        let mut observers = Vec::new();
        let observed = self.ports.runtimes.iter().filter(|(_, runtime)| parts.observes(&***runtime));
        for (region, runtime) in observed {
            if let Some(observations) = runtime.observations() {
                let observer = Observer::new(self.clone(), parts, runtime.clone(), observations);
                let (observer, stop) = (Arc::new(observer), stopped.clone());
                let make = move || observer.clone().run(stop.clone());
                let name = TaskName::of("observer", region);
                observers.push(self.tasks.supervise(name, Importance::Process, stopped.clone(), make));
            }
        }
        observers
    }

    fn watch_regions(self: &Arc<Self>, parts: Parts, stopped: &watch::Receiver<bool>) -> Vec<JoinHandle<()>> {
        let watch = |(region, runtime): (&Region, &Arc<dyn Runtime>)| {
            let name = TaskName::of("region watch", region);
            let (engine, region, runtime) = (self.clone(), region.clone(), runtime.clone());
            let make = move || watching::watch(engine.clone(), parts, region.clone(), runtime.clone());
            self.tasks.supervise(name, Importance::Process, stopped.clone(), make)
        };
        self.ports.runtimes.iter().map(watch).collect()
    }

    /// A task without which the process still does most of its work.
    fn watch<F>(
        self: &Arc<Self>,
        name: &'static str,
        stopped: &watch::Receiver<bool>,
        watch: impl Fn(Arc<Self>) -> F + Send + 'static,
    ) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let engine = self.clone();
        self.tasks.supervise(name, Importance::Part, stopped.clone(), move || watch(engine.clone()))
    }

    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Those that the engine runs on.
    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    pub fn health(&self) -> &Health {
        self.tasks.health()
    }

    /// What probes are told. The store is asked for something small: this is asked for every few seconds.
    pub async fn readiness(&self) -> Readiness {
        let mut readiness = self.health().readiness();
        if let Err(error) = self.ports.store.regions().await {
            readiness.is_ready = false;
            readiness.problems.push(format!("store: {}", with_sources(&error)));
        }
        readiness
    }

    pub fn ports(&self) -> &Ports {
        &self.ports
    }

    /// The store's time.
    pub(crate) fn now(&self) -> Timestamp {
        self.time.now()
    }

    pub(crate) fn runtime(&self, region: &Region) -> Result<&Arc<dyn Runtime>> {
        self.ports.runtimes.get(region).ok_or_else(|| {
            let why = match self.ports.regions_elsewhere.contains_key(region) {
                true => "is looked after by other processes",
                false => "is not configured here",
            };
            Error::Unavailable { what: format!("region {region} {why}"), source: None }
        })
    }
}

impl Running {
    /// Lets running steps end and gives up all leases. What happens to rooms is still seen and written down, until
    /// that is stopped too.
    pub async fn stop_working(self) -> Observing {
        self.stop.send_replace(true);
        if let Some(manager) = self.manager
            && manager.await.is_err()
        {
            tracing::error!("the workers did not end cleanly");
        }
        self.observing
    }
}

impl Observing {
    /// Writes down what was seen so far, and listens no more.
    pub async fn stop(self) {
        self.watches.iter().for_each(JoinHandle::abort);
        self.stop.send_replace(true);
        for observer in self.observers {
            if tokio::time::timeout(OBSERVER_PATIENCE, observer).await.is_err() {
                tracing::warn!("an observer did not end in time; what it missed is found at the next start");
            }
        }
    }
}

impl Comparable {
    /// Comparisons that are under way do not count either.
    fn never_since_now(&mut self) -> LastCompared {
        self.epoch += 1;
        LastCompared { at: None, since: self.epoch }
    }
}

impl Reconciled {
    /// The scheduler is owned here from now on. What an earlier time of ownership knew is forgotten.
    pub(crate) fn begin(&self, scheduler: &SchedulerName) {
        let mut all = self.0.lock();
        let never = all.never_since_now();
        all.schedulers.insert(scheduler.clone(), never);
    }

    pub(crate) fn end(&self, scheduler: &SchedulerName) {
        self.0.lock().schedulers.remove(scheduler);
    }

    pub(crate) fn is_due(&self, scheduler: &SchedulerName, now: Timestamp, every: Millis) -> bool {
        let last = self.0.lock().schedulers.get(scheduler).and_then(|last| last.at);
        last.is_none_or(|last| age(now, last) >= every || last > now)
    }

    /// All are compared again at the next cycle.
    pub(crate) fn forget(&self) {
        let mut all = self.0.lock();
        let never = all.never_since_now();
        all.schedulers.values_mut().for_each(|last| *last = never);
    }

    /// An observation of one of its rooms was lost: only the next comparison can find it.
    pub(crate) fn forget_one(&self, scheduler: &SchedulerName) {
        let mut all = self.0.lock();
        let never = all.never_since_now();
        all.schedulers.entry(scheduler.clone()).and_modify(|last| *last = never);
    }

    /// What was found is written.
    pub(crate) fn done(&self, scheduler: &SchedulerName, now: Timestamp) {
        if let Some(last) = self.0.lock().schedulers.get_mut(scheduler) {
            last.at = Some(now);
        }
    }

    /// Those that are there when a comparison of all begins, and a mark of that moment.
    pub(crate) fn all(&self) -> (Vec<SchedulerName>, u64) {
        let all = self.0.lock();
        (all.schedulers.keys().cloned().collect(), all.epoch)
    }

    /// Of a comparison that began at `epoch`.
    pub(crate) fn all_done_but(&self, others: &BTreeSet<SchedulerName>, epoch: u64, now: Timestamp) {
        let mut all = self.0.lock();
        let done = all
            .schedulers
            .iter_mut()
            .filter(|(scheduler, last)| last.since <= epoch && !others.contains(*scheduler));
        done.for_each(|(_, last)| last.at = Some(now));
    }
}
