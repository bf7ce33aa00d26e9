//! Cores: one for the server, another for what loads it. Otherwise both would take turns on all of them, and the
//! figure would be about the kernel's choices.

use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Cores {
    pub(crate) server: usize,
    pub(crate) load: usize,
}

impl Cores {
    /// Two of those that this process may use; `None`: there are not that many, or the kernel does not say.
    pub(crate) fn choose() -> Option<Self> {
        let allowed = sched_getaffinity(None).ok()?;
        let mut cores = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
        let cores = cores.next().zip(cores.next());
        cores.map(|(server, load)| Self { server, load })
    }
}

/// Keeps the calling thread on this core.
pub(crate) fn pin(core: usize) {
    let mut only = CpuSet::new();
    only.set(core);
    if let Err(error) = sched_setaffinity(None, &only) {
        eprintln!("cannot stay on core {core}: {error}");
    }
}

/// How long the calling thread has run on any core.
pub(crate) fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanos)
}
