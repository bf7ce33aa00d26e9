//! What rooms write is kept, whoever dies, and never more of it than may be.

use std::path::{Path, PathBuf};

use maestro_core::room::Ending;
use maestro_engine::ports::runtime::Runtime;
use maestro_runtime_process::{Options, ProcessRuntime, keep_logs};
use rustix::net::SocketType;
use rustix::net::sockopt::socket_type;
use rustix::process::{Signal, test_kill_process};

use crate::support::{SOON, Seen, World, eventually, logs, signal, simple, stop, until_log};
use crate::survival::{WRITES_ON, start_and_kill_a_maestro};

/// The log keeper, when a runtime of a test starts it from this very binary; by itself it does nothing.
#[test]
fn log_keeper_process() {
    if matches!(socket_type(std::io::stdin()), Ok(SocketType::SEQPACKET)) {
        keep_logs();
    }
}

fn directory(world: &World, room: &str) -> PathBuf {
    world.path().join("rooms/arena").join(room)
}

/// Bytes of all logs beneath a directory.
fn bytes(directory: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(directory) else { return 0 };
    let size = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.unwrap();
        let is_log = entry.file_name().to_string_lossy().contains(".log");
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes(&entry.path()),
            Ok(metadata) if is_log => metadata.len(),
            _ => 0,
        }
    };
    entries.map(size).sum()
}

fn keeper(world: &World) -> u32 {
    let text = std::fs::read(world.path().join("log-keeper.lock")).unwrap();
    let keeper: serde_json::Value = serde_json::from_slice(&text).unwrap();
    keeper["pid"].as_u64().unwrap().try_into().unwrap()
}

fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
    state.is_some_and(|state| state != 'Z')
        && test_kill_process(rustix::process::Pid::from_raw(pid.cast_signed()).unwrap()).is_ok()
}

#[tokio::test]
async fn a_room_that_writes_without_end_is_held_within_its_limit() {
    let world = World::new();
    let limit = 64 << 10;
    let options = Options { log_limit_bytes: limit, ..world.options() };
    let runtime = ProcessRuntime::open(options).await.unwrap();
    let mut seen = Seen::by(&runtime);
    let counts = "i=0; while :; do i=$((i+1)); echo \"line $i of a room that does not stop\"; done";
    runtime.start(&simple("arena-1", counts)).await.unwrap();
    let mut last = 0;
    // Many times more than the limit, and at no moment is there more.
    eventually("it has written ten times its limit", async || {
        let there = bytes(&directory(&world, "arena-1"));
        assert!(there <= limit, "{there} bytes");
        let text = logs(&runtime, "arena-1").await;
        let line = text.lines().last().and_then(|line| line.split(' ').nth(1)?.parse::<u64>().ok());
        last = last.max(line.unwrap_or(0));
        last * 40 > 10 * limit
    })
    .await;
    stop(&runtime, "arena-1", None, SOON).await;
    assert_eq!(seen.ending("arena-1").await, Ending::Stopped);
    assert!(bytes(&directory(&world, "arena-1")) <= limit);
}

#[tokio::test]
async fn a_scheduler_in_a_crash_loop_is_held_within_its_limit() {
    let world = World::new();
    let limit = 256 << 10;
    let options = Options { scheduler_log_limit_bytes: limit, ..world.options() };
    let runtime = ProcessRuntime::open(options).await.unwrap();
    let mut seen = Seen::by(&runtime);
    for number in 0..20 {
        let id = format!("arena-{number}");
        let text = "head -c 60000 /dev/zero | tr '\\0' x; echo; echo the last words; exit 1";
        runtime.start(&simple(&id, text)).await.unwrap();
        assert!(matches!(seen.ending(&id).await, Ending::Exited { code: 1, .. }));
        assert!(logs(&runtime, &id).await.ends_with("the last words\n"), "the newest are kept");
        let there = bytes(&world.path().join("rooms/arena"));
        assert!(there <= limit, "{there} bytes");
    }
    assert_eq!(logs(&runtime, "arena-0").await, "", "the oldest are not");
}

