//! Rooms of a store that is not there any more. Nobody watches them, so they are looked for, and ended, by the id in their
//! environment. Blocking: this is done before a server starts.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::environment::{ROOM_ID, STORE_ID};
use crate::process_table;

/// To end on their own. What their recipes granted them is lost with the store.
const GRACE: Duration = Duration::from_secs(10);
/// For the kernel to be done with those that were killed.
const KILLED_WITHIN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The rooms of this store that run, each with its first process.
pub fn rooms_of_store(store_id: &str) -> io::Result<Vec<String>> {
    let mut rooms: BTreeMap<String, u32> = BTreeMap::new();
    for process in processes_of(store_id)? {
        let first = rooms.entry(process.room).or_insert(process.pid);
        *first = process.pid.min(*first);
    }
    Ok(rooms.into_iter().map(|(room, pid)| format!("{room} (pid {pid})")).collect())
}

/// Asks all of them to end, and kills those that do not.
pub fn end_rooms_of_store(store_id: &str) -> io::Result<()> {
    signal_all(store_id, Signal::TERM)?;
    if is_gone_within(store_id, GRACE)? {
        return Ok(());
    }
    let deadline = Instant::now() + KILLED_WITHIN;
    // One that is killed may have started another just before.
    while Instant::now() < deadline {
        signal_all(store_id, Signal::KILL)?;
        if is_gone_within(store_id, LOOK_EVERY * 10)? {
            return Ok(());
        }
    }
    let rooms = rooms_of_store(store_id)?.join(", ");
    Err(io::Error::other(format!("rooms that were killed are still there: {rooms}")))
}

struct RoomProcess {
    pid: u32,
    room: String,
}

fn processes_of(store_id: &str) -> io::Result<Vec<RoomProcess>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if let Some(room) = room_of(pid, store_id) {
            found.push(RoomProcess { pid, room });
        }
    }
    Ok(found)
}

/// `None`: it is no process of this store's, or has ended. Whatever cannot be read is none of ours.
fn room_of(pid: u32, store_id: &str) -> Option<String> {
    let environment = process_table::environment(pid).ok()?;
    let value = |name: &str| {
        environment
            .split(|byte| *byte == 0)
            .find_map(|entry| str::from_utf8(entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?).ok())
    };
    if value(STORE_ID)? != store_id || process_table::stat(pid).ok()?.is_zombie {
        return None;
    }
    Some(value(ROOM_ID)?.to_owned())
}

fn signal_all(store_id: &str, signal: Signal) -> io::Result<()> {
    for process in processes_of(store_id)? {
        let Some(pid) = i32::try_from(process.pid).ok().and_then(Pid::from_raw) else { continue };
        let Ok(held) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        // Looked at once more now that the pid cannot become somebody else's.
        if room_of(process.pid, store_id).is_some()
            && let Err(error) = pidfd_send_signal(held, signal)
        {
            tracing::warn!(pid = process.pid, room_id = process.room, %error, "cannot be signalled");
        }
    }
    Ok(())
}

fn is_gone_within(store_id: &str, time: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + time;
    loop {
        if processes_of(store_id)?.is_empty() {
            return Ok(true);
        }
        if Instant::now() >= deadline {
            return Ok(false);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    fn room(store_id: &str, room: &str, script: &str) -> Child {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.env(STORE_ID, store_id).env(ROOM_ID, room).spawn().unwrap();
        // It is the shell, with its environment in place, when it says so.
        let mut said = [0; 3];
        io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut said).unwrap();
        child
    }

    #[test]
    fn rooms_of_one_store_are_found_and_ended_whether_they_want_or_not() {
        let store = format!("abandoned-{}", std::process::id());
        let other = format!("{store}-other");
        let mut ours = [
            room(&store, "arena-1", "echo up; read line"),
            room(&store, "arena-2", "trap '' TERM; echo up; while :; do sleep 0.1; done"),
        ];
        let mut theirs = room(&other, "arena-3", "echo up; read line");
        let expected: Vec<_> =
            (1..).zip(&ours).map(|(number, child)| format!("arena-{number} (pid {})", child.id())).collect();
        assert_eq!(rooms_of_store(&store).unwrap(), expected);
        end_rooms_of_store(&store).unwrap();
        assert_eq!(rooms_of_store(&store).unwrap(), Vec::<String>::new());
        for child in &mut ours {
            assert!(!child.wait().unwrap().success());
        }
        assert_eq!(rooms_of_store(&other).unwrap().len(), 1);
        theirs.kill().unwrap();
        theirs.wait().unwrap();
    }
}
