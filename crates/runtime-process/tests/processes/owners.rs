//! Two servers with copies of one store: neither touches the rooms of the other while it lives.

use maestro_core::room::{Ending, RoomId};
use maestro_engine::ports::runtime::{RunningRoom, Runtime};
use maestro_runtime_process::{Options, ProcessRuntime};

use crate::support::{SOON, Seen, World, arena, carrying, eventually, simple, stop};

#[tokio::test]
async fn rooms_of_a_live_server_on_another_data_directory_are_left_alone() {
    let original = World::new();
    let elsewhere = World::new();
    // Somebody runs there; who, is the store's to know.
    std::fs::write(original.path().join("server.pid"), "1").unwrap();
    let runtime = original.open().await;
    let handle = runtime.start(&simple("arena-1", "exec sleep 1000")).await.unwrap();

    let copy = Options { store_id: original.store_id.clone(), ..elsewhere.options() };
    let other = ProcessRuntime::open(copy).await.unwrap();
    let mut seen = Seen::by(&other);
    assert_eq!(other.list().await, Ok(vec![]));
    for known in [None, Some(&handle)] {
        stop(&other, "arena-1", known, SOON).await;
        assert_eq!(seen.ending("arena-1").await, Ending::Lost);
    }
    let known = RunningRoom { id: RoomId::new("arena-1"), scheduler: arena(), handle: handle.clone() };
    other.adopt(vec![known.clone()]).await.unwrap();
    assert_eq!(seen.ending("arena-1").await, Ending::Unwatched);
    assert_eq!(carrying(&original.store_id), handle.pids, "it runs on");

    // The original is gone: whoever has its store takes over its rooms.
    runtime.shut_down(false).await;
    std::fs::remove_file(original.path().join("server.pid")).unwrap();
    assert_eq!(other.list().await.unwrap().len(), 1);
    other.adopt(vec![known]).await.unwrap();
    stop(&other, "arena-1", Some(&handle), SOON).await;
    assert_eq!(seen.ending("arena-1").await, Ending::Stopped);
    eventually("it is gone", async || carrying(&original.store_id).is_empty()).await;
}
