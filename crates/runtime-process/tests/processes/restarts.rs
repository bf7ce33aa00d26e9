//! Containers that are started again, and the handle of a room that changes by it.

use std::time::Duration;

use maestro_core::room::{Ending, RoomId};
use maestro_core::scheduler::RestartPolicy;
use maestro_engine::ports::runtime::{RoomEvent, RunningRoom, Runtime};

use crate::support::{
    SOON, World, arena, carrying, eventually, kill_group, logs, room, script, stop, until_log,
};

const FOR_EVER: &str = "echo up; exec sleep 1000";

fn always(id: &str) -> maestro_engine::ports::runtime::RoomToStart {
    let containers = vec![script("game", FOR_EVER), script("voice", FOR_EVER)];
    room(id, RestartPolicy::Always, containers)
}

#[tokio::test]
async fn a_restarted_room_answers_to_its_first_handle() {
    let world = World::new();
    let (runtime, mut seen) = world.watch().await;
    let first = runtime.start(&always("arena-1")).await.unwrap();
    assert_eq!(seen.next_event("arena-1").await, RoomEvent::Up);
    until_log(&runtime, "arena-1", "game: up").await;
    kill_group(first.pids[0]);
    assert_eq!(seen.next_event("arena-1").await, RoomEvent::Pending);
    assert_eq!(runtime.list().await.unwrap().len(), 1, "it is there while it waits");
    assert_eq!(seen.next_event("arena-1").await, RoomEvent::Up);
    let second = runtime.list().await.unwrap().remove(0).handle;
    assert_ne!(second.pids[0], first.pids[0]);
    assert_eq!(second.pids[1], first.pids[1], "only what ended is started again");
    assert_eq!(runtime.start(&always("arena-1")).await, Ok(second));
    stop(&runtime, "arena-1", Some(&first), SOON).await;
    assert_eq!(seen.ending("arena-1").await, Ending::Stopped);
    world.until_empty().await;
}

#[tokio::test]
async fn a_restarted_room_is_adopted_by_its_first_handle() {
    let world = World::new();
    let (runtime, mut seen) = world.watch().await;
    let first = runtime.start(&always("arena-1")).await.unwrap();
    seen.next_event("arena-1").await;
    kill_group(first.pids[0]);
    assert_eq!(seen.next_event("arena-1").await, RoomEvent::Pending);
    assert_eq!(seen.next_event("arena-1").await, RoomEvent::Up);
    let second = runtime.list().await.unwrap().remove(0).handle;
    runtime.shut_down(false).await;

    kill_group(second.pids[1]);
    let (runtime, mut seen) = world.watch().await;
    let known = RunningRoom { id: RoomId::new("arena-1"), scheduler: arena(), handle: first.clone() };
    runtime.adopt(vec![known]).await.unwrap();
    eventually("what ended meanwhile is started again", async || carrying(&world.store_id).len() == 2).await;
    stop(&runtime, "arena-1", Some(&first), SOON).await;
    assert_eq!(seen.ending("arena-1").await, Ending::Stopped);
    world.until_empty().await;
}

#[tokio::test]
async fn on_failure_means_not_on_success() {
    let world = World::new();
    let (runtime, mut seen) = world.watch().await;
    let text = "[ -e tried ] && exit 0; touch tried; echo once; exit 1";
    let twice = room("arena-1", RestartPolicy::OnFailure, vec![script("game", text)]);
    runtime.start(&twice).await.unwrap();
    assert!(matches!(seen.ending("arena-1").await, Ending::Exited { code: 0, .. }));
    assert_eq!(logs(&runtime, "arena-1").await, "once\n");
}

#[tokio::test]
async fn a_room_that_waits_for_its_restart_can_be_stopped() {
    let world = World::new();
    let (runtime, mut seen) = world.watch().await;
    let crashing = room("arena-1", RestartPolicy::Always, vec![script("game", "echo x; exit 1")]);
    let handle = runtime.start(&crashing).await.unwrap();
    while seen.next_event("arena-1").await != RoomEvent::Pending {}
    stop(&runtime, "arena-1", Some(&handle), Duration::from_secs(3600)).await;
    assert_eq!(seen.ending("arena-1").await, Ending::Stopped);
    assert_eq!(logs(&runtime, "arena-1").await, "x\n", "it did not spin");
}