#[tokio::test]
async fn ended_rooms_are_kept_up_to_a_number() {
    let world = World::new();
    let kept = || Options { ended_rooms_max: 3, ..world.options() };
    let runtime = ProcessRuntime::open(kept()).await.unwrap();
    let mut seen = Seen::by(&runtime);
    let rooms = || {
        let entries = std::fs::read_dir(world.path().join("rooms/arena")).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    runtime.start(&simple("arena-live", "exec sleep 1000")).await.unwrap();
    for number in 0..6 {
        let id = format!("arena-{number}");
        runtime.start(&simple(&id, "exit 1")).await.unwrap();
        seen.ending(&id).await;
    }
    eventually("three ended ones are left", async || {
        rooms() == ["arena-3", "arena-4", "arena-5", "arena-live"]
    })
    .await;
    runtime.shut_down(false).await;

    // Those of before a restart count too.
    let runtime = ProcessRuntime::open(kept()).await.unwrap();
    let mut seen = Seen::by(&runtime);
    runtime.start(&simple("arena-6", "exit 1")).await.unwrap();
    seen.ending("arena-6").await;
    eventually("three ended ones are left", async || {
        rooms() == ["arena-4", "arena-5", "arena-6", "arena-live"]
    })
    .await;
}

#[tokio::test]
async fn a_log_that_a_room_replaced_by_a_link_leads_nowhere() {
    let world = World::new();
    let runtime = world.open().await;
    let precious = world.path().join("precious");
    std::fs::write(&precious, "precious").unwrap();
    let log = directory(&world, "arena-1").join("game.log");
    let text = format!(
        "echo one; while ! [ -e {0} ]; do sleep 0.01; done; ln -sf {1} {0}; echo two; exec sleep 1000",
        log.display(),
        precious.display()
    );
    runtime.start(&simple("arena-1", &text)).await.unwrap();
    until_log(&runtime, "arena-1", "two").await;
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "precious");
}

#[tokio::test]
async fn a_keeper_that_was_killed_is_replaced_and_no_room_notices() {
    let world = World::new();
    let (runtime, mut seen) = world.watch().await;
    // More than a pipe holds, between the two files: it would wait for ever without a reader.
    let text = "echo up; while [ ! -e ../../../go ]; do sleep 0.01; done; head -c 300000 /dev/zero | tr '\\0' x; echo; \
                echo done; exec sleep 1000";
    runtime.start(&simple("arena-1", text)).await.unwrap();
    until_log(&runtime, "arena-1", "up").await;
    let first = keeper(&world);
    signal(first, Signal::KILL);
    std::fs::write(world.path().join("go"), "").unwrap();
    until_log(&runtime, "arena-1", "done").await;
    assert_ne!(keeper(&world), first);
    stop(&runtime, "arena-1", None, SOON).await;
    assert_eq!(seen.ending("arena-1").await, Ending::Stopped);
}

#[tokio::test]
async fn what_rooms_write_is_kept_while_no_maestro_lives() {
    let world = World::new();
    let stored = start_and_kill_a_maestro(&world).await;
    let first = keeper(&world);
    // Much more than a pipe holds, and nobody but the keeper is there.
    std::fs::write(world.path().join("write-on"), "").unwrap();
    let log = directory(&world, "arena-0").join("game.log");
    eventually("everything is in the log", async || {
        std::fs::read_to_string(&log).is_ok_and(|text| text.ends_with(WRITES_ON))
    })
    .await;
    assert!(log.metadata().unwrap().len() > 300_000);

    let (runtime, mut seen) = world.watch().await;
    runtime.adopt(stored).await.unwrap();
    eventually("the keeper before is gone", async || !runs(first)).await;
    std::fs::write(world.path().join("end"), "").unwrap();
    for number in 0..4 {
        let id = format!("arena-{number}");
        assert!(matches!(seen.ending(&id).await, Ending::Exited { code: 5, .. }));
        assert!(logs(&runtime, &id).await.ends_with("the end\n"));
    }
    let second = keeper(&world);
    assert!(runs(second));
    runtime.shut_down(false).await;
    eventually("without rooms and without Maestro it ends", async || !runs(second)).await;
}
