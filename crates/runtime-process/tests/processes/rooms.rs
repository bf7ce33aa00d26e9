//! The life of a room: several containers, what they leave behind, how they end.

use std::time::Duration;

use maestro_core::room::{Ending, HostPort, Purpose, Region, RoomId};
use maestro_core::scheduler::{Protocol, RestartPolicy, SchedulerName};
use maestro_engine::ports::runtime::{Checked, RoomEvent, RoomToStart, RunningRoom, Runtime, RuntimeError};
use maestro_runtime_process::{Options, ProcessRuntime, ProcessScanner};
use rustix::process::Signal;

use crate::support::{
    SOON, Seen, World, arena, carrying, eventually, logs, room, script, signal, simple, stop, until_log,
    variable,
};

const FOR_EVER: &str = "echo up; exec sleep 1000";

#[tokio::test]
async fn the_first_container_to_end_ends_the_room() {
    let world = World::new();
    let (runtime, mut seen) = world.watch().await;
    let containers = vec![
        script("game", "trap 'echo asked; exit 0' TERM; echo up; while :; do sleep 0.01; done"),
        script("voice", "while [ ! -e ../../../end ]; do sleep 0.01; done; exit 7"),
        script("stubborn", "trap '' TERM; echo up; while :; do sleep 0.01; done"),
    ];
    let handle = runtime.start(&room("arena-1", RestartPolicy::Never, containers)).await.unwrap();
    assert_eq!(handle.pids.len(), 3);
    assert_eq!(seen.next_event("arena-1").await, RoomEvent::Up);
    until_log(&runtime, "arena-1", "game: up").await;
    until_log(&runtime, "arena-1", "stubborn: up").await;
    std::fs::write(world.path().join("end"), "").unwrap();
    assert_eq!(seen.next_event("arena-1").await, RoomEvent::GoingDown);
    let expected = Ending::Exited { container: "voice".into(), code: 7 };
    assert_eq!(seen.next_event("arena-1").await, RoomEvent::Ended(expected));
    assert!(logs(&runtime, "arena-1").await.contains("game: asked"), "the others were asked to end");
    world.until_empty().await;
}

#[tokio::test]
async fn a_signal_is_told_by_its_number() {
    let world = World::new();
    let (runtime, mut seen) = world.watch().await;
    for (number, sent) in [Signal::KILL, Signal::SEGV, Signal::TERM].into_iter().enumerate() {
        let id = format!("arena-{number}");
        let handle = runtime.start(&simple(&id, FOR_EVER)).await.unwrap();
        signal(handle.pids[0], sent);
        let expected = Ending::Killed { container: "game".into(), signal: sent.as_raw() };
        assert_eq!(seen.ending(&id).await, expected);
    }
}

#[tokio::test]
async fn what_a_container_started_ends_with_it() {
    let world = World::new();
    let (runtime, mut seen) = world.watch().await;
    let deaf = "(trap '' TERM; echo deaf; while :; do sleep 1000; done) & ";
    for (id, text) in
        [("arena-1", format!("{deaf} sleep 0.1; exit 0")), ("arena-2", format!("{deaf} exec sleep 1000"))]
    {
        runtime.start(&simple(id, &text)).await.unwrap();
        until_log(&runtime, id, "deaf").await;
    }
    stop(&runtime, "arena-2", None, SOON).await;
    assert!(matches!(seen.ending("arena-1").await, Ending::Exited { code: 0, .. }));
    assert_eq!(seen.ending("arena-2").await, Ending::Stopped);
    world.until_empty().await;
}

#[tokio::test]
async fn a_handle_with_another_start_time_stops_nothing() {
    let world = World::new();
    let (runtime, mut seen) = world.watch().await;
    let handle = runtime.start(&simple("arena-1", FOR_EVER)).await.unwrap();
    let mut other = handle.clone();
    other.detail[0]["startTime"] = 1.into();
    stop(&runtime, "arena-1", Some(&other), Duration::ZERO).await;
    assert_eq!(seen.ending("arena-1").await, Ending::Lost);
    eventually("it runs on", async || carrying(&world.store_id) == handle.pids).await;
}

