//! The only place where the engine spawns tasks. A task that panics is noticed and counted, never lost. A task that the
//! process depends on is supervised: it is named in `readyz` and started again.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use tokio::sync::{Notify, watch};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{Instant, Interval, MissedTickBehavior};

use crate::Health;

/// How long a supervised task waits before it is started again. Doubled each time, up to the most: one that cannot run
/// must not use the machine up.
const RESTART_FIRST: Duration = Duration::from_millis(100);
const RESTART_MOST: Duration = Duration::from_secs(30);
/// A task that has run for so long after a crash is healthy again, and its next restart is a first one.
const HEALTHY_AFTER: Duration = Duration::from_secs(10);
/// Names of panicked tasks that are kept for tests.
const PANICKED_MAX: usize = 1000;

/// Spawns named tasks and remembers which of them crashed. Cheap to clone; all clones are one.
#[derive(Clone, Default)]
pub struct Tasks(Arc<Shared>);

#[derive(Default)]
struct Shared {
    panicked: Mutex<Vec<String>>,
    running: Mutex<Vec<AbortHandle>>,
    health: Health,
    crashes: Family<TaskLabels, Counter>,
    /// Rung by [`Tasks::crash`], with the kind that is to crash.
    crash: Crash,
}

#[derive(Default)]
struct Crash {
    kind: Mutex<Option<&'static str>>,
    bell: Notify,
    /// Each supervised task crashes once, so long after it began.
    all_after: Mutex<Option<Duration>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TaskLabels {
    task: &'static str,
}

/// A task by what it does and for whom: `observer of eu-west`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskName {
    /// The label of its metric.
    pub kind: &'static str,
    pub of: Option<String>,
}

/// What a crash of a supervised task means for the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Importance {
    /// It is not ready without this task.
    Process,
    /// It works except for what this task does, as the loop of one scheduler.
    Part,
}

impl TaskName {
    pub fn of(kind: &'static str, of: impl fmt::Display) -> Self {
        Self { kind, of: Some(of.to_string()) }
    }
}

impl From<&'static str> for TaskName {
    fn from(kind: &'static str) -> Self {
        Self { kind, of: None }
    }
}

impl fmt::Display for TaskName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.of {
            Some(of) => write!(f, "{} of {of}", self.kind),
            None => f.write_str(self.kind),
        }
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks").field("health", &self.0.health).finish_non_exhaustive()
    }
}

impl Tasks {
    pub fn new(health: Health) -> Self {
        Self(Arc::new(Shared { health, ..Shared::default() }))
    }

    pub fn health(&self) -> &Health {
        &self.0.health
    }

