//! What happened in a world, line by line. Two runs of one seed have the same trace, and whoever looks for a bug
//! reads it.

use std::sync::{Arc, Mutex, PoisonError};

use maestro_core::time::Timestamp;
use maestro_engine::ports::Clock;

use crate::clock::VirtualClock;

/// Cheap to clone; all clones write into the same trace.
#[derive(Debug, Clone)]
pub struct Trace {
    clock: VirtualClock,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Trace {
    pub fn begin(clock: VirtualClock) -> Self {
        Self { clock, lines: Arc::default() }
    }

    pub fn note(&self, text: impl std::fmt::Display) {
        let line = format!("{:>12.3} {text}", self.clock.elapsed().as_secs_f64());
        self.lock().push(line);
    }

    /// The right time, whatever the clocks of the engines say.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub fn lines(&self) -> Vec<String> {
        self.lock().clone()
    }

    /// The last lines, for the message of a test that failed.
    pub fn tail(&self, lines_max: usize) -> String {
        let lines = self.lock();
        lines[lines.len().saturating_sub(lines_max)..].join("\n")
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
