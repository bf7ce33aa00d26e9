//! Rooms of a store that no longer exists. Nobody watches them, so they are found, and ended, by the id in their
//! environment. Rooms of a live server on another directory with a copy of the store are left out. Blocking, because this is
//! done before a server starts.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use maestro_core::room::RoomId;
use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::owners::ServerOf;
use crate::process::to_pid;
use crate::process_table::{self, Marked};

/// How long rooms have to end on their own. The grace periods of their recipes are lost with the store.
const GRACE: Duration = Duration::from_secs(10);
/// How long rooms that were killed may take to be gone.
const KILLED_WITHIN: Duration = Duration::from_secs(10);
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The rooms of this store that run, each with its first process.
pub fn rooms_of_store(store_id: &str, server_of: ServerOf) -> io::Result<Vec<String>> {
    Store { id: store_id, server_of }.rooms()
}

/// Asks all of them to end, and kills those that do not.
pub fn end_rooms_of_store(store_id: &str, server_of: ServerOf) -> io::Result<()> {
    Store { id: store_id, server_of }.end_rooms()
}

struct Store<'a> {
    id: &'a str,
    server_of: ServerOf,
}

impl Store<'_> {
    fn rooms(&self) -> io::Result<Vec<String>> {
        let mut rooms: BTreeMap<RoomId, u32> = BTreeMap::new();
        for Marked { room, member, .. } in self.processes()? {
            let first = rooms.entry(room).or_insert(member.process.pid);
            *first = member.process.pid.min(*first);
        }
        Ok(rooms.into_iter().map(|(room, pid)| format!("{room} (pid {pid})")).collect())
    }

    fn end_rooms(&self) -> io::Result<()> {
        self.signal_all(Signal::TERM)?;
        if self.is_gone_within(GRACE)? {
            return Ok(());
        }
        let deadline = Instant::now() + KILLED_WITHIN;
        // One that is killed may have started another just before.
        while Instant::now() < deadline {
            self.signal_all(Signal::KILL)?;
            if self.is_gone_within(CHECK_INTERVAL * 10)? {
                return Ok(());
            }
        }
        let rooms = self.rooms()?.join(", ");
        Err(io::Error::other(format!("rooms that were killed are still there: {rooms}")))
    }

    /// All running processes of the store's rooms whose server does not run.
    fn processes(&self) -> io::Result<Vec<Marked>> {
        let is_abandoned = |process: &Marked| {
            let server = process.data_directory.as_deref().and_then(self.server_of);
            server.is_none_or(|server| server == std::process::id())
        };
        let mut processes = process_table::scan(None)?.into_all_of(self.id);
        processes.retain(is_abandoned);
        Ok(processes)
    }

    fn signal_all(&self, signal: Signal) -> io::Result<()> {
        for Marked { room, member, .. } in self.processes()? {
            let Some(pid) = to_pid(member.process.pid) else { continue };
            let Ok(held) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
            // Looked at once more now that the pid cannot become somebody else's.
            if member.process.is_running()
                && let Err(error) = pidfd_send_signal(held, signal)
            {
                tracing::warn!(pid = member.process.pid, room_id = %room, %error, "cannot be signalled");
            }
        }
        Ok(())
    }

    fn is_gone_within(&self, time: Duration) -> io::Result<bool> {
        let deadline = Instant::now() + time;
        loop {
            if self.processes()?.is_empty() {
                return Ok(true);
            }
            if Instant::now() >= deadline {
                return Ok(false);
            }
            std::thread::sleep(CHECK_INTERVAL);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::{Child, Command, Stdio};

    use super::*;
    use crate::environment::{CONTAINER_NAME, DATA_DIRECTORY, REGION, ROOM_ID, SCHEDULER_NAME, STORE_ID};

    fn room(store_id: &str, room: &str, directory: &str, script: &str) -> Child {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.env(SCHEDULER_NAME, "arena").env(REGION, "default").env(CONTAINER_NAME, "game");
        command.env(STORE_ID, store_id).env(ROOM_ID, room).env(DATA_DIRECTORY, directory);
        let mut child = command.spawn().unwrap();
        // It is the shell, with its environment in place, when it says so.
        let mut said = [0; 3];
        io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut said).unwrap();
        child
    }

    /// A server lives on one directory, this process has another one, and nobody the rest.
    fn server_of(directory: &Path) -> Option<u32> {
        match directory.to_str()? {
            "/lives" => Some(1),
            "/mine" => Some(std::process::id()),
            _ => None,
        }
    }

    #[test]
    fn rooms_of_one_store_are_found_and_ended_whether_they_want_or_not() {
        let store = format!("abandoned-{}", std::process::id());
        let other = format!("{store}-other");
        let mut ours = [
            room(&store, "arena-1", "/gone", "echo up; read line"),
            room(&store, "arena-2", "/mine", "trap '' TERM; echo up; while :; do sleep 0.1; done"),
        ];
        let mut theirs = [
            room(&other, "arena-3", "/gone", "echo up; read line"),
            // Of a server with a copy of the store, which lives.
            room(&store, "arena-4", "/lives", "echo up; read line"),
        ];
        let expected: Vec<_> =
            (1..).zip(&ours).map(|(number, child)| format!("arena-{number} (pid {})", child.id())).collect();
        assert_eq!(rooms_of_store(&store, server_of).unwrap(), expected);
        end_rooms_of_store(&store, server_of).unwrap();
        assert_eq!(rooms_of_store(&store, server_of).unwrap(), Vec::<String>::new());
        for child in &mut ours {
            assert!(!child.wait().unwrap().success());
        }
        for child in &mut theirs {
            assert_eq!(child.try_wait().unwrap(), None);
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}