    /// How often supervised tasks of this kind crashed.
    pub fn crashes(&self, kind: &'static str) -> u64 {
        self.0.crashes.get_or_create(&TaskLabels { task: kind }).get()
    }

    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "maestro_task_crashes",
            "Times that a task of the server panicked or ended unexpectedly, and was started again",
            self.0.crashes.clone(),
        );
    }

    /// A task that nobody starts again. Nothing may depend on it for longer than it takes.
    pub fn spawn(
        &self,
        name: impl Into<String>,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> JoinHandle<()> {
        let (name, tasks) = (name.into(), self.clone());
        self.spawn_plain(async move {
            if let Err(panic) = AssertUnwindSafe(future).catch_unwind().await {
                tracing::error!(task = name, panic = message_of(&*panic), "task panicked");
                tasks.note_panic(name, &*panic);
            }
        })
    }

    /// A task that the process depends on. It runs until `stop` is true; one that ends before that, or panics, is
    /// counted, named in `readyz`, and made anew after a while. What it holds in memory is lost then.
    pub fn supervise<F>(
        &self,
        name: impl Into<TaskName>,
        importance: Importance,
        stop: watch::Receiver<bool>,
        make: impl FnMut() -> F + Send + 'static,
    ) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.spawn_plain(self.clone().supervised(name.into(), importance, stop, make))
    }

    /// The same for who has a task already.
    pub async fn supervised<F: Future<Output = ()> + Send>(
        self,
        name: TaskName,
        importance: Importance,
        mut stop: watch::Receiver<bool>,
        mut make: impl FnMut() -> F + Send,
    ) {
        // From the start: an alert on a series that does not exist yet would never fire.
        drop(self.0.crashes.get_or_create(&TaskLabels { task: name.kind }));
        let component = name.to_string();
        let mut restart = RESTART_FIRST;
        let mut has_crashed = false;
        loop {
            let began = Instant::now();
            let run = async {
                tokio::select! {
                    biased;
                    () = self.0.crash.asked_for(name.kind, has_crashed) => std::panic::panic_any(OnPurpose),
                    () = Box::pin(make()) => {}
                }
            };
            let outcome = AssertUnwindSafe(run).catch_unwind().await;
            // Whoever could stop it is gone: nobody needs it any more.
            if *stop.borrow() || stop.has_changed().is_err() {
                break;
            }
            if began.elapsed() >= HEALTHY_AFTER {
                restart = RESTART_FIRST;
            }
            has_crashed = true;
            self.crashed(&name, importance, outcome.err(), restart);
            // Told to stop meanwhile, it runs once more at once, so that it can end cleanly.
            tokio::select! {
                biased;
                _ = stop.wait_for(|stopped| *stopped) => {}
                () = tokio::time::sleep(restart) => {}
            }
            self.0.health.clear_in(&component, HEALTHY_AFTER);
            restart = (restart * 2).min(RESTART_MOST);
        }
        self.0.health.clear(&component);
    }

    /// The same for a thread, which calls this as the last thing that it does: `work` is called until it returns.
    #[expect(clippy::disallowed_methods, reason = "threads of adapters are not part of a simulated world")]
    pub fn supervise_thread(
        &self,
        name: impl Into<TaskName>,
        importance: Importance,
        mut work: impl FnMut(),
    ) {
        let name = name.into();
        drop(self.0.crashes.get_or_create(&TaskLabels { task: name.kind }));
        let mut restart = RESTART_FIRST;
        loop {
            let began = Instant::now();
            let Err(panic) = catch_unwind(AssertUnwindSafe(&mut work)) else { break };
            if began.elapsed() >= HEALTHY_AFTER {
                restart = RESTART_FIRST;
            }
            self.crashed(&name, importance, Some(panic), restart);
            std::thread::sleep(restart);
            self.0.health.clear_in(&name.to_string(), HEALTHY_AFTER);
            restart = (restart * 2).min(RESTART_MOST);
        }
        self.0.health.clear(&name.to_string());
    }

    /// `panic`: `None` if it ended without one.
    fn crashed(&self, name: &TaskName, importance: Importance, panic: Option<Panic>, restart: Duration) {
        let why = match panic {
            None => "ended unexpectedly".to_owned(),
            Some(panic) => {
                self.note_panic(name.to_string(), &*panic);
                format!("panicked: {}", message_of(&*panic))
            }
        };
        tracing::error!(task = %name, why, restart_in = ?restart, "task crashed");
        self.0.crashes.get_or_create(&TaskLabels { task: name.kind }).inc();
        match importance {
            Importance::Process => self.0.health.not_ready(name.to_string(), why),
            Importance::Part => self.0.health.degraded(name.to_string(), why),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the one place that spawns")]
    fn spawn_plain(&self, future: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        let task = tokio::spawn(future);
        let mut running = self.0.running.lock();
        running.retain(|task| !task.is_finished());
        running.push(task.abort_handle());
        task
    }

    fn note_panic(&self, name: String, panic: &(dyn Any + Send)) {
        if panic.is::<OnPurpose>() {
            return;
        }
        let mut panicked = self.0.panicked.lock();
        if panicked.len() < PANICKED_MAX {
            panicked.push(name);
        }
    }

    /// Drops all tasks where they stand, as a crash does: how a simulation kills an engine.
    pub fn abort_all(&self) {
        let mut running = self.0.running.lock();
        for task in running.drain(..) {
            task.abort();
        }
    }

    /// Names of the tasks that panicked so far, but for those that were crashed on purpose: a simulation fails on any.
    pub fn panicked(&self) -> Vec<String> {
        self.0.panicked.lock().clone()
    }

    /// For tests, and of no effect in a release build: supervised tasks of this kind that run now panic where they stand.
    pub fn crash(&self, kind: &'static str) {
        *self.0.crash.kind.lock() = Some(kind);
        self.0.crash.bell.notify_waiters();
    }

    /// For tests, and of no effect in a release build: each supervised task panics once, so long after it began.
    pub fn crash_each_after(&self, delay: Duration) {
        *self.0.crash.all_after.lock() = Some(delay);
    }
}

impl Crash {
    async fn asked_for(&self, kind: &'static str, has_crashed: bool) {
        // Never in production; and there all tasks would wait for one bell.
        if !cfg!(debug_assertions) {
            return std::future::pending().await;
        }
        let after = *self.all_after.lock();
        if let Some(after) = after.filter(|_| !has_crashed) {
            return tokio::time::sleep(after).await;
        }
        loop {
            self.bell.notified().await;
            if *self.kind.lock() == Some(kind) {
                return;
            }
        }
    }
}

/// Ticks at once and then with every period; one that comes late does not make the next ones follow faster.
pub(crate) fn interval(period: Duration) -> Interval {
    let mut interval = tokio::time::interval(period.max(Duration::from_millis(1)));
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

type Panic = Box<dyn Any + Send>;

/// The panic of a task that a test crashes.
struct OnPurpose;

/// What a panic said.
fn message_of(panic: &(dyn Any + Send)) -> &str {
    if panic.is::<OnPurpose>() {
        return "crashed on purpose";
    }
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}
