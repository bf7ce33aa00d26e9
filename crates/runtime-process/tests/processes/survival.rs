//! Rooms live on when the process that started them is killed, and the next one takes care of them.

use std::path::Path;
use std::process::Command;

use maestro_core::room::{Ending, RoomId};
use maestro_core::scheduler::RestartPolicy;
use maestro_engine::ports::runtime::{Handle, RoomEvent, RunningRoom, Runtime};
use maestro_runtime_process::ProcessRuntime;
use rustix::process::Signal;

use crate::support::{
    SOON, Seen, World, arena, carrying, eventually, kill_group, logs, options, room, script, signal, simple,
    stop, until_log,
};

const DIRECTORY: &str = "SURVIVAL_DIRECTORY";
const STORE: &str = "SURVIVAL_STORE";
const READY: &str = "ready.json";
const RUNS: &str = "exec sleep 1000";
const WAITS: &str = "echo up; while [ ! -e ../../../end ]; do sleep 0.01; if [ -e ../../../write-on ] && [ ! $on ]; then on=1; \
                     head -c 300000 /dev/zero | tr '\\0' x; echo; echo written on; fi; done; echo the end; exit 5";
pub(crate) const WRITES_ON: &str = "written on\n";

/// The process that is killed, started by the test below from this very binary; by itself it does nothing.
#[test]
fn maestro_that_will_be_killed() {
    let (Ok(directory), Ok(store)) = (std::env::var(DIRECTORY), std::env::var(STORE)) else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let directory = Path::new(&directory);
        let runtime = ProcessRuntime::open(options(directory, &store)).await.unwrap();
        let mut handles = Vec::new();
        for number in 0..4 {
            let id = format!("arena-{number}");
            let Handle { host, pids, detail } = runtime.start(&simple(&id, WAITS)).await.unwrap();
            until_log(&runtime, &id, "up").await;
            handles.push(serde_json::json!({"id": id, "host": host, "pids": pids, "detail": detail}));
        }
        std::fs::write(directory.join("ready.new"), serde_json::to_vec(&handles).unwrap()).unwrap();
        std::fs::rename(directory.join("ready.new"), directory.join(READY)).unwrap();
        std::future::pending::<()>().await;
    });
}

pub(crate) async fn start_and_kill_a_maestro(world: &World) -> Vec<RunningRoom> {
    let this = std::env::current_exe().unwrap();
    let mut maestro = Command::new(this)
        .args(["--exact", "survival::maestro_that_will_be_killed", "--nocapture"])
        .env(DIRECTORY, world.path())
        .env(STORE, &world.store_id)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let ready = world.path().join(READY);
    eventually("rooms run", async || ready.exists() || maestro.try_wait().unwrap().is_some()).await;
    signal(maestro.id(), Signal::KILL);
    maestro.wait().unwrap();
    let written: Vec<serde_json::Value> = serde_json::from_slice(&std::fs::read(ready).unwrap()).unwrap();
    let stored = |value: &serde_json::Value| RunningRoom {
        id: RoomId::new(value["id"].as_str().unwrap()),
        scheduler: arena(),
        handle: Handle {
            host: value["host"].as_str().unwrap().into(),
            pids: serde_json::from_value(value["pids"].clone()).unwrap(),
            detail: value["detail"].clone(),
        },
    };
    written.iter().map(stored).collect()
}

#[tokio::test]
async fn a_room_whose_watch_crashed_is_watched_again() {
    let world = World::new();
    let options = world.options();
    let tasks = options.tasks.clone();
    let runtime = ProcessRuntime::open(options).await.unwrap();
    let mut seen = Seen::by(&runtime);
    let handle = runtime.start(&simple("arena-1", RUNS)).await.unwrap();
    assert_eq!(seen.next_event("arena-1").await, RoomEvent::Up);
    tasks.crash("room watch");
    // Found again, it is told how it is.
    assert_eq!(seen.next_event("arena-1").await, RoomEvent::Up);
    assert_eq!(tasks.crashes("room watch"), 1);
    assert_eq!(runtime.list().await.unwrap().len(), 1);
    // One that ends is noticed, and one that is to end does.
    signal(handle.pids[0], Signal::KILL);
    seen.ending("arena-1").await;
    runtime.start(&simple("arena-2", RUNS)).await.unwrap();
    assert_eq!(seen.next_event("arena-2").await, RoomEvent::Up);
    tasks.crash("room watch");
    assert_eq!(seen.next_event("arena-2").await, RoomEvent::Up);
    stop(&runtime, "arena-2", None, SOON).await;
    seen.ending("arena-2").await;
    world.until_empty().await;
}

