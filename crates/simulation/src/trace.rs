//! What happened in a world, line by line. Two runs of one seed have the same trace, and whoever looks for a bug
//! reads it.

use std::fmt::{Display, from_fn};
use std::sync::Arc;
use std::time::Duration;

use maestro_core::operation::OperationId;
use maestro_core::time::Timestamp;
use maestro_engine::ports::Clock;
use maestro_engine::ports::store::Transaction;
use parking_lot::Mutex;

use crate::clock::VirtualClock;
use crate::story::{Name, Story};

/// Cheap to clone; all clones write into the same trace.
#[derive(Debug, Clone)]
pub struct Trace {
    clock: VirtualClock,
    lines: Arc<Mutex<Vec<String>>>,
    story: Arc<Mutex<Story>>,
}

impl Trace {
    pub fn begin(clock: VirtualClock) -> Self {
        Self { clock, lines: Arc::default(), story: Arc::default() }
    }

    pub fn note(&self, text: impl Display) {
        let line = format!("{:>12.3} {text}", self.clock.elapsed().as_secs_f64());
        self.lines.lock().push(line);
    }

    /// What a transaction that was written comes to, in words.
    pub(crate) fn told(&self, transaction: &Transaction) -> String {
        self.story.lock().tell(transaction, self.now())
    }

    /// What a transaction is called and about, made only where it is shown.
    pub(crate) fn headline(&self, transaction: &Transaction) -> impl Display + Sync {
        from_fn(move |f| self.story.lock().headline(transaction).fmt(f))
    }

    /// What an operation is known by in the whole trace.
    pub(crate) fn name_of(&self, operation: OperationId) -> Name {
        self.story.lock().name(operation)
    }

    /// The right time, whatever the clocks of the engines say.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Since the world began, however the clock was set.
    pub(crate) fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }

    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().clone()
    }

    /// All of it at the end of a run; nothing is left. Most runs of a sweep are read by nobody: not even a copy is
    /// made for them.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.lines.lock())
    }

    /// The last lines, for the message of a test that failed.
    pub fn tail(&self, lines_max: usize) -> String {
        let lines = self.lines.lock();
        lines[lines.len().saturating_sub(lines_max)..].join("\n")
    }
}
