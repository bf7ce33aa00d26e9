//! Cores: one for the server, another for what loads it. Otherwise both would take turns on all of them, and the
//! figure would be about the kernel's choices.

use std::fs;
use std::time::Duration;

use anyhow::Context as _;
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

/// Processor time of all threads of this process.
pub(crate) fn process_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// How the calling thread has spent its time, as far as it did not sleep.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadTimes {
    pub(crate) ran: Duration,
    /// It could have run, but others had the core.
    pub(crate) waited: Duration,
}

impl ThreadTimes {
    pub(crate) fn now() -> anyhow::Result<Self> {
        let file = "/proc/thread-self/schedstat";
        let text = fs::read_to_string(file).with_context(|| format!("reading {file}"))?;
        let mut numbers = text.split_ascii_whitespace().map_while(|text| text.parse().ok());
        let times = numbers.next().zip(numbers.next());
        let (ran, waited) = times.with_context(|| format!("{file} cannot be understood"))?;
        Ok(Self { ran: Duration::from_nanos(ran), waited: Duration::from_nanos(waited) })
    }

    pub(crate) fn since(self, earlier: Self) -> Self {
        Self { ran: self.ran - earlier.ran, waited: self.waited - earlier.waited }
    }
}
