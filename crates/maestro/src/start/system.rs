//! The machine's own time and randomness: where production differs from the simulated world.

use std::fs::File;
use std::io::{self, Read};

use maestro_core::time::Timestamp;
use maestro_engine::ports::Clock;

pub(super) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// From the kernel: ids of two servers, or of one before and after a restart, must not meet.
pub(super) fn random_seed() -> io::Result<u64> {
    let mut bytes = [0; 8];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Who this process is in leases and histories: the machine, the process, and when it began.
pub(super) fn owner_name() -> String {
    format!("{}/{}", machine_name(), std::process::id())
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
