//! The kernel's table of processes, `/proc`: who runs, since when, and whose room it is part of.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use maestro_core::room::{Region, RoomId};
use maestro_core::scheduler::SchedulerName;

use crate::environment::{CONTAINER_NAME, DATA_DIRECTORY, REGION, ROOM_ID, SCHEDULER_NAME, STORE_ID};
use crate::members::{Member, ProcessId};

/// An environment larger than this is not one that we gave; exec itself stops at about this size.
const ENVIRONMENT_BYTES_MAX: u64 = 4 << 20;

/// In the middle of an exec a process has no environment. It is looked at again a few times: a room that was missed
/// would be taken for one that has ended. One that has none for good costs a scan these few milliseconds.
const ROUNDS_MAX: u32 = 10;
const BETWEEN_ROUNDS: Duration = Duration::from_millis(1);

/// A process that carries the marks of a room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Marked {
    pub(crate) scheduler: SchedulerName,
    pub(crate) room: RoomId,
    pub(crate) member: Member,
    /// The data directory of the server that started it.
    pub(crate) data_directory: Option<PathBuf>,
    /// A container does. What it starts inherits the marks, and is part of its group unless it leaves it.
    pub(crate) leads_group: bool,
}

/// Everything that carried marks when it was looked at, whoever's it is.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    by_mark: HashMap<Mark, Vec<Marked>>,
}

impl Snapshot {
    /// In the order of their start.
    pub(crate) fn of(&self, mark: &Mark) -> &[Marked] {
        self.by_mark.get(mark).map_or(&[], Vec::as_slice)
    }

    /// The processes of a store's rooms, in all regions.
    pub(crate) fn into_all_of(self, store_id: &str) -> Vec<Marked> {
        let of_store = self.by_mark.into_iter().filter(|(mark, _)| mark.store_id == store_id);
        of_store.flat_map(|(_, marked)| marked).collect()
    }
}

/// What `/proc/<pid>/stat` says, as far as it is needed here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) is_zombie: bool,
    pub(crate) group: u32,
    /// In clock ticks since boot. With the pid it names a process for as long as the machine is up.
    pub(crate) start_time: u64,
    /// As `wait` would report it; only a zombie has one.
    pub(crate) wait_status: i32,
}

/// Whose processes are looked for: several regions may share a machine, and leave each other alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Mark {
    pub(crate) store_id: String,
    pub(crate) region: Region,
}

/// All processes of these users, or of all of them, that carry marks. Blocking.
///
/// Zombies do not run. Of other users we may not read the environment, and theirs would prove nothing.
pub(crate) fn scan(users: Option<&[u32]>) -> io::Result<Snapshot> {
    let mut unread = running(users)?;
    let mut by_mark: HashMap<Mark, Vec<Marked>> = HashMap::new();
    for round in 0..ROUNDS_MAX {
        if round > 0 {
            std::thread::sleep(BETWEEN_ROUNDS);
        }
        unread.retain(|process| match environment(process.id.pid) {
            // It runs a new program, and its environment is not in place yet.
            Ok(environment) if environment.is_empty() => true,
            Ok(environment) => {
                if let Some((mark, marked)) = marks(&environment, *process) {
                    by_mark.entry(mark).or_default().push(marked);
                }
                false
            }
            // It has just ended.
            Err(_) => false,
        });
        if unread.is_empty() {
            break;
        }
    }
    for marked in by_mark.values_mut() {
        marked.sort_by_key(|process| process.member.process.start_time);
    }
    Ok(Snapshot { by_mark })
}

/// A process, before anything is known of its environment.
#[derive(Debug, Clone, Copy)]
struct Running {
    id: ProcessId,
    leads_group: bool,
}

fn running(users: Option<&[u32]>) -> io::Result<Vec<Running>> {
    let mut running = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let entry = entry?;
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // Whatever cannot be read has just ended, or is none of ours.
        let is_meant = |users: &[u32]| entry.metadata().is_ok_and(|file| users.contains(&file.uid()));
        if !users.is_none_or(is_meant) {
            continue;
        }
        let Ok(stat) = stat(pid) else { continue };
        // Threads of the kernel are in no group; they have no environment either, and never will.
        if stat.group != 0 && !stat.is_zombie {
            let id = ProcessId { pid, start_time: stat.start_time };
            running.push(Running { id, leads_group: stat.group == pid });
        }
    }
    Ok(running)
}

