//! Rooms that run: processes that do nothing but carry the marks by which the runtime of a host finds its own.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use anyhow::Context as _;
use maestro_engine::ports::runtime::Handle;

use crate::{fleet, registry};

/// If this program is killed, what it left behind ends by itself.
const LONGEST_LIFE_SECONDS: &str = "600";

pub(super) struct RunningRooms(Vec<Child>);

impl RunningRooms {
    pub(super) fn start(store_id: &str, rooms: u32) -> anyhow::Result<Self> {
        let mut running = Self(Vec::new());
        let scheduler = fleet::scheduler();
        for index in 0..rooms {
            let room = Command::new("sleep")
                .arg(LONGEST_LIFE_SECONDS)
                .env("MAESTRO_STORE_ID", store_id)
                .env("MAESTRO_SCHEDULER_NAME", scheduler.as_str())
                .env("MAESTRO_ROOM_ID", fleet::room_id(&scheduler, index).as_str())
                .env("MAESTRO_CONTAINER_NAME", registry::CONTAINER)
                .process_group(0)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .context("starting a room")?;
            running.0.push(room);
        }
        Ok(running)
    }

    pub(super) fn handles(&self) -> anyhow::Result<Vec<Handle>> {
        let handle = |room: &Child| Ok(registry::handle(room.id(), start_time(room.id())?));
        self.0.iter().map(handle).collect()
    }
}

impl Drop for RunningRooms {
    fn drop(&mut self) {
        for room in &mut self.0 {
            // An error means that it has ended by itself.
            let _ = room.kill();
        }
        for room in &mut self.0 {
            let _ = room.wait();
        }
    }
}

/// In clock ticks since boot: field 22, counted from behind the name, which is field 2 and may hold anything.
fn start_time(pid: u32) -> anyhow::Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).context("reading a room's state")?;
    let behind_name = stat.rsplit(')').next().unwrap_or_default();
    let field = behind_name.split_ascii_whitespace().nth(22 - 3);
    let ticks = field.and_then(|field| field.parse().ok());
    ticks.with_context(|| format!("/proc/{pid}/stat cannot be understood"))
}