#[tokio::test]
async fn rooms_survive_a_kill_and_are_adopted() {
    let world = World::new();
    let stored = start_and_kill_a_maestro(&world).await;
    let (runtime, mut seen) = world.watch().await;
    let mut listed = runtime.list().await.unwrap();
    listed.sort_by(|one, other| one.id.cmp(&other.id));
    assert_eq!(listed, stored, "the same processes, by pid and start time");

    let pid = |index: usize| stored[index].handle.pids[0];
    kill_group(pid(3));
    eventually("it is gone", async || !carrying(&world.store_id).contains(&pid(3))).await;
    runtime.adopt(stored.clone()).await.unwrap();
    assert_eq!(seen.ending("arena-3").await, Ending::Unwatched);

    // Not our child: the kernel tells all the same, to whoever holds a pidfd.
    signal(pid(0), Signal::SEGV);
    let segfault = Ending::Killed { container: "game".into(), signal: Signal::SEGV.as_raw() };
    assert_eq!(seen.ending("arena-0").await, segfault);
    stop(&runtime, "arena-1", Some(&stored[1].handle), SOON).await;
    assert_eq!(seen.ending("arena-1").await, Ending::Stopped);
    std::fs::write(world.path().join("end"), "").unwrap();
    let exited = Ending::Exited { container: "game".into(), code: 5 };
    assert_eq!(seen.ending("arena-2").await, exited);
    assert_eq!(logs(&runtime, "arena-2").await, "up\nthe end\n", "and its log is where it was");
    world.until_empty().await;
}

#[tokio::test]
async fn a_start_after_a_kill_finds_the_room() {
    let world = World::new();
    let stored = start_and_kill_a_maestro(&world).await;
    let (runtime, mut seen) = world.watch().await;
    let again = runtime.start(&simple("arena-2", WAITS)).await.unwrap();
    assert_eq!(again, stored[2].handle);
    assert_eq!(seen.next_event("arena-2").await, RoomEvent::Up);
    runtime.shut_down(true).await;
    world.until_empty().await;
}

#[tokio::test]
async fn another_stores_rooms_are_left_alone() {
    let (ours, theirs) = (World::new(), World::new());
    let (our_runtime, their_runtime) = (ours.open().await, theirs.open().await);
    let handle = their_runtime.start(&simple("arena-1", WAITS)).await.unwrap();
    assert_eq!(our_runtime.list().await, Ok(vec![]));
    let mut seen = Seen::by(&our_runtime);
    for known in [None, Some(&handle)] {
        stop(&our_runtime, "arena-1", known, SOON).await;
        assert_eq!(seen.ending("arena-1").await, Ending::Lost);
    }
    our_runtime.shut_down(true).await;
    assert_eq!(their_runtime.list().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_room_that_lost_a_container_unwatched_has_ended() {
    let world = World::new();
    let runtime = world.open().await;
    let two = || vec![script("game", WAITS), script("voice", WAITS)];
    let handle = runtime.start(&room("arena-1", RestartPolicy::Never, two())).await.unwrap();
    runtime.shut_down(false).await;
    kill_group(handle.pids[1]);
    let (runtime, mut seen) = world.watch().await;
    let known = RunningRoom { id: RoomId::new("arena-1"), scheduler: arena(), handle };
    runtime.adopt(vec![known]).await.unwrap();
    assert_eq!(seen.ending("arena-1").await, Ending::Unwatched);
    world.until_empty().await;
}

#[tokio::test]
async fn a_start_that_was_cut_short_is_begun_anew() {
    let world = World::new();
    let runtime = world.open().await;
    let two = || room("arena-1", RestartPolicy::Never, vec![script("game", RUNS), script("voice", RUNS)]);
    let half = runtime.start(&two()).await.unwrap();
    runtime.shut_down(false).await;
    kill_group(half.pids[1]);
    eventually("half of it is gone", async || carrying(&world.store_id) == [half.pids[0]]).await;
    let runtime = world.open().await;
    let whole = runtime.start(&two()).await.unwrap();
    assert!(!whole.pids.contains(&half.pids[0]));
    let mut expected = whole.pids;
    expected.sort_unstable();
    eventually("it is whole, and nothing else runs", async || {
        let mut running = carrying(&world.store_id);
        running.sort_unstable();
        running == expected
    })
    .await;
}