#[tokio::test]
async fn a_room_is_told_who_and_where_it_is() {
    let world = World::new();
    let (runtime, mut seen) = world.watch().await;
    let mut container = script("game", "env; pwd; readlink /proc/self/fd/0");
    container.environment = vec![variable("GREETING", "hello  world"), variable("MAESTRO_ROOM_ID", "x")];
    let mut room = room("arena-1", RestartPolicy::Never, vec![container]);
    room.ports.push(HostPort {
        name: "game".into(),
        protocol: Protocol::Udp,
        container_port: 7777,
        host_port: 20_001,
    });
    runtime.start(&room).await.unwrap();
    seen.ending("arena-1").await;
    let told = logs(&runtime, "arena-1").await;
    let own = world.path().canonicalize().unwrap().join("homes/arena/arena-1");
    for line in [
        "GREETING=hello  world",
        "MAESTRO_SCHEDULER_NAME=arena",
        "MAESTRO_ROOM_ID=arena-1",
        "MAESTRO_ROOMS_API_URL=http://127.0.0.1:8070",
        "MAESTRO_REGION=default",
        "MAESTRO_HOST_PORT_GAME=20001",
        &format!("MAESTRO_STORE_ID={}", world.store_id),
        own.to_str().unwrap(),
        &format!("HOME={}", own.display()),
        "/dev/null",
    ] {
        assert!(told.lines().any(|told| told == line), "{line} is not in\n{told}");
    }
    assert!(!told.contains("CARGO"), "what is ours stays ours\n{told}");
}

#[tokio::test]
async fn a_start_that_nobody_waits_for_any_more_is_watched_all_the_same() {
    let world = World::new();
    let (runtime, mut seen) = world.watch().await;
    let room = simple("arena-1", FOR_EVER);
    let _ = tokio::time::timeout(Duration::ZERO, runtime.start(&room)).await;
    assert_eq!(seen.next_event("arena-1").await, RoomEvent::Up);
    stop(&runtime, "arena-1", None, SOON).await;
    assert_eq!(seen.ending("arena-1").await, Ending::Stopped);
}

/// More than fit into the channel, and nobody takes them while they happen.
#[tokio::test]
async fn no_end_is_lost_and_nobody_waits_for_the_listener() {
    let world = World::new();
    let (runtime, mut seen) = world.watch().await;
    let handle = runtime.start(&simple("arena-x", FOR_EVER)).await.unwrap();
    let gone = |number: u32| RunningRoom {
        id: RoomId::new(&format!("arena-{number}")),
        scheduler: arena(),
        handle: handle.clone(),
    };
    runtime.adopt((0..3000).map(gone).collect()).await.unwrap();
    runtime.start(&simple("arena-y", FOR_EVER)).await.unwrap();
    stop(&runtime, "arena-y", None, SOON).await;
    eventually("it ends, though nobody could be told", async || carrying(&world.store_id) == handle.pids)
        .await;
    let mut ends = std::collections::BTreeSet::new();
    while ends.len() < 3001 {
        let observation = tokio::time::timeout(SOON, seen.observations.recv()).await.unwrap().unwrap();
        if let RoomEvent::Ended(_) = observation.event {
            assert!(ends.insert(observation.room), "told once");
        }
    }
}

#[tokio::test]
async fn shut_down_waits_for_all_rooms_at_once() {
    let world = World::new();
    let (runtime, mut seen) = world.watch().await;
    for number in 0..5 {
        let id = format!("arena-{number}");
        runtime.start(&simple(&id, "trap '' TERM; echo deaf; while :; do sleep 1000; done")).await.unwrap();
        until_log(&runtime, &id, "deaf").await;
    }
    runtime.shut_down(true).await;
    world.until_empty().await;
    for number in 0..5 {
        let event = seen.ending(&format!("arena-{number}")).await;
        assert_eq!(event, Ending::KilledAfterGrace);
    }
}

/// Two regions on one machine share a store, and nothing else.
#[tokio::test]
async fn a_region_leaves_the_rooms_of_another_alone() {
    let world = World::new();
    let region = |name: &str| Options {
        directory: world.path().join(name),
        region: Region(name.into()),
        ..world.options()
    };
    let us = ProcessRuntime::open(region("us-east")).await.unwrap();
    let eu = ProcessRuntime::open(region("eu-west")).await.unwrap();
    us.start(&simple("arena-1", "echo $MAESTRO_REGION; exec sleep 1000")).await.unwrap();
    until_log(&us, "arena-1", "us-east").await;
    assert_eq!(us.list().await.unwrap().len(), 1);
    assert_eq!(eu.list().await.unwrap(), []);
    // Nor does it after a restart, when all that is known is what the processes carry.
    let again = ProcessRuntime::open(region("eu-west")).await.unwrap();
    assert_eq!(again.list().await.unwrap(), []);
    again.shut_down(true).await;
    assert_eq!(us.list().await.unwrap().len(), 1);
    us.shut_down(true).await;
    world.until_empty().await;
}

