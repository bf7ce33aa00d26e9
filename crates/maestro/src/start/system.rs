//! The machine's own time and randomness: where production differs from the simulated world.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{BorrowedFd, RawFd};
use std::time::Duration;

use maestro_core::time::Timestamp;
use maestro_engine::ports::Clock;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::time::{ClockId, clock_gettime};

pub(super) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn since_boot(&self) -> Duration {
        // Never negative, which is all that could fail.
        clock_gettime(ClockId::Boottime).try_into().unwrap_or_default()
    }
}

/// From the kernel: ids of two servers, or of one before and after a restart, must not meet.
pub(super) fn random_seed() -> io::Result<u64> {
    let mut bytes = [0; 8];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Rooms get no descriptors of ours. Those that we open close themselves; what whoever started us left open does not. To be
/// called before anything else is done.
#[allow(unsafe_code)]
pub(super) fn keep_descriptors_from_rooms() -> io::Result<()> {
    const STANDARD: RawFd = 2;
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let Some(descriptor) = entry?.file_name().to_str().and_then(|name| name.parse::<RawFd>().ok()) else {
            continue;
        };
        if descriptor > STANDARD {
            // SAFETY: it is open, since it was just listed and nobody else runs in this process yet; it is used for this
            // call alone.
            let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
            fcntl_setfd(descriptor, FdFlags::CLOEXEC)?;
        }
    }
    Ok(())
}

/// A number of rooms that keeps a mistake in a recipe from taking the machine down. How much a real room needs, nobody
/// knows here: whoever does sets `adapters.runtime.process.roomsMax`.
pub(super) fn default_rooms_max() -> u32 {
    const KIB_PER_ROOM: u64 = 4 * 1024;
    const AT_LEAST: u32 = 64;
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let machine = read("/proc/meminfo").as_deref().and_then(total_memory_kib);
    // A container has less than its machine.
    let container = read("/sys/fs/cgroup/memory.max").and_then(|text| text.trim().parse::<u64>().ok());
    let total = machine.into_iter().chain(container.map(|bytes| bytes / 1024)).min().unwrap_or(0);
    u32::try_from(total / KIB_PER_ROOM).unwrap_or(u32::MAX).max(AT_LEAST)
}

/// `MemTotal:       24683520 kB`
fn total_memory_kib(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?.parse().ok())
}

/// The name of this process in leases and histories: the machine and the process id. Where others share the store, every
/// start has another name: in containers, machine and process id may be the same each time.
pub(super) fn owner_name(start: Option<u64>) -> String {
    let process = format!("{}/{}", machine_name(), std::process::id());
    match start {
        Some(start) => format!("{process}-{:06x}", start & 0xff_ffff),
        None => process,
    }
}

/// What this machine is called, with and without its domain.
pub(super) fn machine_names() -> impl Iterator<Item = String> {
    let name = machine_name();
    let short = name.split_once('.').map(|(short, _)| short.to_owned());
    short.into_iter().chain([name])
}

fn machine_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// This machine, as nobody else is called: two machines may have one name, as those do that were made from one image.
pub(super) fn host_identity() -> String {
    // The first digits tell machines apart, and are short enough to be read in a log.
    const DIGITS: usize = 12;
    let name = machine_name();
    match std::fs::read_to_string("/etc/machine-id") {
        Ok(id) if id.len() >= DIGITS => format!("{name}/{}", id[..DIGITS].trim()),
        Ok(_) | Err(_) => name,
    }
}
