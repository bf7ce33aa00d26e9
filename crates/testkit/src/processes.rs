//! The processes of rooms, as the kernel knows them.

use std::fs;
use std::io;

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};

/// A process that carries the id of a store.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RoomProcess {
    pub pid: u32,
    pub scheduler: String,
    pub room: String,
    pub region: String,
}

/// All of a store. A process that has ended and was not reaped has no environment any more, so it is not among them.
pub fn of_store(store_id: &str) -> io::Result<Vec<RoomProcess>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // What cannot be read has just ended, or is none of ours.
        let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else {
            continue;
        };
        let value = |name: &str| {
            environment.split(|byte| *byte == 0).find_map(|entry| {
                let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
                Some(String::from_utf8_lossy(value).into_owned())
            })
        };
        if value("MAESTRO_STORE_ID").as_deref() == Some(store_id) {
            found.push(RoomProcess {
                pid,
                scheduler: value("MAESTRO_SCHEDULER_NAME").unwrap_or_default(),
                room: value("MAESTRO_ROOM_ID").unwrap_or_default(),
                region: value("MAESTRO_REGION").unwrap_or_default(),
            });
        }
    }
    found.sort();
    Ok(found)
}

pub fn send_signal(pid: u32, signal: Signal) -> anyhow::Result<()> {
    kill_process(to_pid(pid)?, signal).with_context(|| format!("sending {signal:?} to {pid}"))
}

fn to_pid(pid: u32) -> anyhow::Result<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw).with_context(|| format!("{pid} is not a pid"))
}
