//! The kernel's table of processes, `/proc`: who runs, since when, and whose room it is part of.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use maestro_core::room::{Region, RoomId};
use maestro_core::scheduler::SchedulerName;

use crate::environment::{CONTAINER_NAME, REGION, ROOM_ID, SCHEDULER_NAME, STORE_ID};
use crate::members::{Member, ProcessId};

/// An environment larger than this is not one that we gave; exec itself stops at about this size.
const ENVIRONMENT_BYTES_MAX: u64 = 4 << 20;

/// In the middle of an exec a process has no environment. It is looked at again a few times: a room that was missed
/// would be taken for one that has ended. One that has none for good costs a scan these few milliseconds.
const ROUNDS_MAX: u32 = 10;
const BETWEEN_ROUNDS: Duration = Duration::from_millis(1);

/// A process that carries our marks and leads a process group: a container of a room of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Marked {
    pub(crate) scheduler: SchedulerName,
    pub(crate) room: RoomId,
    pub(crate) member: Member,
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
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    pub(crate) store_id: String,
    pub(crate) region: Region,
}

/// All processes with this mark, in the order of their start. Blocking.
///
/// The environment is read only of group leaders of our own user: of others we may not read it, and a room's children
/// inherit it, so it would say nothing. Zombies do not run.
pub(crate) fn scan(mark: &Mark) -> io::Result<Vec<Marked>> {
    let mut unread = group_leaders()?;
    let mut marked: Vec<Marked> = Vec::new();
    for round in 0..ROUNDS_MAX {
        if round > 0 {
            std::thread::sleep(BETWEEN_ROUNDS);
        }
        unread.retain(|leader| match environment(leader.pid) {
            // It runs a new program, and its environment is not in place yet.
            Ok(environment) if environment.is_empty() => true,
            Ok(environment) => {
                marked.extend(marks(&environment, mark, *leader));
                false
            }
            // It has just ended.
            Err(_) => false,
        });
        if unread.is_empty() {
            break;
        }
    }
    marked.sort_by_key(|process| process.member.process.start_time);
    Ok(marked)
}

fn group_leaders() -> io::Result<Vec<ProcessId>> {
    let user = rustix::process::geteuid().as_raw();
    let mut leaders = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let entry = entry?;
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // Whatever cannot be read has just ended, or is none of ours.
        if !entry.metadata().is_ok_and(|metadata| metadata.uid() == user) {
            continue;
        }
        let Ok(stat) = stat(pid) else { continue };
        if stat.group == pid && !stat.is_zombie {
            let start_time = stat.start_time;
            leaders.push(ProcessId { pid, start_time });
        }
    }
    Ok(leaders)
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

fn marks(environment: &[u8], mark: &Mark, process: ProcessId) -> Option<Marked> {
    let value = |name: &str| {
        environment.split(|byte| *byte == 0).find_map(|entry| {
            let rest = entry.strip_prefix(name.as_bytes())?;
            str::from_utf8(rest.strip_prefix(b"=")?).ok()
        })
    };
    if value(STORE_ID)? != mark.store_id || value(REGION)? != &*mark.region.0 {
        return None;
    }
    Some(Marked {
        scheduler: SchedulerName::parse(value(SCHEDULER_NAME)?).ok()?,
        room: RoomId::new(value(ROOM_ID)?),
        member: Member { container: value(CONTAINER_NAME)?.to_owned(), process },
    })
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
    fn only_the_very_store_and_region_count() {
        let id = ProcessId { pid: 42, start_time: 7 };
        let mark = Mark { store_id: "s1".into(), region: Region("eu".into()) };
        let marks_of = |store: &str, region: &str| {
            let text = format!(
                "PATH=/bin\0X{STORE_ID}=s1\0{STORE_ID}={store}\0{REGION}={region}\0{SCHEDULER_NAME}=arena\0\
                 {ROOM_ID}=arena-1\0{CONTAINER_NAME}=game\0"
            );
            marks(text.as_bytes(), &mark, id)
        };
        assert_eq!(marks_of("s1", "eu").unwrap().room, RoomId::new("arena-1"));
        for other in ["s12", "s", "", "S1", "s1 "] {
            assert_eq!(marks_of(other, "eu"), None, "{other:?}");
        }
        for other in ["us", "eu-west", "", "EU"] {
            assert_eq!(marks_of("s1", other), None, "{other:?}");
        }
        assert_eq!(marks(format!("{STORE_ID}=s1\0{REGION}=eu\0").as_bytes(), &mark, id), None);
    }

    #[test]
    fn this_very_process_can_be_read() {
        let me = stat(std::process::id()).unwrap();
        assert!(!me.is_zombie && me.start_time > 0);
    }
}
