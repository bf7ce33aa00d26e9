//! Many runs, one per seed, side by side on several threads, and what came of them.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use maestro_core::invariant::Invariant;
use parking_lot::{Mutex, MutexGuard};

use crate::coverage::RareEvent;
use crate::scenarios::{self, Kind, Options, Outcome};

/// What is to be lived.
#[derive(Debug, Clone)]
pub struct Sweep {
    pub seeds: RangeInclusive<u64>,
    pub options: Options,
    pub threads: usize,
    /// The guard that is taken out of the engine. Only where guards can be: see `maestro_core::guards`.
    pub taken_out: Option<Invariant>,
    /// No further run begins when one has gone wrong.
    pub fail_fast: bool,
}

/// What came of all runs so far.
#[derive(Debug, Default)]
pub struct Report {
    pub seeds: u64,
    pub on_sqlite: u64,
    pub kinds: BTreeMap<Kind, u64>,
    pub simulated: Duration,
    pub failures: BTreeMap<u64, Failure>,
    pub coverage: BTreeMap<RareEvent, u64>,
}

/// A run that went wrong.
#[derive(Debug, Clone)]
pub struct Failure {
    /// `invariant-name: what happened`.
    pub violations: Vec<String>,
    pub trace: Vec<String>,
}

impl Sweep {
    /// `told` hears of every run as soon as it is over, in no order.
    pub fn run(&self, told: impl Fn(u64, &Report) + Sync) -> Report {
        let report = Mutex::new(Report::default());
        let next = AtomicU64::new(*self.seeds.start());
        std::thread::scope(|scope| {
            for _ in 0..self.threads.max(1) {
                scope.spawn(|| {
                    self.take_guard_out();
                    // Guards of the store are taken out of the one in memory only.
                    let sqlite = self.options.sqlite.or(self.taken_out.map(|_| false));
                    let options = Options { sqlite, ..self.options };
                    loop {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        if !self.seeds.contains(&seed) {
                            return;
                        }
                        if self.fail_fast && !lock(&report).failures.is_empty() {
                            return;
                        }
                        let outcome =
                            run_caught(seed, &options).map(|outcome| self.on_both_stores(seed, outcome));
                        let mut report = lock(&report);
                        report.add(seed, outcome);
                        told(seed, &report);
                    }
                });
            }
        });
        report.into_inner()
    }

    /// A seed on SQLite also runs in memory: a run that differs shows that the stores do.
    fn on_both_stores(&self, seed: u64, mut lived: Outcome) -> Outcome {
        if lived.on_sqlite && self.taken_out.is_none() {
            let in_memory = scenarios::run(seed, &Options { sqlite: Some(false), ..self.options });
            let lines = lived.trace.iter().zip(&in_memory.trace);
            let difference = lines.into_iter().find(|(one, other)| one != other);
            if let Some((on_sqlite, in_memory)) = difference {
                lived.violations.push(format!("stores-agree: {on_sqlite:?}, and in memory {in_memory:?}"));
            }
        }
        lived
    }

    #[cfg(feature = "breakable")]
    fn take_guard_out(&self) {
        if let Some(invariant) = self.taken_out {
            maestro_core::guards::take_out(invariant);
        }
    }

    #[cfg(not(feature = "breakable"))]
    fn take_guard_out(&self) {
        assert!(self.taken_out.is_none(), "this was built without guards that can be taken out");
    }
}

fn lock(report: &Mutex<Report>) -> MutexGuard<'_, Report> {
    report.lock()
}

/// A panic of the world itself is a failure like any other.
fn run_caught(seed: u64, options: &Options) -> Result<Outcome, Failure> {
    catch_unwind(|| scenarios::run(seed, options)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
        let what = text.unwrap_or_else(|| "without words".into());
        Failure { violations: vec![format!("no-panic: {what}")], trace: Vec::new() }
    })
}

impl Report {
    fn add(&mut self, seed: u64, outcome: Result<Outcome, Failure>) {
        self.seeds += 1;
        let Outcome { kind, on_sqlite, trace, simulated, violations, coverage } = match outcome {
            Ok(outcome) => outcome,
            Err(failure) => {
                self.failures.insert(seed, failure);
                return;
            }
        };
        *self.kinds.entry(kind).or_default() += 1;
        self.on_sqlite += u64::from(on_sqlite);
        self.simulated += simulated;
        for (event, times) in coverage {
            *self.coverage.entry(event).or_default() += times;
        }
        if !violations.is_empty() {
            self.failures.insert(seed, Failure { violations, trace });
        }
    }

    pub fn violations(&self) -> usize {
        self.failures.values().map(|failure| failure.violations.len()).sum()
    }

    /// Rare events that never happened: about them these runs prove nothing.
    pub fn never_seen(&self) -> Vec<RareEvent> {
        RareEvent::ALL.into_iter().filter(|event| !self.coverage.contains_key(event)).collect()
    }
}