pub(crate) fn stat(pid: u32) -> io::Result<Stat> {
    let text = read(&format!("/proc/{pid}/stat"))?;
    parse_stat(&text).ok_or_else(|| io::Error::other(format!("/proc/{pid}/stat cannot be understood")))
}

fn environment(pid: u32) -> io::Result<Vec<u8>> {
    read(&format!("/proc/{pid}/environ"))
}

/// These files claim to be empty. Who believes it reads them in many small pieces, each of which asks the kernel to
/// look the process up again; a host with thousands of rooms feels that.
fn read(file: &str) -> io::Result<Vec<u8>> {
    const USUAL_BYTES_MAX: usize = 4096;
    let mut bytes = Vec::with_capacity(USUAL_BYTES_MAX);
    File::open(file)?.take(ENVIRONMENT_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The program's name stands in parentheses and may hold spaces and parentheses itself, so fields are counted from
/// the last parenthesis on: the first one behind it is number 3 of `proc_pid_stat(5)`.
fn parse_stat(text: &[u8]) -> Option<Stat> {
    let name_end = text.iter().rposition(|byte| *byte == b')')?;
    let rest = str::from_utf8(&text[name_end + 1..]).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).copied();
    Some(Stat {
        is_zombie: matches!(field(3)?, "Z" | "X"),
        group: field(5)?.parse().ok()?,
        start_time: field(22)?.parse().ok()?,
        wait_status: field(52)?.parse().ok()?,
    })
}

fn marks(environment: &[u8], process: Running) -> Option<(Mark, Marked)> {
    let value = |name| str::from_utf8(variable(environment, name)?).ok();
    let mark = Mark { store_id: value(STORE_ID)?.to_owned(), region: Region(value(REGION)?.into()) };
    let marked = Marked {
        scheduler: SchedulerName::parse(value(SCHEDULER_NAME)?).ok()?,
        room: RoomId::new(value(ROOM_ID)?),
        member: Member { container: value(CONTAINER_NAME)?.to_owned(), process: process.id },
        data_directory: variable(environment, DATA_DIRECTORY)
            .map(|path| PathBuf::from(OsStr::from_bytes(path))),
        leads_group: process.leads_group,
    };
    Some((mark, marked))
}

/// The value of a variable, as `/proc/<pid>/environ` has it.
fn variable<'a>(environment: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut variables = environment.split(|byte| *byte == 0);
    variables.find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAIL: &str = "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0";

    #[test]
    fn a_name_may_hold_anything() {
        for name in ["sleep", "a b", "a) Z (b", "))) R 1 1", "(", ""] {
            let text = format!("42 ({name}) S 1 42 42 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 7777 {TAIL} 9\n");
            let expected = Stat { is_zombie: false, group: 42, start_time: 7777, wait_status: 9 };
            assert_eq!(parse_stat(text.as_bytes()), Some(expected), "{text}");
        }
        assert_eq!(parse_stat(b"42 (sleep"), None);
        assert_eq!(parse_stat(b"42 (sleep) S 1 42"), None);
    }

    #[test]
    fn marks_are_read_whole() {
        let process = Running { id: ProcessId { pid: 42, start_time: 7 }, leads_group: true };
        let text = format!(
            "PATH=/bin\0X{STORE_ID}=s2\0{STORE_ID}=s1\0{REGION}=eu\0{SCHEDULER_NAME}=arena\0{ROOM_ID}=arena-1\0\
             {CONTAINER_NAME}=game\0{DATA_DIRECTORY}=/var/lib/maestro\0"
        );
        let (mark, marked) = marks(text.as_bytes(), process).unwrap();
        assert_eq!(mark, Mark { store_id: "s1".into(), region: Region("eu".into()) });
        assert_eq!(marked.room, RoomId::new("arena-1"));
        assert_eq!(marked.data_directory, Some("/var/lib/maestro".into()));
        assert_eq!(marked.member, Member { container: "game".into(), process: process.id });
        assert!(marks(format!("{STORE_ID}=s1\0{REGION}=eu\0").as_bytes(), process).is_none());
    }

    #[test]
    fn this_very_process_can_be_read() {
        let me = stat(std::process::id()).unwrap();
        assert!(!me.is_zombie && me.start_time > 0);
    }
}
