//! What a room leaves behind ends with it, before its end is told.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::time::Duration;

use maestro_core::room::{Ending, HostPort, RoomId};
use maestro_core::scheduler::Protocol;
use maestro_engine::ports::runtime::{RunningRoom, Runtime};

use crate::support::{
    SOON, World, arena, carrying, eventually, kill_group, leads_its_group, simple, stop, until_log,
};

/// A child in a session of its own, and a daemon that forked twice: it leads no group, and its parent is gone.
const LEAVES_TWO: &str = "setsid sleep 1000 & setsid sh -c 'trap \"\" TERM; sleep 1000 & echo daemon' & \
                          while ! [ -e end ]; do sleep 0.01; done";

/// Of those that lead no group, the parent of one is not there any more.
async fn until_both_run(world: &World, at_least: usize) {
    eventually("children in groups of their own", async || {
        let pids = carrying(&world.store_id);
        pids.len() >= at_least && pids.iter().any(|pid| leads_its_group(*pid))
    })
    .await;
}

#[tokio::test]
async fn daemons_and_children_in_groups_of_their_own_end_with_the_room() {
    let world = World::new();
    let (runtime, mut seen) = world.watch().await;
    let handle = runtime.start(&simple("arena-1", LEAVES_TWO)).await.unwrap();
    until_log(&runtime, "arena-1", "daemon").await;
    until_both_run(&world, 3).await;
    assert_eq!(runtime.list().await.unwrap().len(), 1, "one room, not several");
    stop(&runtime, "arena-1", Some(&handle), SOON).await;
    assert_eq!(seen.ending("arena-1").await, Ending::Stopped);
    assert_eq!(carrying(&world.store_id), [0; 0], "whoever hears of the end finds nothing");
}

/// The next room that gets the port could not listen otherwise.
#[tokio::test]
async fn a_port_that_a_daemon_holds_is_free_when_the_end_of_its_room_is_told() {
    let world = World::new();
    let (runtime, mut seen) = world.watch().await;
    let host_port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let listen = format!(
        "import socket, time; s = socket.create_server((\"\", {host_port})); print(\"daemon\", flush=True); \
         time.sleep(1000)"
    );
    let port = HostPort { name: "game".into(), protocol: Protocol::Tcp, container_port: 7777, host_port };
    let ports = std::slice::from_ref(&port);
    for (id, script) in [
        ("arena-1", format!("exec python3 -c '{listen}'")),
        ("arena-2", format!("setsid python3 -c '{listen}' & exec sleep 1000")),
    ] {
        let handle = runtime.start(&simple(id, &script)).await.unwrap();
        until_log(&runtime, id, "daemon").await;
        assert_eq!(runtime.free_ports(ports).await, Ok(vec![]), "{id} holds it");
        stop(&runtime, id, Some(&handle), SOON).await;
        assert_eq!(seen.ending(id).await, Ending::Stopped);
        assert_eq!(runtime.free_ports(ports).await.as_deref(), Ok(ports), "{id} has ended");
    }
}

#[tokio::test]
async fn many_rooms_are_cleared_up_at_once() {
    let world = World::new();
    let (runtime, mut seen) = world.watch().await;
    let ids: Vec<String> = (0..20).map(|number| format!("arena-{number}")).collect();
    for id in &ids {
        runtime.start(&simple(id, LEAVES_TWO)).await.unwrap();
    }
    for id in &ids {
        until_log(&runtime, id, "daemon").await;
    }
    let other = runtime.start(&simple("arena-x", "exec sleep 1000")).await.unwrap();
    for id in &ids {
        stop(&runtime, id, None, Duration::ZERO).await;
    }
    for id in &ids {
        seen.ending(id).await;
    }
    assert_eq!(carrying(&world.store_id), other.pids, "and nothing but what they left");
}

#[tokio::test]
async fn what_a_room_left_while_nobody_watched_ends_when_it_is_missed() {
    let world = World::new();
    let (runtime, _) = world.watch().await;
    let handle = runtime.start(&simple("arena-1", LEAVES_TWO)).await.unwrap();
    until_log(&runtime, "arena-1", "daemon").await;
    until_both_run(&world, 3).await;
    runtime.shut_down(false).await;
    kill_group(handle.pids[0]);

    let (runtime, mut seen) = world.watch().await;
    let known = RunningRoom { id: RoomId::new("arena-1"), scheduler: arena(), handle };
    runtime.adopt(vec![known]).await.unwrap();
    assert_eq!(seen.ending("arena-1").await, Ending::Unwatched);
    assert_eq!(carrying(&world.store_id), [0; 0]);
}

/// All processes that were started with this argument.
fn with_argument(argument: &str) -> BTreeSet<u32> {
    let entries = std::fs::read_dir("/proc").unwrap();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let has = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|part| part == argument.as_bytes())
    };
    pids.filter(has).collect()
}

/// Where cgroups can be made, they also hold what has no marks any more.
#[tokio::test]
async fn a_daemon_without_environment_ends_with_its_cgroup() {
    let world = World::new();
    let (runtime, mut seen) = world.watch().await;
    let argument = format!("1000.{}", std::process::id());
    let text = format!(
        "echo up; while ! grep -q /arena-1$ /proc/self/cgroup; do sleep 0.01; done; \
         env -i setsid sleep {argument} & exec sleep 1000"
    );
    let handle = runtime.start(&simple("arena-1", &text)).await.unwrap();
    until_log(&runtime, "arena-1", "up").await;
    let own = std::fs::read_to_string(format!("/proc/{}/cgroup", handle.pids[0])).unwrap();
    if !own.lines().any(|line| line.ends_with("/arena-1")) {
        println!("no cgroup can be made here: {own}");
        return;
    }
    eventually("it has no marks", async || {
        with_argument(&argument).into_iter().any(|pid| !carrying(&world.store_id).contains(&pid))
    })
    .await;
    stop(&runtime, "arena-1", Some(&handle), SOON).await;
    assert_eq!(seen.ending("arena-1").await, Ending::Stopped);
    assert_eq!(with_argument(&argument), BTreeSet::new());
}