#[tokio::test]
async fn a_region_whose_directory_is_gone_says_so() {
    let world = World::new();
    let directory = world.path().join("mounted");
    let options = Options { directory: directory.clone(), ..world.options() };
    let runtime = ProcessRuntime::open(options).await.unwrap();
    assert_eq!(runtime.check().await, Ok(Checked { capacity: Some(10_000) }));
    std::fs::remove_dir_all(&directory).unwrap();
    let error = runtime.check().await.unwrap_err().to_string();
    assert!(error.contains("mounted/rooms cannot be used: No such file"), "{error}");
    std::fs::create_dir_all(directory.join("rooms")).unwrap();
    assert!(runtime.check().await.is_ok());
}

/// As when hundreds of schedulers compare registry and runtime at the same moment, in several regions of one host.
#[tokio::test]
async fn a_herd_of_lists_shares_its_scans() {
    let world = World::new();
    let scanner = ProcessScanner::new(None);
    let region = |name: &str| Options {
        directory: world.path().join(name),
        region: Region(name.into()),
        scanner: scanner.clone(),
        ..world.options()
    };
    let us = ProcessRuntime::open(region("us-east")).await.unwrap();
    let eu = ProcessRuntime::open(region("eu-west")).await.unwrap();
    us.start(&simple("arena-1", FOR_EVER)).await.unwrap();
    let before = scanner.scans();
    let (other, arena) = (SchedulerName::parse("other").unwrap(), arena());
    let herd = (0..200).map(async |_| {
        assert_eq!(us.list_of(&arena).await.unwrap().len(), 1);
        assert_eq!(us.list_of(&other).await.unwrap(), []);
        assert_eq!(eu.list().await.unwrap(), []);
    });
    futures_util::future::join_all(herd).await;
    // Each of the three calls of a member waits for a scan that begins after it: at least three in all. How many more
    // depends on who is awake when one begins.
    let scans = scanner.scans() - before;
    assert!((3..=30).contains(&scans), "{scans} scans for 600 lists");
}

#[tokio::test]
async fn a_host_holds_so_many_rooms_and_no_more() {
    let world = World::new();
    let runtime = ProcessRuntime::open(Options { rooms_max: 2, ..world.options() }).await.unwrap();
    let mut seen = Seen::by(&runtime);
    let rooms: Vec<_> = (0..10).map(|number| simple(&format!("arena-{number}"), FOR_EVER)).collect();
    let started = futures_util::future::join_all(rooms.iter().map(|room| runtime.start(room))).await;
    let refused = "region default holds at most 2 rooms (adapters.runtime.process.roomsMax)";
    let refusals = started.iter().filter(|started| **started == Err(RuntimeError::Full(refused.into())));
    assert_eq!(refusals.count(), 8, "{started:?}");
    let running: Vec<_> = (0..10).filter(|number| started[*number].is_ok()).collect();
    assert_eq!(running.len(), 2);
    assert_eq!(runtime.start(&rooms[running[0]]).await, started[running[0]], "one that runs is found");

    let trial = RoomToStart { purpose: Purpose::Validation, ..simple("arena-trial", FOR_EVER) };
    runtime.start(&trial).await.expect("one that tries a version comes on top");

    let capacity = |scheduler: &str| runtime.capacity(&SchedulerName::parse(scheduler).unwrap()).unwrap();
    assert_eq!((capacity("arena").rooms, capacity("arena").taken_by_others), (2, 0));
    assert_eq!((capacity("other").rooms, capacity("other").taken_by_others), (2, 2));
    let ended = format!("arena-{}", running[0]);
    stop(&runtime, &ended, None, SOON).await;
    seen.ending(&ended).await;
    runtime.start(&simple("arena-x", FOR_EVER)).await.unwrap();
}
